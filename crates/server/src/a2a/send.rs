//! Messages that begin tasks.

use futures::{Stream, StreamExt as _, stream};
use jurat_core::{code::ProblemCode, round::Round};
use jurat_engine::{EngineError, RoundHandle, RoundWatcher};
use jurat_wire::api::{
    a2a::{
        error::{A2aError, A2aErrorKind},
        message::{SendRequest, Skill},
        origin::MessageOrigin,
        task::{A2aSendReply, A2aTask, A2aUpdate, TaskParts},
    },
    consensus_request, verifier_runs, verifiers,
};

use super::{AgentCaller, context, push, task};
use crate::{mcp::render, request::encode, resources::verifier_run_request};

/// The task of a message that has begun.
struct BegunTask {
    begun: RoundHandle,
    shown: ShownMessage,
}

/// What replies say about the message of a task, besides its round.
struct ShownMessage {
    origin: MessageOrigin,
    history_length: Option<u32>,
    push_problem: Option<String>,
}

impl ShownMessage {
    fn task(&self, round: &Round) -> A2aTask {
        let parts = TaskParts { history_length: self.history_length, artifacts: true };
        let mut task = A2aTask::of(round, &self.origin, parts, render::round);
        task.metadata.push_problem.clone_from(&self.push_problem);
        task
    }
}

/// The task when it has ended, or immediately if the caller does not want to wait.
pub(super) async fn whole(call: &AgentCaller, sent: SendRequest) -> Result<A2aSendReply, A2aError> {
    let is_immediate = sent.return_immediately;
    let BegunTask { begun, shown } = begin_and_push(call, sent).await?;
    let round = if is_immediate { begun.round } else { ended(begun).await? };
    Ok(A2aSendReply { task: shown.task(&round) })
}

/// The task, and its end when it comes.
pub(super) async fn streamed(
    call: &AgentCaller,
    sent: SendRequest,
) -> Result<impl Stream<Item = Result<A2aUpdate, A2aError>> + use<>, A2aError> {
    let BegunTask { begun, shown } = begin_and_push(call, sent).await?;
    let first = shown.task(&begun.round);
    // The last events say which context the task belongs to, and the message may be long.
    let shown = ShownMessage { origin: shown.origin.shortened(), ..shown };
    // A request that waits for an earlier round is kept, because it may be run again.
    let memory = call.memory.clone().filter(|_| begun.is_repeated);
    let has_ended = first.has_ended();
    let begins = A2aUpdate { task: Some(first), ..A2aUpdate::default() };
    let rest = stream::once(async move {
        if has_ended {
            return Vec::new();
        }
        let ended = ended(begun).await;
        drop(memory);
        match ended {
            Ok(round) => shown.task(&round).last_updates().into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    });
    Ok(stream::iter([Ok(begins)]).chain(rest.flat_map(stream::iter)))
}

async fn ended(begun: RoundHandle) -> Result<Round, A2aError> {
    begun.wait().await.map_err(|error| encode::engine_problem(&error).into())
}

/// Begins the task of a message, and notes where to tell its end. The address and the limits are
/// checked before anything is begun.
async fn begin_and_push(call: &AgentCaller, sent: SendRequest) -> Result<BegunTask, A2aError> {
    if let Some(push) = &sent.push {
        push::check(call, push).await?;
    }
    let begun = begin(call, &sent).await?;
    let SendRequest { origin, history_length, push, .. } = sent;
    let mut shown = ShownMessage { origin, history_length, push_problem: None };
    if let Some(push) = push {
        let (id, new) = (&begun.round.open.id, push.within(shown.task(&begun.round).context_id));
        shown.push_problem = push::add_once(call, id, new, begun.is_repeated).await;
    }
    Ok(BegunTask { begun, shown })
}

/// Begins the task of a message, or finds the task that the same message began before.
async fn begin(call: &AgentCaller, sent: &SendRequest) -> Result<RoundHandle, A2aError> {
    if let Some(id) = &sent.task_id {
        return Err(follow_up(call, id, sent).await);
    }
    if sent.context_id.is_some() {
        context::check(call)?;
    }
    let begun = match &sent.skill {
        Skill::RunVerifier(name) => run_verifier(call, sent, name).await?,
        Skill::Delegate => consensus(call, sent, consensus_request::delegate(&sent.body)?).await,
        Skill::Validate => consensus(call, sent, consensus_request::validate(&sent.body)?).await,
        Skill::Factcheck => consensus(call, sent, consensus_request::factcheck(&sent.body)?).await,
    };
    begun.map_err(|error| refused(sent, &error))
}

async fn consensus(
    call: &AgentCaller,
    sent: &SendRequest,
    job: jurat_core::round::job::Job,
) -> Result<RoundHandle, EngineError> {
    let key = context::key_of(sent, job.work.kind().as_str());
    call.engine.round_begin(&call.caller, job, RoundWatcher::nobody(), Some(key)).await
}

async fn run_verifier(
    call: &AgentCaller,
    sent: &SendRequest,
    name: &str,
) -> Result<Result<RoundHandle, EngineError>, A2aError> {
    let order = verifier_runs::decode_strict_verifier_run(&sent.body)?;
    let reference = verifiers::pinned(verifiers::reference(name)?, order.version)?;
    let request = verifier_run_request(reference, order);
    let key = context::key_of(sent, "verifier_run");
    let nobody = RoundWatcher::nobody();
    let begun = call.engine.verifier_run_begin(&call.caller, request, nobody, Some(key)).await;
    Ok(begun.map(|run| run.begun))
}

fn refused(sent: &SendRequest, error: &EngineError) -> A2aError {
    let mut refused = A2aError::from(encode::engine_problem(error));
    if error.code() == ProblemCode::IdempotencyMismatch {
        let id: String = sent.message_id.chars().take(80).collect();
        refused.problem.detail =
            format!("the message id `{id}` was used for another message; give each its own id");
        refused.problem.field = Some("message.messageId".to_owned());
    }
    refused
}

/// The error for a message to an existing task: no task takes a second one.
async fn follow_up(call: &AgentCaller, id: &str, sent: &SendRequest) -> A2aError {
    let round = match call.round(id).await {
        Ok(round) => round,
        Err(error) => return error,
    };
    let task = task(&round, TaskParts { history_length: Some(0), artifacts: false });
    if sent.context_id.as_ref().is_some_and(|given| *given != task.context_id) {
        return A2aError::wrong("message.contextId", "is not the context of the task");
    }
    let reason = if task.has_ended() { "has ended" } else { "is in progress" };
    let detail = format!(
        "the task `{}` {reason} and takes no further messages; leave `taskId` out and send its `contextId` to begin another task in its context",
        task.id
    );
    A2aError::new(A2aErrorKind::UnsupportedOperation, ProblemCode::NotSupported, detail)
        .at("message.taskId")
}
