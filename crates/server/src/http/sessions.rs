//! `/v1/sessions`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::caller::Caller;
use jurat_engine::{Engine, EnginePage};
use jurat_wire::api::{page::Page, sessions, status::Removed};
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
    let session = sessions::decode_add(&body, engine.clock().now())?;
    let keyed = repeatable
        .keyed("session_add", &body, StatusCode::CREATED, |session| json!(sessions::body(session)));
    let done = engine.session_add(&caller, session, keyed).await?;
    Ok(once::reply(done, |session| encode::created(&sessions::body(session))))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    query.only(&[])?;
    let wanted = EnginePage { after: query.place()?, limit: query.with_one_more() };
    let mut found = engine.session_list(&caller, &wanted).await?;
    let next = query.cut_sealed(&mut found, |session| session.id.clone());
    Ok(encode::ok(&Page::new(found.iter().map(sessions::body), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> Answer {
    let session = engine.session_show(&caller, &id).await?;
    Ok(encode::ok(&sessions::body(&session)))
}

pub(super) async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    PathText(id): PathText,
) -> Answer {
    let body = json!(Removed { removed: &id });
    let answer = body.clone();
    let keyed =
        repeatable.keyed("session_remove", &Value::Null, StatusCode::OK, move |()| answer.clone());
    let done = engine.session_remove(&caller, &id, keyed).await?;
    Ok(once::reply(done, |()| encode::ok(&body)))
}
