//! `/v1/executors`.

use axum::{
    Extension,
    extract::{Path, State},
    response::Response,
};
use jurat_core::caller::Caller;
use jurat_engine::{Engine, EnginePage};
use jurat_wire::api::{executors, rounds::page, sessions};
use serde_json::{Value, json};

use super::page::ListQuery;
use crate::{decode::Json, encode};

pub(super) async fn add(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Json(body): Json,
) -> Response {
    let add = match executors::decode_add(&body, engine.clock().now()) {
        Ok(add) => add,
        Err(problem) => return encode::problem(&problem),
    };
    let session = add.session.as_ref().map(sessions::body);
    match engine.executor_add(&caller, add.executor, add.session).await {
        Ok(view) => {
            let mut body = executors::body(&view.executor, view.circuit);
            body["session"] = json!(session);
            encode::created(&body)
        }
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
    match engine.executor_list(&caller, &wanted).await {
        Ok(mut views) => {
            let next = query.cut(&mut views, |view| view.executor.name.clone());
            let items: Vec<Value> =
                views.iter().map(|view| executors::body(&view.executor, view.circuit)).collect();
            encode::ok(&page(&items, next.as_deref()))
        }
        Err(error) => encode::engine_error(&error),
    }
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Response {
    match engine.executor_show(&caller, &name).await {
        Ok(view) => encode::ok(&executors::body(&view.executor, view.circuit)),
        Err(error) => encode::engine_error(&error),
    }
}

pub(super) async fn check(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Response {
    match engine.executor_check(&caller, &name).await {
        Ok(probe) => {
            let mut body = executors::probe_body(&probe);
            body["name"] = json!(name);
            encode::ok(&body)
        }
        Err(error) => encode::engine_error(&error),
    }
}

pub(super) async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Response {
    match engine.executor_remove(&caller, &name).await {
        Ok(sessions) => encode::ok(&json!({ "removed": name, "sessions": sessions })),
        Err(error) => encode::engine_error(&error),
    }
}
