//! `/v1/verifiers`.

pub(crate) mod credit;
mod judged;
pub(crate) mod life;
mod measured;
pub(crate) mod refusals;
pub(crate) mod runs;
mod sparing;
pub(crate) mod tokens;
pub(crate) mod unreachable;

use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::app::{TestApp, TestCaller, TestReply};
use serde_json::{Value, json};

/// The scopes of an owner of verifiers.
const OWNER: &[Scope] = &[Scope::VerifiersRead, Scope::VerifiersWrite, Scope::VerifiersRun];

/// A valid request.
fn claims() -> Value {
    json!({
        "name": "claims-cite-source",
        "description": "Every factual claim is backed by the source.",
        "criterion": "Return passed=true when the source supports every factual claim of the response, otherwise passed=false.",
        "input_contract": "text",
        "input_fields": ["response", "source"],
        "few_shot_examples": [
            { "inputs": { "response": "It rains.", "source": "Rain all day." }, "passed": true, "reasoning": "The source says so." },
            { "inputs": { "response": "It snows.", "source": "Rain all day." }, "passed": false },
        ],
        "model_settings": { "model": "anthropic/claude-sonnet-4-6", "reasoning_effort": "medium" },
    })
}

/// The same with another member.
fn claims_with(name: &str, value: Value) -> Value {
    let mut body = claims();
    body[name] = value;
    body
}

async fn deploy(caller: &TestCaller<'_>, body: &Value) -> Value {
    let reply = caller.post("/v1/verifiers", body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    reply.json()
}

async fn owner(app: &TestApp) -> TestCaller<'_> {
    app.caller("alice", OWNER).await
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[track_caller]
fn assert_problem(reply: &TestReply, status: StatusCode, code: &str) {
    assert_eq!((reply.status, text(&reply.json()["code"])), (status, code), "{}", reply.text());
}
