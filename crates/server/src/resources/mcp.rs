//! `/mcp`: the surface for models, whose messages the module `mcp` answers.

use axum::{
    extract::State,
    http::{HeaderMap, Uri},
    response::Response,
};
use jurat_core::code::ProblemCode;
use jurat_engine::Engine;
use jurat_wire::api::mcp::{McpMessage, McpReply, ProtectedResource, protected_resource};
use serde_json::json;

use crate::{
    mcp,
    operation::{Operation, parameters},
    request::{auth::METADATA, base_url::base, encode},
    resources::MODELS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![mcp_operation(), metadata_operation()]
}

fn mcp_operation() -> Operation {
    let text = "The Model Context Protocol over HTTP, in its revisions from 2024-11-05 to 2026-07-28. Each request contains one JSON-RPC message and is answered on its own: there are no protocol sessions. A tool needs the same scope as its operation.";
    let error = |code: i64, message: &str| json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": message } });
    Operation::post("/mcp", "mcp", mcp::post)
        .tag(MODELS)
        .summary("Send a Model Context Protocol message")
        .text(text)
        .takes::<McpMessage>([("plain", json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))])
        .answers::<McpReply>(
            200,
            "The response to a request.",
            json!({ "jsonrpc": "2.0", "id": 1, "result": {} }),
        )
        .or_as(
            "text/event-stream",
            "The messages of the response; progress notifications come first.",
        )
        .answers_nothing(202, "The notification was accepted; it has no response.")
        .answers::<McpReply>(
            400,
            "The body is not a valid message, or contradicts the headers.",
            error(-32600, "`jsonrpc` must be `2.0`"),
        )
        .answers::<McpReply>(404, "There is no such method.", error(-32601, "no/such/method"))
        .with([parameters::tool_sets()])
        .refuses([ProblemCode::HostRefused, ProblemCode::ValidationError])
}

fn metadata_operation() -> Operation {
    let text = "What a client needs to know to ask for access, as in RFC 9728. The key of an account is the bearer token, so there is no authorization server.";
    let example = json!(protected_resource("http://127.0.0.1:5872", ""));
    Operation::get(METADATA, "protected_resource", metadata)
        .also_at("/.well-known/oauth-protected-resource/mcp", "protected_resource_mcp")
        .for_anyone()
        .tag(MODELS)
        .summary("Show how to get access")
        .text(text)
        .answers::<ProtectedResource<'_>>(200, "The metadata of the resource.", example)
}

async fn metadata(State(engine): State<Engine>, uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path().strip_prefix(METADATA).unwrap_or_default();
    encode::ok(&protected_resource(&base(&engine, &headers), path))
}
