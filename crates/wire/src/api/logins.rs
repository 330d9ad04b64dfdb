//! Login without a key: codes sent by e-mail, and programs that a user approves.

use std::borrow::Cow;

use jurat_core::{
    account::{key::ApiKey, login::DEVICE_INTERVAL_S},
    code::ProblemCode,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::request::{self, request, values::Identifier};
use crate::problem::Problem;

request! {
    /// An address to send a code to.
    pub open struct CodeRequest, draft CodeDraft {
        email: Identifier,
    }

    /// A code received by e-mail.
    pub open struct VerifyCodeRequest, draft VerifyCodeDraft {
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
    pub strict struct ApproveRequest, draft ApproveDraft {
        /// The code that the program shows, such as `BCDF-GHJK`.
        user_code: Identifier,
        /// Whether to approve the program; defaults to true.
        approve: Option<bool>,
    }
}

/// Reads the address to send a code to.
pub fn decode_code(body: &Value) -> Result<String, Problem> {
    let request: CodeRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(request.email.0)
}

/// Reads the address and the code.
pub fn decode_verify(body: &Value) -> Result<(String, String), Problem> {
    let request: VerifyCodeRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok((request.email.0, request.code.0))
}

/// Reads the name of the machine that the key is for.
pub fn decode_exchange(body: &Value) -> Result<Option<String>, Problem> {
    let request: ExchangeRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(request.hostname)
}

/// Reads the program's code, and whether the user approves the program.
pub fn decode_approve(body: &Value) -> Result<(String, bool), Problem> {
    let request: ApproveRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok((request.user_code.0, request.approve.unwrap_or(true)))
}

/// The reply is the same for every address.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct CodeSent {
    pub status: Cow<'static, str>,
    pub message: Cow<'static, str>,
}

/// The reply to a request for a code, the same for every address.
pub const CODE_SENT: CodeSent = CodeSent {
    status: Cow::Borrowed("ok"),
    message: Cow::Borrowed(
        "If this address can be used here, we have sent it a code. Enter it within ten minutes.",
    ),
};

/// A key for a logged-in user.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = LoginKey)]
pub struct LoginKeyBody {
    /// Shown only once.
    pub api_key: String,
    pub key_id: String,
}

/// The key of a user who has logged in.
pub fn entered(clear: &ApiKey) -> LoginKeyBody {
    LoginKeyBody { api_key: clear.reveal(), key_id: clear.id().to_owned() }
}

/// Login addresses for clients.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ClientConfig {
    pub workos_client_id: Cow<'static, str>,
    pub workos_device_authorization_uri: String,
    pub workos_token_uri: String,
    /// Files that clients skip when they upload a folder.
    pub ignore_defaults: Vec<Cow<'static, str>>,
}

/// Files that no client uploads.
const IGNORED_FILES: [&str; 6] =
    [".git/", ".DS_Store", "node_modules/", "__pycache__/", ".venv/", "*.log"];

/// The client configuration of a server with this base URL.
pub fn client_config(base: &str) -> ClientConfig {
    ClientConfig {
        workos_client_id: Cow::Borrowed("jurat"),
        workos_device_authorization_uri: format!("{base}/auth/device/authorize"),
        workos_token_uri: format!("{base}/auth/device/token"),
        ignore_defaults: IGNORED_FILES.map(Cow::Borrowed).to_vec(),
    }
}

/// What a waiting program shows to its user.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = DeviceAuthorization)]
pub struct DeviceBody<'a> {
    /// The program's own secret.
    pub device_code: Cow<'a, str>,
    pub user_code: Cow<'a, str>,
    pub verification_uri: String,
    pub verification_uri_complete: String,
    /// Seconds until the login expires.
    pub expires_in: i64,
    /// Seconds between two polls.
    pub interval: u32,
}

/// The codes of a waiting program (its secret and the user's code), with the URLs to approve it.
pub fn device<'a>(base: &str, codes: (&'a str, &'a str), expires_in: i64) -> DeviceBody<'a> {
    let (device_code, user_code) = codes;
    let verification_uri = format!("{base}/auth/device");
    DeviceBody {
        device_code: Cow::Borrowed(device_code),
        user_code: Cow::Borrowed(user_code),
        verification_uri_complete: format!("{verification_uri}?user_code={user_code}"),
        verification_uri,
        expires_in,
        interval: DEVICE_INTERVAL_S,
    }
}

/// The token of an approved program; it can be exchanged for one key.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = DeviceToken)]
pub struct DeviceTokenBody<'a> {
    pub access_token: Cow<'a, str>,
    pub token_type: Cow<'static, str>,
}

/// The token of an approved program.
pub fn token(text: &str) -> DeviceTokenBody<'_> {
    DeviceTokenBody { access_token: Cow::Borrowed(text), token_type: Cow::Borrowed("Bearer") }
}

/// OAuth error that says why a waiting program has no token.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = DeviceProblem)]
pub struct DeviceProblemBody {
    pub error: Cow<'static, str>,
    pub error_description: Cow<'static, str>,
}

/// An OAuth error with its description.
pub const fn device_problem(error: &'static str, text: &'static str) -> DeviceProblemBody {
    DeviceProblemBody { error: Cow::Borrowed(error), error_description: Cow::Borrowed(text) }
}

/// The user's answer to a waiting program.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct DeviceAnswered {
    pub approved: bool,
}

/// The user's answer to a waiting program.
pub fn answered(approved: bool) -> DeviceAnswered {
    DeviceAnswered { approved }
}
