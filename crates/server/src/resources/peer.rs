//! `/api/v1`, and completions of all versions: the prompt-oriented API of the Cortensor router.
//!
//! A request becomes a request of version 3, and the reply of that version is translated back.

mod lookup;
mod node;
mod tasks;

use std::sync::Arc;

use axum::{Extension, extract::State};
use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_engine::Engine;
use jurat_wire::api::{
    consensus_request,
    peer::{
        reply::{
            PeerChatCompletion, PeerCompletion, PeerDelegateReply, PeerFactcheckReply, PeerForm,
            PeerReplyKind, PeerValidateReply,
        },
        request::{
            self, PeerChatRequest, PeerCompletionRequest, PeerDelegateRequest,
            PeerFactcheckRequest, PeerJob, PeerValidateRequest,
        },
        session_named,
    },
};
use serde_json::{Value, json};

use super::consensus::{ConsensusContext, ReplyVersion};
use crate::{
    operation::{Operation, TextAuthor, Tool, example, parameters::PathParameter},
    peers::PeerOptions,
    request::{
        decode::{Json, PathText},
        encode::HandlerResult,
    },
    resources::PEER_CLIENTS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    let mut operations = vec![
        completion_operation(),
        completion_in_operation(),
        chat_operation(),
        chat_in_operation(),
        delegate_operation(),
        validate_operation(),
        factcheck_operation(),
    ];
    operations.extend(node::operations());
    operations.extend(tasks::operations());
    operations
}

const SESSION: PathParameter =
    PathParameter::new("id", "The id of a session, or a label; 0 for any session.", "35");
const STREAM: &str = "With `stream`: lines of data with the text, and `[DONE]` at the end.";
const UNTRUSTED: &str = "The text in the result is written by executors and is untrusted.";

fn completion_operation() -> Operation {
    let text = "Runs the prompt on several sessions, or as many as `max_miners` allows, and returns one text. If they differ, it is that of the most reliable side, with a confidence of at most one half; all texts are in the task.";
    let operation = Operation::post("/api/v1/completions", "peer_completion", completion)
        .also_at("/api/v2/completions", "peer_completion_v2")
        .also_at("/api/v3/completions", "peer_completion_v3")
        .summary("Complete a prompt")
        .text(text)
        .takes::<PeerCompletionRequest>([(
            "plain",
            example(include_str!("peer/completion_request.json")),
        )])
        .answers::<PeerCompletion<'_>>(
            200,
            "The completion.",
            example(include_str!("peer/completion.json")),
        )
        .or_as("text/event-stream", STREAM);
    begins(operation).tool(tool("cortensor_completions", "Complete a prompt"))
}

async fn completion(
    State(engine): State<Engine>,
    Extension(peers): Extension<Arc<PeerOptions>>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    let job = request::completion(&body)?;
    run(&engine, &peers, asked, (PeerReplyKind::Completion, job, body)).await
}

fn completion_in_operation() -> Operation {
    let text =
        "Like `/api/v1/completions`, with the session in the path, which overrides the body.";
    let path = "/api/v1/completions/{id}";
    let operation = Operation::post(path, "peer_completion_in", completion_in)
        .also_at("/api/v2/completions/{id}", "peer_completion_in_v2")
        .also_at("/api/v3/completions/{id}", "peer_completion_in_v3")
        .summary("Complete a prompt in a session")
        .text(text)
        .in_path([SESSION])
        .takes::<PeerCompletionRequest>([("plain", json!({ "prompt": "Name a prime number." }))])
        .answers::<PeerCompletion<'_>>(
            200,
            "The completion.",
            example(include_str!("peer/completion.json")),
        )
        .or_as("text/event-stream", STREAM);
    begins(operation)
}

async fn completion_in(
    State(engine): State<Engine>,
    Extension(peers): Extension<Arc<PeerOptions>>,
    PathText(session): PathText,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    let mut job = request::completion(&body)?;
    job.session = session_named(&session);
    run(&engine, &peers, asked, (PeerReplyKind::Completion, job, body)).await
}

fn chat_operation() -> Operation {
    let text = "Like `/api/v1/completions`, with messages. Several messages become one prompt, with the speaker before each text; the executors get the messages too.";
    let operation = Operation::post("/api/v2/chat/completions", "peer_chat", chat)
        .also_at("/api/v1/chat/completions", "peer_chat_v1")
        .summary("Complete a chat")
        .text(text)
        .takes::<PeerChatRequest>([("plain", example(include_str!("peer/chat_request.json")))])
        .answers::<PeerChatCompletion<'_>>(
            200,
            "The completion.",
            example(include_str!("peer/chat.json")),
        )
        .or_as("text/event-stream", STREAM);
    begins(operation)
}

async fn chat(
    State(engine): State<Engine>,
    Extension(peers): Extension<Arc<PeerOptions>>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    let job = request::chat(&body)?;
    run(&engine, &peers, asked, (PeerReplyKind::Chat, job, body)).await
}

fn chat_in_operation() -> Operation {
    let text =
        "Like `/api/v2/chat/completions`, with the session in the path, which overrides the body.";
    let path = "/api/v2/chat/completions/{id}";
    let request = json!({ "messages": [{ "role": "user", "content": "Name a prime number." }] });
    let operation = Operation::post(path, "peer_chat_in", chat_in)
        .also_at("/api/v1/chat/completions/{id}", "peer_chat_in_v1")
        .summary("Complete a chat in a session")
        .text(text)
        .in_path([SESSION])
        .takes::<PeerChatRequest>([("plain", request)])
        .answers::<PeerChatCompletion<'_>>(
            200,
            "The completion.",
            example(include_str!("peer/chat.json")),
        )
        .or_as("text/event-stream", STREAM);
    begins(operation)
}

async fn chat_in(
    State(engine): State<Engine>,
    Extension(peers): Extension<Arc<PeerOptions>>,
    PathText(session): PathText,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    let mut job = request::chat(&body)?;
    job.session = session_named(&session);
    run(&engine, &peers, asked, (PeerReplyKind::Chat, job, body)).await
}

fn delegate_operation() -> Operation {
    let text = "Runs the prompt on several sessions, and returns one text, as `/api/v1/completions` does, with the text of each session.";
    let operation = Operation::post("/api/v1/delegate", "peer_delegate", delegate)
        .summary("Delegate a prompt")
        .text(text)
        .takes::<PeerDelegateRequest>([(
            "plain",
            example(include_str!("peer/delegate_request.json")),
        )])
        .answers::<PeerDelegateReply<'_>>(
            200,
            "The texts.",
            example(include_str!("peer/delegate.json")),
        );
    begins(operation).tool(tool("cortensor_delegate_v1", "Delegate a prompt"))
}

async fn delegate(
    State(engine): State<Engine>,
    Extension(peers): Extension<Arc<PeerOptions>>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    let job = request::delegate(&body)?;
    run(&engine, &peers, asked, (PeerReplyKind::Delegate, job, body)).await
}

fn validate_operation() -> Operation {
    let text = "Has several sessions judge whether a result is true and useful for its prompt. `is_valid` is null if they do not agree.";
    let operation = Operation::post("/api/v1/validate", "peer_validate", validate)
        .summary("Judge a result")
        .text(text)
        .takes::<PeerValidateRequest>([(
            "plain",
            example(include_str!("peer/validate_request.json")),
        )])
        .answers::<PeerValidateReply<'_>>(
            200,
            "The verdict.",
            example(include_str!("peer/validate.json")),
        );
    begins(operation).tool(tool("cortensor_validate_v1", "Judge a result"))
}

async fn validate(
    State(engine): State<Engine>,
    Extension(peers): Extension<Arc<PeerOptions>>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    let mut job = request::validate(&body)?;
    if let Some(task) = &job.task {
        let round = lookup::task(&engine, asked.caller(), task).await?;
        if let Some(prompt) = lookup::prompt(&round) {
            job.add_prompt(&prompt);
        }
    }
    run(&engine, &peers, asked, (PeerReplyKind::Validate, job, body)).await
}

fn factcheck_operation() -> Operation {
    let text = "Has several sessions decide whether a claim is true. `verdict` is null if they do not agree.";
    let operation = Operation::post("/api/v1/factcheck", "peer_factcheck", factcheck)
        .also_at("/api/v1/fact-check", "peer_fact_check")
        .summary("Check a claim")
        .text(text)
        .takes::<PeerFactcheckRequest>([(
            "plain",
            example(include_str!("peer/factcheck_request.json")),
        )])
        .answers::<PeerFactcheckReply<'_>>(
            200,
            "The verdict.",
            example(include_str!("peer/factcheck.json")),
        );
    begins(operation).tool(tool("cortensor_factcheck", "Check a claim"))
}

async fn factcheck(
    State(engine): State<Engine>,
    Extension(peers): Extension<Arc<PeerOptions>>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    let job = request::factcheck(&body)?;
    run(&engine, &peers, asked, (PeerReplyKind::Factcheck, job, body)).await
}

/// Runs a translated request as the request of version 3 that it is.
async fn run(
    engine: &Engine,
    peers: &PeerOptions,
    asked: ConsensusContext,
    (kind, job, body): (PeerReplyKind, PeerJob, Value),
) -> HandlerResult {
    let directory = engine.session_directory(asked.caller()).await?;
    let form = PeerForm { kind, session: job.session.clone() };
    let is_streamed = job.is_streamed && form.needs_output();
    let pool = lookup::pool(&directory, form.session.as_deref());
    let usual = || lookup::replicas(&directory, &pool, kind, peers.replicas);
    let replicas = job.replicas.unwrap_or_else(usual);
    let translated = job.into_v3(replicas, &pool);
    let decoded = match kind {
        PeerReplyKind::Completion | PeerReplyKind::Chat | PeerReplyKind::Delegate => {
            consensus_request::delegate(&translated)
        }
        PeerReplyKind::Validate => consensus_request::validate(&translated),
        PeerReplyKind::Factcheck => consensus_request::factcheck(&translated),
    };
    asked.of_peer(is_streamed).run(engine, decoded?, body, ReplyVersion::Peer(form)).await
}

/// The common part of all operations that begin a round.
fn begins(operation: Operation) -> Operation {
    operation
        .begins_rounds()
        .with_peer_problems()
        .tag(PEER_CLIENTS)
        .idempotent()
        .scope(Scope::RoundsCreate)
        .refuses([
            ProblemCode::RequestInvalid,
            ProblemCode::NotFound,
            ProblemCode::NotSupported,
            ProblemCode::PolicyInvalid,
            ProblemCode::SchemaRefused,
            ProblemCode::SessionUnknown,
            ProblemCode::SessionPoolTooSmall,
            ProblemCode::SessionsUnavailable,
            ProblemCode::BudgetExhausted,
            ProblemCode::AccountSuspended,
            ProblemCode::ShuttingDown,
            ProblemCode::ConsensusDisagreement,
            ProblemCode::Conflict,
        ])
}

/// A tool under the name of another system, whose result is a large object.
fn tool(name: &'static str, title: &'static str) -> Tool {
    Tool::asks(name, title, UNTRUSTED)
        .ignores_unknown()
        .answers_any_object()
        .author(TextAuthor::Executors)
        .for_peers()
}
