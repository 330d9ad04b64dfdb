//! `/v1/executors`.

use axum::{
    Extension,
    extract::{Path, State},
};
use jurat_core::caller::Caller;
use jurat_engine::{Engine, EnginePage};
use jurat_wire::api::{executors, page::Page, sessions, status::RemovedExecutor};

use super::page::ListQuery;
use crate::{
    decode::Json,
    encode::{self, Answer},
};

pub(super) async fn add(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Json(body): Json,
) -> Answer {
    let add = executors::decode_add(&body, engine.clock().now())?;
    let session = add.session.clone();
    let view = engine.executor_add(&caller, add.executor, add.session).await?;
    let session = session.as_ref().map(sessions::body);
    Ok(encode::created(&executors::body(&view.executor, view.circuit).with_session(session)))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    query.only(&[])?;
    let wanted = EnginePage { after: query.cursor.clone(), limit: query.with_one_more() };
    let mut views = engine.executor_list(&caller, &wanted).await?;
    let next = query.cut(&mut views, |view| view.executor.name.clone());
    let items = views.iter().map(|view| executors::body(&view.executor, view.circuit));
    Ok(encode::ok(&Page::new(items, next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer {
    let view = engine.executor_show(&caller, &name).await?;
    Ok(encode::ok(&executors::body(&view.executor, view.circuit)))
}

pub(super) async fn check(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer {
    let probe = engine.executor_check(&caller, &name).await?;
    Ok(encode::ok(&executors::probe_body(&probe).of(&name)))
}

pub(super) async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer {
    let sessions = engine.executor_remove(&caller, &name).await?;
    Ok(encode::ok(&RemovedExecutor { removed: &name, sessions: &sessions }))
}
