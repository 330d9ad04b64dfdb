//! Rounds as tasks, for prompt-oriented clients.

use axum::{Extension, extract::State};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    round::RoundFilter,
};
use jurat_engine::Engine;
use jurat_wire::api::peer::{
    node::group,
    session_named,
    task::{self, PeerTask, PeerTasks},
};
use serde_json::{Value, json};

use super::{SESSION, UNTRUSTED, lookup};
use crate::{
    operation::{Operation, TextAuthor, Tool, example, parameters::PathParameter},
    request::{
        decode::{PathPair, PathText},
        encode::{self, HandlerResult},
    },
    resources::PEER_CLIENTS,
};

/// How many of the newest rounds a list looks at.
const NEWEST: u32 = 100;

const SESSION_OR_TASK: PathParameter = PathParameter::new(
    "id",
    "The id of a session, or a label; 0 for any session. Or the id of a task.",
    "35",
);
const TASK: PathParameter =
    PathParameter::new("task", "The id of a task, or of its round.", "868975590604801");

pub(super) fn operations() -> Vec<Operation> {
    vec![list_operation(), show_operation()]
}

fn list_operation() -> Operation {
    let text = "The tasks of a session among the account's 100 newest rounds, newest first. `GET /v1/rounds` lists all. If no session or label has this name, it is the id of a task, which is shown as by `/api/v1/tasks/0/{task}`.";
    let operation = Operation::get("/api/v1/tasks/{id}", "peer_task_list", list)
        .summary("List the tasks of a session")
        .text(text)
        .in_path([SESSION_OR_TASK])
        .answers::<PeerTasks<'_>>(200, "The tasks.", example(include_str!("tasks.json")))
        .refuses([ProblemCode::Conflict]);
    of_tasks(operation)
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(session): PathText,
) -> HandlerResult {
    let session = session_named(&session);
    let query = RoundFilter { limit: NEWEST, ..RoundFilter::default() };
    let mut found = engine.round_list(&caller, query).await?;
    if let Some(name) = &session {
        let directory = engine.session_directory(&caller).await?;
        let group = group(&directory, name);
        if group.is_empty() {
            return show_alone(&engine, &caller, name).await;
        }
        let is_of_group = |id: &str| group.iter().any(|it| it.session.id == id);
        found.retain(|round| round.open.seats.iter().any(|seat| is_of_group(&seat.session_id)));
    }
    let lines = found.iter().map(|round| task::task_line(round, session.as_deref()));
    Ok(encode::ok(&PeerTasks::List(lines.collect())))
}

/// The task of a client that names no session.
async fn show_alone(engine: &Engine, caller: &Caller, id: &str) -> HandlerResult {
    match lookup::task(engine, caller, id).await {
        Ok(round) => Ok(encode::ok(&PeerTasks::Task(Box::new(task::task(&round, None))))),
        Err(problem) if problem.code == ProblemCode::NotFound => {
            Err(lookup::unknown("session or task", id).into())
        }
        Err(problem) => Err(problem.into()),
    }
}

fn show_operation() -> Operation {
    let text = "A round of the account as a task, with the text of each session that answered. The session in the path is not compared.";
    let operation = Operation::get("/api/v1/tasks/{id}/{task}", "peer_task", show)
        .summary("Show a task")
        .text(text)
        .in_path([SESSION, TASK])
        .answers::<PeerTask<'_>>(200, "The task.", example(include_str!("task.json")))
        .refuses([ProblemCode::Conflict]);
    of_tasks(operation).tool(
        Tool::reads("cortensor_tasks", "Show a task or the tasks of a session", UNTRUSTED)
            .path("session_id", "The id of a session, or 0.")
            .maybe_path("task_id", "The id of a task; without it, the tasks of the session.")
            .reply(|_, reply| Ok(listed(reply)))
            .ignores_unknown()
            .answers_any_object()
            .author(TextAuthor::Executors)
            .for_peers(),
    )
}

/// The result of a tool must be an object.
fn listed(reply: Value) -> Value {
    if reply.is_array() { json!({ "tasks": reply }) } else { reply }
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathPair(session, id): PathPair,
) -> HandlerResult {
    let round = lookup::task(&engine, &caller, &id).await?;
    Ok(encode::ok(&task::task(&round, session_named(&session).as_deref())))
}

fn of_tasks(operation: Operation) -> Operation {
    operation
        .with_peer_problems()
        .tag(PEER_CLIENTS)
        .scope(Scope::RoundsRead)
        .refuses([ProblemCode::NotFound])
}
