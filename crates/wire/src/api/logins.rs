//! Coming in without a key: codes by mail, and programs that somebody lets in.

use jurat_core::{
    account::{key::ApiKey, login::DEVICE_INTERVAL_S},
    code::ProblemCode,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::fields::RequestFields;
use crate::problem::Problem;

/// An address to send a code to.
#[derive(Debug, ToSchema)]
pub struct CodeRequest {
    #[schema(min_length = 1, pattern = r"\S")]
    pub email: String,
}

/// A code received by e-mail.
#[derive(Debug, ToSchema)]
pub struct VerifyCodeRequest {
    /// The address that the code was sent to.
    #[schema(min_length = 1, pattern = r"\S")]
    pub email: String,
    #[schema(min_length = 1, pattern = r"\S")]
    pub code: String,
}

/// Exchanges the token of an approved program for a key.
#[derive(Debug, ToSchema)]
pub struct ExchangeRequest {
    /// Name of the machine, used in the name of the key.
    pub hostname: Option<String>,
}

/// A user's answer to a waiting program.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveRequest {
    /// The code that the program shows, such as `BCDF-GHJK`.
    #[schema(min_length = 1, pattern = r"\S")]
    pub user_code: String,
    /// Whether to approve the program; defaults to true.
    pub approve: Option<bool>,
}

pub fn decode_code(body: &Value) -> Result<&str, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    body.required_text("email")
}

/// The address and the code.
pub fn decode_verify(body: &Value) -> Result<(&str, &str), Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    Ok((body.required_text("email")?, body.required_text("code")?))
}

pub fn decode_exchange(body: &Value) -> Result<Option<&str>, Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    body.text("hostname")
}

/// The code, and whether the program is let in.
pub fn decode_approve(body: &Value) -> Result<(&str, bool), Problem> {
    let body = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    body.keep_to::<ApproveRequest>()?;
    let is_approved = match body.get("approve") {
        None => true,
        Some(Value::Bool(approve)) => *approve,
        Some(_) => return Err(body.wrong("approve", "must be true or false")),
    };
    Ok((body.required_text("user_code")?, is_approved))
}

/// The reply is the same for every address.
#[derive(Debug, Serialize, ToSchema)]
pub struct CodeSent {
    status: &'static str,
    message: &'static str,
}

pub const CODE_SENT: CodeSent = CodeSent {
    status: "ok",
    message: "If this address can be used here, we have sent it a code. Enter it within ten minutes.",
};

/// A key for a logged-in user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LoginKey)]
pub struct LoginKeyBody {
    /// Shown only once.
    api_key: String,
    key_id: String,
}

pub fn entered(clear: &ApiKey) -> LoginKeyBody {
    LoginKeyBody { api_key: clear.reveal(), key_id: clear.id().to_owned() }
}

/// Login addresses for clients.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClientConfig {
    workos_client_id: &'static str,
    workos_device_authorization_uri: String,
    workos_token_uri: String,
    /// Files that clients skip when they upload a folder.
    ignore_defaults: [&'static str; 6],
}

pub fn client_config(base: &str) -> ClientConfig {
    ClientConfig {
        workos_client_id: "jurat",
        workos_device_authorization_uri: format!("{base}/auth/device/authorize"),
        workos_token_uri: format!("{base}/auth/device/token"),
        ignore_defaults: [".git/", ".DS_Store", "node_modules/", "__pycache__/", ".venv/", "*.log"],
    }
}

/// What a waiting program shows to its user.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeviceAuthorization)]
pub struct DeviceBody<'a> {
    /// The program's own secret.
    device_code: &'a str,
    user_code: &'a str,
    verification_uri: String,
    verification_uri_complete: String,
    /// Seconds until the login expires.
    expires_in: i64,
    /// Seconds between two polls.
    interval: u32,
}

pub fn device<'a>(base: &str, codes: (&'a str, &'a str), expires_in: i64) -> DeviceBody<'a> {
    let (device_code, user_code) = codes;
    let verification_uri = format!("{base}/auth/device");
    DeviceBody {
        device_code,
        user_code,
        verification_uri_complete: format!("{verification_uri}?user_code={user_code}"),
        verification_uri,
        expires_in,
        interval: DEVICE_INTERVAL_S,
    }
}

/// The token of an approved program; it can be exchanged for one key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeviceToken)]
pub struct DeviceTokenBody<'a> {
    access_token: &'a str,
    token_type: &'static str,
}

pub fn token(text: &str) -> DeviceTokenBody<'_> {
    DeviceTokenBody { access_token: text, token_type: "Bearer" }
}

/// OAuth error that says why a waiting program has no token.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeviceProblem)]
pub struct DeviceProblemBody {
    error: &'static str,
    error_description: &'static str,
}

pub const fn device_problem(error: &'static str, text: &'static str) -> DeviceProblemBody {
    DeviceProblemBody { error, error_description: text }
}

/// The user's answer to a waiting program.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeviceAnswered {
    approved: bool,
}

pub fn answered(approved: bool) -> DeviceAnswered {
    DeviceAnswered { approved }
}
