//! `/v1/sessions`.

use std::borrow::Cow;

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    list::ListPage,
};
use jurat_engine::Engine;
use jurat_wire::api::{
    kit::page::PageBody,
    sessions::{self, AddSessionRequest, SessionBody},
    status::RemovalBody,
};
use serde_json::{Value, json};

use crate::{
    operation::{
        Operation, example,
        parameters::{self, PathParameter},
    },
    request::{
        decode::{Json, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::ListQuery,
    },
    resources::SESSIONS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![add_operation(), list_operation(), show_operation(), remove_operation()]
}

const SESSION: PathParameter = PathParameter::new("id", "The id of a session.", "delta-careful");

fn add_operation() -> Operation {
    let text = "Adds a named route to an executor, with its own profile, tier and price.";
    Operation::post("/v1/sessions", "session_add", add)
        .tag(SESSIONS)
        .summary("Add a session")
        .text(text)
        .scope(Scope::Admin)
        .takes::<AddSessionRequest>([(
            "plain",
            example(include_str!("sessions/session_add_request.json")),
        )])
        .answers::<SessionBody<'_>>(
            201,
            "The session.",
            example(include_str!("sessions/session.json")),
        )
        .idempotent()
        .refuses_when(
            ProblemCode::ValidationError,
            "a field is wrong, or the executor is not registered",
        )
        .refuses_when(ProblemCode::Conflict, "the id is taken")
}

async fn add(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let session = sessions::decode_add(&body, engine.clock().now())?;
    let keyed = idempotency.write_for("session_add", &body, StatusCode::CREATED, |session| {
        json!(sessions::body(session))
    });
    let done = engine.session_add(&caller, session, keyed).await?;
    Ok(idempotency::reply(done, |session| encode::created(&sessions::body(session))))
}

fn list_operation() -> Operation {
    Operation::get("/v1/sessions", "session_list", list)
        .tag(SESSIONS)
        .summary("List sessions")
        .text("All sessions, by id.")
        .scope(Scope::Admin)
        .with(parameters::of_list())
        .answers::<PageBody<'_, SessionBody<'_>>>(
            200,
            "A page of sessions.",
            example(include_str!("sessions/session_list.json")),
        )
        .refuses([ProblemCode::ValidationError])
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let wanted = ListPage { after: query.text_position()?, limit: query.with_one_more() };
    let mut found = engine.session_list(&caller, &wanted).await?;
    let next = query.cut(&mut found, |session| [session.id.clone()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(sessions::body), next.as_deref())))
}

fn show_operation() -> Operation {
    Operation::get("/v1/sessions/{id}", "session_show", show)
        .tag(SESSIONS)
        .summary("Show a session")
        .text("A session, as it was added.")
        .in_path([SESSION])
        .scope(Scope::Admin)
        .answers::<SessionBody<'_>>(
            200,
            "The session.",
            example(include_str!("sessions/session.json")),
        )
        .refuses([ProblemCode::NotFound])
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> HandlerResult {
    let session = engine.session_show(&caller, &id).await?;
    Ok(encode::ok(&sessions::body(&session)))
}

fn remove_operation() -> Operation {
    Operation::delete("/v1/sessions/{id}", "session_remove", remove)
        .tag(SESSIONS)
        .summary("Remove a session")
        .text("Removes a session; its executor stays.")
        .in_path([SESSION])
        .scope(Scope::Admin)
        .answers::<RemovalBody<'_>>(
            200,
            "The removed resource.",
            example(include_str!("sessions/session_remove.json")),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
}

async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
) -> HandlerResult {
    let body = json!(RemovalBody { removed: Cow::Borrowed(&id) });
    let answer = body.clone();
    let keyed = idempotency
        .write_for("session_remove", &Value::Null, StatusCode::OK, move |()| answer.clone());
    let done = engine.session_remove(&caller, &id, keyed).await?;
    Ok(idempotency::reply(done, |()| encode::ok(&body)))
}
