//! What every request passes through: an identifier, a log line, and a net below panics.

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
use jurat_core::code::Code;
use jurat_engine::Engine;
use jurat_wire::problem::Problem;
use tracing::Instrument as _;

use crate::{count, encode};

const REQUEST_ID: &str = "x-request-id";

/// Names the request, so that a reply, a log line and a report can be brought together.
pub(crate) async fn identify(
    State(engine): State<Engine>,
    request: Request,
    next: Next,
) -> Response {
    let id = request_id(&engine, &request);
    let started = engine.clock().now();
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str);
    let counted = count::begin(&engine, request.method(), route);
    let span = tracing::info_span!("request", request.id = %id, http.method = %request.method(), http.route = route, key.id = tracing::field::Empty);
    let mut response = async {
        let response = next.run(request).await;
        let duration_ms = engine.clock().now().millis_since(started);
        tracing::debug!(http.status = response.status().as_u16(), duration_ms, "request served");
        response
    }
    .instrument(span)
    .await;
    count::end(&engine, counted, response.status());
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    // Replies hold text that executors wrote; no browser may guess another type for them.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let comes_back = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
    if comes_back.contains(&response.status()) {
        let seconds = encode::retry_after(engine.clock().bits());
        response.headers_mut().entry(RETRY_AFTER).or_insert(seconds.into());
    }
    response
}

/// What everybody gets who asks for a round while this node is late. It is made without the rest of
/// the way, because it is made most often when there is the least time.
pub(crate) fn late(engine: &Engine) -> Response {
    static BODY: LazyLock<Bytes> = LazyLock::new(|| {
        let detail = "this node is busy with the rounds that it has";
        Bytes::from(Problem::new(Code::Overloaded, detail).body().to_string())
    });
    let mut response = Response::new(Body::from(BODY.clone()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let bits = engine.clock().bits();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(RETRY_AFTER, encode::retry_after(bits).into());
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(value) = HeaderValue::from_str(&format!("{bits:032x}")) {
        headers.insert(REQUEST_ID, value);
    }
    response
}

/// Refuses a round before its body is read, when none may begin.
pub(crate) async fn admit(State(engine): State<Engine>, request: Request, next: Next) -> Response {
    match engine.admit() {
        Ok(()) => next.run(request).await,
        Err(error) => encode::engine_error(&error),
    }
}

/// The caller's own identifier where it is a plain short word, else a new one.
fn request_id(engine: &Engine, request: &Request) -> String {
    let given = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_plain = |text: &&str| {
        !text.is_empty()
            && text.len() <= 64
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    given.filter(is_plain).map_or_else(|| format!("{:032x}", engine.clock().bits()), str::to_owned)
}

/// A handler that panics answers like any other failure.
#[expect(clippy::needless_pass_by_value, reason = "the panic layer hands over a box")]
pub(crate) fn caught(panic: Box<dyn Any + Send + 'static>) -> Response {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no text");
    tracing::error!(panic = text, "a handler panicked");
    encode::problem(&Problem::new(Code::Internal, "something went wrong inside the server"))
}
