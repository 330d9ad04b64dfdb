//! Runs the measurement from end to end and reads its report.

use std::process::Command;

use serde_json::Value;

#[test]
fn a_short_run_reports_runs_lists_and_verifiers() {
    let words = "--requests 20 --warm-up 1 --rounds 1 --clients 1,2 --verifiers 2,30 --json";
    let mut program = Command::new(env!("CARGO_BIN_EXE_jurat-bench-registry"));
    // Such a short run says nothing about durations.
    let run = program.args(words.split(' ')).args(["--most-ratio", "1000"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["store"], "SQLite");
    assert_eq!(report["runs"][1]["connections"], 2);
    for (at, name) in ["call", "bare", "jurat", "jurat-memory"].iter().enumerate() {
        assert_eq!(report["runs"][0]["subjects"][at]["name"], *name);
    }
    for part in ["lists", "shows"] {
        assert_eq!(report[part]["subjects"][1]["name"], "30 verifiers");
        assert!(0.0 < report[part]["ratios"][0]["ratio"]["p50_us"]["median"].as_f64().unwrap());
    }
}
