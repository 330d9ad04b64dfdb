//! `/api/v2`, `/api/v3` and `/api/v4`: delegate, validate, factcheck.

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, header},
};
use jurat_core::{
    caller::Caller,
    code::Code,
    job::{Disagreement, Job},
    round::Round,
};
use jurat_engine::{Engine, EngineError, Watcher};
use jurat_wire::{
    api::{
        consensus_reply::{ConsensusBlock, Reply, replicas},
        consensus_request, v2,
    },
    problem::Problem,
};
use serde_json::json;

use super::stream;
use crate::{
    decode::Json,
    encode::{self, Answer},
};

/// The version a reply is shaped for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    V2,
    V3,
}

impl Shape {
    /// The text of a reply.
    fn text(self, reply: Reply<'_>) -> String {
        let text = match self {
            Self::V2 => serde_json::to_string(&v2::down(reply)),
            Self::V3 => serde_json::to_string(&reply),
        };
        // A reply holds text and finite numbers, so it always serializes.
        text.unwrap_or_default()
    }
}

pub(super) async fn delegate(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(body): Json,
) -> Answer {
    run(engine, caller, &headers, consensus_request::delegate(&body)?, Shape::V3).await
}

pub(super) async fn validate(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(body): Json,
) -> Answer {
    run(engine, caller, &headers, consensus_request::validate(&body)?, Shape::V3).await
}

pub(super) async fn factcheck(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(body): Json,
) -> Answer {
    run(engine, caller, &headers, consensus_request::factcheck(&body)?, Shape::V3).await
}

pub(super) async fn delegate_v2(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(body): Json,
) -> Answer {
    run(engine, caller, &headers, consensus_request::delegate(&v2::up(body))?, Shape::V2).await
}

pub(super) async fn validate_v2(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(body): Json,
) -> Answer {
    run(engine, caller, &headers, consensus_request::validate(&v2::up(body))?, Shape::V2).await
}

async fn run(
    engine: Engine,
    caller: Caller,
    headers: &HeaderMap,
    job: Job,
    shape: Shape,
) -> Answer {
    if wants_stream(headers) {
        return Ok(stream::reply(engine, caller, job, shape).await);
    }
    let ended = engine.round_run(&caller, job, Watcher::nobody()).await;
    Ok(encode::ok_text(reply(ended, shape)?))
}

/// The text of a reply, or the problem that stands for it.
pub(super) fn reply(result: Result<Round, EngineError>, shape: Shape) -> Result<String, Problem> {
    let round = result.map_err(|error| encode::engine_problem(&error))?;
    let (Some(reply), Some(closing)) = (Reply::of(&round), &round.closing) else {
        return Err(encode::engine_problem(&EngineError::Bug("a round returned before its end")));
    };
    if round.open.disagreement != Disagreement::FailHard || !closing.consensus.disagreed {
        return Ok(shape.text(reply));
    }
    let detail = format!(
        "the replicas do not agree: outcome `{}`, agreement {}",
        closing.consensus.outcome, closing.consensus.agreement
    );
    let problem = Problem::new(Code::ConsensusDisagreement, detail)
        .with("consensus", json!(ConsensusBlock::of(closing)))
        .with("replicas", json!(replicas(&round.open, closing)))
        .with("round_id", json!(round.open.id.as_str()))
        .with("receipt_id", json!(closing.receipt_id));
    Err(problem)
}

/// A client that takes JSON as well gets JSON.
fn wants_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let takes = |mime: &str| accept.split(',').any(|part| part.trim().starts_with(mime));
    takes("text/event-stream") && !takes("application/json")
}
