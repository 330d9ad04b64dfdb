//! Follows a task until it ends. The events come from the store, so every stream of a task has the
//! same ones, on any node.

use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use jurat_core::{code::ProblemCode, id::RoundId};
use jurat_engine::EngineError;
use jurat_wire::api::a2a::{
    error::{A2aError, A2aErrorKind},
    task::{A2aUpdate, TaskParts},
};

use super::{AgentCaller, of_task as error_of_task, task};

/// Maximum wait before the task is read again.
const LOOK: Duration = Duration::from_secs(30);
const WHOLE: TaskParts = TaskParts { history_length: None, artifacts: true };

/// The task, and its end when it comes. A task that has ended cannot be followed.
pub(super) async fn of_task(
    call: &AgentCaller,
    id: &str,
) -> Result<impl Stream<Item = Result<A2aUpdate, A2aError>> + use<>, A2aError> {
    let round = call.round(id).await?;
    let first = task(&round, WHOLE);
    if first.has_ended() {
        let detail = format!("the task `{id}` has ended; read it with GetTask");
        let kind = A2aErrorKind::UnsupportedOperation;
        return Err(A2aError::new(kind, ProblemCode::NotSupported, detail).at("id"));
    }
    let begins = A2aUpdate { task: Some(first), ..A2aUpdate::default() };
    let (call, id) = (call.clone(), round.open.id.clone());
    let rest = stream::once(async move {
        match end(&call, &id).await {
            Ok(updates) => updates.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    });
    Ok(stream::iter([Ok(begins)]).chain(rest.flat_map(stream::iter)))
}

/// The events from the end of a task.
async fn end(call: &AgentCaller, id: &RoundId) -> Result<Vec<A2aUpdate>, A2aError> {
    loop {
        let waited = call.engine.round_wait(&call.caller, id, LOOK).await;
        let round = waited.map_err(|error| error_of_task(id.as_str(), &error))?;
        if round.closing.is_some() {
            return Ok(task(&round, WHOLE).last_updates());
        }
        if call.engine.is_stopping() {
            return Err(error_of_task(id.as_str(), &EngineError::ShuttingDown));
        }
    }
}
