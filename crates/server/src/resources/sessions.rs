//! `/v1/sessions`.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{account::caller::Caller, list::ListPage};
use jurat_engine::Engine;
use jurat_wire::api::{kit::page::PageBody, sessions, status::RemovalBody};
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
    let session = sessions::decode_add(&body, engine.clock().now())?;
    let keyed = idempotency.write_for("session_add", &body, StatusCode::CREATED, |session| {
        json!(sessions::body(session))
    });
    let done = engine.session_add(&caller, session, keyed).await?;
    Ok(idempotency::reply(done, |session| encode::created(&sessions::body(session))))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&[])?;
    let wanted = ListPage { after: query.position()?, limit: query.with_one_more() };
    let mut found = engine.session_list(&caller, &wanted).await?;
    let next = query.cut_opaque(&mut found, |session| session.id.clone());
    Ok(encode::ok(&PageBody::new(found.iter().map(sessions::body), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(id): PathText,
) -> HandlerResult {
    let session = engine.session_show(&caller, &id).await?;
    Ok(encode::ok(&sessions::body(&session)))
}

pub(super) async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(id): PathText,
) -> HandlerResult {
    let body = json!(RemovalBody { removed: &id });
    let answer = body.clone();
    let keyed = idempotency
        .write_for("session_remove", &Value::Null, StatusCode::OK, move |()| answer.clone());
    let done = engine.session_remove(&caller, &id, keyed).await?;
    Ok(idempotency::reply(done, |()| encode::ok(&body)))
}
