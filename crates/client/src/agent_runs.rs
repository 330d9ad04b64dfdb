//! `/v1/runs`: runs of several agents.

use jurat_wire::api::agent_runs::{
    AgentRunBody, AgentRunEventBody, AgentRunLine, AgentRunResultBody, AgentRunSubmitted,
    CancelRunDraft,
};
use serde_json::Value;

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/runs";
/// The event that ends the stream of a run: the run itself.
pub const LAST_EVENT: &str = jurat_wire::api::agent_runs::RUN;

/// Submits a spec, which is a user's document.
pub fn submit(order: &Value) -> Call<AgentRunSubmitted<'static>> {
    Call::post(ROUTE, order)
}

pub fn kickoff(id: &str) -> Call<AgentRunBody<'static>> {
    Call::post_empty(path(ROUTE, &[id, "kickoff"]))
}

pub fn retry(id: &str) -> Call<AgentRunBody<'static>> {
    Call::post_empty(path(ROUTE, &[id, "retry"]))
}

pub fn cancel(id: &str, reason: Option<&str>) -> Call<AgentRunBody<'static>> {
    let body = CancelRunDraft { reason: reason.map(str::to_owned) };
    Call::post(path(ROUTE, &[id, "cancel"]), &body)
}

pub fn list(status: Option<&str>) -> Call<Page<AgentRunLine>> {
    Call::get(ROUTE).query("status", status)
}

pub fn show(id: &str) -> Call<AgentRunBody<'static>> {
    Call::get(path(ROUTE, &[id]))
}

pub fn result(id: &str) -> Call<AgentRunResultBody<'static>> {
    Call::get(path(ROUTE, &[id, "result"]))
}

pub fn events(id: &str, limit: Option<u32>) -> Call<Page<AgentRunEventBody<'static>>> {
    Call::get(path(ROUTE, &[id, "events"])).query("limit", limit)
}

/// The events as a stream, which ends with the run.
pub fn follow(id: &str) -> Call<AgentRunBody<'static>> {
    events(id, None).reading()
}
