//! Executors that answer immediately and pass every candidate, several in one process.

use std::net::Ipv4Addr;

use anyhow::Result;
use axum::Router;
use axum::extract::Json;
use axum::routing::{get, post};
use jurat_bench_load::{RunningRole, announce, until_parent_goes};
use jurat_core::canonical::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Serves the requested number, each on a port of its own, and announces all ports in one line.
pub async fn serve(count: usize) -> Result<()> {
    let mut servers = JoinSet::new();
    let mut ports = Vec::new();
    for number in 0..count {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        ports.push(listener.local_addr()?.port());
        servers.spawn(axum::serve(listener, router(number)).into_future());
    }
    let (first, rest) = ports.split_first().unwrap_or((&0, &[]));
    let rest: Vec<String> = rest.iter().map(u16::to_string).collect();
    announce(*first, &rest.join(" "));
    until_parent_goes().await;
    Ok(())
}

/// The base addresses that the role announced.
pub fn urls(role: &RunningRole) -> Vec<String> {
    let first = role.address.port().to_string();
    let ports = std::iter::once(first.as_str()).chain(role.note.split_whitespace());
    ports.map(|port| format!("http://127.0.0.1:{port}")).collect()
}

fn router(number: usize) -> Router {
    let model = format!("instant-{number}");
    let capabilities = json!({
        "task_types": ["*"],
        "profiles": ["default"],
        "provider_family": format!("bench-{number}"),
        "model_id": model,
    });
    let verify = {
        let family = format!("bench-{number}");
        async move |Json(call): Json<VerifyCall>| Json(pass(&call, &family, &model))
    };
    Router::new()
        .route("/health", get(async || Json(json!({ "status": "ok" }))))
        .route("/capabilities", get(async move || Json(capabilities)))
        .route("/execute", post(async |Json(call): Json<Value>| Json(propose(&call))))
        .route("/verify", post(verify))
}

/// An answer of typical size, which depends on the request.
fn propose(call: &Value) -> Value {
    json!({
        "candidate_output": {
            "answer": format!("Forty-one, with three that only passed by. {}", call["inputs"]["prompt"]),
            "confidence": 0.91,
        },
        "evidence_inline": [],
        "evidence_refs": [],
    })
}

/// The part of the request that the hash needs.
#[derive(Debug, Deserialize)]
struct VerifyCall {
    candidate: CandidateIds,
    policy: PolicyHashField,
}

#[derive(Debug, Deserialize)]
struct CandidateIds {
    candidate_id: String,
    execution_id: String,
}

#[derive(Debug, Deserialize)]
struct PolicyHashField {
    policy_hash: String,
}

/// The hashed fields, in the order of the keys.
#[derive(Debug, Serialize)]
struct HashInput<'a> {
    candidate_id: &'a str,
    execution_id: &'a str,
    model_id: &'a str,
    passed: bool,
    policy_hash: &'a str,
    provider_family: &'a str,
    reason_codes: [u16; 0],
    score: f64,
}

fn pass(call: &VerifyCall, provider_family: &str, model_id: &str) -> Value {
    let hashed = HashInput {
        candidate_id: &call.candidate.candidate_id,
        execution_id: &call.candidate.execution_id,
        model_id,
        passed: true,
        policy_hash: &call.policy.policy_hash,
        provider_family,
        reason_codes: [],
        score: 1.0,
    };
    json!({
        "passed": true,
        "score": 1.0,
        "reason_codes": [],
        "verification_status": "passed",
        "verifier_result_hash": digest(&serde_json::to_vec(&hashed).unwrap_or_default()),
        "provider_family": provider_family,
        "model_id": model_id,
    })
}
