//! Runs the measurement from end to end and reads its report.

use std::process::Command;

use serde_json::Value;

#[test]
fn a_short_run_reports_every_load_on_both_servers() {
    let words = "--seconds 0.2 --rounds 1 --lanes 32 --stalled 14 --replicas 1 --json";
    let program = env!("CARGO_BIN_EXE_jurat-bench-overload");
    let run = Command::new(program).args(words.split(' ')).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(0.0 < report["capacity"].as_f64().unwrap());
    let phases = report["phases"].as_array().unwrap();
    assert_eq!(phases.len(), 8);
    let answered = |phase: &Value| {
        ["good", "shed", "late"].iter().filter_map(|name| phase[name].as_f64()).sum::<f64>()
    };
    assert!(phases.iter().all(|phase| 0.0 < answered(phase)), "{report}");
    assert_eq!(report["aims"].as_array().unwrap().len(), 8);
}
