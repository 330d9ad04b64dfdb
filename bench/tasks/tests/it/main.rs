//! Runs the measurement from end to end and reads its report.

use std::process::Command;

use serde_json::Value;

#[test]
fn a_short_run_reports_tasks_and_logs() {
    let words = "--requests 10 --warm-up 1 --rounds 1 --quorums 1,3 --clients 2 --events 0,200";
    let mut program = Command::new(env!("CARGO_BIN_EXE_jurat-bench-tasks"));
    // Such a short run says nothing about durations.
    let flags = ["--json", "--most-ratio", "1000"];
    let run = program.args(words.split(' ')).args(flags).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["store"], "SQLite");
    for (at, quorum) in [1, 3].iter().enumerate() {
        assert_eq!(report["tasks"][at]["quorum"], *quorum);
        let figures = &report["tasks"][at]["figures"];
        assert_eq!(figures["connections"], 2);
        for (at, name) in ["bare", "jurat", "jurat-memory"].iter().enumerate() {
            assert_eq!(figures["subjects"][at]["name"], *name);
        }
    }
    assert_eq!(report["logs"]["subjects"][1]["name"], "200 events");
    assert!(0.0 < report["logs"]["ratios"][0]["ratio"]["p50_us"]["median"].as_f64().unwrap());
}
