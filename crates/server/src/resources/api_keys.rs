//! `/v1/api-keys`.

use axum::{
    Extension,
    extract::{FromRequestParts, Query, State},
    http::{StatusCode, request::Parts},
    response::{IntoResponse as _, Response},
};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    id::AccountId,
    list::ListPage,
};
use jurat_engine::{Engine, IssuedKey, KeyRef};
use jurat_wire::{
    api::keys::{
        self, CreateKeyRequest, CreatedKey, KeyPage, ListedKey, RevokedKey, RotateKeyRequest,
    },
    problem::Problem,
};
use serde_json::{Value, json};

use crate::{
    mcp::{render, schema},
    operation::{
        Operation, Tool, example,
        parameters::{self, PathParameter},
    },
    request::{
        decode::{Json, MaybeJson, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::{ListQuery, wrong},
    },
    resources::KEYS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![create_operation(), list_operation(), revoke_operation(), rotate_operation()]
}

const KEY: PathParameter = PathParameter::new("id", "The id or name of a key.", "app");

fn create_operation() -> Operation {
    let text = "Creates a key for an account. Only this reply contains the key itself: if you lost it, revoke the key and create another. A key never has more permissions than the key that created it; without the scope `admin` it creates keys only for its own account, within its own limits.";
    let about = "Creates a key of the account with the same permissions as the key of this call. The key is shown only once.";
    Operation::post("/v1/api-keys", "key_create", create)
        .tag(KEYS)
        .summary("Create a key")
        .text(text)
        .scope(Scope::KeysWrite)
        .takes::<CreateKeyRequest>([(
            "plain",
            example(include_str!("api_keys/key_create_request.json")),
        )])
        .answers::<CreatedKey>(
            201,
            "The key, shown once.",
            example(include_str!("api_keys/key_create.json")),
        )
        .and_header("Cache-Control", "`no-store`.")
        .idempotent()
        .refuses_when(
            ProblemCode::Forbidden,
            "the caller lacks the scope, or one of the new key's; or the account has created as many keys as it may",
        )
        .refuses_when(ProblemCode::Conflict, "an active key of the account has the name")
        .tool(
            Tool::adds("mint_api_key", "Create an API key", about)
                .body_of(&["name"])
                .ignores_unknown(),
        )
}

async fn create(
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

fn list_operation() -> Operation {
    let text = "The keys of all accounts, or of one, in order of creation. Callers without the scope `admin` see only the keys of their own account.";
    Operation::get("/v1/api-keys", "key_list", list)
        .tag(KEYS)
        .summary("List keys")
        .text(text)
        .scope(Scope::KeysWrite)
        .with(parameters::of_list())
        .with(parameters::of_keys("Only keys of this account."))
        .answers::<KeyPage>(200, "A page of keys.", example(include_str!("api_keys/key_list.json")))
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads(
                "list_api_keys",
                "List API keys",
                "Lists the keys of the account, without their secrets.",
            )
            .query(&["limit", "cursor"])
            .of_own_account()
            .ignores_unknown()
            .summary(render::counted),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&["account"])?;
    let account = query.filters.get("account").map(keys::account).transpose()?;
    let wanted = ListPage { after: query.text_position()?, limit: query.with_one_more() };
    let mut found = engine.key_list(&caller, account.as_ref(), &wanted).await?;
    let next_cursor = query.cut(&mut found, |key| [key.id.clone()]);
    let items = found.iter().map(ListedKey::from).collect();
    Ok(encode::ok(&json!(KeyPage { items, next_cursor })))
}

fn revoke_operation() -> Operation {
    let text = "Revokes a key. A name refers to all keys of the account with that name. The caller's own key and the last one with the scope `admin` cannot be revoked. Without the scope `admin`, the caller cannot revoke keys of other accounts or keys with more permissions. An admin can name an id of any account; a name is looked up in the caller's account, or in the one of the parameter `account`. An id takes precedence over a name.";
    let about = "Permanently revokes a key of the account, effective immediately.";
    Operation::delete("/v1/api-keys/{id}", "key_revoke", revoke)
        .tag(KEYS)
        .summary("Revoke a key")
        .text(text)
        .in_path([KEY])
        .scope(Scope::KeysWrite)
        .with(parameters::of_keys("The account that a name belongs to; defaults to the caller's."))
        .answers_nothing(204, "It is revoked.")
        .idempotent()
        .refuses_when(
            ProblemCode::Forbidden,
            "the caller lacks the scope, or one of the scopes of the key to revoke",
        )
        .refuses_when(ProblemCode::NotFound, "no active key has this id or name")
        .refuses_when(
            ProblemCode::Conflict,
            "the key is the caller's own, or the last active one with the scope `admin`",
        )
        .tool(
            Tool::ends("revoke_api_key", "Revoke an API key", about)
                .path("key_id", "The id or name of a key.")
                .of_own_account()
                .answers(schema::output::<RevokedKey<'_>>)
                .reply(revoked_key)
                .confirmed()
                .ignores_unknown(),
        )
}

async fn revoke(
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

fn rotate_operation() -> Operation {
    let text = "Replaces a key with a new one; the old key stays valid for a while. An admin can name an id of any account; a name is looked up in the caller's account, or in the one of the parameter `account`. An id takes precedence over a name. If you lost the reply, revoke the new key and create another: the clear text is not stored anywhere.";
    Operation::post("/v1/api-keys/{id}/rotate", "key_rotate", rotate)
        .tag(KEYS)
        .summary("Rotate a key")
        .text(text)
        .in_path([KEY])
        .scope(Scope::Admin)
        .with(parameters::of_keys("The account that a name belongs to; defaults to the caller's."))
        .takes::<RotateKeyRequest>([("plain", json!({ "grace_seconds": 3600 }))])
        .or_nothing()
        .answers::<CreatedKey>(
            201,
            "The new key, shown once.",
            example(include_str!("api_keys/key_rotate.json")),
        )
        .and_header("Cache-Control", "`no-store`.")
        .idempotent()
        .refuses([ProblemCode::Conflict])
        .refuses_when(ProblemCode::NotFound, "no active key has this id or name")
}

async fn rotate(
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

/// The reply that is stored for repeated requests, without the secret.
fn without_secret(IssuedKey { key, replaces, .. }: &IssuedKey) -> Value {
    json!(CreatedKey::new(key, None, replaces.clone()))
}

fn issued(IssuedKey { key, clear, replaces }: &IssuedKey) -> Response {
    let body = json!(CreatedKey::new(key, Some(clear), replaces.clone()));
    let mut response = encode::created(&body);
    // A secret that is shown once must not reappear from a cache.
    let no_store = axum::http::HeaderValue::from_static("no-store");
    response.headers_mut().insert(axum::http::header::CACHE_CONTROL, no_store);
    response
}

/// The key that an address refers to.
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

/// The part of a request that tells it apart from others with the same path.
fn meaning(key: &KeyRef) -> Value {
    json!(key.account.as_ref().map(AccountId::as_str))
}

/// The account that a key name belongs to, if the address names one.
fn account_of(query: &[(String, String)]) -> Result<Option<AccountId>, Problem> {
    match query {
        [] => Ok(None),
        [(name, text)] if name == "account" => keys::account(text).map(Some),
        [(name, _)] if name != "account" => Err(wrong(name, "is not a known parameter")),
        _ => Err(wrong("account", "is the only parameter and may appear once")),
    }
}

/// The route replies without a body; the result of the tool names the key.
#[expect(clippy::unnecessary_wraps, reason = "the reply of another tool can be refused")]
fn revoked_key(arguments: &Value, _: Value) -> Result<Value, Problem> {
    let id = arguments["key_id"].as_str().unwrap_or_default();
    Ok(json!(RevokedKey { id: id.into(), revoked: true }))
}
