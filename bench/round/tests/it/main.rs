//! Runs the measurement from end to end and reads its report.

use std::process::Command;

use serde_json::Value;

#[test]
fn a_short_run_reports_every_subject_with_its_metrics() {
    let words = "--requests 40 --warm-up 1 --rounds 2 --connections 2 --json";
    let run = Command::new(env!("CARGO_BIN_EXE_jurat-bench-round")).args(words.split(' ')).output();
    let run = run.unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["subjects"][0]["name"], "bare");
    assert_eq!(report["subjects"][0]["turns"].as_array().unwrap().len(), 2);
    assert!(0.0 < report["subjects"][0]["median"]["p99_us"].as_f64().unwrap());
}

#[test]
fn an_invalid_number_of_replicas_is_refused() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_jurat-bench-round"));
    let run = program.args(["--replicas", "4"]).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).contains("1, 3 or 5 replicas, not `4`"));
}
