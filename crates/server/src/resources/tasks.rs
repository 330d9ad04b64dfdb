//! `/v1/tasks`.

mod events;

use std::time::Duration;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use jurat_core::{
    account::caller::{Caller, Scope},
    list::ListPosition,
    task::{TaskAddition, TaskRecord, TaskSummary},
    time::Timestamp,
};
use jurat_engine::{Engine, IdempotentOutcome, TaskDecision, TaskQuery};
use jurat_wire::{
    api::{
        kit::page::PageBody,
        tasks::{self, DecidedCandidate, TaskCallRounds, TaskLine, TaskView},
    },
    problem::Problem,
};
use serde_json::{Value, json};

pub(super) use self::events::events;
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
    headers: HeaderMap,
    Json(body): Json,
) -> HandlerResult {
    let submission = tasks::decode_submit(&body)?;
    let keyed =
        idempotency.write_for("task_submit", &body, StatusCode::CREATED, |it: &TaskAddition| {
            json!(tasks::body(view(&it.record)))
        });
    let placed = |error| tasks::located(&body, engine_problem(&error));
    let mut done = engine.task_submit(&caller, submission, keyed).await.map_err(placed)?;
    // A preference: whoever may not read tasks is answered at once.
    if let (Some(wait), IdempotentOutcome::Now(it)) = (Prefer::of(&headers).wait, &mut done)
        && caller.may(Scope::TasksRead)
    {
        it.record = engine.task_wait(&caller, &it.record.key.id, u64::MAX, wait).await?;
    }
    Ok(idempotency::reply(done, |it| {
        let body = tasks::body(view(&it.record));
        if it.is_new { encode::created(&body) } else { encode::ok(&body) }
    }))
}

/// Calls a task off. Again is the same.
pub(super) async fn cancel(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    idempotency: Idempotency,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let reason = tasks::decode_cancel(&body)?;
    let keyed = idempotency.write_for("task_cancel", &body, StatusCode::OK, shown);
    let done = engine.task_cancel_idempotent(&caller, &id, reason.as_deref(), keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&shown(it))))
}

/// Begins the next epoch of a continuous task.
pub(super) async fn next_epoch(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    idempotency: Idempotency,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    nothing(&body)?;
    let keyed = idempotency.write_for("task_next_epoch", &body, StatusCode::OK, shown);
    let done = engine.task_next_epoch(&caller, &id, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&shown(it))))
}

/// Says that a decision was wrong.
pub(super) async fn complain(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let feedback = tasks::decode_feedback(&body)?;
    let keyed = idempotency.write_for("task_complain", &body, StatusCode::OK, shown);
    let done = engine.task_complain(&caller, &id, feedback, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&shown(it))))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    let wanted = task_query(&query)?;
    let mut found = engine.task_list(&caller, wanted).await?;
    let next = query.cut(&mut found, cursor_of);
    Ok(encode::ok(&PageBody::new(found.iter().map(line), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
    headers: HeaderMap,
) -> HandlerResult {
    let wait = wait(&query)?.or(Prefer::of(&headers).wait);
    let record = match wait {
        None => engine.task_get(&caller, &id).await?,
        // No task has so many events: only its end is waited for.
        Some(wait) => engine.task_wait(&caller, &id, u64::MAX, wait).await?,
    };
    Ok(encode::ok(&whole(&record)))
}

pub(super) async fn decision(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let found = engine.task_decision(&caller, &id).await?;
    Ok(encode::ok(&decision_of(&found)))
}

pub(super) async fn sample(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&["task_id"])?;
    let id = query.get("task_id").map(tasks::task_id).transpose()?;
    Ok(encode::ok(&engine.task_sample(&caller, id)?))
}

/// A task without its contract.
pub(crate) fn shown(record: &TaskRecord) -> Value {
    json!(tasks::body(view(record)))
}

/// A task with its contract.
pub(crate) fn whole(record: &TaskRecord) -> Value {
    json!(tasks::whole(view(record)))
}

/// What a task decided.
pub(crate) fn decision_of(found: &TaskDecision) -> Value {
    json!(tasks::decision(view(&found.record), decided(found)))
}

/// A task as it is shown.
fn view(record: &TaskRecord) -> TaskView<'_> {
    TaskView {
        task: &record.state,
        task_type: &record.task_type,
        contract: record.has_contract().then_some(&record.contract),
        contract_digest: &record.contract_digest,
        panel: &record.panel,
        events: record.seq,
        updated_at: record.updated_at,
        ended_at: record.ended_at,
        reason: record.reason.as_deref(),
    }
}

pub(crate) fn line(task: &TaskSummary) -> tasks::TaskSummaryBody<'_> {
    tasks::summary(TaskLine {
        id: &task.id,
        task_type: &task.task_type,
        phase: task.phase,
        events: task.seq,
        created_at: task.created_at,
        updated_at: task.updated_at,
        ended_at: task.ended_at,
        reason: task.reason.as_deref(),
    })
}

fn decided(found: &TaskDecision) -> Option<DecidedCandidate<'_>> {
    let candidate = found.candidate.as_ref()?;
    let refs = candidate.evidence.refs.iter().map(|it| it.digest.as_str());
    Some(DecidedCandidate {
        output: &candidate.output,
        executor: found.executor.as_deref().unwrap_or(&candidate.executor),
        provider_family: found.declared.as_ref().map(|(family, _)| family.as_str()),
        model_id: found.declared.as_ref().map(|(_, model)| model.as_str()),
        evidence_digests: refs.collect(),
        confidence: found.confidence,
        final_hash: found.final_hash.as_deref(),
        rounds: TaskCallRounds {
            propose: candidate.round.as_ref().map(jurat_core::id::RoundId::as_str),
            verify: found.rounds.iter().map(|(voter, it)| (voter.as_str(), it.as_str())).collect(),
        },
    })
}

/// When it was submitted and its name: the order of the list.
pub(crate) fn cursor_of(task: &TaskSummary) -> String {
    format!("{}.{}", task.created_at.micros(), task.id)
}

/// What `cursor_of` wrote, for tasks and for runs.
pub(crate) fn position(cursor: Option<&str>) -> Result<Option<ListPosition>, Problem> {
    let Some(cursor) = cursor else { return Ok(None) };
    let position = cursor.split_once('.').and_then(|(micros, id)| {
        let created_at = Timestamp::from_micros(micros.parse().ok()?);
        Some(ListPosition { created_at, id: id.to_owned() })
    });
    position.map(Some).ok_or_else(|| wrong("cursor", "was not returned by a list"))
}

fn task_query(query: &ListQuery) -> Result<TaskQuery, Problem> {
    query.only(&["state", "task_type"])?;
    let state = query.filters.get("state").map(|text| {
        let known = jurat_core::task::TaskPhase::ALL.iter().map(|it| it.as_str());
        let known = known.collect::<Vec<_>>().join(", ");
        text.parse().map_err(|()| wrong("state", &format!("must be one of {known}")))
    });
    Ok(TaskQuery {
        state: state.transpose()?,
        task_type: query.filters.get("task_type").map(str::to_owned),
        before: position(query.cursor.as_deref())?,
        limit: query.with_one_more(),
    })
}

/// How long the caller waits for the end of the task.
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
