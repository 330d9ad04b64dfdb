//! The OpenAI shape: `/v1/chat/completions` and `/v1/models`.

mod examples;
mod stream;

use std::sync::Arc;

use axum::{Extension, extract::State, http::HeaderValue, response::Response};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    id::RoundId,
    round::{Round, RoundEnding},
};
use jurat_engine::{Engine, EngineError, RequestMemory, RoundWatcher};
use jurat_wire::{
    api::{
        consensus_reply::{DelegateReply, RoundReply},
        openai::{
            error::ChatErrorReply,
            models::{ChatModel, ChatModelList},
            profile,
            reply::{ChatChunk, ChatCompletion, ChatEnd, ChatHead},
            request::{self, ChatDelivery, ChatOrder, ChatRequest},
        },
    },
    problem::Problem,
};

use super::consensus::{disagreement, reply_with};
use crate::{
    operation::{ErrorForm, EventDescription, Operation, parameters::PathParameter},
    request::{
        decode::{Json, PathText},
        encode::{self, HandlerResult},
        error_form::ROUND,
        idempotency::{self, Idempotency},
    },
    resources::CHAT,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![completion_operation(), list_operation(), show_operation()]
}

fn completion_operation() -> Operation {
    let text = "Delegates the conversation under the consensus profile that `model` names, and returns the answer that the replicas agree on, in the form of OpenAI's API. `jurat` has the reply of `/api/v3/delegate`. If the replicas do not agree or the round is cancelled, `content` is null and `refusal` says so. With `stream`, the reply is an event stream.";
    Operation::post("/v1/chat/completions", "chat_complete", complete)
        .fails_as(ErrorForm::OpenAi)
        .begins_rounds()
        .tag(CHAT)
        .summary("Complete a chat")
        .text(text)
        .takes::<ChatRequest>([("plain", examples::request())])
        .answers::<ChatCompletion<'_>>(200, "The completion.", examples::completion())
        .or_streams(
            &[
                ("message", EventDescription::of::<ChatChunk<'_>>()),
                ("error", EventDescription::of::<ChatErrorReply<'_>>()),
            ],
            include_str!("chat/stream.txt"),
        )
        .and_header("X-Jurat-Round", "The round of the completion.")
        .idempotent()
        .scope(Scope::RoundsCreate)
        .refuses([
            ProblemCode::ValidationError,
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

async fn complete(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Extension(memory): Extension<Arc<RequestMemory>>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let ChatOrder { model, format, delivery, job } = request::chat(&body, engine.profiles())?;
    let once = idempotency.key_for(job.work.kind().as_str(), &body);
    drop(body);
    let begun = engine.round_begin(&caller, job, RoundWatcher::nobody(), once).await;
    let begun = begun.map_err(|error| told(encode::engine_problem(&error)))?;
    let head = |round: &Round| ChatHead {
        id: format!("chatcmpl-{}", round.open.id),
        created: round.open.opened_at.micros() / 1_000_000,
        model,
        format,
    };
    let (response, is_repeated) = if delivery == ChatDelivery::Whole {
        let (round, is_repeated) = begun.wait_or_retry().await?;
        (whole(&head(&round), round), is_repeated)
    } else {
        let (head, is_repeated) = (head(&begun.round), begun.is_repeated);
        // A request that waits for an earlier round is kept, so its memory still counts.
        let memory = Some(memory).filter(|_| is_repeated);
        (stream::reply(begun, memory, (head, delivery)), is_repeated)
    };
    Ok(if is_repeated { idempotency::mark_replayed(response) } else { response })
}

fn whole(head: &ChatHead, round: Round) -> Response {
    let id = round.open.id.clone();
    match answered(Ok(round), |reply, end| encode::ok(&head.completion(reply, end))) {
        Ok(response) => of_round(response, &id),
        Err(problem) => encode::problem(&problem),
    }
}

/// The reply of a round and its end, or the problem that replaces them. A round that its node gave
/// up has failed, and is no refusal of the executors.
fn answered<T>(
    ended: Result<Round, EngineError>,
    write: impl FnOnce(DelegateReply<'_>, ChatEnd) -> T,
) -> Result<T, Problem> {
    let mut end = None;
    if let Ok(Round { open, closing: Some(closing) }) = &ended {
        if closing.ending == RoundEnding::Expired {
            return Err(disagreement(open, closing));
        }
        end = Some(ChatEnd::from(closing));
    }
    reply_with(ended, |reply| match (reply, end) {
        (RoundReply::Delegate(reply), Some(end)) => Ok(write(reply, end)),
        (RoundReply::Delegate(_) | RoundReply::Verdict(_), _) => {
            Err(encode::engine_problem(&EngineError::Bug("a chat is not a delegate round")))
        }
    })?
}

/// Names the round of a reply.
fn of_round(mut response: Response, round: &RoundId) -> Response {
    if let Ok(id) = HeaderValue::from_str(round.as_str()) {
        response.headers_mut().insert(ROUND, id);
    }
    response
}

/// The problem with the name of the faulty member in a chat request.
fn told(mut problem: Problem) -> Problem {
    if problem.field.as_deref() == Some("output_schema") {
        problem.field = Some("response_format.json_schema.schema".to_owned());
    }
    problem
}

fn list_operation() -> Operation {
    let text = "Lists the consensus profiles as models: one for each tier, and those of the operator. The list is not paginated.";
    Operation::get("/v1/models", "model_list", list)
        .fails_as(ErrorForm::OpenAi)
        .tag(CHAT)
        .summary("List models")
        .text(text)
        .answers::<ChatModelList<'_>>(200, "The models.", examples::models())
}

async fn list(State(engine): State<Engine>) -> Response {
    encode::ok(&ChatModelList::from(engine.profiles()))
}

fn show_operation() -> Operation {
    let id = "The name of the model; its slash may be escaped.";
    Operation::get("/v1/models/{model}", "model_show", show)
        .also("/v1/models/{family}/{model}")
        .fails_as(ErrorForm::OpenAi)
        .tag(CHAT)
        .summary("Show a model")
        .text("Shows a consensus profile as a model.")
        .in_path([PathParameter::new("model", id, "jurat/safe")])
        .answers::<ChatModel<'_>>(200, "The model.", examples::model())
        .refuses([ProblemCode::NotFound])
}

async fn show(State(engine): State<Engine>, PathText(model): PathText) -> HandlerResult {
    let profile = profile::find(engine.profiles(), &model)?;
    Ok(encode::ok(&ChatModel::from(profile)))
}
