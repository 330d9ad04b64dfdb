//! Device login: the requests of programs that wait for approval, and the page that approves them.

use std::{collections::BTreeMap, net::IpAddr};

use axum::{
    body::{Body, to_bytes},
    extract::{FromRequest, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use jurat_core::{
    account::login::{LoginPurpose, read_user_code},
    code::ProblemCode,
};
use jurat_engine::{DeviceApprover, DeviceLoginStatus, Engine, EngineError};
use jurat_wire::{
    api::logins::{
        self, ClientConfig, DeviceBody, DeviceProblemBody, DeviceTokenBody, device_problem,
    },
    problem::Problem,
};
use serde_json::json;

use crate::{
    operation::Operation,
    request::{
        auth::MaybePeerAddress,
        base_url::base,
        encode::{self, HandlerResult},
        page::QueryFilters,
    },
    resources::PEOPLE,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        client_config_operation(),
        authorize_operation(),
        token_operation(),
        page_operation(),
        answer_operation(),
    ]
}

/// The page loads nothing, runs no scripts, and sends its form only to this server.
const POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const MOST_BYTES: usize = 8 * 1024;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The fields of a form, each once.
#[derive(Debug)]
pub(super) struct FormFields(BTreeMap<String, String>);

impl FormFields {
    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", |text| text.trim())
    }
}

impl<S: Send + Sync> FromRequest<S> for FormFields {
    type Rejection = Response;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Response> {
        let refuse = |code, text: &str| encode::problem(&Problem::new(code, text));
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let is_form = kind.is_some_and(|it| it.starts_with("application/x-www-form-urlencoded"));
        if !is_form {
            return Err(refuse(ProblemCode::UnsupportedMediaType, "the body must be a form"));
        }
        let bytes = to_bytes(request.into_body(), MOST_BYTES).await;
        let bytes =
            bytes.map_err(|_| refuse(ProblemCode::PayloadTooLarge, "the form is too large"))?;
        let mut fields = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(&bytes) {
            if fields.insert(name.into_owned(), value.into_owned()).is_some() {
                return Err(refuse(
                    ProblemCode::ValidationError,
                    "a field of the form is repeated",
                ));
            }
        }
        Ok(Self(fields))
    }
}

fn client_config_operation() -> Operation {
    let example = json!({
        "workos_client_id": "jurat",
        "workos_device_authorization_uri": "http://127.0.0.1:5872/auth/device/authorize",
        "workos_token_uri": "http://127.0.0.1:5872/auth/device/token",
        "ignore_defaults": [".git/", ".DS_Store", "node_modules/", "__pycache__/", ".venv/", "*.log"],
    });
    Operation::get("/.well-known/goodeye-client-config", "client_config", client_config)
        .for_anyone()
        .tag(PEOPLE)
        .summary("Show the login addresses")
        .text("Login addresses for clients of the registry.")
        .answers::<ClientConfig>(200, "The URLs.", example)
}

async fn client_config(State(engine): State<Engine>, headers: HeaderMap) -> Response {
    encode::ok(&logins::client_config(&base(&engine, &headers)))
}

fn authorize_operation() -> Operation {
    let text =
        "Starts a device login as in RFC 8628. The form may have `client_id`, which is ignored.";
    let example = json!({
        "device_code": "0123456789abcdef", "user_code": "BCDF-GHJK",
        "verification_uri": "http://127.0.0.1:5872/auth/device",
        "verification_uri_complete": "http://127.0.0.1:5872/auth/device?user_code=BCDF-GHJK",
        "expires_in": 900, "interval": 5,
    });
    Operation::post("/auth/device/authorize", "device_begin", authorize)
        .for_anyone()
        .tag(PEOPLE)
        .summary("Start a device login")
        .text(text)
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

async fn authorize(
    State(engine): State<Engine>,
    MaybePeerAddress(from): MaybePeerAddress,
    headers: HeaderMap,
    _form: FormFields,
) -> HandlerResult {
    let device = engine.device_begin(from).await?;
    let codes = (device.device_code.as_str(), device.user_code.as_str());
    let body = logins::device(&base(&engine, &headers), codes, device.expires_in_s);
    Ok(unkept(encode::ok(&body)))
}

fn token_operation() -> Operation {
    let text = "Polls for the user's approval, as in RFC 8628. The form has `grant_type` and `device_code`.";
    let pending = json!({
        "error": "authorization_pending", "error_description": "The user has not answered yet.",
    });
    Operation::post("/auth/device/token", "device_poll", token)
        .for_anyone()
        .tag(PEOPLE)
        .summary("Poll for a device token")
        .text(text)
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

async fn token(
    State(engine): State<Engine>,
    MaybePeerAddress(from): MaybePeerAddress,
    form: FormFields,
) -> HandlerResult {
    if form.get("grant_type") != GRANT {
        let text = "The grant type must be the one for device codes.";
        return Ok(not_yet("unsupported_grant_type", text));
    }
    Ok(match engine.device_poll(form.get("device_code"), from).await? {
        DeviceLoginStatus::Token(token) => unkept(encode::ok(&logins::token(&token))),
        DeviceLoginStatus::Pending => {
            not_yet("authorization_pending", "The user has not answered yet.")
        }
        DeviceLoginStatus::SlowDown => not_yet("slow_down", "Poll less often."),
        DeviceLoginStatus::Denied => not_yet("access_denied", "The login was denied."),
        DeviceLoginStatus::Gone => {
            not_yet("expired_token", "The login has expired; start a new one.")
        }
    })
}

fn not_yet(error: &'static str, text: &'static str) -> Response {
    encode::text(StatusCode::BAD_REQUEST, json!(device_problem(error, text)).to_string())
}

fn unkept(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn page_operation() -> Operation {
    let text = "A page without scripts, where the user enters the code that a program shows.";
    Operation::get("/auth/device", "device_page", page)
        .for_anyone()
        .tag(PEOPLE)
        .summary("Show the device approval page")
        .text(text)
        .answers_as(200, "The page.", &["text/html"])
        .refuses([ProblemCode::ValidationError])
}

async fn page(query: QueryFilters) -> Response {
    let code = query.get("user_code").and_then(read_user_code).unwrap_or_default();
    html(StatusCode::OK, &begin(&code, ""))
}

fn answer_operation() -> Operation {
    let text = "The fields of the page's form: `user_code`, `decision`, and either `key` or `email` with `code`; with `email` alone a code is sent.";
    Operation::post("/auth/device", "device_page_answer", answer)
        .for_anyone()
        .tag(PEOPLE)
        .summary("Submit the device approval page")
        .text(text)
        .answers_as(200, "The page.", &["text/html"])
        .refuses([ProblemCode::ValidationError])
        .takes_form()
        .answers_as(400, "A field is invalid.", &["text/html"])
        .answers_as(401, "The key or the code is wrong.", &["text/html"])
        .answers_as(
            403,
            "The key lacks permission, or the form came from another site.",
            &["text/html"],
        )
        .answers_as(404, "No program is waiting with this code.", &["text/html"])
        .answers_as(429, "Too many requests.", &["text/html"])
        .refuses([
            ProblemCode::UnsupportedMediaType,
            ProblemCode::PayloadTooLarge,
            ProblemCode::ValidationError,
            ProblemCode::RateLimited,
        ])
}

async fn answer(
    State(engine): State<Engine>,
    MaybePeerAddress(from): MaybePeerAddress,
    headers: HeaderMap,
    form: FormFields,
) -> Response {
    if !is_own(&headers) {
        return html(StatusCode::FORBIDDEN, "<p>This form came from another site.</p>");
    }
    match answered(&engine, &form, from).await {
        Ok(body) => html(StatusCode::OK, &body),
        Err(error) => {
            let problem = encode::engine_problem(&error);
            let status = StatusCode::from_u16(problem.code.http_status());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let code = read_user_code(form.get("user_code")).unwrap_or_default();
            html(status, &begin(&code, &format!("{}.", problem.detail)))
        }
    }
}

async fn answered(
    engine: &Engine,
    form: &FormFields,
    from: Option<IpAddr>,
) -> Result<String, EngineError> {
    let (email, code, key) = (form.get("email"), form.get("code"), form.get("key"));
    let user_code = form.get("user_code");
    let approver = if !key.is_empty() {
        DeviceApprover::Key(key.to_owned())
    } else if !email.is_empty() && !code.is_empty() {
        DeviceApprover::Mail { email: email.to_owned(), code: code.to_owned() }
    } else {
        engine.login_begin(LoginPurpose::Login, email, from).await?;
        return Ok(second(user_code, email));
    };
    let is_approved = form.get("decision") == "approve";
    engine.device_answer_by(&approver, user_code, is_approved, from).await?;
    let said = if is_approved { "The program is approved." } else { "The program was denied." };
    Ok(format!("<p>{said} You can close this page.</p>"))
}

/// Whether a form was sent from our own page. This is the second line of defense: the form carries
/// the sender's credentials, so another page could not send a valid one.
fn is_own(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_same_site = text("sec-fetch-site").is_none_or(|site| site == "same-origin");
    let is_same_origin = text("origin").is_none_or(|origin| {
        let host = origin.split_once("://").map(|(_, host)| host);
        host.is_some() && host == text("host")
    });
    is_same_site && is_same_origin
}

fn begin(user_code: &str, said: &str) -> String {
    let (user_code, said) = (escaped(user_code), escaped(said));
    format!(
        r#"<p>{said}</p>
<p>A program shows a code and asks to act for your account. Approve it only if you started it yourself.</p>
<form method="post" action="device">
<p><label>Code shown by the program <input name="user_code" value="{user_code}" required autocomplete="off"></label></p>
<p><label>Your API key <input name="key" type="password" required autocomplete="off"></label></p>
<p><button name="decision" value="approve">Approve</button> <button name="decision" value="deny">Deny</button></p>
</form>
<p>Or get a code by e-mail:</p>
<form method="post" action="device">
<p><label>Code shown by the program <input name="user_code" value="{user_code}" required autocomplete="off"></label></p>
<p><label>Your e-mail address <input name="email" type="email" required autocomplete="email"></label></p>
<p><button>Send me a code</button></p>
</form>"#
    )
}

fn second(user_code: &str, email: &str) -> String {
    let (user_code, email) = (escaped(user_code), escaped(email));
    format!(
        r#"<p>If this address can be used here, we have sent it a code.</p>
<form method="post" action="device">
<input name="user_code" type="hidden" value="{user_code}">
<input name="email" type="hidden" value="{email}">
<p><label>Code from the e-mail <input name="code" required autocomplete="one-time-code" inputmode="numeric"></label></p>
<p><button name="decision" value="approve">Approve the program</button> <button name="decision" value="deny">Deny</button></p>
</form>"#
    )
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for symbol in text.chars().take(400) {
        match symbol {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn html(status: StatusCode, body: &str) -> Response {
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Approve a program</title></head><body><h1>Approve a program</h1>\n{body}\n</body></html>\n"
    );
    let mut response = Response::new(Body::from(page));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let set = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        // Without any referrer, a browser would not reveal the origin of the form either.
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in set {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
