//! Example requests and replies for agent runs, which a test replays.

use serde_json::{Value, json};

pub(super) const AT: &str = "2026-09-21T14:13:20Z";

pub(super) fn submitted() -> Value {
    json!({ "ok": true, "run_id": "bridges-1", "kicked_off": false, "status": "CREATED" })
}

pub(super) fn line(status: &str, (created, queued, cancelled): (u32, u32, u32)) -> Value {
    json!({
        "run_id": "bridges-1", "status": status, "task_type": "swarm",
        "created_at": AT, "updated_at": AT, "started_at": null, "finished_at": null,
        "counts": {
            "created": created, "queued": queued, "leased": 0, "succeeded": 0, "failed": 0,
            "retry_wait": 0, "cancelled": cancelled, "remote_dispatched": 0,
        },
        "iteration": 0, "error": null,
    })
}

pub(super) fn example_run(status: &str, step: &str) -> Value {
    let count = |word: &str| u32::from(step == word) * 2;
    let counts = (count("CREATED"), count("QUEUED"), count("CANCELLED"));
    let mut body = line(status, counts);
    let of = |agent: &str, executor: &str, weight: f64| {
        json!({
            "agent_id": agent, "executor": executor, "profile": "default", "weight": weight,
            "priority": 0, "status": step, "attempt": 1, "task_id": null, "worker": null,
            "error": null,
        })
    };
    if matches!(status, "CANCELLED") {
        body["finished_at"] = json!(AT);
    }
    body["steps"] = json!([of("one", "alpha", 1.0), of("two", "beta", 2.0)]);
    body
}
