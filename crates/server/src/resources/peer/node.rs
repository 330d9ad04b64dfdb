//! The server and its sessions, for prompt-oriented clients.

use axum::{Extension, extract::State};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    executor::session::SessionStanding,
};
use jurat_engine::Engine;
use jurat_wire::{
    api::peer::{
        node::{self, PeerCreated, PeerMiners, PeerNode, PeerSession, PeerSessions},
        request::{self, PeerCreateRequest},
        session_named,
    },
    problem::Problem,
};
use serde_json::json;

use super::{SESSION, lookup};
use crate::{
    operation::{Operation, Tool, example},
    request::{
        decode::{MaybeJson, PathText},
        encode::{self, HandlerResult},
    },
    resources::PEER_CLIENTS,
};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        status_operation(),
        miners_operation(),
        sessions_operation(),
        session_operation(),
        create_operation(),
    ]
}

fn status_operation() -> Operation {
    let operation = Operation::get("/api/v1/status", "peer_status", status)
        .also_at("/api/v1/about", "peer_about")
        .also_at("/api/v1/info", "peer_info")
        .also_at("/api/v1/ping", "peer_ping")
        .summary("Show the server to a prompt-oriented client")
        .text("The name and the version of the server, and how many sessions can answer.")
        .answers::<PeerNode>(200, "The server.", example(include_str!("status.json")));
    shows(operation).tool(
        reads("cortensor_status", "Show the server")
            .also("cortensor_about")
            .also("cortensor_info")
            .also("cortensor_ping"),
    )
}

async fn status(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
) -> HandlerResult {
    Ok(encode::ok(&node::node(&engine.session_directory(&caller).await?)))
}

fn miners_operation() -> Operation {
    let operation = Operation::get("/api/v1/miners", "peer_miners", miners)
        .summary("List the sessions as miners")
        .text("Every session and whether it can answer now.")
        .answers::<PeerMiners<'_>>(200, "The sessions.", example(include_str!("miners.json")));
    shows(operation).tool(reads("cortensor_miners", "List the sessions"))
}

async fn miners(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
) -> HandlerResult {
    Ok(encode::ok(&node::miners(&engine.session_directory(&caller).await?)))
}

fn sessions_operation() -> Operation {
    let operation = Operation::get("/api/v1/sessions", "peer_sessions", sessions)
        .summary("List the sessions")
        .text("Every session, by id.")
        .answers::<PeerSessions<'_>>(200, "The sessions.", example(include_str!("sessions.json")));
    shows(operation)
}

async fn sessions(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
) -> HandlerResult {
    Ok(encode::ok(&node::sessions(&engine.session_directory(&caller).await?)))
}

fn session_operation() -> Operation {
    let text = "A session, or a label, with the sessions that answer for it: for 0 all of them.";
    let operation = Operation::get("/api/v1/sessions/{id}", "peer_session", session)
        .summary("Show a session")
        .text(text)
        .in_path([SESSION])
        .answers::<PeerSession<'_>>(200, "The session.", example(include_str!("session.json")))
        .refuses([ProblemCode::NotFound]);
    shows(operation)
}

async fn session(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(name): PathText,
) -> HandlerResult {
    let directory = engine.session_directory(&caller).await?;
    let Some(name) = session_named(&name) else {
        let all: Vec<&SessionStanding> = directory.iter().collect();
        return Ok(encode::ok(&node::session(None, &all)));
    };
    let group = node::group(&directory, &name);
    if group.is_empty() {
        return Err(lookup::unknown("session", &name).into());
    }
    Ok(encode::ok(&node::session(Some(&name), &group)))
}

fn create_operation() -> Operation {
    let text = "Creates nothing: the operator adds sessions. Returns an existing session that can answer, the one that the request names if it names one.";
    let operation = Operation::post("/api/v1/create", "peer_create", create)
        .summary("Get a session")
        .text(text)
        .takes::<PeerCreateRequest>([("plain", json!({ "name": "my session" }))])
        .or_nothing()
        .answers::<PeerCreated>(200, "A session.", example(include_str!("create.json")))
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::RequestInvalid,
            ProblemCode::SessionsUnavailable,
        ]);
    shows(operation).tool(
        Tool::reads("cortensor_create_session", "Get a session", "Returns an existing session.")
            .ignores_unknown()
            .answers_any_object()
            .for_peers(),
    )
}

async fn create(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let wanted = request::create(&body)?;
    let directory = engine.session_directory(&caller).await?;
    let is_live = |it: &&SessionStanding| it.standing.is_ok();
    let found = match &wanted {
        Some(name) if node::group(&directory, name).is_empty() => {
            return Err(lookup::unknown("session", name).into());
        }
        Some(name) => Some(name),
        None => directory.iter().find(is_live).map(|it| &it.session.id),
    };
    let Some(name) = found else {
        let detail = "no session can answer now, and sessions are added by the operator";
        return Err(Problem::new(ProblemCode::SessionsUnavailable, detail).into());
    };
    Ok(encode::ok(&node::created(name)))
}

fn shows(operation: Operation) -> Operation {
    operation.with_peer_problems().tag(PEER_CLIENTS).scope(Scope::RoundsCreate)
}

fn reads(name: &'static str, title: &'static str) -> Tool {
    Tool::reads(name, title, "Shows the server and its sessions.")
        .ignores_unknown()
        .answers_any_object()
        .for_peers()
}
