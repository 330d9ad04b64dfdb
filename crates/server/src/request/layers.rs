//! Layers of every request: an id, a log line, and a panic handler.

use std::{any::Any, sync::LazyLock};

use axum::{
    body::Body,
    extract::{MatchedPath, Request, State},
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS},
    },
    middleware::Next,
    response::Response,
};
use bytes::Bytes;
use jurat_core::code::ProblemCode;
use jurat_engine::{Engine, trace};
use jurat_wire::{
    api::{
        a2a::{MEDIA_TYPE, error::A2aError, rpc::rpc_error},
        openai::error::ChatErrorReply,
    },
    problem::{Problem, ProblemBody},
};
use serde_json::{Value, json};
use tracing::{Instrument as _, Span, field::Empty};

use super::{
    auth::{ValidKeyMark, VisitorCaller},
    count, encode,
};
use crate::operation::ErrorForm;

const REQUEST_ID: &str = "x-request-id";

/// Names the request, so that a reply, a log line, a trace and a report can be matched.
pub(crate) async fn identify(
    State(engine): State<Engine>,
    request: Request,
    next: Next,
) -> Response {
    let id = request_id(&engine, &request);
    let started = engine.clock().now();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map(MatchedPath::as_str);
    let method = count::method_name(request.method());
    let counted = count::begin(&engine, method, route.unwrap_or("none"));
    let span = request_span(&id, method, route);
    trace::adopt(&span, request.headers());
    let mut response = next.run(request).instrument(span.clone()).await;
    trace::record_answer(&span, response.status());
    let duration_ms = engine.clock().now().millis_since(started);
    span.in_scope(|| log_end(&response, route, duration_ms));
    count::end(&engine, counted, &response);
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    // Replies contain text of executors; no browser may guess another type for them.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let comes_back = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
    if comes_back.contains(&response.status()) {
        let seconds = encode::retry_after(engine.clock().bits());
        response.headers_mut().entry(RETRY_AFTER).or_insert(seconds.into());
    }
    response
}

/// The reply to a request for a round while this node is late. It bypasses the other layers,
/// because it is sent most often when there is the least time.
pub(crate) fn late(engine: &Engine, form: ErrorForm) -> Response {
    static PROBLEM: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(busy().body().to_string()));
    static PEER: LazyLock<Bytes> =
        LazyLock::new(|| Bytes::from(encode::peer_body(&busy().body()).to_string()));
    static OPENAI: LazyLock<Bytes> = LazyLock::new(|| {
        let error = ProblemBody::read(&busy().body()).map(ChatErrorReply::from);
        Bytes::from(json!(error).to_string())
    });
    static A2A_RPC: LazyLock<Bytes> =
        LazyLock::new(|| Bytes::from(rpc_error(&Value::Null, &A2aError::from(busy())).to_string()));
    static A2A_HTTP: LazyLock<Bytes> =
        LazyLock::new(|| Bytes::from(json!(A2aError::from(busy()).http()).to_string()));
    let (kind, body) = match form {
        ErrorForm::Problem => ("application/problem+json", &PROBLEM),
        ErrorForm::Peer => ("application/problem+json", &PEER),
        ErrorForm::OpenAi => ("application/json", &OPENAI),
        ErrorForm::A2aRpc => ("application/json", &A2A_RPC),
        ErrorForm::A2aHttp => (MEDIA_TYPE, &A2A_HTTP),
    };
    let mut response = Response::new(Body::from(Bytes::clone(body)));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let bits = engine.clock().bits();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(RETRY_AFTER, encode::retry_after(bits).into());
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(value) = HeaderValue::from_str(&format!("{bits:032x}")) {
        headers.insert(REQUEST_ID, value);
    }
    response
}

fn busy() -> Problem {
    Problem::new(ProblemCode::Overloaded, "this node is busy with its current rounds")
}

/// The path itself is left out, because it may contain anything.
fn request_span(id: &str, method: &'static str, route: Option<&str>) -> Span {
    tracing::error_span!(
        "request",
        otel.kind = "server",
        otel.name = route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}")),
        jurat.request.id = id,
        http.request.method = method,
        http.route = route,
        url.scheme = "http",
        jurat.key.id = Empty,
    )
}

/// One line for each request. Requests without a valid key are only counted, because otherwise
/// anybody could fill the log; so are periodic ones.
fn log_end(response: &Response, route: Option<&str>, duration_ms: u64) {
    let status = response.status().as_u16();
    let has_key = response.extensions().get::<ValidKeyMark>().is_some();
    if has_key && route != Some("/metrics") {
        tracing::info!(http.response.status_code = status, duration_ms, "served a request");
    } else {
        tracing::debug!(http.response.status_code = status, duration_ms, "served a request");
    }
}

/// Refuses a round before its body is read, if none may start.
pub(crate) async fn admit(State(engine): State<Engine>, request: Request, next: Next) -> Response {
    // A request that gets here was admitted.
    let Some(visitor) = request.extensions().get::<VisitorCaller>() else {
        return encode::problem(&Problem::new(ProblemCode::AuthRequired, "the request has no key"));
    };
    match engine.admit(visitor.payer()) {
        Ok(()) => next.run(request).await,
        Err(error) => encode::engine_error(&error),
    }
}

/// The caller's own id if it is a plain short word, otherwise a new one.
fn request_id(engine: &Engine, request: &Request) -> String {
    let given = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_plain = |text: &&str| {
        !text.is_empty()
            && text.len() <= 64
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    given.filter(is_plain).map_or_else(|| format!("{:032x}", engine.clock().bits()), str::to_owned)
}

/// A handler that panics answers like any other failure. The message may contain text of a caller,
/// so only the process's own hook reports it, with care.
pub(crate) fn caught(_panic: Box<dyn Any + Send + 'static>) -> Response {
    tracing::error!("a handler panicked");
    encode::problem(&Problem::new(ProblemCode::Internal, "something went wrong inside the server"))
}
