//! Writes replies: JSON, or a problem.

use std::{borrow::Cow, error::Error};

use axum::{
    body::Body,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use jurat_core::{
    code::ProblemCode,
    round::select::{SelectError, SelectProblem},
};
use jurat_engine::{EngineError, MetricFormat, RefusalContext, names_listed};
use jurat_wire::{
    api::kit::time::Time,
    problem::{Problem, SessionProblem},
};
use serde::Serialize;
use serde_json::{Value, json};

/// Maximum number of sessions that a problem describes.
const MOST_PROBLEMS: usize = 20;

pub(crate) fn ok(body: &impl Serialize) -> Response {
    json_response(StatusCode::OK, "application/json", body)
}

/// A reply whose type has its members in the order of their names. It is written without a copy as
/// values, so that text in it stays text.
pub(crate) fn ok_as_written(body: &impl Serialize) -> Response {
    match serde_json::to_string(body) {
        Ok(text) => ok_text(text),
        Err(_) => problem(&Problem::new(ProblemCode::Internal, "could not encode the reply")),
    }
}

/// A reply with encoded JSON.
pub(crate) fn ok_text(body: String) -> Response {
    text_response(StatusCode::OK, "application/json", body)
}

/// A reply of another status with encoded JSON.
pub(crate) fn text(status: StatusCode, body: String) -> Response {
    text_response(status, "application/json", body)
}

/// A reply for accepted work, with the address where it can be followed.
pub(crate) fn accepted(body: &impl Serialize, location: &str) -> Response {
    let mut response = json_response(StatusCode::ACCEPTED, "application/json", body);
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// A reply that is not JSON.
pub(crate) fn content(content_type: &'static str, bytes: Bytes) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Metrics in the format that the reader chose.
pub(crate) fn metrics(text: String, format: MetricFormat) -> Response {
    let content_type = match format {
        MetricFormat::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        MetricFormat::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
    };
    let mut response = text_response(StatusCode::OK, content_type, text);
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

pub(crate) fn created(body: &impl Serialize) -> Response {
    json_response(StatusCode::CREATED, "application/json", body)
}

pub(crate) fn problem(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.code.http_status())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_response(status, "application/problem+json", &problem.body());
    // For counting replies, and for the results of tools.
    response.extensions_mut().insert(problem.code);
    let headers = response.headers_mut();
    if problem.code == ProblemCode::PayloadTooLarge {
        // The rest of the body is not read, so nothing can follow it on the connection.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if problem.code == ProblemCode::AuthRequired {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if problem.code == ProblemCode::RequestTimeout {
        // The rest of the body may still arrive, and would not be read.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The body of a problem in the form of prompt-oriented clients, which read the text in `error`.
pub(crate) fn peer_body(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(detail) = body.get("detail").cloned() {
        body["error"] = detail;
    }
    // The field of version 3 that the session of the request became.
    for pointer in ["/field", "/errors/0/field"] {
        if let Some(field) = body.pointer_mut(pointer)
            && *field == "consensus.session_pool"
        {
            *field = json!("session_id");
        }
    }
    body
}

/// How many seconds to wait: random, so that clients refused together do not return together.
pub(crate) fn retry_after(bits: u128) -> u64 {
    2 + u64::try_from(bits % 7).unwrap_or_default()
}

/// The result of a handler: a reply, or a problem that `?` returns.
pub(crate) type HandlerResult = Result<Response, HandlerProblem>;

/// A problem that a handler returns.
#[derive(Debug)]
pub(crate) struct HandlerProblem {
    problem: Problem,
    retry_after_s: Option<u64>,
}

impl From<Problem> for HandlerProblem {
    fn from(problem: Problem) -> Self {
        Self { problem, retry_after_s: None }
    }
}

impl From<EngineError> for HandlerProblem {
    fn from(error: EngineError) -> Self {
        let retry_after_s =
            if let EngineError::Limited(limit) = &error { limit.more_in_s() } else { None };
        Self { problem: engine_problem(&error), retry_after_s }
    }
}

impl IntoResponse for HandlerProblem {
    fn into_response(self) -> Response {
        let mut response = problem(&self.problem);
        if let Some(seconds) = self.retry_after_s {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

pub(crate) fn engine_error(error: &EngineError) -> Response {
    problem(&engine_problem(error))
}

/// The problem of an engine error. An error is logged once, here, where it becomes a reply.
pub(crate) fn engine_problem(error: &EngineError) -> Problem {
    let code = error.code();
    let is_ours = matches!(code, ProblemCode::Internal | ProblemCode::StoreUnavailable);
    if is_ours {
        tracing::error!(error = %chain(error), "a request failed");
    }
    // Internal details are only logged.
    let detail = if code == ProblemCode::StoreUnavailable {
        "the store is unavailable".to_owned()
    } else if is_ours {
        "something went wrong inside the server".to_owned()
    } else {
        error.to_string()
    };
    let mut problem = Problem::new(code, detail);
    if let Some(field) = error.field() {
        problem = problem.at(field);
    }
    if let EngineError::Select(SelectError::Unavailable { problems, .. }) = error {
        let sessions: Vec<_> = problems.iter().take(MOST_PROBLEMS).map(session_problem).collect();
        problem = problem.with("sessions", json!(sessions));
    }
    if let EngineError::Schema(error) = error {
        problem = problem.with("reason", json!(error.slug()));
    }
    match error.context() {
        Some(context) => with_context(problem, context),
        None => problem,
    }
}

/// Adds the members and the hint that help a caller after a refusal.
fn with_context(problem: Problem, context: &RefusalContext) -> Problem {
    match context {
        RefusalContext::CurrentToken { verb, token } => {
            problem.with("current_version_token", json!(token)).hinted(format!(
                "Read the current version, then {verb} again with `expected_version_token` `{token}`."
            ))
        }
        RefusalContext::SharedNames { what, names, .. } => problem.hinted(format!(
            "A bare name refers to a {what} of your own. Use the full name of one shared with you, {}, or its id.",
            names_listed(names)
        )),
        RefusalContext::TokenOfNone { what, names } => problem.hinted(format!(
            "Read the {what} that you mean, which accepts it and shows its token: {}. Or leave the token out to create your own.",
            names_listed(names)
        )),
        RefusalContext::HigherRole => {
            problem.hinted("Ask the owner of the workflow, or a user with a higher role.")
        }
        RefusalContext::ResetsAt(at) => problem.with("resets_at", json!(Time(*at))),
        RefusalContext::Judgment { reasoning, run_id } => {
            problem.with("reasoning", json!(reasoning)).with("verifier_run_id", json!(run_id))
        }
        RefusalContext::Unhealthy => problem,
    }
}

fn session_problem(problem: &SelectProblem) -> SessionProblem<'_> {
    SessionProblem {
        session_id: Cow::Borrowed(&problem.session_id),
        problem: Cow::Borrowed(&problem.problem),
    }
}

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// The members of a reply are sorted by name, whatever order its type has.
fn json_response(
    status: StatusCode,
    content_type: &'static str,
    body: &impl Serialize,
) -> Response {
    text_response(status, content_type, json!(body).to_string())
}

fn text_response(status: StatusCode, content_type: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
