//! Runs the measurement from end to end and reads its report.

use std::process::Command;

use serde_json::Value;

#[test]
fn a_short_run_reports_every_subject_with_its_metrics() {
    let words = "--requests 40 --warm-up 1 --rounds 2 --connections 2 --json";
    let mut program = Command::new(env!("CARGO_BIN_EXE_jurat-bench-verify"));
    let run = program.args(words.split(' ')).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["subjects"][0]["name"], "echo");
    assert_eq!(report["subjects"][1]["name"], "runtime");
    assert!(0.0 < report["subjects"][1]["median"]["requests_per_second"].as_f64().unwrap());
    assert!(0.0 < report["ratios"][0]["ratio"]["p50_us"]["median"].as_f64().unwrap());
}
