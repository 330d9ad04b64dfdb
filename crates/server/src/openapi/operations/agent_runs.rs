//! What the operations on runs of several agents are for.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_wire::api::{
    agent_runs::{
        AgentRunBody, AgentRunEventBody, AgentRunLine, AgentRunResultBody, AgentRunSubmitted,
        CancelRunRequest, RUN, RUN_EVENT, SubmitRun,
    },
    kit::page::PageBody,
};
use jurat_wire::{api::events, problem::ProblemBody};
use serde_json::{Value, json};

use super::AGENT_RUNS;
use crate::{
    openapi::{
        description::{EventDescription, OperationDescription},
        parameters,
    },
    resources::RouteInfo,
};

const AT: &str = "2026-09-21T14:13:20Z";

pub(super) fn describe(route: &RouteInfo) -> Option<OperationDescription> {
    Some(match route.operation {
        "task_run_submit" => submit(),
        "task_run_list" => list(),
        "task_run_get" => get(),
        "task_run_result" => result(),
        "task_run_events" => list_events(),
        "task_run_kickoff" => kickoff(),
        "task_run_cancel" => cancel(),
        "task_run_retry" => retry(),
        _ => return None,
    })
}

fn submit() -> OperationDescription {
    let text = "Submits an agent run. With `kickoff` it starts immediately, otherwise it waits for a kickoff. Submitting the same spec with the same id again returns the existing run with 200. The key must also have the scope `rounds:create`; its limits apply to the steps, and the run is cancelled when the key is revoked or expires.";
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
    OperationDescription::new(AGENT_RUNS, "Submit a run", text)
        .scope(Scope::TasksWrite)
        .takes::<SubmitRun>([("plain", request)])
        .answers::<AgentRunSubmitted<'_>>(201, "The submitted run.", submitted())
        .answers::<AgentRunSubmitted<'_>>(200, "The existing run.", submitted())
        .idempotent()
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::NotSupported,
            ProblemCode::Conflict,
            ProblemCode::SchemaRefused,
            ProblemCode::PolicyInvalid,
            ProblemCode::ShuttingDown,
        ])
}

fn submitted() -> Value {
    json!({ "ok": true, "run_id": "bridges-1", "kicked_off": false, "status": "CREATED" })
}

fn line(status: &str, (created, queued, cancelled): (u32, u32, u32)) -> Value {
    json!({
        "run_id": "bridges-1", "status": status, "task_type": "swarm",
        "created_at": AT, "updated_at": AT, "started_at": null, "finished_at": null,
        "counts": {
            "created": created, "queued": queued, "leased": 0, "succeeded": 0, "failed": 0,
            "retry_wait": 0, "cancelled": cancelled, "remote_dispatched": 0,
        },
        "iteration": 0, "error": null,
    })
}

fn example_run(status: &str, step: &str) -> Value {
    let count = |word: &str| u32::from(step == word) * 2;
    let counts = (count("CREATED"), count("QUEUED"), count("CANCELLED"));
    let mut body = line(status, counts);
    let of = |agent: &str, executor: &str, weight: f64| {
        json!({
            "agent_id": agent, "executor": executor, "profile": "default", "weight": weight,
            "priority": 0, "status": step, "attempt": 1, "task_id": null, "worker": null,
            "error": null,
        })
    };
    if matches!(status, "CANCELLED") {
        body["finished_at"] = json!(AT);
    }
    body["steps"] = json!([of("one", "alpha", 1.0), of("two", "beta", 2.0)]);
    body
}

fn list() -> OperationDescription {
    let page = json!({ "items": [line("CREATED", (2, 0, 0))], "next_cursor": null });
    OperationDescription::new(AGENT_RUNS, "List runs", "The caller's runs, newest first.")
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with([parameters::of_agent_runs()])
        .answers::<PageBody<'_, AgentRunLine>>(200, "A page of runs.", page)
        .refuses([ProblemCode::ValidationError])
}

fn get() -> OperationDescription {
    let text = "The status of a run and its steps. With `wait`, the reply comes when the run ends or the time is up.";
    OperationDescription::new(AGENT_RUNS, "Show a run", text)
        .scope(Scope::TasksRead)
        .with([parameters::wait_for_agent_run()])
        .with([parameters::prefer("`wait=N` waits up to N seconds for the run to end.")])
        .answers::<AgentRunBody<'_>>(200, "The run.", example_run("CREATED", "CREATED"))
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

fn result() -> OperationDescription {
    let text = "The result of a run; null until it has ended.";
    let example = json!({
        "run_id": "bridges-1", "status": "CREATED", "finished_at": null, "error": null,
        "result": null,
    });
    OperationDescription::new(AGENT_RUNS, "Show the result of a run", text)
        .scope(Scope::TasksRead)
        .answers::<AgentRunResultBody<'_>>(200, "The result.", example)
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

fn list_events() -> OperationDescription {
    let text = "The events of a run, newest first; with `after`, oldest first. `Accept: text/event-stream` follows the run to its end: a `run_event` for each event, and `run` as the last.";
    let example = json!({
        "items": [{
            "id": 1, "run_id": "bridges-1", "event_type": "RUN_CREATED",
            "payload": { "agents": 2 }, "created_at": AT,
        }],
        "next_cursor": null,
    });
    let stream = "event: run_event\ndata: {\"id\":1,\"run_id\":\"bridges-1\",\"event_type\":\"RUN_CREATED\",\"payload\":{\"agents\":2},\"created_at\":\"2026-09-21T14:13:20Z\"}\nid: 1\n\n";
    OperationDescription::new(AGENT_RUNS, "List or follow events of a run", text)
        .scope(Scope::TasksRead)
        .with(parameters::of_list())
        .with([parameters::after_event()])
        .answers::<PageBody<'_, AgentRunEventBody<'_>>>(200, "A page of events.", example)
        .or_streams(
            &[
                (RUN_EVENT, EventDescription::of::<AgentRunEventBody<'_>>()),
                (RUN, EventDescription::of::<AgentRunBody<'_>>()),
                (events::ERROR, EventDescription::of::<ProblemBody<'_>>()),
            ],
            stream,
        )
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

fn kickoff() -> OperationDescription {
    OperationDescription::new(
        AGENT_RUNS,
        "Start a run",
        "Starts the steps of a run that is waiting for its kickoff.",
    )
    .scope(Scope::TasksWrite)
    .answers::<AgentRunBody<'_>>(200, "The run.", example_run("QUEUED", "QUEUED"))
    .idempotent()
    .refuses(CHANGES)
}

fn cancel() -> OperationDescription {
    let text = "Cancels a run: waiting steps end immediately, and the tasks of steps in progress are cancelled.";
    OperationDescription::new(AGENT_RUNS, "Cancel a run", text)
        .scope(Scope::TasksWrite)
        .takes::<CancelRunRequest>([("plain", json!({ "reason": "asked twice" }))])
        .or_nothing()
        .answers::<AgentRunBody<'_>>(200, "The run.", example_run("CANCELLED", "CANCELLED"))
        .idempotent()
        .refuses(CHANGES)
}

fn retry() -> OperationDescription {
    let text = "Retries the unsuccessful steps of a run that has ended.";
    OperationDescription::new(AGENT_RUNS, "Retry a run", text)
        .scope(Scope::TasksWrite)
        .answers::<AgentRunBody<'_>>(200, "The run.", example_run("QUEUED", "QUEUED"))
        .idempotent()
        .refuses(CHANGES)
}

/// What every change of a run can answer.
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
