//! The Agent2Agent protocol: the same operations as tasks of agents, over both bindings.

mod card;
mod contexts;
mod lists;
mod messages;
mod push;
mod refusals;
mod streams;
pub(crate) mod tenants;

use axum::body::Body;
use jurat_testkit::app::{TestCaller, TestReply};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binding {
    JsonRpc,
    Http,
}

pub(crate) const BINDINGS: [Binding; 2] = [Binding::JsonRpc, Binding::Http];
const VERSION: (&str, &str) = ("a2a-version", "1.0");

/// The parts of an error that both bindings have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) code: String,
    pub(crate) field: Option<String>,
    pub(crate) message: String,
    /// The number of the error in JSON-RPC, or the status.
    pub(crate) number: i64,
}

/// Sends a call of a method.
pub(crate) async fn send(
    caller: &TestCaller<'_>,
    binding: Binding,
    method: &str,
    params: &Value,
) -> TestReply {
    let (verb, path, body) = match binding {
        Binding::JsonRpc => {
            let call = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
            ("POST", "/a2a".to_owned(), call.to_string())
        }
        Binding::Http => address(method, params),
    };
    caller.send(verb, &path, Body::from(body), &[VERSION]).await
}

/// Sends a text in place of a message.
pub(crate) async fn send_text(
    caller: &TestCaller<'_>,
    binding: Binding,
    text: &'static str,
) -> TestReply {
    let path = match binding {
        Binding::JsonRpc => "/a2a",
        Binding::Http => "/a2a/v1/message:send",
    };
    caller.send("POST", path, Body::from(text), &[VERSION]).await
}

/// The address of a method in the HTTP+JSON binding.
fn address(method: &str, params: &Value) -> (&'static str, String, String) {
    let id = params["id"].as_str().unwrap_or_default();
    let query = || -> String {
        let members = params.as_object().unwrap().iter().filter(|(name, _)| *name != "id");
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs: Vec<String> =
            members.map(|(name, value)| format!("{name}={}", text(value))).collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    };
    let tasks = "/a2a/v1/tasks";
    let task = params["taskId"].as_str().unwrap_or_default();
    let configs = format!("{tasks}/{task}/pushNotificationConfigs");
    match method {
        "SendMessage" => ("POST", "/a2a/v1/message:send".to_owned(), params.to_string()),
        "SendStreamingMessage" => ("POST", "/a2a/v1/message:stream".to_owned(), params.to_string()),
        "GetTask" => ("GET", format!("{tasks}/{id}{}", query()), String::new()),
        "ListTasks" => ("GET", format!("{tasks}{}", query()), String::new()),
        "CancelTask" => ("POST", format!("{tasks}/{id}:cancel"), String::new()),
        "SubscribeToTask" => ("POST", format!("{tasks}/{id}:subscribe"), String::new()),
        "GetExtendedAgentCard" => ("GET", "/a2a/v1/extendedAgentCard".to_owned(), String::new()),
        "CreateTaskPushNotificationConfig" => ("POST", configs, params.to_string()),
        "ListTaskPushNotificationConfigs" => ("GET", configs, String::new()),
        "GetTaskPushNotificationConfig" => ("GET", format!("{configs}/{id}"), String::new()),
        "DeleteTaskPushNotificationConfig" => ("DELETE", format!("{configs}/{id}"), String::new()),
        other => panic!("{other} has no address"),
    }
}

/// The result of a method, or its error.
pub(crate) async fn call(
    caller: &TestCaller<'_>,
    binding: Binding,
    method: &str,
    params: &Value,
) -> Result<Value, Refusal> {
    let reply = send(caller, binding, method, params).await;
    read(binding, &reply)
}

#[track_caller]
pub(crate) fn read(binding: Binding, reply: &TestReply) -> Result<Value, Refusal> {
    let body = reply.json();
    let (error, details, number) = match binding {
        Binding::JsonRpc => {
            assert_eq!(reply.headers["content-type"], "application/json");
            assert_eq!(body["jsonrpc"], "2.0");
            if body.get("error").is_none() {
                assert_eq!(body["id"], 7);
                return Ok(body["result"].clone());
            }
            (&body["error"], &body["error"]["data"], body["error"]["code"].as_i64().unwrap())
        }
        Binding::Http => {
            assert_eq!(reply.headers["content-type"], "application/a2a+json");
            if reply.status.is_success() {
                return Ok(body);
            }
            assert_eq!(body["error"]["code"], reply.status.as_u16());
            (&body["error"], &body["error"]["details"], i64::from(reply.status.as_u16()))
        }
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    assert_eq!(details[0]["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
    Err(Refusal {
        reason: text(&details[0]["reason"]),
        code: text(&details[0]["metadata"]["code"]),
        field: details[0]["metadata"]["field"].as_str().map(str::to_owned),
        message: text(&error["message"]),
        number,
    })
}

/// The events of a stream.
#[track_caller]
pub(crate) fn events(binding: Binding, reply: &TestReply) -> Vec<Value> {
    assert_eq!(reply.headers["content-type"], "text/event-stream", "{}", reply.text());
    let text = reply.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let values = data.map(|data| serde_json::from_str::<Value>(data.trim()).unwrap());
    values
        .map(|value| match binding {
            Binding::JsonRpc => {
                assert_eq!(value["id"], 7);
                value["result"].clone()
            }
            Binding::Http => value,
        })
        .collect()
}

/// A message with one part.
pub(crate) fn message(id: &str, part: &Value) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [part] } })
}

/// A message with the request of a skill.
pub(crate) fn data(id: &str, request: &Value) -> Value {
    message(id, &json!({ "data": request }))
}

/// The part of an artifact of a task.
#[track_caller]
pub(crate) fn part<'a>(task: &'a Value, artifact: &str, member: &str) -> &'a Value {
    let mut artifacts = task["artifacts"].as_array().unwrap().iter();
    let artifact = artifacts.find(|it| it["artifactId"] == artifact).unwrap();
    let mut parts = artifact["parts"].as_array().unwrap().iter();
    parts.find_map(|part| part.get(member)).unwrap()
}
