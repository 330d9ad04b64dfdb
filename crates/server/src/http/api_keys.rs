//! `/v1/api-keys`.

use axum::{
    Extension,
    extract::{FromRequestParts, Query, State},
    http::{StatusCode, request::Parts},
    response::{IntoResponse as _, Response},
};
use jurat_core::{caller::Caller, id::AccountId};
use jurat_engine::{Engine, EnginePage, Issued, KeyRef};
use jurat_wire::{
    api::keys::{self, CreatedKey, KeyPage, ListedKey},
    problem::Problem,
};
use serde_json::{Value, json};

use super::page::{ListQuery, wrong};
use crate::{
    decode::{Json, MaybeJson, PathText},
    encode::{self, Answer},
    once::{self, Repeatable},
};

pub(super) async fn create(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    Json(body): Json,
) -> Answer {
    let new = keys::decode_create(&body, engine.clock().now())?;
    let keyed = repeatable.keyed("key_create", &body, StatusCode::CREATED, without_secret);
    let done = engine.key_create(&caller, new, keyed).await?;
    Ok(once::reply(done, issued))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> Answer {
    query.only(&["account"])?;
    let account = query.filters.get("account").map(keys::account).transpose()?;
    let wanted = EnginePage { after: query.place()?, limit: query.with_one_more() };
    let mut found = engine.key_list(&caller, account.as_ref(), &wanted).await?;
    let next_cursor = query.cut_sealed(&mut found, |key| key.id.clone());
    let items = found.iter().map(ListedKey::from).collect();
    Ok(encode::ok(&json!(KeyPage { items, next_cursor })))
}

pub(super) async fn revoke(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    Meant(key): Meant,
) -> Answer {
    let asked = meaning(&key);
    let keyed = repeatable.keyed("key_revoke", &asked, StatusCode::NO_CONTENT, |()| Value::Null);
    let done = engine.key_revoke(&caller, key, keyed).await?;
    Ok(once::reply(done, |()| StatusCode::NO_CONTENT.into_response()))
}

pub(super) async fn rotate(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    repeatable: Repeatable,
    Meant(key): Meant,
    MaybeJson(body): MaybeJson,
) -> Answer {
    let grace_ms = keys::decode_rotate(&body)?;
    let asked = json!([meaning(&key), body]);
    let keyed = repeatable.keyed("key_rotate", &asked, StatusCode::CREATED, without_secret);
    let done = engine.key_rotate(&caller, key, grace_ms, keyed).await?;
    Ok(once::reply(done, issued))
}

/// What is kept for those who ask again: a secret is not.
fn without_secret(Issued { key, replaces, .. }: &Issued) -> Value {
    json!(CreatedKey::new(key, None, replaces.clone()))
}

fn issued(Issued { key, clear, replaces }: &Issued) -> Response {
    let body = json!(CreatedKey::new(key, Some(clear), replaces.clone()));
    let mut response = encode::created(&body);
    // What is shown once must not be shown again from a cache.
    let no_store = axum::http::HeaderValue::from_static("no-store");
    response.headers_mut().insert(axum::http::header::CACHE_CONTROL, no_store);
    response
}

/// The key that an address means.
pub(super) struct Meant(KeyRef);

impl<S: Send + Sync> FromRequestParts<S> for Meant {
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
