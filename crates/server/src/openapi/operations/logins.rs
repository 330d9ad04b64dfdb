//! What the operations are for with which people and programs come in without a key.

use jurat_core::code::Code;
use jurat_wire::api::logins::{
    ApproveRequest, ClientConfig, CodeRequest, CodeSent, DeviceAnswered, DeviceBody,
    DeviceProblemBody, DeviceTokenBody, ExchangeRequest, LoginKeyBody, VerifyCodeRequest,
};
use serde_json::{Value, json};

use super::PEOPLE;
use crate::{http::RouteInfo, openapi::description::Description};

const SECRET: &str =
    "jrt_live_0000000000000000000001_0000000000000000000002000000000000000000000300abcD";

pub(super) fn describe(route: &RouteInfo) -> Option<Description> {
    Some(match route.operation {
        "register" => code(
            "Register an account",
            "Sends a code to an address, for a new account. The answer is the same for every address. Refused where the operator makes the accounts.",
        )
        .refuses([Code::Forbidden]),
        "login" => code(
            "Log in",
            "Sends a code to the address of an account. The answer is the same for every address.",
        ),
        "register_verify" => verify("Finish a registration"),
        "login_verify" => verify("Finish a login"),
        "device_exchange" => exchange(),
        "device_answer" => approve(),
        "client_config" => client_config(),
        "device_begin" => authorize(),
        "device_poll" => token(),
        "device_page" => page(
            "See the page that lets programs in",
            "A page without scripts, where somebody types the code that a program shows.",
        ),
        "device_page_answer" => page(
            "Answer on the page that lets programs in",
            "What the form of the page sends: `user_code`, `decision`, and either `key` or `email` with `code`; with `email` alone a code is sent.",
        )
        .takes_form()
        .answers_as(400, "A field is wrong.", &["text/html"])
        .answers_as(401, "The key or the code is not right.", &["text/html"])
        .answers_as(403, "It may not, or the form came from another site.", &["text/html"])
        .answers_as(404, "No program waits under the code.", &["text/html"])
        .answers_as(429, "Too much was asked.", &["text/html"])
        .refuses([Code::UnsupportedMediaType, Code::PayloadTooLarge, Code::ValidationError, Code::RateLimited]),
        _ => return None,
    })
}

fn code(summary: &'static str, text: &'static str) -> Description {
    let sent = json!({
        "status": "ok",
        "message": "If the address can be used here, a code is on its way to it. Enter it within ten minutes.",
    });
    Description::new(PEOPLE, summary, text)
        .takes::<CodeRequest>([("plain", json!({ "email": "ann@example.com" }))])
        .answers::<CodeSent>(202, "A code is sent to whom it may be.", sent)
        .refuses([Code::ValidationError, Code::RateLimited, Code::StoreUnavailable])
}

fn verify(summary: &'static str) -> Description {
    let text = "Gives a key to whoever has the code that was sent to the address. A code is good for ten minutes and one key; a network address tries five times in that time.";
    let request = json!({ "email": "ann@example.com", "code": "1234567890" });
    Description::new(PEOPLE, summary, text)
        .takes::<VerifyCodeRequest>([("plain", request)])
        .answers::<LoginKeyBody>(200, "A key, shown once.", a_key())
        .and_header("Cache-Control", "`no-store`.")
        .refuses([
            Code::ValidationError,
            Code::InvalidCredentials,
            Code::RateLimited,
            Code::StoreUnavailable,
        ])
}

fn a_key() -> Value {
    json!({ "api_key": SECRET, "key_id": "0000000000000000000001" })
}

fn exchange() -> Description {
    let text = "Gives a key to a program that somebody let in. The token that it was given stands as `Authorization: Bearer`, and is good once.";
    Description::new(PEOPLE, "Change the token of a program for a key", text)
        .takes::<ExchangeRequest>([("plain", json!({ "hostname": "laptop" }))])
        .or_nothing()
        .answers::<LoginKeyBody>(200, "A key, shown once.", a_key())
        .and_header("Cache-Control", "`no-store`.")
        .refuses([
            Code::ValidationError,
            Code::AuthRequired,
            Code::InvalidCredentials,
            Code::RateLimited,
            Code::StoreUnavailable,
        ])
}

fn approve() -> Description {
    let text = "Lets a program in that waits, or turns it away. It gets a key of the caller's account with all that an account does with its own, so the caller's key must have that too.";
    Description::new(PEOPLE, "Let a program in", text)
        .scope(jurat_core::caller::Scope::KeysWrite)
        .takes::<ApproveRequest>([("plain", json!({ "user_code": "BCDF-GHJK" }))])
        .answers::<DeviceAnswered>(200, "What it is told.", json!({ "approved": true }))
        .refuses([Code::ValidationError, Code::NotFound])
}

fn client_config() -> Description {
    let text = "Where clients of the registry ask to be let in.";
    let example = json!({
        "workos_client_id": "jurat",
        "workos_device_authorization_uri": "http://127.0.0.1:5872/auth/device/authorize",
        "workos_token_uri": "http://127.0.0.1:5872/auth/device/token",
        "ignore_defaults": [".git/", ".DS_Store", "node_modules/", "__pycache__/", ".venv/", "*.log"],
    });
    Description::new(PEOPLE, "Find the way in", text).answers::<ClientConfig>(
        200,
        "The addresses.",
        example,
    )
}

fn authorize() -> Description {
    let text = "Begins the login of a program, as in RFC 8628. The form may have `client_id`, which is not looked at.";
    let example = json!({
        "device_code": "0123456789abcdef", "user_code": "BCDF-GHJK",
        "verification_uri": "http://127.0.0.1:5872/auth/device",
        "verification_uri_complete": "http://127.0.0.1:5872/auth/device?user_code=BCDF-GHJK",
        "expires_in": 900, "interval": 5,
    });
    Description::new(PEOPLE, "Ask to be let in", text)
        .takes_form()
        .answers::<DeviceBody<'_>>(200, "What to show, and what to ask with.", example)
        .and_header("Cache-Control", "`no-store`.")
        .refuses([
            Code::ValidationError,
            Code::UnsupportedMediaType,
            Code::PayloadTooLarge,
            Code::RateLimited,
            Code::StoreUnavailable,
        ])
}

fn token() -> Description {
    let text = "Asks whether somebody let the program in, as in RFC 8628. The form has `grant_type` and `device_code`.";
    let pending = json!({
        "error": "authorization_pending", "error_description": "Nobody has answered yet.",
    });
    Description::new(PEOPLE, "Ask whether one is let in", text)
        .takes_form()
        .answers::<DeviceTokenBody<'_>>(
            200,
            "The token, which `/v1/auth/exchange` takes.",
            json!({ "access_token": "0123456789abcdef", "token_type": "Bearer" }),
        )
        .and_header("Cache-Control", "`no-store`.")
        .answers::<DeviceProblemBody>(400, "Not yet, or not at all.", pending)
        .refuses([
            Code::ValidationError,
            Code::UnsupportedMediaType,
            Code::PayloadTooLarge,
            Code::StoreUnavailable,
        ])
}

fn page(summary: &'static str, text: &'static str) -> Description {
    Description::new(PEOPLE, summary, text)
        .answers_as(200, "The page.", &["text/html"])
        .refuses([Code::ValidationError])
}
