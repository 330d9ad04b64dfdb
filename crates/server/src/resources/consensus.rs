//! `/api/v2`, `/api/v3` and `/api/v4`: delegate, validate, factcheck.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{FromRequestParts, State},
    http::{HeaderMap, header, request::Parts},
    response::{IntoResponse, Response},
};
use jurat_core::{
    account::caller::Caller,
    code::ProblemCode,
    round::{
        Round, RoundEnding,
        job::{Disagreement, Job},
    },
};
use jurat_engine::{Engine, EngineError, RequestMemory, RoundHandle, RoundWatcher};
use jurat_wire::{
    api::{
        consensus_reply::{ConsensusBlock, RoundReply, replicas},
        consensus_request::{self, DelegateRequestV2, ValidateRequestV2},
        rounds, v2,
    },
    problem::Problem,
};
use serde_json::{Value, json};

use super::stream;
use crate::request::{
    decode::Json,
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
    prefer::{self, Prefer},
};

/// The version a reply is shaped for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReplyVersion {
    /// With what of the request was ignored.
    V2(Vec<String>),
    V3,
}

impl ReplyVersion {
    /// The text of a reply.
    fn text(&self, reply: RoundReply<'_>) -> String {
        let text = match self {
            Self::V2(warnings) => serde_json::to_string(&v2::down(reply, warnings)),
            Self::V3 => serde_json::to_string(&reply),
        };
        // A reply holds text and finite numbers, so it always serializes.
        text.unwrap_or_default()
    }

    /// What a round says that has not ended.
    fn open(&self, round: &Round) -> Value {
        let mut body = json!(rounds::body(round));
        if let (Self::V2(warnings), Some(members)) = (self, body.as_object_mut())
            && !warnings.is_empty()
        {
            members.insert("warnings".to_owned(), json!(warnings));
        }
        body
    }
}

/// Who asks, and how the reply should come.
pub(super) struct ConsensusContext {
    caller: Caller,
    idempotency: Idempotency,
    manner: ReplyMode,
    memory: Option<Arc<RequestMemory>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyMode {
    /// When the round has ended.
    Whole,
    /// As events, while it runs.
    Events,
    /// At once, or after the time given, whether the round has ended or not.
    Async(Option<Duration>),
}

impl<S: Send + Sync> FromRequestParts<S> for ConsensusContext {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let caller = Extension::<Caller>::from_request_parts(parts, state).await;
        let Extension(caller) = caller.map_err(IntoResponse::into_response)?;
        let idempotency = Idempotency::from_request_parts(parts, state).await?;
        let prefer = Prefer::of(&parts.headers);
        let manner = if wants_stream(&parts.headers) {
            ReplyMode::Events
        } else if prefer.respond_async {
            ReplyMode::Async(prefer.wait)
        } else {
            ReplyMode::Whole
        };
        let memory = parts.extensions.get::<Arc<RequestMemory>>().cloned();
        Ok(Self { caller, idempotency, manner, memory })
    }
}

pub(super) async fn delegate(
    State(engine): State<Engine>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    asked.run(&engine, consensus_request::delegate(&body)?, body, ReplyVersion::V3).await
}

pub(super) async fn validate(
    State(engine): State<Engine>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    asked.run(&engine, consensus_request::validate(&body)?, body, ReplyVersion::V3).await
}

pub(super) async fn factcheck(
    State(engine): State<Engine>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    asked.run(&engine, consensus_request::factcheck(&body)?, body, ReplyVersion::V3).await
}

pub(super) async fn delegate_v2(
    State(engine): State<Engine>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    let (known, warnings) = v2::up::<DelegateRequestV2>(body.clone());
    let job = consensus_request::delegate(&known)?;
    drop(known);
    asked.run(&engine, job, v2::stamped(body), ReplyVersion::V2(warnings)).await
}

pub(super) async fn validate_v2(
    State(engine): State<Engine>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    let (known, warnings) = v2::up::<ValidateRequestV2>(body.clone());
    let job = consensus_request::validate(&known)?;
    drop(known);
    asked.run(&engine, job, v2::stamped(body), ReplyVersion::V2(warnings)).await
}

impl ConsensusContext {
    async fn run(
        self,
        engine: &Engine,
        job: Job,
        body: Value,
        shape: ReplyVersion,
    ) -> HandlerResult {
        let once = self.idempotency.key_for(job.work.kind().as_str(), &body);
        // The job has all that is needed of it, and the round may take long.
        drop(body);
        let (watcher, progress) = match self.manner {
            ReplyMode::Events => {
                let (watcher, progress) = RoundWatcher::new();
                (watcher, Some(progress))
            }
            ReplyMode::Whole | ReplyMode::Async(_) => (RoundWatcher::nobody(), None),
        };
        let begun = engine.round_begin(&self.caller, job, watcher, once).await?;
        let mut is_repeated = begun.is_repeated;
        let response = match (self.manner, progress) {
            (ReplyMode::Async(wait), _) => later(begun, wait, &shape).await,
            (ReplyMode::Events, Some(progress)) => {
                // Who waits for a round of before keeps the request, and goes on to count for it.
                let memory = self.memory.filter(|_| begun.is_repeated);
                stream::reply(begun, (progress, memory), shape)
            }
            (ReplyMode::Events | ReplyMode::Whole, _) => {
                let ended = begun.wait_or_retry().await.map(|(round, is_old)| {
                    is_repeated = is_old;
                    round
                });
                whole(ended, &shape)
            }
        };
        Ok(if is_repeated { idempotency::mark_replayed(response) } else { response })
    }
}

fn whole(ended: Result<Round, EngineError>, shape: &ReplyVersion) -> Response {
    match reply(ended, shape) {
        Ok(text) => encode::ok_text(text),
        Err(problem) => encode::problem(&problem),
    }
}

/// The reply if the round ends in time, else where it can be seen.
async fn later(begun: RoundHandle, wait: Option<Duration>, shape: &ReplyVersion) -> Response {
    let round = match wait {
        None => Ok(begun.round),
        Some(wait) => begun.wait_within(wait).await,
    };
    match round {
        Ok(round) if wait.is_none() || round.closing.is_none() => {
            let location = format!("/v1/rounds/{}", round.open.id);
            let mut response = encode::accepted(&shape.open(&round), &location);
            response.headers_mut().insert("preference-applied", prefer::APPLIED);
            response
        }
        ended => whole(ended, shape),
    }
}

/// The text of a reply, or the problem that stands for it.
pub(super) fn reply(
    result: Result<Round, EngineError>,
    shape: &ReplyVersion,
) -> Result<String, Problem> {
    reply_with(result, |reply| shape.text(reply))
}

/// A reply in the form that a surface gives it, or the problem that stands for it.
pub(crate) fn reply_with<T>(
    result: Result<Round, EngineError>,
    write: impl FnOnce(RoundReply<'_>) -> T,
) -> Result<T, Problem> {
    let round = result.map_err(|error| encode::engine_problem(&error))?;
    let (Some(reply), Some(closing)) = (RoundReply::of(&round), &round.closing) else {
        return Err(encode::engine_problem(&EngineError::Bug("a round returned before its end")));
    };
    if round.open.disagreement != Disagreement::FailHard || !closing.consensus.disagreed {
        return Ok(write(reply));
    }
    let detail = match closing.ending {
        RoundEnding::Closed => format!(
            "the replicas do not agree: outcome `{}`, agreement {}",
            closing.consensus.outcome, closing.consensus.agreement
        ),
        RoundEnding::Cancelled => "the round was cancelled before it was decided".to_owned(),
        RoundEnding::Expired => "the node stopped before the round was decided".to_owned(),
    };
    let problem = Problem::new(ProblemCode::ConsensusDisagreement, detail)
        .with("consensus", json!(ConsensusBlock::of(closing)))
        .with("replicas", json!(replicas(&round.open, closing)))
        .with("round_id", json!(round.open.id.as_str()))
        .with("receipt_id", json!(closing.receipt_id));
    Err(problem)
}

/// A client that takes JSON as well gets JSON.
pub(super) fn wants_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let takes = |mime: &str| accept.split(',').any(|part| part.trim().starts_with(mime));
    takes("text/event-stream") && !takes("application/json")
}
