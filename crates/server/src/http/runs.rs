//! `/v1/runs`: runs of several agents.

mod events;

use std::time::Duration;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use jurat_core::{
    caller::Caller,
    task_run::{RunStatus, RunSummary},
};
use jurat_engine::{Engine, RunAdded, TaskRunQuery, TaskRunView};
use jurat_wire::{
    api::{page::Page, runs},
    problem::Problem,
};
use serde_json::{Value, json};

pub(super) use self::events::events;
use super::{
    page::{Filters, ListQuery, nothing, wrong},
    tasks::position,
};
use crate::{
    decode::{Json, MaybeJson, PathText},
    encode::{self, Answer, engine_problem},
    once::{self, Repeatable},
    prefer::{LONGEST_WAIT, Prefer},
};

pub(super) async fn submit(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    Json(body): Json,
) -> Answer {
    let order = runs::decode_submit(&body, engine.clock().now())?;
    let id = order.spec.run_id.clone();
    let reply = move |added: &RunAdded| json!(runs::submitted(&id, added.status));
    let keyed = repeatable.keyed("task_run_submit", &body, StatusCode::CREATED, reply.clone());
    let placed = |error| runs::placed(&body, engine_problem(&error));
    let done = engine.task_run_submit(&caller, order, keyed).await.map_err(placed)?;
    Ok(once::reply(done, |added| {
        if added.is_new { encode::created(&reply(added)) } else { encode::ok(&reply(added)) }
    }))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    let wanted = run_query(&query)?;
    let mut found = engine.task_run_list(&caller, wanted).await?;
    let next = query.cut(&mut found, cursor_of);
    Ok(encode::ok(&Page::new(found.into_iter().map(runs::line), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: Filters,
    headers: HeaderMap,
) -> Answer {
    let view = match wait(&query)?.or(Prefer::of(&headers).wait) {
        None => engine.task_run_get(&caller, &id).await?,
        // No run has so many events: only its end is waited for.
        Some(wait) => engine.task_run_wait(&caller, &id, u64::MAX, wait).await?,
    };
    Ok(encode::ok(&runs::body(&view.run)))
}

pub(super) async fn kickoff(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    repeatable: Repeatable,
    MaybeJson(body): MaybeJson,
) -> Answer {
    nothing(&body)?;
    let keyed = repeatable.keyed("task_run_kickoff", &body, StatusCode::OK, shown);
    let done = engine.task_run_kickoff(&caller, &id, keyed).await?;
    Ok(once::reply(done, |it| encode::ok(&shown(it))))
}

pub(super) async fn retry(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    repeatable: Repeatable,
    MaybeJson(body): MaybeJson,
) -> Answer {
    nothing(&body)?;
    let keyed = repeatable.keyed("task_run_retry", &body, StatusCode::OK, shown);
    let done = engine.task_run_retry(&caller, &id, keyed).await?;
    Ok(once::reply(done, |it| encode::ok(&shown(it))))
}

pub(super) async fn cancel(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    repeatable: Repeatable,
    MaybeJson(body): MaybeJson,
) -> Answer {
    let reason = runs::decode_cancel(&body)?;
    let keyed = repeatable.keyed("task_run_cancel", &body, StatusCode::OK, shown);
    let done = engine.task_run_cancel(&caller, &id, reason, keyed).await?;
    Ok(once::reply(done, |it| encode::ok(&shown(it))))
}

pub(super) async fn result(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: Filters,
) -> Answer {
    query.only(&[])?;
    let view = engine.task_run_get(&caller, &id).await?;
    Ok(encode::ok(&runs::result_body(&view.run)))
}

/// A run with its steps.
pub(crate) fn shown(view: &TaskRunView) -> Value {
    json!(runs::body(&view.run))
}

/// When it was submitted and its name: the order of the list.
pub(crate) fn cursor_of(run: &RunSummary) -> String {
    format!("{}.{}", run.created_at.micros(), run.run_id)
}

fn run_query(query: &ListQuery) -> Result<TaskRunQuery, Problem> {
    query.only(&["status"])?;
    let status = query.filters.get("status").map(|text| {
        let known: Vec<&str> = RunStatus::ALL.iter().map(|it| it.as_str()).collect();
        let reason = format!("must be one of {}", known.join(", "));
        text.parse().map_err(|()| wrong("status", &reason))
    });
    Ok(TaskRunQuery {
        status: status.transpose()?,
        before: position(query.cursor.as_deref())?,
        limit: query.with_one_more(),
    })
}

/// How long the caller waits for the end of the run.
fn wait(query: &Filters) -> Result<Option<Duration>, Problem> {
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
