//! The HTTP+JSON binding.

use std::sync::Arc;

use axum::{
    Extension,
    extract::FromRequestParts,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header, request::Parts},
    response::{Response, sse::Event},
};
use futures::StreamExt as _;
use jurat_core::{account::caller::Caller, code::ProblemCode};
use jurat_engine::{Engine, RequestMemory};
use jurat_wire::{
    api::{
        a2a::{MEDIA_TYPE, error::A2aError},
        events,
    },
    problem::Problem,
};
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::{AgentCaller, Answer, Method, MethodReply, VERSION, check_version};
use crate::request::{
    base_url,
    decode::{Json, MaybeJson, PathPair, PathText},
    encode, event_stream, negotiate,
};

const CANCEL: &str = ":cancel";
const SUBSCRIBE: &str = ":subscribe";
/// How long a client may cache the card of its key.
const FRESH: &str = "private, max-age=300";
const KINDS: [&str; 2] = [MEDIA_TYPE, "application/json"];

/// A request of this binding, without its body.
#[derive(Debug)]
pub(crate) struct Asked {
    call: AgentCaller,
    uri: Uri,
    headers: HeaderMap,
}

impl FromRequestParts<Engine> for Asked {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, engine: &Engine) -> Result<Self, Response> {
        let caller = Extension::<Caller>::from_request_parts(parts, engine).await;
        let Extension(caller) = caller.map_err(axum::response::IntoResponse::into_response)?;
        let call = AgentCaller {
            engine: engine.clone(),
            caller,
            base: base_url::of_card(engine, parts),
            memory: parts.extensions.get::<Arc<RequestMemory>>().cloned(),
        };
        Ok(Self { call, uri: parts.uri.clone(), headers: parts.headers.clone() })
    }
}

pub(crate) async fn send(asked: Asked, Json(body): Json) -> Response {
    asked.answer(Method::SendMessage, &body).await
}

pub(crate) async fn send_streaming(asked: Asked, Json(body): Json) -> Response {
    asked.answer(Method::SendStreamingMessage, &body).await
}

pub(crate) async fn list(asked: Asked) -> Response {
    let params = asked.query();
    asked.answer(Method::ListTasks, &params).await
}

/// Shows a task. The protocol also subscribes with this method.
pub(crate) async fn get(asked: Asked, PathText(id): PathText) -> Response {
    let (method, id) = match id.strip_suffix(SUBSCRIBE) {
        Some(id) => (Method::SubscribeToTask, id),
        None if id.ends_with(CANCEL) => return wrong_method(&id),
        None => (Method::GetTask, id.as_str()),
    };
    let mut params = asked.query();
    params["id"] = json!(id);
    asked.answer(method, &params).await
}

/// Cancels or follows a task: the router cannot tell the two paths apart.
pub(crate) async fn act(
    asked: Asked,
    PathText(text): PathText,
    MaybeJson(body): MaybeJson,
) -> Response {
    let found = [(CANCEL, Method::CancelTask), (SUBSCRIBE, Method::SubscribeToTask)]
        .into_iter()
        .find_map(|(suffix, method)| Some((text.strip_suffix(suffix)?, method)));
    let Some((id, method)) = found else { return wrong_method(&text) };
    let mut params = if body.is_object() { body } else { json!({}) };
    params["id"] = json!(id);
    asked.answer(method, &params).await
}

pub(crate) async fn push_create(
    asked: Asked,
    PathText(task): PathText,
    Json(mut body): Json,
) -> Response {
    // The path names the task, whatever the body says.
    if let Some(members) = body.as_object_mut() {
        members.insert("taskId".to_owned(), json!(task));
    }
    asked.answer(Method::CreatePushConfig, &body).await
}

pub(crate) async fn push_list(asked: Asked, PathText(task): PathText) -> Response {
    asked.answer(Method::ListPushConfigs, &json!({ "taskId": task })).await
}

pub(crate) async fn push_get(asked: Asked, PathPair(task, id): PathPair) -> Response {
    asked.answer(Method::GetPushConfig, &json!({ "taskId": task, "id": id })).await
}

pub(crate) async fn push_delete(asked: Asked, PathPair(task, id): PathPair) -> Response {
    asked.answer(Method::DeletePushConfig, &json!({ "taskId": task, "id": id })).await
}

pub(crate) async fn extended_card(asked: Asked) -> Response {
    let mut response = asked.answer(Method::GetExtendedAgentCard, &json!({})).await;
    if response.status().is_success() {
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(FRESH));
        // The card depends on the key, and its URLs depend on the host.
        let varies = HeaderValue::from_static("host, authorization, x-api-key");
        headers.insert(header::VARY, varies);
    }
    response
}

/// The methods of a path that shares its route with others.
pub(crate) fn allowed(path: &str) -> Option<&'static str> {
    let last = path.strip_prefix("/a2a/v1/tasks/").filter(|last| !last.contains('/'))?;
    Some(if last.ends_with(CANCEL) {
        "POST"
    } else if last.ends_with(SUBSCRIBE) {
        "GET,HEAD,POST"
    } else {
        "GET,HEAD"
    })
}

/// The reply for a method that the last segment of a path does not have.
fn wrong_method(last: &str) -> Response {
    let detail = "this path does not support that method; cancel a task with `POST` at `:cancel`, and follow it at `:subscribe`";
    let mut response = encode::problem(&Problem::new(ProblemCode::MethodNotAllowed, detail));
    if let Some(methods) = allowed(&format!("/a2a/v1/tasks/{last}")) {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    }
    response
}

impl Asked {
    async fn answer(self, method: Method, params: &Value) -> Response {
        let kind = KINDS[negotiate::preferred(&self.headers, &KINDS)];
        let answer = match check_version(&self.uri, &self.headers) {
            Ok(()) => Box::pin(self.call.call(method, params)).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(Answer::One(reply)) => answered(&reply, kind),
            Ok(Answer::Events(updates)) => {
                let events = updates.map(|update| match update {
                    Ok(update) => Event::default().json_data(update),
                    // The name makes clients raise the error.
                    Err(error) => Event::default().event(events::ERROR).json_data(error.http()),
                });
                event_stream::reply(events)
            }
            Err(error) => failed(&error, kind),
        }
    }

    /// The parameters of the query, with the types that the protocol gives them.
    fn query(&self) -> Value {
        let mut params = Map::new();
        for (name, text) in form_urlencoded::parse(self.uri.query().unwrap_or_default().as_bytes())
        {
            if name.eq_ignore_ascii_case(VERSION) {
                continue;
            }
            let value = match (&*name, text.parse::<i64>(), &*text) {
                ("pageSize" | "page_size" | "historyLength" | "history_length", Ok(number), _) => {
                    json!(number)
                }
                ("includeArtifacts" | "include_artifacts", _, "true") => json!(true),
                ("includeArtifacts" | "include_artifacts", _, "false") => json!(false),
                _ => json!(text),
            };
            params.insert(name.into_owned(), value);
        }
        Value::Object(params)
    }
}

pub(super) fn answered(reply: &MethodReply, kind: &'static str) -> Response {
    typed(encode::ok_as_written(reply), kind)
}

/// An error in the form of this binding.
pub(super) fn failed(error: &A2aError, kind: &'static str) -> Response {
    let status =
        StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = typed(encode::ok(&error.http()), kind);
    *response.status_mut() = status;
    // For counting replies.
    response.extensions_mut().insert(error.problem.code);
    response
}

fn typed(mut response: Response, kind: &'static str) -> Response {
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
