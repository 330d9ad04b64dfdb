//! What the operations on agent events are for, what they take, and what they answer.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_wire::api::{
    agent_events::{AgentEventEntry, SendAgentEventRequest},
    kit::page::PageBody,
};
use serde_json::{Value, json};

use super::AGENT_EVENTS;
use crate::{
    openapi::{description::OperationDescription, parameters},
    resources::RouteInfo,
};

const AT: &str = "2026-09-21T14:13:20Z";
const ID: &str = "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70";

pub(super) fn describe(route: &RouteInfo) -> Option<OperationDescription> {
    Some(match route.operation {
        "agent_event_send" => send(),
        "agent_event_list" => list(),
        "agent_event_show" => show(),
        _ => return None,
    })
}

fn send() -> OperationDescription {
    let text = "Sends an event about a relationship, a message, a payment, a topic or a third-party result to an executor that is registered with `agent_events_url`. The event is stored, delivered to the executor, and retried if delivery fails. Repeating a `dedupe_key` for the same executor returns the existing event with 200; the executor receives a derived key that means nothing in other accounts. An event that names a node by its public key as its source is refused. Task events are caused by tasks only. If too many events of the account are waiting for the executor, a new one is refused with 429.";
    let request = json!({
        "event_type": "topic_message_requires_reply",
        "target_executor": "delta",
        "payload": { "topic": "bridges", "content": "Which one is the longest?" },
        "requires_commit": true,
        "dedupe_key": "bridges-17",
    });
    OperationDescription::new(AGENT_EVENTS, "Send an event to an executor", text)
        .scope(Scope::TasksWrite)
        .takes::<SendAgentEventRequest>([("plain", request)])
        .answers::<AgentEventEntry<'_>>(201, "The added event.", entry(true))
        .answers::<AgentEventEntry<'_>>(
            200,
            "The existing event, which was sent before.",
            entry(true),
        )
        .idempotent()
        .refuses([ProblemCode::RateLimited])
}

fn list() -> OperationDescription {
    let page = json!({ "items": [entry(false)], "next_cursor": null });
    let text = "The account's events to executors, newest first: those that its tasks caused and those that it sent.";
    OperationDescription::new(AGENT_EVENTS, "List events to executors", text)
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_agent_events())
        .answers::<PageBody<'_, AgentEventEntry<'_>>>(200, "A page of events.", page)
        .refuses([ProblemCode::ValidationError])
}

fn show() -> OperationDescription {
    let text = "One event as the executor receives it, with its delivery state and the executor's decision.";
    OperationDescription::new(AGENT_EVENTS, "Show an event to an executor", text)
        .scope(Scope::TasksRead)
        .answers::<AgentEventEntry<'_>>(200, "The event.", entry(true))
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

fn entry(is_whole: bool) -> Value {
    let mut entry = json!({
        "event_id": ID,
        "direction": "in",
        "target_executor": "delta",
        "event_type": "topic_message_requires_reply",
        "source_kind": "topic_message",
        "dedupe_key": "bridges-17",
        "state": "pending",
        "attempts": 0,
        "next_attempt_at": AT,
        "decision": null,
        "needs_review": false,
        "last_error": null,
        "created_at": AT,
        "updated_at": AT,
    });
    if is_whole {
        entry["event"] = json!({
            "event_id": ID,
            "event_type": "topic_message_requires_reply",
            "source_kind": "topic_message",
            "target_executor": "delta",
            "payload": { "topic": "bridges", "content": "Which one is the longest?" },
            "requires_commit": true,
            "allowed_actions": ["reply", "ignore"],
            "dedupe_key": "3f0a9c4be1d27c5586a10f7cd8be49e1b5d2a6c37f1e48a09b6c2d5e8f714a30",
            "created_at": 1_790_000_000_000_i64,
        });
    }
    entry
}
