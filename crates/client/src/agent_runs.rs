//! `/v1/runs`: runs of several agents.

use jurat_wire::api::agent_runs::{
    AgentRunBody, AgentRunEventBody, AgentRunLine, AgentRunResultBody, AgentRunSubmitted,
};
use serde_json::{Value, json};

use crate::call::{Call, Page, members, path};

const ROUTE: &str = "/v1/runs";
/// The event that ends the stream of a run: the run itself.
pub const LAST_EVENT: &str = jurat_wire::api::agent_runs::RUN;

pub fn submit(order: &Value) -> Call<AgentRunSubmitted<'static>> {
    Call::post(ROUTE, order)
}

pub fn kickoff(id: &str) -> Call<AgentRunBody<'static>> {
    Call::post(path(ROUTE, &[id, "kickoff"]), &json!({}))
}

pub fn retry(id: &str) -> Call<AgentRunBody<'static>> {
    Call::post(path(ROUTE, &[id, "retry"]), &json!({}))
}

pub fn cancel(id: &str, reason: Option<&str>) -> Call<AgentRunBody<'static>> {
    Call::post(path(ROUTE, &[id, "cancel"]), &members([("reason", json!(reason))]))
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
