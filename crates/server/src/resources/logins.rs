//! Registration and login without a key: `/v1/register`, `/v1/login` and `/v1/auth`.

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
use jurat_wire::{
    api::logins::{
        self, ApproveRequest, CodeRequest, CodeSent, DeviceAnswered, ExchangeRequest, LoginKeyBody,
        VerifyCodeRequest,
    },
    problem::Problem,
};
use serde_json::{Value, json};

use crate::{
    operation::Operation,
    request::{
        auth::{self, MaybePeerAddress},
        decode::{Json, MaybeJson},
        encode::{self, HandlerResult},
    },
    resources::PEOPLE,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        register_operation(),
        verify_registration_operation(),
        login_operation(),
        verify_login_operation(),
        exchange_operation(),
        approve_operation(),
    ]
}

fn register_operation() -> Operation {
    let text = "Sends a code to an address, for a new account. The reply is the same for every address. Refused if only the operator creates accounts.";
    sends_code(
        Operation::post("/v1/register", "register", register)
            .for_anyone()
            .tag(PEOPLE)
            .summary("Register an account")
            .text(text),
    )
    .refuses([ProblemCode::Forbidden])
}

async fn register(
    State(engine): State<Engine>,
    MaybePeerAddress(from): MaybePeerAddress,
    Json(body): Json,
) -> HandlerResult {
    engine.login_begin(LoginPurpose::Register, &logins::decode_code(&body)?, from).await?;
    Ok(sent())
}

fn login_operation() -> Operation {
    let text =
        "Sends a code to the address of an account. The reply is the same for every address.";
    sends_code(
        Operation::post("/v1/login", "login", login)
            .for_anyone()
            .tag(PEOPLE)
            .summary("Log in")
            .text(text),
    )
}

async fn login(
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

fn verify_login_operation() -> Operation {
    takes_code(
        Operation::post("/v1/login/verify", "login_verify", verify)
            .for_anyone()
            .tag(PEOPLE)
            .summary("Finish a login")
            .text(VERIFY_TEXT),
    )
}

fn verify_registration_operation() -> Operation {
    takes_code(
        Operation::post("/v1/register/verify", "register_verify", verify)
            .for_anyone()
            .tag(PEOPLE)
            .summary("Finish a registration")
            .text(VERIFY_TEXT),
    )
}

async fn verify(
    State(engine): State<Engine>,
    MaybePeerAddress(from): MaybePeerAddress,
    Json(body): Json,
) -> HandlerResult {
    let (email, code) = logins::decode_verify(&body)?;
    Ok(shown_once(&engine.login_verify(&email, &code, from).await?))
}

fn exchange_operation() -> Operation {
    let text = "Returns a key to an approved program. Send the program's token as `Authorization: Bearer`; it is valid once.";
    Operation::post("/v1/auth/exchange", "device_exchange", exchange)
        .for_anyone()
        .tag(PEOPLE)
        .summary("Exchange a program's token for a key")
        .text(text)
        .takes::<ExchangeRequest>([("plain", json!({ "hostname": "laptop" }))])
        .or_nothing()
        .answers::<LoginKeyBody>(200, "A key, shown once.", a_key())
        .and_header("Cache-Control", "`no-store`.")
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::AuthRequired,
            ProblemCode::InvalidCredentials,
            ProblemCode::RateLimited,
            ProblemCode::StoreUnavailable,
        ])
}

async fn exchange(
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

fn approve_operation() -> Operation {
    let text = "Approves or denies a waiting program. An approved program gets a key of the caller's account with all scopes that an account needs for its own resources, so the caller's key must have them too.";
    Operation::post("/v1/auth/approve", "device_answer", approve)
        .tag(PEOPLE)
        .summary("Approve a program")
        .text(text)
        .scope(jurat_core::account::caller::Scope::KeysWrite)
        .takes::<ApproveRequest>([("plain", json!({ "user_code": "BCDF-GHJK" }))])
        .answers::<DeviceAnswered>(200, "The answer.", json!({ "approved": true }))
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

async fn approve(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Json(body): Json,
) -> HandlerResult {
    let (user_code, is_approved) = logins::decode_approve(&body)?;
    engine.device_answer(&caller, &user_code, is_approved).await?;
    Ok(encode::ok(&logins::answered(is_approved)))
}

/// A reply with a key, which must not be cached.
fn shown_once(issued: &IssuedKey) -> Response {
    let mut response = encode::ok(&logins::entered(&issued.clear));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

const SECRET: &str =
    "jrt_live_0000000000000000000001_0000000000000000000002000000000000000000000300abcD";

fn a_key() -> Value {
    json!({ "api_key": SECRET, "key_id": "0000000000000000000001" })
}

const VERIFY_TEXT: &str = "Returns a key in exchange for the code that was sent to the address. A code is valid for ten minutes and one key; a network address has five attempts in that time.";

fn takes_code(operation: Operation) -> Operation {
    operation
        .takes::<VerifyCodeRequest>([(
            "plain",
            json!({ "email": "ann@example.com", "code": "1234567890" }),
        )])
        .answers::<LoginKeyBody>(200, "A key, shown once.", a_key())
        .and_header("Cache-Control", "`no-store`.")
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::InvalidCredentials,
            ProblemCode::RateLimited,
            ProblemCode::StoreUnavailable,
        ])
}

fn sends_code(operation: Operation) -> Operation {
    let sent = json!({
        "status": "ok",
        "message": "If this address can be used here, we have sent it a code. Enter it within ten minutes.",
    });
    operation
        .takes::<CodeRequest>([("plain", json!({ "email": "ann@example.com" }))])
        .answers::<CodeSent>(202, "A code is sent if the address can be used.", sent)
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::RateLimited,
            ProblemCode::StoreUnavailable,
        ])
}
