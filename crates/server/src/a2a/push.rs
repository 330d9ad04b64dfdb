//! Push notifications about a task.

use jurat_core::{
    code::ProblemCode,
    id::RoundId,
    webhook::{NewPush, Push},
};
use jurat_engine::EngineError;
use jurat_wire::api::a2a::{
    error::{A2aError, A2aErrorKind},
    push::{
        A2aPushConfig, A2aPushConfigList, PushKey, PushRequest, push_key, push_request,
        task_of_push,
    },
    task::TaskParts,
};
use serde_json::{Value, json};

use super::{AgentCaller, of_task, task};
use crate::request::encode;

/// Where a message holds its configuration.
const IN_MESSAGE: &str = "configuration.taskPushNotificationConfig";

pub(super) async fn create(call: &AgentCaller, params: &Value) -> Result<Value, A2aError> {
    let (asked, task_id) = (push_request(params, "")?, task_of_push(params)?);
    let round = call.round(&task_id).await?;
    let parts = TaskParts { history_length: Some(0), artifacts: false };
    let new = asked.within(task(&round, parts).context_id);
    let added = call.engine.push_add(&call.caller, &round.open.id, new).await;
    Ok(shown(added.map_err(|error| refused(&error))?, task_id))
}

pub(super) async fn get(call: &AgentCaller, params: &Value) -> Result<Value, A2aError> {
    let PushKey { task_id, id } = push_key(params)?;
    let round = call.round(&task_id).await?.open.id;
    let found = call.engine.push_show(&call.caller, &round, &id).await;
    Ok(shown(found.map_err(|error| refused(&error))?, task_id))
}

pub(super) async fn list(call: &AgentCaller, params: &Value) -> Result<Value, A2aError> {
    let task_id = task_of_push(params)?;
    let round = round_id(&task_id)?;
    let found = call.engine.push_list(&call.caller, &round).await;
    let found = found.map_err(|error| of_task(&task_id, &error))?;
    let configs = found.into_iter().map(|it| A2aPushConfig::of(it, task_id.clone()));
    let next_page_token = String::new();
    Ok(json!(A2aPushConfigList { configs: configs.collect(), next_page_token }))
}

pub(super) async fn delete(call: &AgentCaller, params: &Value) -> Result<Value, A2aError> {
    let PushKey { task_id, id } = push_key(params)?;
    let round = call.round(&task_id).await?.open.id;
    match call.engine.push_remove(&call.caller, &round, &id).await {
        // The protocol lets a configuration be removed twice.
        Err(error) if error.code() != ProblemCode::NotFound => {
            Err(encode::engine_problem(&error).into())
        }
        Ok(()) | Err(_) => Ok(json!({})),
    }
}

/// Checks the configuration of a message before its task is begun.
pub(super) async fn check(call: &AgentCaller, push: &PushRequest) -> Result<(), A2aError> {
    let checked = call.engine.push_check(&call.caller, &push.url).await;
    checked.map_err(|error| in_message(&error))
}

/// Adds the configuration of a message, unless the same message brought it before. Returns why it
/// was not added: its task has begun, and must not be lost.
pub(super) async fn add_once(
    call: &AgentCaller,
    round: &RoundId,
    new: NewPush,
    is_repeated: bool,
) -> Option<String> {
    if is_repeated && call.engine.push_show(&call.caller, round, &new.name()).await.is_ok() {
        return None;
    }
    let refused = call.engine.push_add(&call.caller, round, new).await.err()?;
    tracing::info!(round.id = %round, error = %refused, "could not add the push notification of a message");
    Some(encode::engine_problem(&refused).detail)
}

fn refused(error: &EngineError) -> A2aError {
    let mut refused = A2aError::from(encode::engine_problem(error));
    if error.code() == ProblemCode::NotSupported {
        refused.kind = A2aErrorKind::PushNotificationNotSupported;
    } else if error.code() == ProblemCode::NotFound {
        // The protocol has no other error for an unknown configuration.
        refused.kind = A2aErrorKind::TaskNotFound;
    }
    refused
}

fn in_message(error: &EngineError) -> A2aError {
    let mut refused = refused(error);
    let field = refused.problem.field.take();
    refused.problem.field = field.map(|field| format!("{IN_MESSAGE}.{field}"));
    refused
}

fn round_id(task_id: &str) -> Result<RoundId, A2aError> {
    RoundId::parse(task_id).map_err(|_| A2aError::task_not_found(task_id))
}

fn shown(push: Push, task_id: String) -> Value {
    json!(A2aPushConfig::of(push, task_id))
}
