//! The JSON-RPC envelope of the protocol.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::error::{A2aError, A2aErrorKind, RpcErrorBody};
use crate::api::kit::choices::MessageId;

const VERSION: &str = "2.0";

/// The names of version 0.3, with those of 1.0.
const RENAMED: &[(&str, &str)] = &[
    ("message/send", "SendMessage"),
    ("message/stream", "SendStreamingMessage"),
    ("tasks/get", "GetTask"),
    ("tasks/list", "ListTasks"),
    ("tasks/cancel", "CancelTask"),
    ("tasks/resubscribe", "SubscribeToTask"),
    ("tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig"),
    ("tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig"),
    ("tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs"),
    ("tasks/pushNotificationConfig/delete", "DeleteTaskPushNotificationConfig"),
    ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"),
];

/// A call of a method.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcCall {
    pub id: Value,
    pub method: String,
    pub params: Value,
}

/// Reads a call. The error comes with the id that its response needs.
pub fn rpc_call(body: Value) -> Result<RpcCall, Box<(Value, A2aError)>> {
    let id = match body.get("id") {
        Some(id @ Value::String(_)) => id.clone(),
        Some(id @ Value::Number(number)) if number.is_i64() => id.clone(),
        _ => Value::Null,
    };
    let refused = |field: &str, reason: &str| {
        let mut error = A2aError::wrong(field, reason);
        error.kind = A2aErrorKind::InvalidRequest;
        Box::new((id.clone(), error))
    };
    let Value::Object(mut members) = body else {
        return Err(refused("body", "must be one JSON-RPC request, as an object"));
    };
    if members.get("jsonrpc").and_then(Value::as_str) != Some(VERSION) {
        return Err(refused("jsonrpc", "must be `2.0`"));
    }
    if id.is_null() {
        return Err(refused(
            "id",
            "must be a string or a whole number: every method has a response",
        ));
    }
    let Some(Value::String(method)) = members.remove("method") else {
        return Err(refused("method", "must be a string such as `SendMessage`"));
    };
    let params = match members.remove("params") {
        None | Some(Value::Null) => json!({}),
        Some(params @ Value::Object(_)) => params,
        Some(_) => return Err(refused("params", "must be an object")),
    };
    Ok(RpcCall { id, method, params })
}

/// The error for a method that the protocol does not have.
pub fn unknown_method(method: &str) -> A2aError {
    let name: String = method.chars().take(80).collect();
    let detail = match RENAMED.iter().find(|(old, _)| *old == method) {
        Some((_, new)) => format!(
            "there is no method `{name}`: that is its name in A2A 0.3, and A2A 1.0 calls it `{new}`"
        ),
        None => format!("there is no method `{name}`"),
    };
    A2aError::new(A2aErrorKind::MethodNotFound, jurat_core::code::ProblemCode::NotFound, detail)
        .at("method")
}

/// The response of a method that succeeded.
pub const fn rpc_result<'a, T: Serialize>(id: &'a Value, result: &'a T) -> RpcResult<'a, T> {
    RpcResult { id, jsonrpc: VERSION, result }
}

/// See [`rpc_result`]. The members are in the order of their names, because it is written as it is.
#[derive(Debug, Serialize)]
pub struct RpcResult<'a, T> {
    id: &'a Value,
    jsonrpc: &'static str,
    result: &'a T,
}

/// The response of a method that failed.
pub fn rpc_error(id: &Value, error: &A2aError) -> Value {
    json!({ "jsonrpc": VERSION, "id": id, "error": error.rpc() })
}

/// A call of a method of the protocol. Unknown fields are ignored.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it only describes the request")]
pub struct A2aRpcRequest {
    #[schema(pattern = r"^2\.0$")]
    jsonrpc: String,
    id: MessageId,
    /// Such as `SendMessage`.
    method: String,
    /// Parameters of the method.
    #[schema(value_type = Option<Object>)]
    params: Option<Value>,
}

/// The response of a method: `result`, or `error` if it failed.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it only describes the response")]
pub struct A2aRpcResponse {
    #[schema(pattern = r"^2\.0$")]
    jsonrpc: String,
    /// The id of the request; null if it could not be read.
    #[schema(value_type = Option<MessageId>, required = true)]
    id: Option<MessageId>,
    /// Result of the method.
    #[schema(value_type = Object, required = false)]
    result: Option<Value>,
    #[schema(value_type = RpcErrorBody, required = false)]
    error: Option<RpcErrorBody>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_call_is_refused_with_its_id() {
        let good =
            json!({ "jsonrpc": "2.0", "id": "a", "method": "GetTask", "params": { "id": "x" } });
        let call = rpc_call(good.clone()).unwrap();
        assert_eq!((call.id, call.method.as_str()), (json!("a"), "GetTask"));
        for (name, value, field, id) in [
            ("jsonrpc", json!("1.0"), "jsonrpc", json!("a")),
            ("id", json!(null), "id", json!(null)),
            ("method", json!(7), "method", json!("a")),
            ("params", json!([]), "params", json!("a")),
        ] {
            let mut body = good.clone();
            body[name] = value;
            let (found, error) = *rpc_call(body).unwrap_err();
            assert_eq!(error.problem.field.as_deref(), Some(field));
            assert_eq!((found, error.rpc().code), (id, -32_600), "{field}");
        }
        assert_eq!(rpc_call(json!([good])).unwrap_err().1.rpc().code, -32_600);
    }

    #[test]
    fn an_old_name_leads_to_the_new_one() {
        let error = unknown_method("message/send");
        assert!(error.problem.detail.contains("A2A 1.0 calls it `SendMessage`"));
        assert_eq!(unknown_method("Nothing").rpc().code, -32_601);
    }
}
