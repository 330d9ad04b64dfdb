//! Logging in without a key: codes by e-mail, and programs that a user approves.

use jurat_core::{
    account::{key::ApiKey, login::DEVICE_INTERVAL_S},
    code::ProblemCode,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::request::{self, request, values::Identifier};
use crate::problem::Problem;

request! {
    /// An address to send a code to.
    pub open struct CodeRequest {
        email: Identifier,
    }

    /// A code received by e-mail.
    pub open struct VerifyCodeRequest {
        /// The address that the code was sent to.
        email: Identifier,
        code: Identifier,
    }

    /// Exchanges the token of an approved program for a key.
    pub open struct ExchangeRequest {
        /// Name of the machine, used in the name of the key.
        hostname: Option<String>,
    }

    /// A user's answer to a waiting program.
    pub strict struct ApproveRequest {
        /// The code that the program shows, such as `BCDF-GHJK`.
        user_code: Identifier,
        /// Whether to approve the program; defaults to true.
        approve: Option<bool>,
    }
}

/// The address that a code is sent to.
pub fn decode_code(body: &Value) -> Result<String, Problem> {
    let request: CodeRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(request.email.0)
}

/// The address and the code.
pub fn decode_verify(body: &Value) -> Result<(String, String), Problem> {
    let request: VerifyCodeRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok((request.email.0, request.code.0))
}

/// The name of the machine that a key is for.
pub fn decode_exchange(body: &Value) -> Result<Option<String>, Problem> {
    let request: ExchangeRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(request.hostname)
}

/// The code, and whether the program is approved.
pub fn decode_approve(body: &Value) -> Result<(String, bool), Problem> {
    let request: ApproveRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok((request.user_code.0, request.approve.unwrap_or(true)))
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
