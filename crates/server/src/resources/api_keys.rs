//! `/v1/api-keys`.

use axum::{
    Extension,
    extract::{FromRequestParts, Query, State},
    http::{StatusCode, request::Parts},
    response::{IntoResponse as _, Response},
};
use jurat_core::{account::caller::Caller, id::AccountId, list::ListPage};
use jurat_engine::{Engine, IssuedKey, KeyRef};
use jurat_wire::{
    api::keys::{self, CreatedKey, KeyPage, ListedKey},
    problem::Problem,
};
use serde_json::{Value, json};

use crate::request::page::{ListQuery, wrong};
use crate::request::{
    decode::{Json, MaybeJson, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

pub(super) async fn create(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let new = keys::decode_create(&body, engine.clock().now())?;
    let keyed = idempotency.write_for("key_create", &body, StatusCode::CREATED, without_secret);
    let done = engine.key_create(&caller, new, keyed).await?;
    Ok(idempotency::reply(done, issued))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&["account"])?;
    let account = query.filters.get("account").map(keys::account).transpose()?;
    let wanted = ListPage { after: query.position()?, limit: query.with_one_more() };
    let mut found = engine.key_list(&caller, account.as_ref(), &wanted).await?;
    let next_cursor = query.cut_opaque(&mut found, |key| key.id.clone());
    let items = found.iter().map(ListedKey::from).collect();
    Ok(encode::ok(&json!(KeyPage { items, next_cursor })))
}

pub(super) async fn revoke(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    KeyPath(key): KeyPath,
) -> HandlerResult {
    let asked = meaning(&key);
    let keyed =
        idempotency.write_for("key_revoke", &asked, StatusCode::NO_CONTENT, |()| Value::Null);
    let done = engine.key_revoke(&caller, key, keyed).await?;
    Ok(idempotency::reply(done, |()| StatusCode::NO_CONTENT.into_response()))
}

pub(super) async fn rotate(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    KeyPath(key): KeyPath,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let grace_ms = keys::decode_rotate(&body)?;
    let asked = json!([meaning(&key), body]);
    let keyed = idempotency.write_for("key_rotate", &asked, StatusCode::CREATED, without_secret);
    let done = engine.key_rotate(&caller, key, grace_ms, keyed).await?;
    Ok(idempotency::reply(done, issued))
}

/// What is kept for those who ask again: a secret is not.
fn without_secret(IssuedKey { key, replaces, .. }: &IssuedKey) -> Value {
    json!(CreatedKey::new(key, None, replaces.clone()))
}

fn issued(IssuedKey { key, clear, replaces }: &IssuedKey) -> Response {
    let body = json!(CreatedKey::new(key, Some(clear), replaces.clone()));
    let mut response = encode::created(&body);
    // What is shown once must not be shown again from a cache.
    let no_store = axum::http::HeaderValue::from_static("no-store");
    response.headers_mut().insert(axum::http::header::CACHE_CONTROL, no_store);
    response
}

/// The key that an address means.
pub(super) struct KeyPath(KeyRef);

impl<S: Send + Sync> FromRequestParts<S> for KeyPath {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let PathText(id_or_name) = PathText::from_request_parts(parts, state).await?;
        let query = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Ok(Query(query)) = query else {
            return Err(encode::problem(&wrong("query", "cannot be read")));
        };
        let account = account_of(&query).map_err(|problem| encode::problem(&problem))?;
        Ok(Self(KeyRef { id_or_name, account }))
    }
}

/// What tells two requests with the same path apart.
fn meaning(key: &KeyRef) -> Value {
    json!(key.account.as_ref().map(AccountId::as_str))
}

/// The account that a name belongs to, where the address says so.
fn account_of(query: &[(String, String)]) -> Result<Option<AccountId>, Problem> {
    match query {
        [] => Ok(None),
        [(name, text)] if name == "account" => keys::account(text).map(Some),
        [(name, _)] if name != "account" => Err(wrong(name, "is not a known parameter")),
        _ => Err(wrong("account", "is the only parameter and may appear once")),
    }
}
