//! `/v1/agent-events`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::caller::Caller,
    list::ListPosition,
    task::agent_event::{AgentEventAddition, AgentEventRecord, Delivery},
    time::Timestamp,
};
use jurat_engine::{AgentEventQuery, Engine};
use jurat_wire::{
    api::{
        agent_events::{self, AgentEventEntry, AgentEventView},
        kit::page::PageBody,
    },
    problem::Problem,
};
use serde_json::json;

use crate::request::page::{ListQuery, QueryFilters, wrong};
use crate::request::{
    decode::{Json, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

pub(super) async fn send(
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

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    let wanted = event_query(&query)?;
    let mut found = engine.agent_event_list(&caller, wanted).await?;
    let next = query.cut(&mut found, cursor_of);
    let lines = found.iter().map(|it| agent_events::entry(view(it)));
    Ok(encode::ok(&PageBody::new(lines, next.as_deref())))
}

pub(super) async fn show(
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

/// When it was added and its name: the order of the list.
fn cursor_of(record: &AgentEventRecord) -> String {
    format!("{}.{}", record.created_at.micros(), record.event.id)
}

fn event_query(query: &ListQuery) -> Result<AgentEventQuery, Problem> {
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
    let before = query.cursor.as_deref().map(|cursor| {
        let position = cursor.split_once('.').and_then(|(micros, id)| {
            let created_at = Timestamp::from_micros(micros.parse().ok()?);
            Some(ListPosition { created_at, id: id.to_owned() })
        });
        position.ok_or_else(|| wrong("cursor", "was not returned by a list"))
    });
    Ok(AgentEventQuery {
        state: state.transpose()?,
        executor: query.filters.get("executor").map(str::to_owned),
        needs_review: needs_review.transpose()?,
        before: before.transpose()?,
        limit: query.with_one_more(),
    })
}
