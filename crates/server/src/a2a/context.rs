//! Contexts: groups of tasks of one account. A context is named after the task that began it, or by the
//! caller.
//!
//! A task whose message names a context notes it in its stored request, and in the idempotency key of
//! its message, by which the tasks of a context are found.

use jurat_core::{canonical, code::ProblemCode, id::RoundId};
use jurat_engine::IdempotencyKey;
use jurat_wire::api::a2a::{error::A2aError, message::SendRequest, origin::MessageOrigin, task};

use super::AgentCaller;
use crate::request::encode;

/// The most tasks of a context that a list finds.
pub(super) const MOST_TASKS: u32 = 200;
const FIELD: &str = "message.contextId";

/// Checks that a message may name a context. What context it is does not matter: the same text names
/// another context in another account.
pub(super) fn check(call: &AgentCaller) -> Result<(), A2aError> {
    if call.engine.keeps_requests() {
        return Ok(());
    }
    let reason = "cannot be remembered, because this server keeps no requests; leave it out";
    Err(A2aError::wrong(FIELD, reason))
}

/// The task that a context is named after; `None` if the caller named it.
pub(super) async fn begun_by(
    call: &AgentCaller,
    context_id: &str,
) -> Result<Option<RoundId>, A2aError> {
    let Some(first) = task::first_task(context_id) else { return Ok(None) };
    match call.engine.round_show(&call.caller, &first).await {
        // A task in a context of another has none of its own.
        Ok(round) => Ok(MessageOrigin::of(&round).context_id.is_none().then_some(first)),
        Err(error) if error.code() == ProblemCode::NotFound => Ok(None),
        Err(error) => Err(encode::engine_problem(&error).into()),
    }
}

/// The tasks whose messages named a context, newest first.
pub(super) async fn joined(call: &AgentCaller, context_id: &str) -> Result<Vec<RoundId>, A2aError> {
    let beginning = beginning(Some(context_id));
    let found = call.engine.rounds_under_keys(&call.caller, &beginning, MOST_TASKS).await;
    found.map_err(|error| encode::engine_problem(&error).into())
}

/// The key under which a message is sent once. An id of a message is unique in its context.
pub(super) fn key_of(sent: &SendRequest, operation: &'static str) -> IdempotencyKey {
    let beginning = beginning(sent.context_id.as_deref());
    let mut asked = format!("A2A {operation}\n").into_bytes();
    asked.extend(format!("{:?}\n", sent.skill).into_bytes());
    asked.extend(canonical::canonical(&sent.body));
    IdempotencyKey {
        key: format!("{beginning}{}", canonical::sha256_hex(sent.message_id.as_bytes())),
        operation,
        request_digest: canonical::digest(&asked),
    }
}

/// The text by which the keys of a context begin; a digest, because a context may be any text.
fn beginning(context_id: Option<&str>) -> String {
    let named = context_id.map(|text| canonical::sha256_hex(text.as_bytes()));
    format!("a2a:{}:", named.as_deref().unwrap_or("new"))
}
