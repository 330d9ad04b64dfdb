//! `/v1/executors`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{account::caller::Caller, list::ListPage};
use jurat_engine::{Engine, ExecutorView, NewExecutor};
use jurat_wire::api::{executors, kit::page::PageBody, sessions, status::RemovedExecutor};
use serde_json::{Value, json};

use crate::request::page::ListQuery;
use crate::request::{
    decode::{Json, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

pub(super) async fn add(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let add = executors::decode_add(&body, engine.clock().now())?;
    let session = add.session.clone();
    let answer = move |view: &ExecutorView| {
        let session = session.as_ref().map(sessions::body);
        let body = executors::body(&view.executor, view.circuit_for()).beside(&view.same_url);
        json!(body.with_session(session))
    };
    let keyed = idempotency.write_for("executor_add", &body, StatusCode::CREATED, answer.clone());
    let addition =
        NewExecutor { executor: add.executor, session: add.session, must_answer: add.must_answer };
    let done = engine.executor_add(&caller, addition, keyed).await?;
    Ok(idempotency::reply(done, |view| encode::created(&answer(view))))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let wanted = ListPage { after: query.position()?, limit: query.with_one_more() };
    let mut views = engine.executor_list(&caller, &wanted).await?;
    let next = query.cut_opaque(&mut views, |view| view.executor.name.clone());
    let items = views.iter().map(|view| executors::body(&view.executor, view.circuit_for()));
    Ok(encode::ok(&PageBody::new(items, next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(name): PathText,
) -> HandlerResult {
    let view = engine.executor_show(&caller, &name).await?;
    Ok(encode::ok(&executors::body(&view.executor, view.circuit_for())))
}

pub(super) async fn check(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(name): PathText,
) -> HandlerResult {
    let (probe, events) = engine.executor_check(&caller, &name).await?;
    let events = events.as_ref().map(|it| (it.url.as_str(), it.error.as_deref()));
    Ok(encode::ok(&executors::probe_body(&probe).of(&name, events)))
}

pub(super) async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(name): PathText,
) -> HandlerResult {
    let removed = name.clone();
    let answer =
        move |sessions: &Vec<String>| json!(RemovedExecutor { removed: &removed, sessions });
    let keyed =
        idempotency.write_for("executor_remove", &Value::Null, StatusCode::OK, answer.clone());
    let done = engine.executor_remove(&caller, &name, keyed).await?;
    Ok(idempotency::reply(done, |sessions| encode::ok(&answer(sessions))))
}
