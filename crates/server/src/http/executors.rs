//! `/v1/executors`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::caller::Caller;
use jurat_engine::{Addition, Engine, EnginePage, ExecutorView};
use jurat_wire::api::{executors, page::Page, sessions, status::RemovedExecutor};
use serde_json::{Value, json};

use super::page::ListQuery;
use crate::{
    decode::{Json, PathText},
    encode::{self, Answer},
    once::{self, Repeatable},
};

pub(super) async fn add(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    Json(body): Json,
) -> Answer {
    let add = executors::decode_add(&body, engine.clock().now())?;
    let session = add.session.clone();
    let answer = move |view: &ExecutorView| {
        let session = session.as_ref().map(sessions::body);
        let body = executors::body(&view.executor, view.circuit_for()).beside(&view.same_url);
        json!(body.with_session(session))
    };
    let keyed = repeatable.keyed("executor_add", &body, StatusCode::CREATED, answer.clone());
    let addition =
        Addition { executor: add.executor, session: add.session, must_answer: add.must_answer };
    let done = engine.executor_add(&caller, addition, keyed).await?;
    Ok(once::reply(done, |view| encode::created(&answer(view))))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    query.only(&[])?;
    let wanted = EnginePage { after: query.place()?, limit: query.with_one_more() };
    let mut views = engine.executor_list(&caller, &wanted).await?;
    let next = query.cut_sealed(&mut views, |view| view.executor.name.clone());
    let items = views.iter().map(|view| executors::body(&view.executor, view.circuit_for()));
    Ok(encode::ok(&Page::new(items, next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(name): PathText,
) -> Answer {
    let view = engine.executor_show(&caller, &name).await?;
    Ok(encode::ok(&executors::body(&view.executor, view.circuit_for())))
}

pub(super) async fn check(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(name): PathText,
) -> Answer {
    let (probe, events) = engine.executor_check(&caller, &name).await?;
    let events = events.as_ref().map(|it| (it.url.as_str(), it.error.as_deref()));
    Ok(encode::ok(&executors::probe_body(&probe).of(&name, events)))
}

pub(super) async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(name): PathText,
) -> Answer {
    let removed = name.clone();
    let answer =
        move |sessions: &Vec<String>| json!(RemovedExecutor { removed: &removed, sessions });
    let keyed = repeatable.keyed("executor_remove", &Value::Null, StatusCode::OK, answer.clone());
    let done = engine.executor_remove(&caller, &name, keyed).await?;
    Ok(once::reply(done, |sessions| encode::ok(&answer(sessions))))
}
