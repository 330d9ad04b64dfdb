//! `/v1/sessions`.

use axum::{
    Extension,
    extract::{Path, State},
    response::Response,
};
use jurat_core::caller::Caller;
use jurat_engine::{Engine, EnginePage};
use jurat_wire::api::{rounds::page, sessions};
use serde_json::{Value, json};

use super::page::ListQuery;
use crate::{decode::Json, encode};

pub(super) async fn add(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Json(body): Json,
) -> Response {
    let session = match sessions::decode_add(&body, engine.clock().now()) {
        Ok(session) => session,
        Err(problem) => return encode::problem(&problem),
    };
    match engine.session_add(&caller, session).await {
        Ok(session) => encode::created(&sessions::body(&session)),
        Err(error) => encode::engine_error(&error),
    }
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Response {
    if let Err(problem) = query.only(&[]) {
        return encode::problem(&problem);
    }
    let wanted = EnginePage { after: query.cursor.clone(), limit: query.with_one_more() };
    match engine.session_list(&caller, &wanted).await {
        Ok(mut found) => {
            let next = query.cut(&mut found, |session| session.id.clone());
            let items: Vec<Value> = found.iter().map(sessions::body).collect();
            encode::ok(&page(&items, next.as_deref()))
        }
        Err(error) => encode::engine_error(&error),
    }
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    match engine.session_show(&caller, &id).await {
        Ok(session) => encode::ok(&sessions::body(&session)),
        Err(error) => encode::engine_error(&error),
    }
}

pub(super) async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Response {
    match engine.session_remove(&caller, &id).await {
        Ok(()) => encode::ok(&json!({ "removed": id })),
        Err(error) => encode::engine_error(&error),
    }
}
