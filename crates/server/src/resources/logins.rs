//! Coming in without a key: `/v1/register`, `/v1/login` and `/v1/auth`.

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use jurat_core::{
    account::{caller::Caller, login::LoginPurpose},
    code::ProblemCode,
};
use jurat_engine::{Engine, IssuedKey};
use jurat_wire::{api::logins, problem::Problem};
use serde_json::json;

use crate::request::{
    auth::{self, MaybePeerAddress},
    decode::{Json, MaybeJson},
    encode::{self, HandlerResult},
};

pub(super) async fn register(
    State(engine): State<Engine>,
    MaybePeerAddress(from): MaybePeerAddress,
    Json(body): Json,
) -> HandlerResult {
    engine.login_begin(LoginPurpose::Register, &logins::decode_code(&body)?, from).await?;
    Ok(sent())
}

pub(super) async fn login(
    State(engine): State<Engine>,
    MaybePeerAddress(from): MaybePeerAddress,
    Json(body): Json,
) -> HandlerResult {
    engine.login_begin(LoginPurpose::Login, &logins::decode_code(&body)?, from).await?;
    Ok(sent())
}

fn sent() -> Response {
    encode::text(StatusCode::ACCEPTED, json!(logins::CODE_SENT).to_string())
}

pub(super) async fn verify(
    State(engine): State<Engine>,
    MaybePeerAddress(from): MaybePeerAddress,
    Json(body): Json,
) -> HandlerResult {
    let (email, code) = logins::decode_verify(&body)?;
    Ok(shown_once(&engine.login_verify(&email, &code, from).await?))
}

pub(super) async fn exchange(
    State(engine): State<Engine>,
    MaybePeerAddress(from): MaybePeerAddress,
    headers: HeaderMap,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let hostname = logins::decode_exchange(&body)?;
    let token = auth::key(&headers).ok_or_else(|| {
        Problem::new(ProblemCode::AuthRequired, "the request has no token; start a login first")
    })?;
    Ok(shown_once(&engine.device_exchange(token, hostname.as_deref(), from).await?))
}

pub(super) async fn approve(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Json(body): Json,
) -> HandlerResult {
    let (user_code, is_approved) = logins::decode_approve(&body)?;
    engine.device_answer(&caller, &user_code, is_approved).await?;
    Ok(encode::ok(&logins::answered(is_approved)))
}

/// A reply with a key, which nothing in between may keep.
fn shown_once(issued: &IssuedKey) -> Response {
    let mut response = encode::ok(&logins::entered(&issued.clear));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
