//! The Model Context Protocol: the same operations as tools, in both revisions of the protocol.

mod access;
mod cancel;
mod confirm;
mod handles;
mod messages;
mod people;
mod prompts;
mod resources;
mod sets;
mod tasks;
mod tools;
mod verifiers;

use axum::body::Body;
use http::StatusCode;
use jurat_testkit::app::{TestCaller, TestReply};
use serde_json::{Value, json};

/// The newest revision, in which every message is self-contained.
pub(crate) const MODERN: &str = "2026-07-28";
/// The last revision that starts with `initialize`.
pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const ERAS: [&str; 2] = [LEGACY, MODERN];

/// The member of a message that says what its client can do.
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A request of a revision, with the headers that belong to it.
pub(crate) async fn ask(
    caller: &TestCaller<'_>,
    era: &str,
    method: &str,
    params: Value,
) -> TestReply {
    ask_at(caller, "/mcp", era, (method, params)).await
}

/// A request of a revision to an address that may select tools.
pub(crate) async fn ask_at(
    caller: &TestCaller<'_>,
    address: &str,
    era: &str,
    (method, mut params): (&str, Value),
) -> TestReply {
    let name = params["name"].as_str().or_else(|| params["uri"].as_str());
    let name = name.unwrap_or_default().to_owned();
    let mut headers = vec![("mcp-protocol-version", era), ("mcp-method", method)];
    if era == MODERN {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(era);
        if params["_meta"][CAPABILITIES].is_null() {
            params["_meta"][CAPABILITIES] = json!({});
        }
        headers.push(("mcp-name", &name));
    }
    headers.retain(|(_, value)| !value.is_empty());
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    caller.send("POST", address, Body::from(message.to_string()), &headers).await
}

/// The result of a successful request.
#[track_caller]
pub(crate) fn result(reply: &TestReply) -> Value {
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    let messages = messages(reply);
    let last = messages.last().unwrap();
    assert_eq!((&last["jsonrpc"], &last["id"]), (&json!("2.0"), &json!(1)), "{last}");
    assert!(last.get("error").is_none(), "{last}");
    last["result"].clone()
}

/// All messages of a reply, which comes as JSON or as events.
pub(crate) fn messages(reply: &TestReply) -> Vec<Value> {
    if reply.headers["content-type"] == "application/json" {
        return vec![reply.json()];
    }
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    let text = reply.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    data.map(|data| serde_json::from_str(data.trim()).unwrap()).collect()
}

/// Calls a tool and returns its result.
pub(crate) async fn call(
    caller: &TestCaller<'_>,
    era: &str,
    tool: &str,
    arguments: &Value,
) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    result(&ask(caller, era, "tools/call", params).await)
}
