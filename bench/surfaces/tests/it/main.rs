//! Runs the measurement from end to end and reads its report.

use std::process::Command;

use serde_json::Value;

#[test]
fn a_short_run_reports_every_surface_beside_rest() {
    let words = "--requests 30 --warm-up 1 --rounds 1 --connections 2 --memory --json";
    let mut program = Command::new(env!("CARGO_BIN_EXE_jurat-bench-surfaces"));
    let run = program.args(words.split(' ')).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    let surfaces = ["rest", "rest-idempotent", "mcp", "a2a-rpc", "a2a-http", "openai"];
    for (job, count) in [("validate", 5), ("delegate", 6)] {
        let subjects = report[job]["subjects"].as_array().unwrap();
        let names: Vec<&str> = subjects.iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, surfaces[..count]);
    }
}
