//! `/v1/runs`: agent runs.

mod events;
mod examples;

use std::time::Duration;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use jurat_core::{
    account::caller::{Caller, Scope},
    agent_run::{AgentRunAddition, AgentRunFilter, AgentRunStatus},
    code::ProblemCode,
};
use jurat_engine::{AgentRunView, Engine};
use jurat_wire::{
    api::{
        agent_runs::{
            self, AgentRunBody, AgentRunLine, AgentRunRequestBody, AgentRunResultBody,
            AgentRunSubmitted, CancelRunRequest, SubmitRun,
        },
        kit::page::PageBody,
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
    resources::AGENT_RUNS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        submit_operation(),
        list_operation(),
        show_operation(),
        result_operation(),
        events::events_operation(),
        kickoff_operation(),
        cancel_operation(),
        retry_operation(),
    ]
}

pub(super) const AGENT_RUN: PathParameter =
    PathParameter::new("id", "The id of a run.", "bridges-1");

fn submit_operation() -> Operation {
    let text = "Submits an agent run. With `kickoff` it starts immediately, otherwise it waits for a kickoff. Submitting the same spec with the same id again returns the existing run with 200. The limits of the key apply to the steps, and the run is cancelled when the key is revoked or expires.";
    let about = "Has several agents work on one job, each with its own executor and prompt, and combines their values into one result. With `kickoff` it starts immediately; use `get_run` with `wait` to follow it.";
    let request = json!({
        "kickoff": false,
        "spec": {
            "run_id": "bridges-1",
            "shared_inputs": { "topic": "bridges" },
            "agents": [
                { "agent_id": "one", "executor": "alpha", "prompt": "Which is the longest?" },
                { "agent_id": "two", "executor": "beta", "prompt": "Which is the longest?", "weight": 2.0 },
            ],
        },
    });
    Operation::post("/v1/runs", "task_run_submit", submit)
        .begins_rounds()
        .tag(AGENT_RUNS)
        .summary("Submit a run")
        .text(text)
        .scope(Scope::TasksWrite)
        .scope(Scope::RoundsCreate)
        .takes::<SubmitRun>([("plain", request)])
        .answers::<AgentRunSubmitted<'_>>(201, "The submitted run.", examples::submitted())
        .answers::<AgentRunSubmitted<'_>>(200, "The existing run.", examples::submitted())
        .idempotent()
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::NotSupported,
            ProblemCode::Conflict,
            ProblemCode::SchemaRefused,
            ProblemCode::PolicyInvalid,
            ProblemCode::ShuttingDown,
        ])
        .tool(
            Tool::asks("submit_run", "Submit a run", about)
                .takes::<AgentRunRequestBody>()
                .summary(render::agent_run),
        )
}

async fn submit(
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

fn list_operation() -> Operation {
    let about = "Lists the runs of the account, newest first, one page at a time.";
    let page = json!({ "items": [examples::line("CREATED", (2, 0, 0))], "next_cursor": null });
    Operation::get("/v1/runs", "task_run_list", list)
        .tag(AGENT_RUNS)
        .summary("List runs")
        .text("The caller's runs, newest first.")
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with([parameters::of_agent_runs()])
        .answers::<PageBody<'_, AgentRunLine>>(200, "A page of runs.", page)
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads("list_runs", "List runs", about)
                .query(&["status", "limit", "cursor"])
                .summary(render::counted)
                .author(TextAuthor::Executors),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    let wanted = agent_run_query(&query)?;
    let mut found = engine.agent_run_list(&caller, &wanted).await?;
    let next = query.cut(&mut found, |it| cursor::by_time(it.created_at, &it.run_id));
    Ok(encode::ok(&PageBody::new(found.into_iter().map(agent_runs::line), next.as_deref())))
}

fn show_operation() -> Operation {
    let text = "The status of a run and its steps. With `wait`, the reply comes when the run ends or the time is up.";
    let about = "Returns the status of a run and its steps. With `wait`, returns when the run ends, or after that many seconds.";
    Operation::get("/v1/runs/{id}", "task_run_get", show)
        .tag(AGENT_RUNS)
        .summary("Show a run")
        .text(text)
        .in_path([AGENT_RUN])
        .scope(Scope::TasksRead)
        .with([parameters::wait_for_agent_run()])
        .with([parameters::prefer("`wait=N` waits up to N seconds for the run to end.")])
        .answers::<AgentRunBody<'_>>(200, "The run.", examples::example_run("CREATED", "CREATED"))
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
        .tool(
            Tool::reads("get_run", "Show a run", about)
                .path("run_id", "The id of a run.")
                .waits(None)
                .summary(render::agent_run)
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
    let view = match wait(&query)?.or(Prefer::of(&headers).wait) {
        None => engine.agent_run_get(&caller, &id).await?,
        // No run has this many events, so this waits only for the end.
        Some(wait) => engine.agent_run_wait(&caller, &id, u64::MAX, wait).await?,
    };
    Ok(encode::ok(&agent_runs::body(&view.run)))
}

fn kickoff_operation() -> Operation {
    Operation::post("/v1/runs/{id}/kickoff", "task_run_kickoff", kickoff)
        .tag(AGENT_RUNS)
        .summary("Start a run")
        .text("Starts the steps of a run that is waiting for its kickoff.")
        .in_path([AGENT_RUN])
        .scope(Scope::TasksWrite)
        .answers::<AgentRunBody<'_>>(200, "The run.", examples::example_run("QUEUED", "QUEUED"))
        .idempotent()
        .refuses(CHANGES)
        .tool(
            Tool::asks(
                "kickoff_run",
                "Start a run",
                "Starts a run that is waiting for its kickoff.",
            )
            .path("run_id", "The id of a run.")
            .summary(render::agent_run),
        )
}

async fn kickoff(
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

fn retry_operation() -> Operation {
    Operation::post("/v1/runs/{id}/retry", "task_run_retry", retry)
        .tag(AGENT_RUNS)
        .summary("Retry a run")
        .text("Retries the unsuccessful steps of a run that has ended.")
        .in_path([AGENT_RUN])
        .scope(Scope::TasksWrite)
        .answers::<AgentRunBody<'_>>(200, "The run.", examples::example_run("QUEUED", "QUEUED"))
        .idempotent()
        .refuses(CHANGES)
        .tool(
            Tool::asks(
                "retry_run",
                "Retry a run",
                "Retries the unsuccessful steps of a run that has ended.",
            )
            .path("run_id", "The id of a run.")
            .summary(render::agent_run)
            .author(TextAuthor::Executors),
        )
}

async fn retry(
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

fn cancel_operation() -> Operation {
    let text = "Cancels a run: waiting steps end immediately, and the tasks of steps in progress are cancelled.";
    Operation::post("/v1/runs/{id}/cancel", "task_run_cancel", cancel)
        .tag(AGENT_RUNS)
        .summary("Cancel a run")
        .text(text)
        .in_path([AGENT_RUN])
        .scope(Scope::TasksWrite)
        .takes::<CancelRunRequest>([("plain", json!({ "reason": "asked twice" }))])
        .or_nothing()
        .answers::<AgentRunBody<'_>>(
            200,
            "The run.",
            examples::example_run("CANCELLED", "CANCELLED"),
        )
        .idempotent()
        .refuses(CHANGES)
        .tool(
            Tool::ends("cancel_run", "Cancel a run", text)
                .path("run_id", "The id of a run.")
                .summary(render::agent_run)
                .author(TextAuthor::Executors),
        )
}

async fn cancel(
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

/// The members of `result`, which is stored as it was recorded.
const RESULT: &str = "The result of a run; null until it has ended. `result` has `run_id`, `status`, `counts` and `aggregation`, an object with these members:\n\n- `mode`: as in the spec.\n- `final_decision`, `final_answer`: the winning values; null if none won.\n- `decision_votes`, `answer_votes`: the number of agents per value.\n- `buckets`: of each of the two, every value with its agents, votes and weight, what decided a tie (`decided_by`), or why there is none (`unresolved`).\n- `tie_policy`: the chain, the deciding step, and how often the agents were asked again.\n- `steps`: each agent's value with its task and candidate, or why there is none.";

fn result_operation() -> Operation {
    let example = json!({
        "run_id": "bridges-1", "status": "CREATED", "finished_at": null, "error": null,
        "result": null,
    });
    Operation::get("/v1/runs/{id}/result", "task_run_result", result)
        .tag(AGENT_RUNS)
        .summary("Show the result of a run")
        .text(RESULT)
        .in_path([AGENT_RUN])
        .scope(Scope::TasksRead)
        .answers::<AgentRunResultBody<'_>>(200, "The result.", example)
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
        .tool(
            Tool::reads(
                "get_run_result",
                "Show the result of a run",
                "Returns the combined result of a run; null until it has ended.",
            )
            .path("run_id", "The id of a run.")
            .summary(render::agent_run)
            .author(TextAuthor::Executors),
        )
}

async fn result(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
    query: QueryFilters,
) -> HandlerResult {
    query.only(&[])?;
    let view = engine.agent_run_get(&caller, &id).await?;
    Ok(encode::ok(&agent_runs::result_body(&view.run)))
}

/// An agent run with its steps.
pub(crate) fn shown(view: &AgentRunView) -> Value {
    json!(agent_runs::body(&view.run))
}

fn agent_run_query(query: &ListQuery) -> Result<AgentRunFilter, Problem> {
    query.only(&["status"])?;
    let status = query.filters.get("status").map(|text| {
        let known: Vec<&str> = AgentRunStatus::ALL.iter().map(|it| it.as_str()).collect();
        let reason = format!("must be one of {}", known.join(", "));
        text.parse().map_err(|()| wrong("status", &reason))
    });
    Ok(AgentRunFilter {
        status: status.transpose()?,
        before: query.time_position()?,
        limit: query.with_one_more(),
    })
}

/// The caller's maximum wait for the end of the run.
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

/// Problem codes of every change to a run.
const CHANGES: [ProblemCode; 8] = [
    ProblemCode::ValidationError,
    ProblemCode::NotFound,
    ProblemCode::Conflict,
    ProblemCode::Overloaded,
    ProblemCode::InvalidJson,
    ProblemCode::PayloadTooLarge,
    ProblemCode::RequestTimeout,
    ProblemCode::UnsupportedMediaType,
];
