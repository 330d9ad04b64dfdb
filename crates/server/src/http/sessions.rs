//! `/v1/sessions`.

use axum::{
    Extension,
    extract::{Path, State},
};
use jurat_core::caller::Caller;
use jurat_engine::{Engine, EnginePage};
use jurat_wire::api::{page::Page, sessions, status::Removed};

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
    let session = sessions::decode_add(&body, engine.clock().now())?;
    let session = engine.session_add(&caller, session).await?;
    Ok(encode::created(&sessions::body(&session)))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    query.only(&[])?;
    let wanted = EnginePage { after: query.cursor.clone(), limit: query.with_one_more() };
    let mut found = engine.session_list(&caller, &wanted).await?;
    let next = query.cut(&mut found, |session| session.id.clone());
    Ok(encode::ok(&Page::new(found.iter().map(sessions::body), next.as_deref())))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Answer {
    let session = engine.session_show(&caller, &id).await?;
    Ok(encode::ok(&sessions::body(&session)))
}

pub(super) async fn remove(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Answer {
    engine.session_remove(&caller, &id).await?;
    Ok(encode::ok(&Removed { removed: &id }))
}
