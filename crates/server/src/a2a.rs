//! The surface for agents: the Agent2Agent protocol 1.0, over JSON-RPC and over HTTP with JSON.
//!
//! Both bindings lead to the same methods, and a method is one operation of the engine. A task of the
//! protocol is a round, so this surface keeps no state.

mod card;
mod context;
mod envelope;
pub(crate) mod http_json;
mod push;
mod rpc;
mod send;
mod stream;
mod tasks;

use std::sync::Arc;

use axum::http::{HeaderMap, Uri};
use futures::{StreamExt as _, stream::BoxStream};
use jurat_core::{account::caller::Caller, code::ProblemCode, id::RoundId, round::Round};
use jurat_engine::{Engine, EngineError, RequestMemory};
use jurat_wire::api::a2a::{
    PROTOCOL_VERSION, VERSION_IF_ABSENT,
    error::{A2aError, A2aErrorKind},
    message,
    origin::MessageOrigin,
    requests::{task_list_request, task_request},
    task::{A2aTask, A2aTaskPage, A2aUpdate, TaskParts},
};
use serde::Serialize;
use serde_json::{Value, json};
use url::form_urlencoded;

pub(crate) use self::{
    card::public_card,
    envelope::{error_form, translated},
    rpc::post,
};
use crate::{
    mcp::render,
    request::{base_url::CardBase, encode},
};

const VERSION: &str = "a2a-version";

/// A method of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    CreatePushConfig,
    GetPushConfig,
    ListPushConfigs,
    DeletePushConfig,
    GetExtendedAgentCard,
}

impl Method {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "SendMessage" => Self::SendMessage,
            "SendStreamingMessage" => Self::SendStreamingMessage,
            "GetTask" => Self::GetTask,
            "ListTasks" => Self::ListTasks,
            "CancelTask" => Self::CancelTask,
            "SubscribeToTask" => Self::SubscribeToTask,
            "CreateTaskPushNotificationConfig" => Self::CreatePushConfig,
            "GetTaskPushNotificationConfig" => Self::GetPushConfig,
            "ListTaskPushNotificationConfigs" => Self::ListPushConfigs,
            "DeleteTaskPushNotificationConfig" => Self::DeletePushConfig,
            "GetExtendedAgentCard" => Self::GetExtendedAgentCard,
            _ => return None,
        })
    }

    /// Whether it begins a round, which an overloaded node refuses first.
    const fn begins_rounds(self) -> bool {
        matches!(self, Self::SendMessage | Self::SendStreamingMessage)
    }
}

/// The sender of a call.
#[derive(Debug, Clone)]
pub(crate) struct AgentCaller {
    pub(crate) engine: Engine,
    pub(crate) caller: Caller,
    /// The URL of this server for a card.
    pub(crate) base: CardBase,
    pub(crate) memory: Option<Arc<RequestMemory>>,
}

/// The answer of a method: one reply, or a stream of events.
pub(crate) enum Answer {
    One(Box<MethodReply>),
    Events(BoxStream<'static, Result<A2aUpdate, A2aError>>),
}

/// The one reply of a method, which is written as it is.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum MethodReply {
    /// Tasks are large, so those of a page are text and never values.
    Tasks(A2aTaskPage),
    /// Values have the order of their names.
    Other(Value),
}

impl AgentCaller {
    /// Calls a method.
    pub(crate) async fn call(&self, method: Method, params: &Value) -> Result<Answer, A2aError> {
        let other = |reply| Answer::One(Box::new(MethodReply::Other(reply)));
        match method {
            Method::SendMessage => {
                let sent = message::send_request(params)?;
                Ok(other(json!(send::whole(self, sent).await?)))
            }
            Method::SendStreamingMessage => {
                let sent = message::send_request(params)?;
                Ok(Answer::Events(send::streamed(self, sent).await?.boxed()))
            }
            Method::GetTask => {
                let asked = task_request(params)?;
                let round = self.round(&asked.id).await?;
                let parts = TaskParts { history_length: asked.history_length, artifacts: true };
                Ok(other(json!(task(&round, parts))))
            }
            Method::ListTasks => {
                let page = tasks::list(self, &task_list_request(params)?).await?;
                Ok(Answer::One(Box::new(MethodReply::Tasks(page))))
            }
            Method::CancelTask => {
                let asked = task_request(params)?;
                Ok(other(json!(tasks::cancel(self, &asked.id).await?)))
            }
            Method::SubscribeToTask => {
                let asked = task_request(params)?;
                Ok(Answer::Events(stream::of_task(self, &asked.id).await?.boxed()))
            }
            Method::CreatePushConfig => push::create(self, params).await.map(other),
            Method::GetPushConfig => push::get(self, params).await.map(other),
            Method::ListPushConfigs => push::list(self, params).await.map(other),
            Method::DeletePushConfig => push::delete(self, params).await.map(other),
            Method::GetExtendedAgentCard => card::extended(self).await.map(other),
        }
    }

    /// The round of a task. A task of another account is an unknown one.
    async fn round(&self, id: &str) -> Result<Round, A2aError> {
        let round_id = RoundId::parse(id).map_err(|_| A2aError::task_not_found(id))?;
        let found = self.engine.round_show(&self.caller, &round_id).await;
        found.map_err(|error| of_task(id, &error))
    }
}

/// A round as a task, with what its stored request says about its message.
fn task(round: &Round, parts: TaskParts) -> A2aTask {
    let has_history = parts.history_length != Some(0);
    let origin =
        if has_history { MessageOrigin::of(round) } else { MessageOrigin::without_message(round) };
    A2aTask::of(round, &origin, parts, render::round)
}

/// An error of an operation on a task.
fn of_task(id: &str, error: &EngineError) -> A2aError {
    let problem = encode::engine_problem(error);
    if problem.code == ProblemCode::NotFound {
        A2aError::task_not_found(id)
    } else {
        problem.into()
    }
}

/// Refuses a request of another version of the protocol.
fn check_version(uri: &Uri, headers: &HeaderMap) -> Result<(), A2aError> {
    let header = headers.get(VERSION).map(|value| value.to_str().unwrap_or("?").to_owned());
    let query = uri.query().unwrap_or_default().as_bytes();
    let mut parameters = form_urlencoded::parse(query);
    let parameter = parameters
        .find(|(name, _)| name.eq_ignore_ascii_case(VERSION))
        .map(|(_, value)| value.into_owned());
    let given = header.filter(|text| !text.trim().is_empty()).or(parameter);
    let given = given.unwrap_or_default();
    let given = given.trim();
    let mut numbers = given.split('.');
    // A patch version changes nothing.
    if (numbers.next(), numbers.next()) == (Some("1"), Some("0")) {
        return Ok(());
    }
    let shown: String = given.chars().take(20).collect();
    let asked = if shown.is_empty() {
        format!("the request has no header `A2A-Version`, which means {VERSION_IF_ABSENT}")
    } else {
        format!("the request asks for A2A {shown}")
    };
    let detail = format!(
        "this agent serves A2A {PROTOCOL_VERSION} only, and {asked}; use a client for A2A {PROTOCOL_VERSION}, which sends `A2A-Version: {PROTOCOL_VERSION}`"
    );
    Err(A2aError::new(A2aErrorKind::VersionNotSupported, ProblemCode::NotSupported, detail)
        .at("A2A-Version"))
}

#[cfg(test)]
mod tests {
    use axum::{body::to_bytes, http::HeaderValue, response::Response};
    use serde_json::value::RawValue;

    use super::*;

    #[tokio::test]
    async fn the_tasks_of_a_page_are_never_values() {
        // As a value, the number would be 1.5.
        let task = RawValue::from_string(r#"{"id":1.50}"#.to_owned()).unwrap();
        let page = A2aTaskPage {
            next_page_token: String::new(),
            page_size: 1,
            tasks: vec![task],
            total_size: 1,
        };
        let reply = MethodReply::Tasks(page);
        let text = async |response: Response| {
            let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        let page = r#"{"nextPageToken":"","pageSize":1,"tasks":[{"id":1.50}],"totalSize":1}"#;
        assert_eq!(text(http_json::answered(&reply, "application/json")).await, page);
        let enveloped = format!(r#"{{"id":7,"jsonrpc":"2.0","result":{page}}}"#);
        assert_eq!(text(rpc::answered(&json!(7), &reply)).await, enveloped);
    }

    #[test]
    fn only_version_one_is_served_and_none_means_an_older_one() {
        for (header, uri, is_served) in [
            (Some("1.0"), "/a2a", true),
            (Some("1.0.1"), "/a2a", true),
            (None, "/a2a?A2A-Version=1.0", true),
            (Some(""), "/a2a?a2a-version=1.0", true),
            (None, "/a2a", false),
            (Some(""), "/a2a", false),
            (Some("0.3"), "/a2a", false),
            (Some("1.1"), "/a2a", false),
            (Some("10"), "/a2a", false),
            (Some("0.3"), "/a2a?A2A-Version=1.0", false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(text) = header {
                headers.insert(VERSION, HeaderValue::from_static(text));
            }
            let checked = check_version(&Uri::from_static(uri), &headers);
            assert_eq!(checked.is_ok(), is_served, "{header:?} {uri}");
        }
    }
}
