//! Contexts: groups of tasks. A context is named after the task that began it.
//!
//! A task that joins a context notes it in its stored request, and in the idempotency key of its
//! message, by which the tasks of a context are found.

use jurat_core::{canonical, code::ProblemCode, id::RoundId, round::Round};
use jurat_engine::IdempotencyKey;
use jurat_wire::api::a2a::{error::A2aError, message::SendRequest, origin::MessageOrigin, task};

use super::AgentCaller;
use crate::request::encode;

/// The most tasks of a context that a list finds.
pub(super) const MOST_TASKS: u32 = 200;
const FIELD: &str = "message.contextId";

/// Checks that a message names a context of its account.
pub(super) async fn check(call: &AgentCaller, context_id: &str) -> Result<(), A2aError> {
    if !call.engine.keeps_requests() {
        let reason = "cannot be joined, because this server keeps no requests; leave it out";
        return Err(A2aError::wrong(FIELD, reason));
    }
    if begun_by(call, context_id).await?.is_none() {
        let reason = "is not a context of this account; leave it out to begin one";
        return Err(A2aError::wrong(FIELD, reason));
    }
    Ok(())
}

/// The task that began a context; `None` if the account has no such context.
pub(super) async fn begun_by(
    call: &AgentCaller,
    context_id: &str,
) -> Result<Option<Round>, A2aError> {
    let Some(first) = task::first_task(context_id) else { return Ok(None) };
    match call.engine.round_show(&call.caller, &first).await {
        // A task in a context of another has none of its own.
        Ok(round) => Ok(MessageOrigin::of(&round).context_id.is_none().then_some(round)),
        Err(error) if error.code() == ProblemCode::NotFound => Ok(None),
        Err(error) => Err(encode::engine_problem(&error).into()),
    }
}

/// The tasks that joined a context, newest first.
pub(super) async fn joined(call: &AgentCaller, context_id: &str) -> Result<Vec<RoundId>, A2aError> {
    let beginning = beginning(context_id);
    let found = call.engine.rounds_under_keys(&call.caller, &beginning, MOST_TASKS).await;
    found.map_err(|error| encode::engine_problem(&error).into())
}

/// The key under which a message is sent once. An id of a message is unique in its context.
pub(super) fn key_of(sent: &SendRequest, operation: &'static str) -> IdempotencyKey {
    let beginning = beginning(sent.context_id.as_deref().unwrap_or("new"));
    let id = canonical::digest(sent.message_id.as_bytes());
    let mut asked = format!("A2A {operation}\n").into_bytes();
    asked.extend(format!("{:?}\n", sent.skill).into_bytes());
    asked.extend(canonical::canonical(&sent.body));
    IdempotencyKey {
        key: format!("{beginning}{}", id.trim_start_matches("sha256:")),
        operation,
        request_digest: canonical::digest(&asked),
    }
}

fn beginning(context_id: &str) -> String {
    format!("a2a:{context_id}:")
}
