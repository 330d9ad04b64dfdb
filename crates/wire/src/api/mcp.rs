//! The JSON-RPC envelope of Model Context Protocol messages, as far as the HTTP layer checks it.

use std::borrow::Cow;

use jurat_core::{account::caller::Scope, code::ProblemCode};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Value, json};
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
    /// With our `code`.
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

/// A reply with our code in the data of its error; nothing if it is no error, or has a code already.
pub fn with_code(reply: &[u8]) -> Option<String> {
    /// Reading only this costs little for results.
    #[derive(Deserialize)]
    struct Envelope {
        error: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Envelope>(reply).ok()?.error?;
    let mut reply: Value = serde_json::from_slice(reply).ok()?;
    let error = reply.get_mut("error")?.as_object_mut()?;
    let code = code_of(error.get("code")?.as_i64()?);
    let data = error.entry("data").or_insert_with(|| json!({}));
    let members = data.as_object_mut().filter(|data| !data.contains_key("code"))?;
    members.insert("code".to_owned(), json!(code.as_str()));
    Some(reply.to_string())
}

/// Our code for the number of a protocol error.
const fn code_of(number: i64) -> ProblemCode {
    match number {
        -32_700 => ProblemCode::InvalidJson,
        -32_603 => ProblemCode::Internal,
        // A method or a resource.
        -32_601 | -32_002 => ProblemCode::NotFound,
        // A revision, or an ability that the client lacks.
        -32_022 | -32_021 => ProblemCode::NotSupported,
        _ => ProblemCode::ValidationError,
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
    use super::*;

    #[test]
    fn an_error_gets_the_code_that_it_lacks_and_keeps_its_data() {
        let coded = |error: Value| {
            let reply = json!({ "jsonrpc": "2.0", "id": 1, "error": error }).to_string();
            with_code(reply.as_bytes()).map(|text| serde_json::from_str::<Value>(&text).unwrap())
        };
        let none = coded(json!({ "code": -32_601, "message": "m" })).unwrap();
        assert_eq!(none["error"]["data"], json!({ "code": "not_found" }));
        let other = json!({ "code": -32_022, "message": "m", "data": { "supported": ["a"] } });
        let data = json!({ "supported": ["a"], "code": "not_supported" });
        assert_eq!(coded(other).unwrap()["error"]["data"], data);
        let own = json!({ "code": -32_602, "message": "m", "data": { "code": "not_found" } });
        assert_eq!(coded(own), None);
        assert_eq!(with_code(br#"{"jsonrpc":"2.0","id":1,"result":{"error":{}}}"#), None);
    }

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
