//! The surface for models: the Model Context Protocol over HTTP, one address for all revisions.
//!
//! The server keeps no protocol sessions. Requests of the newest revision are self-contained, and
//! requests of older revisions are served independently too. So clients use no resources between
//! requests, any node can answer, and no session id could be used in place of a key.

mod cancel;
mod confirm;
mod dispatch;
mod hosts;
mod progress;
mod prompts;
pub(crate) mod render;
mod request;
mod resources;
pub(crate) mod schema;
pub(crate) mod sets;
mod surface;
mod tools;
pub(crate) mod watch;

use std::sync::Arc;

use axum::{
    Extension,
    body::{Body, HttpBody as _, to_bytes},
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use http_body_util::Full;
use jurat_core::code::ProblemCode;
use jurat_engine::Engine;
use jurat_wire::{api::mcp, problem::Problem};
use rmcp::{
    model::{ErrorData, JsonRpcError, RequestId},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::{cancel::CANCELLED, surface::McpSurface};
pub(crate) use self::{
    cancel::{CallSignals, CallsInFlight},
    dispatch::InProcessRouter,
    hosts::AllowedHosts,
    progress::ProgressReporter,
    request::ToolRequest,
    sets::{ToolOffer, ToolSet},
};
use crate::request::{
    decode::{self, BODY_LIMIT},
    encode,
    event_stream::LONGEST_SILENCE,
};

/// Limit on a reply that the library writes itself, which is short.
const LONGEST_TEXT: usize = 64 * 1024;
const SESSION_ID: &str = "mcp-session-id";
const BOTH_FORMS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Answers one message.
pub(crate) async fn post(
    State(engine): State<Engine>,
    Extension(hosts): Extension<Arc<AllowedHosts>>,
    Extension(operations): Extension<InProcessRouter>,
    Extension((offer, calls)): Extension<(Arc<ToolOffer>, CallsInFlight)>,
    request: Request,
) -> Response {
    let arrived = Instant::now();
    if let Some(problem) = hosts.objection(request.uri(), request.headers()) {
        return encode::problem(&problem);
    }
    if let Err(problem) = decode::check_headers(request.headers()) {
        return encode::problem(&problem);
    }
    let selection = match offer.select(request.uri()) {
        Ok(selection) => selection,
        Err(problem) => return encode::problem(&problem),
    };
    let (mut parts, body) = request.into_parts();
    let (bytes, message) = match decode::read(body, &parts.extensions).await {
        Ok(read) => read,
        Err(problem) => return encode::problem(&problem),
    };
    if let Err(reason) = mcp::check(&message) {
        return malformed(&message, reason);
    }
    if message["method"] == CANCELLED {
        calls.cancel(&parts, &message);
    }
    // Accept both forms, so that the library turns no client away: a client that asks for progress
    // must take events, and any other gets JSON.
    parts.headers.insert(header::ACCEPT, BOTH_FORMS);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // The library requires a host, which a call within this process does not have.
    parts.headers.entry(header::HOST).or_insert(HeaderValue::from_static("localhost"));
    let request = Request::from_parts(parts, Full::new(bytes));
    let is_for_peers = selection.has(ToolSet::Cortensor);
    let session = format!("{:032x}", engine.clock().bits());
    let surface = McpSurface { engine, operations, selection, calls, arrived };
    let mut response = service(surface).handle(request).await.map(Body::new);
    if is_for_peers && message["method"] == "initialize" {
        // Clients of the other system need one. It only tells their calls apart.
        if let Ok(id) = HeaderValue::from_str(&session) {
            response.headers_mut().insert(SESSION_ID, id);
        }
    }
    if is_json(&response) {
        return coded(response).await;
    }
    if response.status().is_success() {
        return response;
    }
    worded(&message, response).await
}

/// The library's service for one request; creating it costs less than sharing it.
fn service(surface: McpSurface) -> StreamableHttpService<McpSurface, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(Some(LONGEST_SILENCE))
        .with_max_request_body_bytes(BODY_LIMIT)
        // `hosts` has already checked the host, and answers with a problem.
        .disable_allowed_hosts();
    StreamableHttpService::new(move || Ok(surface.clone()), Arc::default(), config)
}

/// The protocol error for JSON that is not a valid message.
fn malformed(message: &Value, reason: impl Into<String>) -> Response {
    let id = message.get("id").and_then(|id| match id {
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    });
    let code = json!({ "code": ProblemCode::ValidationError.as_str() });
    let error = JsonRpcError::new(id, ErrorData::invalid_request(reason.into(), Some(code)));
    // The error holds text and numbers, so it always serializes.
    let body = serde_json::to_string(&error).unwrap_or_default();
    encode::text(StatusCode::BAD_REQUEST, body)
}

/// A reply whose protocol error also has our code. The library's own errors have none.
async fn coded(response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let length = body.size_hint().upper().and_then(|it| usize::try_from(it).ok());
    if length.is_none_or(|length| LONGEST_TEXT < length) {
        return Response::from_parts(parts, body);
    }
    let bytes = to_bytes(body, LONGEST_TEXT).await.unwrap_or_default();
    let body = mcp::with_code(&bytes).map_or_else(|| Body::from(bytes), Body::from);
    Response::from_parts(parts, body)
}

/// Turns a plain-text refusal of the library into a form that clients can read.
async fn worded(message: &Value, response: Response) -> Response {
    let status = response.status();
    let text = to_bytes(response.into_body(), LONGEST_TEXT).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if status.is_server_error() {
        tracing::error!(error = %text, "could not answer a message");
        let detail = "something went wrong inside the server";
        return encode::problem(&Problem::new(ProblemCode::Internal, detail));
    }
    malformed(message, text)
}

fn is_json(response: &Response) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json")
}
