//! `/v1/runs`: runs of several agents.

mod events;

use std::time::Duration;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use jurat_core::{
    account::caller::Caller,
    agent_run::{AgentRunAddition, AgentRunStatus, AgentRunSummary},
};
use jurat_engine::{AgentRunQuery, AgentRunView, Engine};
use jurat_wire::{
    api::{agent_runs, kit::page::PageBody},
    problem::Problem,
};
use serde_json::{Value, json};

pub(super) use self::events::events;
use super::tasks::position;
use crate::request::page::{ListQuery, QueryFilters, nothing, wrong};
use crate::request::{
    decode::{Json, MaybeJson, PathText},
    encode::{self, HandlerResult, engine_problem},
    idempotency::{self, Idempotency},
    prefer::{LONGEST_WAIT, Prefer},
};

pub(super) async fn submit(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let order = agent_runs::decode_submit(&body, engine.clock().now())?;
    let id = order.spec.run_id.clone();
    let reply = move |added: &AgentRunAddition| json!(agent_runs::submitted(&id, added.status));
    let keyed = idempotency.write_for("task_run_submit", &body, StatusCode::CREATED, reply.clone());
    let placed = |error| agent_runs::located(&body, engine_problem(&error));
    let done = engine.agent_run_submit(&caller, order, keyed).await.map_err(placed)?;
    Ok(idempotency::reply(done, |added| {
        if added.is_new { encode::created(&reply(added)) } else { encode::ok(&reply(added)) }
    }))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    let wanted = agent_run_query(&query)?;
    let mut found = engine.agent_run_list(&caller, wanted).await?;
    let next = query.cut(&mut found, cursor_of);
    Ok(encode::ok(&PageBody::new(found.into_iter().map(agent_runs::line), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
    headers: HeaderMap,
) -> HandlerResult {
    let view = match wait(&query)?.or(Prefer::of(&headers).wait) {
        None => engine.agent_run_get(&caller, &id).await?,
        // No run has so many events: only its end is waited for.
        Some(wait) => engine.agent_run_wait(&caller, &id, u64::MAX, wait).await?,
    };
    Ok(encode::ok(&agent_runs::body(&view.run)))
}

pub(super) async fn kickoff(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    idempotency: Idempotency,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    nothing(&body)?;
    let keyed = idempotency.write_for("task_run_kickoff", &body, StatusCode::OK, shown);
    let done = engine.agent_run_kickoff(&caller, &id, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&shown(it))))
}

pub(super) async fn retry(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    idempotency: Idempotency,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    nothing(&body)?;
    let keyed = idempotency.write_for("task_run_retry", &body, StatusCode::OK, shown);
    let done = engine.agent_run_retry(&caller, &id, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&shown(it))))
}

pub(super) async fn cancel(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    idempotency: Idempotency,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let reason = agent_runs::decode_cancel(&body)?;
    let keyed = idempotency.write_for("task_run_cancel", &body, StatusCode::OK, shown);
    let done = engine.agent_run_cancel(&caller, &id, reason, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&shown(it))))
}

pub(super) async fn result(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let view = engine.agent_run_get(&caller, &id).await?;
    Ok(encode::ok(&agent_runs::result_body(&view.run)))
}

/// A run with its steps.
pub(crate) fn shown(view: &AgentRunView) -> Value {
    json!(agent_runs::body(&view.run))
}

/// When it was submitted and its name: the order of the list.
pub(crate) fn cursor_of(run: &AgentRunSummary) -> String {
    format!("{}.{}", run.created_at.micros(), run.run_id)
}

fn agent_run_query(query: &ListQuery) -> Result<AgentRunQuery, Problem> {
    query.only(&["status"])?;
    let status = query.filters.get("status").map(|text| {
        let known: Vec<&str> = AgentRunStatus::ALL.iter().map(|it| it.as_str()).collect();
        let reason = format!("must be one of {}", known.join(", "));
        text.parse().map_err(|()| wrong("status", &reason))
    });
    Ok(AgentRunQuery {
        status: status.transpose()?,
        before: position(query.cursor.as_deref())?,
        limit: query.with_one_more(),
    })
}

/// How long the caller waits for the end of the run.
fn wait(query: &QueryFilters) -> Result<Option<Duration>, Problem> {
    query.only(&["wait"])?;
    let Some(text) = query.get("wait") else { return Ok(None) };
    match text.parse() {
        Ok(seconds) if seconds <= LONGEST_WAIT.as_secs() => Ok(Some(Duration::from_secs(seconds))),
        _ => {
            let longest = LONGEST_WAIT.as_secs();
            Err(wrong("wait", &format!("must be a whole number of seconds from 0 to {longest}")))
        }
    }
}
