//! `/v1/api-keys`.

use axum::{
    Extension,
    extract::{Path, Query, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use jurat_core::{caller::Caller, id::AccountId};
use jurat_engine::{Engine, EnginePage, Issued, KeyRef};
use jurat_wire::{
    api::keys::{self, CreatedKey, KeyPage, ListedKey},
    problem::Problem,
};
use serde_json::json;

use super::page::{ListQuery, wrong};
use crate::{
    decode::{Json, MaybeJson},
    encode::{self, Answer},
};

pub(super) async fn create(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Json(body): Json,
) -> Answer {
    let new = keys::decode_create(&body, engine.clock().now())?;
    Ok(issued(engine.key_create(&caller, new).await?))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    query.only(&["account"])?;
    let account = query.filters.get("account").map(keys::account).transpose()?;
    let wanted = EnginePage { after: query.cursor.clone(), limit: query.with_one_more() };
    let mut found = engine.key_list(&caller, account.as_ref(), &wanted).await?;
    let next_cursor = query.cut(&mut found, |key| key.id.clone());
    let items = found.iter().map(ListedKey::from).collect();
    Ok(encode::ok(&json!(KeyPage { items, next_cursor })))
}

pub(super) async fn revoke(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(id_or_name): Path<String>,
    Query(query): Query<Vec<(String, String)>>,
) -> Answer {
    let account = account_of(&query)?;
    engine.key_revoke(&caller, KeyRef { id_or_name, account }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(super) async fn rotate(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Path(id_or_name): Path<String>,
    Query(query): Query<Vec<(String, String)>>,
    MaybeJson(body): MaybeJson,
) -> Answer {
    let account = account_of(&query)?;
    let grace_ms = keys::decode_rotate(&body)?;
    let key = KeyRef { id_or_name, account };
    Ok(issued(engine.key_rotate(&caller, key, grace_ms).await?))
}

fn issued(Issued { key, clear, replaces }: Issued) -> Response {
    let mut response = encode::created(&json!(CreatedKey::new(&key, &clear, replaces)));
    // What is shown once must not be shown again from a cache.
    let no_store = axum::http::HeaderValue::from_static("no-store");
    response.headers_mut().insert(axum::http::header::CACHE_CONTROL, no_store);
    response
}

/// The account that a name belongs to, where the address says so.
fn account_of(query: &[(String, String)]) -> Result<Option<AccountId>, Problem> {
    match query {
        [] => Ok(None),
        [(name, text)] if name == "account" => keys::account(text).map(Some),
        [(name, _)] if name != "account" => Err(wrong(name, "is not a known parameter")),
        _ => Err(wrong("account", "is the only parameter, and may stand once")),
    }
}
