//! `/v1/tasks`.

mod events;
pub(super) mod examples;

use std::time::Duration;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    task::{TaskAddition, TaskFilter, TaskRecord, TaskSummary},
};
use jurat_engine::{Engine, IdempotentOutcome, TaskDecision};
use jurat_wire::{
    api::{
        kit::page::PageBody,
        tasks::{
            self, CancelTaskRequest, DecidedCandidate, DecisionBody, FeedbackRequest, SubmitTask,
            TaskBody, TaskCallRounds, TaskContractBody, TaskLine, TaskOrder, TaskSummaryBody,
            TaskView,
        },
    },
    problem::Problem,
};
use serde_json::{Value, json};

use crate::{
    mcp::render,
    operation::{
        Operation, TextAuthor, Tool,
        parameters::{self, PathParameter},
    },
    request::{
        cursor,
        decode::{Json, MaybeJson, PathText},
        encode::{self, HandlerResult, engine_problem},
        idempotency::{self, Idempotency},
        page::{ListQuery, QueryFilters, nothing, wrong},
        prefer::{LONGEST_WAIT, Prefer},
    },
    resources::TASKS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        submit_operation(),
        list_operation(),
        sample_operation(),
        show_operation(),
        events::events_operation(),
        decision_operation(),
        cancel_operation(),
        next_epoch_operation(),
        complain_operation(),
    ]
}

pub(super) const TASK_ID: PathParameter = PathParameter::new("id", "The id of a task.", "task-001");

fn submit_operation() -> Operation {
    let text = "Submits a contract, alone or with the executors for it, and drives the task to its end. Submitting the same `task_id` with the same contract again returns the existing task; with another contract it is 409. Up to twenty problems of a contract are reported together in `errors`, and `field` is the first of them. The key must also have the scope `verifiers:run` if a verifier decides; its limits apply to the task's calls, and the task is cancelled when the key is revoked or expires.";
    let preference =
        "`wait=N` returns the task when it ends, or its current state after N seconds.";
    let about = "Has executors work on a job under a contract: some propose, others vote, and the decision is made final. Returns immediately; use `get_task` with `wait` to follow the task. `get_task_sample` returns a contract to start from.";
    Operation::post("/v1/tasks", "task_submit", submit)
        .begins_rounds()
        .tag(TASKS)
        .summary("Submit a task")
        .text(text)
        .scope(Scope::TasksWrite)
        .scope(Scope::RoundsCreate)
        .takes::<SubmitTask>([("plain", examples::order())])
        .answers::<TaskBody<'_>>(201, "The added task.", examples::task())
        .answers::<TaskBody<'_>>(
            200,
            "The existing task, which was submitted before.",
            examples::task(),
        )
        .idempotent()
        .with([parameters::prefer(preference)])
        .refuses([
            ProblemCode::Conflict,
            ProblemCode::PolicyInvalid,
            ProblemCode::SchemaRefused,
            ProblemCode::RateLimited,
            ProblemCode::ShuttingDown,
            ProblemCode::NotFound,
            ProblemCode::SessionsUnavailable,
        ])
        .tool(
            Tool::asks("submit_task", "Submit a task", about)
                .takes::<TaskOrder>()
                .summary(render::task),
        )
}

async fn submit(
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
    // Waiting is a preference: a caller that may not read tasks is answered immediately.
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

fn cancel_operation() -> Operation {
    let text = "Cancels a task and stops its work in progress. A cancelled task is returned unchanged; a task that ended otherwise is 409.";
    Operation::post("/v1/tasks/{id}/cancel", "task_cancel", cancel)
        .tag(TASKS)
        .summary("Cancel a task")
        .text(text)
        .in_path([TASK_ID])
        .scope(Scope::TasksWrite)
        .takes::<CancelTaskRequest>([("plain", serde_json::json!({ "reason": "asked twice" }))])
        .or_nothing()
        .answers::<TaskBody<'_>>(200, "The task.", examples::cancelled())
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::Conflict,
            ProblemCode::ValidationError,
            ProblemCode::Overloaded,
        ])
        .tool(
            Tool::ends(
                "cancel_task",
                "Cancel a task",
                "Cancels a task and stops its work in progress.",
            )
            .path("task_id", "The id of a task.")
            .summary(render::task)
            .author(TextAuthor::Executors),
        )
}

/// Cancels a task. Repeating it has no effect.
async fn cancel(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    idempotency: Idempotency,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let reason = tasks::decode_cancel(&body)?;
    let keyed = idempotency.write_for("task_cancel", &body, StatusCode::OK, shown);
    let done = engine.task_cancel(&caller, &id, reason.as_deref(), keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&shown(it))))
}

fn next_epoch_operation() -> Operation {
    let text = "Starts the next epoch of a continuous task whose decision is final, with a new budget. It is 409 for a one-shot task, for one that is not decided yet, and for one that has ended.";
    let about =
        "Starts the next epoch of a continuous task whose decision is final, with a new budget.";
    Operation::post("/v1/tasks/{id}/epochs", "task_next_epoch", next_epoch)
        .tag(TASKS)
        .summary("Start the next epoch")
        .text(text)
        .in_path([TASK_ID])
        .scope(Scope::TasksWrite)
        .answers::<TaskBody<'_>>(200, "The task.", examples::next_epoch())
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::Conflict,
            ProblemCode::ValidationError,
            ProblemCode::Overloaded,
            ProblemCode::ShuttingDown,
            ProblemCode::InvalidJson,
            ProblemCode::PayloadTooLarge,
            ProblemCode::RequestTimeout,
            ProblemCode::UnsupportedMediaType,
        ])
        .tool(
            Tool::asks("begin_task_epoch", "Start the next epoch of a task", about)
                .path("task_id", "The id of a task.")
                .summary(render::task),
        )
}

/// Begins the next epoch of a continuous task.
async fn next_epoch(
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

fn complain_operation() -> Operation {
    let text = "Disputes a decision as wrong, once and within `acceptance.settlement.window_ms` after it became final. The decision itself does not change, but it is no longer reused and settles as bad. If the contract names an authority's key, the dispute must be signed with it; otherwise a signature is refused. A decision that was already disputed, does not exist yet or whose time is over is 409.";
    let about = "Disputes a final decision as wrong, once and during its settlement window. The decision is recorded as bad and no longer reused; this cannot be undone.";
    Operation::post("/v1/tasks/{id}/feedback", "task_complain", complain)
        .tag(TASKS)
        .summary("Dispute a decision")
        .text(text)
        .in_path([TASK_ID])
        .scope(Scope::TasksWrite)
        .takes::<FeedbackRequest>([("plain", examples::complaint())])
        .answers::<TaskBody<'_>>(200, "The task.", examples::complained())
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::Conflict,
            ProblemCode::ValidationError,
            ProblemCode::Overloaded,
        ])
        .tool(
            Tool::ends("complain_of_task", "Dispute a decision", about)
                .path("task_id", "The id of a task.")
                .summary(render::task)
                .author(TextAuthor::Executors),
        )
}

/// Disputes a decision as wrong.
async fn complain(
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

fn list_operation() -> Operation {
    let about = "Lists the tasks of the account, newest first, one page at a time.";
    Operation::get("/v1/tasks", "task_list", list)
        .tag(TASKS)
        .summary("List tasks")
        .text("The tasks of the account, newest first.")
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with(parameters::of_tasks())
        .answers::<PageBody<'_, TaskSummaryBody<'_>>>(200, "A page of tasks.", examples::list())
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads("list_tasks", "List tasks", about)
                .query(&["state", "task_type", "limit", "cursor"])
                .summary(render::counted),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    let wanted = task_query(&query)?;
    let mut found = engine.task_list(&caller, &wanted).await?;
    let next = query.cut(&mut found, |it| cursor::by_time(it.created_at, &it.id));
    Ok(encode::ok(&PageBody::new(found.iter().map(line), next.as_deref())))
}

fn show_operation() -> Operation {
    let text = "A task with its contract, candidates, votes and spending. A vote's verdict is null until it is revealed. With `wait`, the reply comes when the task has ended or its epoch is decided, or after that many seconds with its current state. A task of another account is not found.";
    let about = "Returns the state of a task, with its candidates, votes and budget. With `wait`, returns when the task ends or its epoch is decided, or after that many seconds.";
    Operation::get("/v1/tasks/{id}", "task_show", show)
        .tag(TASKS)
        .summary("Show a task")
        .text(text)
        .in_path([TASK_ID])
        .scope(Scope::TasksRead)
        .with([
            parameters::wait_for_task(),
            parameters::prefer("`wait=30` waits like the parameter `wait`."),
        ])
        .answers::<TaskBody<'_>>(200, "The task.", examples::whole())
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::reads("get_task", "Show a task", about)
                .path("task_id", "The id of a task.")
                .waits(None)
                .summary(render::task)
                .author(TextAuthor::Executors),
        )
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
    headers: HeaderMap,
) -> HandlerResult {
    let wait = wait(&query)?.or(Prefer::of(&headers).wait);
    let record = match wait {
        None => engine.task_show(&caller, &id).await?,
        // No task has this many events, so this waits only for the end.
        Some(wait) => engine.task_wait(&caller, &id, u64::MAX, wait).await?,
    };
    Ok(encode::ok(&whole(&record)))
}

fn decision_operation() -> Operation {
    let text = "The decision of a task, with the votes, the rounds of its calls and the digest of the decision. Fields are null if there is no decision yet. The reply also has the keys that WattSwarm's `task run-real` prints.";
    let about = "Returns the decision of a task, with the votes and the confidence. Fields are null if there is no decision yet.";
    Operation::get("/v1/tasks/{id}/decision", "task_decision", decision)
        .tag(TASKS)
        .summary("Show a decision")
        .text(text)
        .in_path([TASK_ID])
        .scope(Scope::TasksRead)
        .answers::<DecisionBody<'_>>(200, "The decision.", examples::decision())
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::reads("get_task_decision", "Show a decision", about)
                .path("task_id", "The id of a task.")
                .summary(render::decision)
                .author(TextAuthor::Executors),
        )
}

async fn decision(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let found = engine.task_decision(&caller, &id).await?;
    Ok(encode::ok(&decision_of(&found)))
}

fn sample_operation() -> Operation {
    let text =
        "A contract to start from: quorum 1, decided by its schema alone, valid for ten minutes.";
    let about = "Returns a contract to start from: quorum 1, decided by its schema alone, valid for ten minutes.";
    Operation::get("/v1/tasks/sample", "task_sample", sample)
        .tag(TASKS)
        .summary("Get a sample contract")
        .text(text)
        .scope(Scope::TasksRead)
        .with([parameters::task_id()])
        .answers::<TaskContractBody>(200, "The contract.", examples::contract())
        .refuses([ProblemCode::ValidationError])
        .tool(Tool::reads("get_task_sample", "Get a sample contract", about).query(&["task_id"]))
}

async fn sample(
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

/// The decision of a task.
pub(crate) fn decision_of(found: &TaskDecision) -> Value {
    json!(tasks::decision(view(&found.record), decided(found)))
}

/// The parts of a task that replies show.
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
            propose: candidate.round.as_ref().map(|it| it.as_str().into()),
            verify: found
                .rounds
                .iter()
                .map(|(voter, it)| (voter.as_str().into(), it.as_str().into()))
                .collect(),
        },
    })
}

fn task_query(query: &ListQuery) -> Result<TaskFilter, Problem> {
    query.only(&["state", "task_type"])?;
    let state = query.filters.get("state").map(|text| {
        let known = jurat_core::task::TaskPhase::ALL.iter().map(|it| it.as_str());
        let known = known.collect::<Vec<_>>().join(", ");
        text.parse().map_err(|()| wrong("state", &format!("must be one of {known}")))
    });
    Ok(TaskFilter {
        phase: state.transpose()?,
        task_type: query.filters.get("task_type").map(str::to_owned),
        before: query.time_position()?,
        limit: query.with_one_more(),
    })
}

/// The caller's maximum wait for the end of the task.
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
