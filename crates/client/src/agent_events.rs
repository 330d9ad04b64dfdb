//! `/v1/agent-events`.

use jurat_wire::api::agent_events::{AgentEventEntry, SendAgentEventDraft};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/agent-events";

pub fn list(
    state: Option<&str>,
    executor: Option<&str>,
    needs_review: Option<bool>,
) -> Call<Page<AgentEventEntry<'static>>> {
    Call::get(ROUTE)
        .query("state", state)
        .query("executor", executor)
        .query("needs_review", needs_review)
}

pub fn show(id: &str) -> Call<AgentEventEntry<'static>> {
    Call::get(path(ROUTE, &[id]))
}

pub fn send(event: &SendAgentEventDraft) -> Call<AgentEventEntry<'static>> {
    Call::post(ROUTE, event)
}
