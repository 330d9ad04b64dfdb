//! `/mcp`: the surface for models, whose messages the module `mcp` answers.

use jurat_core::code::ProblemCode;
use jurat_wire::api::mcp::{McpMessage, McpReply};
use serde_json::json;

use crate::{mcp, operation::Operation, resources::MODELS};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![mcp_operation()]
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
        .refuses([ProblemCode::HostRefused])
}
