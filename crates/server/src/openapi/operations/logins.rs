//! What the operations are for with which people and programs come in without a key.

use jurat_core::code::ProblemCode;
use jurat_wire::api::logins::{
    ApproveRequest, ClientConfig, CodeRequest, CodeSent, DeviceAnswered, DeviceBody,
    DeviceProblemBody, DeviceTokenBody, ExchangeRequest, LoginKeyBody, VerifyCodeRequest,
};
use serde_json::{Value, json};

use super::PEOPLE;
use crate::{openapi::description::OperationDescription, resources::RouteInfo};

const SECRET: &str =
    "jrt_live_0000000000000000000001_0000000000000000000002000000000000000000000300abcD";

pub(super) fn describe(route: &RouteInfo) -> Option<OperationDescription> {
    Some(match route.operation {
        "register" => code(
            "Register an account",
            "Sends a code to an address, for a new account. The reply is the same for every address. Refused if only the operator creates accounts.",
        )
        .refuses([ProblemCode::Forbidden]),
        "login" => code(
            "Log in",
            "Sends a code to the address of an account. The reply is the same for every address.",
        ),
        "register_verify" => verify("Finish a registration"),
        "login_verify" => verify("Finish a login"),
        "device_exchange" => exchange(),
        "device_answer" => approve(),
        "client_config" => client_config(),
        "device_begin" => authorize(),
        "device_poll" => token(),
        "device_page" => page(
            "Show the device approval page",
            "A page without scripts, where the user enters the code that a program shows.",
        ),
        "device_page_answer" => page(
            "Submit the device approval page",
            "The fields of the page's form: `user_code`, `decision`, and either `key` or `email` with `code`; with `email` alone a code is sent.",
        )
        .takes_form()
        .answers_as(400, "A field is invalid.", &["text/html"])
        .answers_as(401, "The key or the code is wrong.", &["text/html"])
        .answers_as(403, "The key lacks permission, or the form came from another site.", &["text/html"])
        .answers_as(404, "No program is waiting with this code.", &["text/html"])
        .answers_as(429, "Too many requests.", &["text/html"])
        .refuses([ProblemCode::UnsupportedMediaType, ProblemCode::PayloadTooLarge, ProblemCode::ValidationError, ProblemCode::RateLimited]),
        _ => return None,
    })
}

fn code(summary: &'static str, text: &'static str) -> OperationDescription {
    let sent = json!({
        "status": "ok",
        "message": "If this address can be used here, we have sent it a code. Enter it within ten minutes.",
    });
    OperationDescription::new(PEOPLE, summary, text)
        .takes::<CodeRequest>([("plain", json!({ "email": "ann@example.com" }))])
        .answers::<CodeSent>(202, "A code is sent if the address can be used.", sent)
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::RateLimited,
            ProblemCode::StoreUnavailable,
        ])
}

fn verify(summary: &'static str) -> OperationDescription {
    let text = "Returns a key in exchange for the code that was sent to the address. A code is valid for ten minutes and one key; a network address has five attempts in that time.";
    let request = json!({ "email": "ann@example.com", "code": "1234567890" });
    OperationDescription::new(PEOPLE, summary, text)
        .takes::<VerifyCodeRequest>([("plain", request)])
        .answers::<LoginKeyBody>(200, "A key, shown once.", a_key())
        .and_header("Cache-Control", "`no-store`.")
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::InvalidCredentials,
            ProblemCode::RateLimited,
            ProblemCode::StoreUnavailable,
        ])
}

fn a_key() -> Value {
    json!({ "api_key": SECRET, "key_id": "0000000000000000000001" })
}

fn exchange() -> OperationDescription {
    let text = "Returns a key to an approved program. Send the program's token as `Authorization: Bearer`; it is valid once.";
    OperationDescription::new(PEOPLE, "Exchange a program's token for a key", text)
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

fn approve() -> OperationDescription {
    let text = "Approves or denies a waiting program. An approved program gets a key of the caller's account with all scopes that an account needs for its own resources, so the caller's key must have them too.";
    OperationDescription::new(PEOPLE, "Approve a program", text)
        .scope(jurat_core::account::caller::Scope::KeysWrite)
        .takes::<ApproveRequest>([("plain", json!({ "user_code": "BCDF-GHJK" }))])
        .answers::<DeviceAnswered>(200, "The answer.", json!({ "approved": true }))
        .refuses([ProblemCode::ValidationError, ProblemCode::NotFound])
}

fn client_config() -> OperationDescription {
    let text = "Login addresses for clients of the registry.";
    let example = json!({
        "workos_client_id": "jurat",
        "workos_device_authorization_uri": "http://127.0.0.1:5872/auth/device/authorize",
        "workos_token_uri": "http://127.0.0.1:5872/auth/device/token",
        "ignore_defaults": [".git/", ".DS_Store", "node_modules/", "__pycache__/", ".venv/", "*.log"],
    });
    OperationDescription::new(PEOPLE, "Show the login addresses", text).answers::<ClientConfig>(
        200,
        "The URLs.",
        example,
    )
}

fn authorize() -> OperationDescription {
    let text =
        "Starts a device login as in RFC 8628. The form may have `client_id`, which is ignored.";
    let example = json!({
        "device_code": "0123456789abcdef", "user_code": "BCDF-GHJK",
        "verification_uri": "http://127.0.0.1:5872/auth/device",
        "verification_uri_complete": "http://127.0.0.1:5872/auth/device?user_code=BCDF-GHJK",
        "expires_in": 900, "interval": 5,
    });
    OperationDescription::new(PEOPLE, "Start a device login", text)
        .takes_form()
        .answers::<DeviceBody<'_>>(
            200,
            "The code to show to the user, and the code to poll with.",
            example,
        )
        .and_header("Cache-Control", "`no-store`.")
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::UnsupportedMediaType,
            ProblemCode::PayloadTooLarge,
            ProblemCode::RateLimited,
            ProblemCode::StoreUnavailable,
        ])
}

fn token() -> OperationDescription {
    let text = "Polls for the user's approval, as in RFC 8628. The form has `grant_type` and `device_code`.";
    let pending = json!({
        "error": "authorization_pending", "error_description": "The user has not answered yet.",
    });
    OperationDescription::new(PEOPLE, "Poll for a device token", text)
        .takes_form()
        .answers::<DeviceTokenBody<'_>>(
            200,
            "The token, for `/v1/auth/exchange`.",
            json!({ "access_token": "0123456789abcdef", "token_type": "Bearer" }),
        )
        .and_header("Cache-Control", "`no-store`.")
        .answers::<DeviceProblemBody>(400, "The login is pending, denied or expired.", pending)
        .refuses([
            ProblemCode::ValidationError,
            ProblemCode::UnsupportedMediaType,
            ProblemCode::PayloadTooLarge,
            ProblemCode::StoreUnavailable,
        ])
}

fn page(summary: &'static str, text: &'static str) -> OperationDescription {
    OperationDescription::new(PEOPLE, summary, text)
        .answers_as(200, "The page.", &["text/html"])
        .refuses([ProblemCode::ValidationError])
}
