//! The task for every subject, and its calls.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use jurat_bench_load::{Method, RequestVariation, RunningRole, Target, load::DIGITS};
use jurat_bench_round::request;
use jurat_engine::{Clock as _, SystemClock};
use jurat_wire::executor::TaskContract;
use serde_json::{Value, json};

/// No contract expires while it is measured.
const DAY_MS: u64 = 86_400_000;

/// `POST /v1/tasks`, answered at the end of the task. No two tasks have the same name or inputs, so
/// no earlier decision can be reused.
pub(crate) fn target(role: &RunningRole, quorum: u32) -> Result<Target> {
    let mut headers = request::headers(&role.note)?;
    headers.push((HeaderName::from_static("prefer"), HeaderValue::from_static("wait=60")));
    let body = order(&"0".repeat(DIGITS), quorum).to_string();
    Ok(Target {
        address: role.address,
        method: Method::POST,
        path: "/v1/tasks".to_owned(),
        headers,
        vary: RequestVariation::zeros_of(&body),
        body: Bytes::from(body),
        marker: r#""state":"finalized""#.to_owned(),
    })
}

/// One executor proposes, and as many others as the quorum vote, concurrently.
pub(crate) fn order(number: &str, quorum: u32) -> Value {
    let tomorrow = SystemClock.now().plus_millis(DAY_MS).millis();
    let tomorrow = u64::try_from(tomorrow).unwrap_or_default();
    let mut contract = TaskContract::sample(&format!("bench-{number}"), tomorrow);
    contract.inputs = json!({ "prompt": format!("Which ships came in on day {number}?") });
    contract.acceptance.quorum_threshold = quorum;
    contract.assignment.verify.max_verifiers = quorum;
    contract.assignment.claim.max_concurrency.verify = quorum;
    let verifiers: Vec<String> = (1..=quorum).map(|it| format!("executor-{it}")).collect();
    json!({ "contract": contract, "executors": ["executor-0"], "verifiers": verifiers })
}

/// The body of `POST /execute` for the task.
pub(crate) fn to_execute(order: &Value, execution_id: &str) -> Value {
    let contract = &order["contract"];
    json!({
        "task_id": contract["task_id"],
        "execution_id": execution_id,
        "task_type": contract["task_type"],
        "inputs": contract["inputs"],
        "profile": "default",
        "task_contract": contract,
        "stage": "EXPLORE",
        "attempt_id": execution_id,
        "seed_bundle": null,
    })
}

/// The body of `POST /verify` for the proposal.
pub(crate) fn to_verify(order: &Value, execution_id: &str, output: &Value) -> Value {
    let contract = &order["contract"];
    json!({
        "candidate": {
            "candidate_id": format!("cand-{execution_id}"),
            "execution_id": execution_id,
            "output": output,
            "evidence_inline": [],
            "evidence_refs": [],
        },
        "output_schema": contract["output_schema"],
        "policy": contract["acceptance"]["verifier_policy"],
    })
}

/// How long the first task of a store may take.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_mins(1);
