//! The JSON-RPC envelope of Model Context Protocol messages, as far as the HTTP layer checks it.

use std::borrow::Cow;

use jurat_core::account::caller::Scope;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::choices::MessageId;

const VERSION: &str = "2.0";

/// A Model Context Protocol message to the server. Unknown fields are ignored.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it only describes the message")]
pub struct McpMessage {
    #[schema(pattern = r"^2\.0$")]
    jsonrpc: String,
    id: Option<MessageId>,
    /// Such as `tools/call`.
    method: String,
    /// Parameters of the method.
    #[schema(value_type = Option<Object>)]
    params: Option<Value>,
}

/// The response to a message: `result`, or `error` if the message itself is invalid.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it only describes the answer")]
pub struct McpReply {
    #[schema(pattern = r"^2\.0$")]
    jsonrpc: String,
    /// The id of the message.
    #[schema(required = false)]
    id: Option<MessageId>,
    /// Result of the method.
    #[schema(value_type = Object, required = false)]
    result: Option<Value>,
    /// What is wrong with the message.
    #[schema(value_type = McpError, required = false)]
    error: Option<McpError>,
}

/// A protocol error. Failed tools report their error in the result.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it only describes the error")]
pub struct McpError {
    /// A JSON-RPC or protocol error code, such as -32602.
    code: i64,
    message: String,
    #[schema(required = false)]
    data: Option<Value>,
}

/// What a client needs to know to ask for access, as in RFC 9728. There is no authorization server:
/// the key of an account is the bearer token.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ProtectedResource<'a> {
    /// The URL that is protected.
    pub resource: Cow<'a, str>,
    pub resource_name: Cow<'a, str>,
    /// A page that explains how to get a key.
    pub resource_documentation: Cow<'a, str>,
    /// Scopes that a key can have.
    pub scopes_supported: Vec<Cow<'a, str>>,
    /// How a request carries the key.
    pub bearer_methods_supported: Vec<Cow<'a, str>>,
}

/// The metadata of the server, or of its path `path`.
pub fn protected_resource(base: &str, path: &str) -> ProtectedResource<'static> {
    ProtectedResource {
        resource: Cow::Owned(format!("{base}{path}")),
        resource_name: Cow::Borrowed("Jurat"),
        resource_documentation: Cow::Owned(format!("{base}/docs")),
        scopes_supported: Scope::OWN.iter().map(|it| Cow::Borrowed(it.as_str())).collect(),
        bearer_methods_supported: vec![Cow::Borrowed("header")],
    }
}

/// Checks whether a document can be a message; the error is the reason why not.
pub fn check(message: &Value) -> Result<(), &'static str> {
    let Some(members) = message.as_object() else {
        return Err("a message must be one JSON object");
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some(VERSION) {
        return Err("`jsonrpc` must be `2.0`");
    }
    if !members.get("method").is_some_and(Value::is_string) {
        return Err(
            "`method` must be a string; this server sends no requests and accepts no responses",
        );
    }
    if members.get("id").is_some_and(|id| !id.is_string() && !id.is_i64()) {
        return Err("`id` must be a string or an integer");
    }
    if members.get("params").is_some_and(|params| !params.is_object()) {
        return Err("`params` must be an object");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_message_is_told_why() {
        let good = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": {} });
        assert_eq!(check(&good), Ok(()));
        let with = |name: &str, value: Value| {
            let mut message = good.clone();
            message[name] = value;
            message
        };
        for (message, field) in [
            (json!([good]), "one JSON object"),
            (json!({ "method": "ping" }), "`jsonrpc`"),
            (with("jsonrpc", json!(2.0)), "`jsonrpc`"),
            (with("method", json!(7)), "`method`"),
            (with("id", json!(1.5)), "`id`"),
            (with("id", json!(null)), "`id`"),
            (with("params", json!([])), "`params`"),
        ] {
            let reason = check(&message).unwrap_err();
            assert!(reason.contains(field), "{message}: {reason}");
        }
    }
}
