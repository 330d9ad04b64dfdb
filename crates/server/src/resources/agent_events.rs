//! `/v1/agent-events`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    task::agent_event::{AgentEventAddition, AgentEventFilter, AgentEventRecord, Delivery},
};
use jurat_engine::Engine;
use jurat_wire::{
    api::{
        agent_events::{self, AgentEventEntry, AgentEventView, SendAgentEventRequest},
        kit::page::PageBody,
    },
    problem::Problem,
};
use serde_json::{Value, json};

use crate::{
    operation::{
        Operation,
        parameters::{self, PathParameter},
    },
    request::{
        cursor,
        decode::{Json, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::{ListQuery, QueryFilters, wrong},
    },
    resources::AGENT_EVENTS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![send_operation(), list_operation(), show_operation()]
}

const EVENT: PathParameter =
    PathParameter::new("id", "The id of an event.", "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70");

fn send_operation() -> Operation {
    let text = "Sends an event about a relationship, a message, a payment, a topic or a third-party result to an executor that is registered with `agent_events_url`. The event is stored, delivered to the executor, and retried if delivery fails. Repeating a `dedupe_key` for the same executor returns the existing event with 200; the executor receives a derived key that means nothing in other accounts. An event that names a node by its public key as its source is refused. Task events are caused by tasks only. If too many events of the account are waiting for the executor, a new one is refused with 429.";
    let request = json!({
        "event_type": "topic_message_requires_reply",
        "target_executor": "delta",
        "payload": { "topic": "bridges", "content": "Which one is the longest?" },
        "requires_commit": true,
        "dedupe_key": "bridges-17",
    });
    Operation::post("/v1/agent-events", "agent_event_send", send)
        .tag(AGENT_EVENTS)
        .summary("Send an event to an executor")
        .text(text)
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

async fn send(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let order = agent_events::decode_send(&body)?;
    let keyed = idempotency.write_for(
        "agent_event_send",
        &body,
        StatusCode::CREATED,
        |it: &AgentEventAddition| json!(whole(&it.record)),
    );
    let done = engine.agent_event_send(&caller, order, keyed).await?;
    Ok(idempotency::reply(done, |it| {
        let body = whole(&it.record);
        if it.is_new { encode::created(&body) } else { encode::ok(&body) }
    }))
}

fn list_operation() -> Operation {
    let text = "The account's events to executors, newest first: those that its tasks caused and those that it sent.";
    let page = json!({ "items": [entry(false)], "next_cursor": null });
    Operation::get("/v1/agent-events", "agent_event_list", list)
        .tag(AGENT_EVENTS)
        .summary("List events to executors")
        .text(text)
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_agent_events())
        .answers::<PageBody<'_, AgentEventEntry<'_>>>(200, "A page of events.", page)
        .refuses([ProblemCode::ValidationError])
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    let wanted = event_query(&query)?;
    let mut found = engine.agent_event_list(&caller, &wanted).await?;
    let next = query.cut(&mut found, |it| cursor::by_time(it.created_at, &it.event.id));
    let lines = found.iter().map(|it| agent_events::entry(view(it)));
    Ok(encode::ok(&PageBody::new(lines, next.as_deref())))
}

fn show_operation() -> Operation {
    let text = "One event as the executor receives it, with its delivery state and the executor's decision.";
    Operation::get("/v1/agent-events/{id}", "agent_event_show", show)
        .tag(AGENT_EVENTS)
        .summary("Show an event to an executor")
        .text(text)
        .in_path([EVENT])
        .scope(Scope::TasksRead)
        .answers::<AgentEventEntry<'_>>(200, "The event.", entry(true))
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let found = engine.agent_event_show(&caller, &id).await?;
    Ok(encode::ok(&whole(&found)))
}

fn whole(record: &AgentEventRecord) -> AgentEventEntry<'_> {
    agent_events::entry(AgentEventView { event: Some(&record.event.body), ..view(record) })
}

fn view(record: &AgentEventRecord) -> AgentEventView<'_> {
    AgentEventView {
        id: &record.event.id,
        direction: record.event.direction,
        executor: &record.event.executor,
        event_type: &record.event.event_type,
        source_kind: &record.event.source_kind,
        dedupe_key: record.event.dedupe_key.as_deref(),
        state: record.state,
        attempts: record.attempts,
        next_at: record.event.next_at,
        decision: record.decision.as_ref(),
        last_error: record.last_error.as_deref(),
        created_at: record.created_at,
        updated_at: record.updated_at,
        event: None,
    }
}

fn event_query(query: &ListQuery) -> Result<AgentEventFilter, Problem> {
    query.only(&["state", "executor", "needs_review"])?;
    let needs_review = query
        .filters
        .get("needs_review")
        .map(|text| text.parse().map_err(|_| wrong("needs_review", "must be `true` or `false`")));
    let state = query.filters.get("state").map(|text| {
        let known: Vec<&str> = Delivery::ALL.iter().map(|it| it.as_str()).collect();
        let reason = format!("must be one of {}", known.join(", "));
        text.parse().map_err(|()| wrong("state", &reason))
    });
    Ok(AgentEventFilter {
        state: state.transpose()?,
        executor: query.filters.get("executor").map(str::to_owned),
        needs_review: needs_review.transpose()?,
        before: query.time_position()?,
        limit: query.with_one_more(),
    })
}

const AT: &str = "2026-09-21T14:13:20Z";

const ID: &str = "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70";

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
