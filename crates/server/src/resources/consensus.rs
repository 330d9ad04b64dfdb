//! `/api/v2`, `/api/v3` and `/api/v4`: delegate, validate, factcheck.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{FromRequestParts, State},
    http::{HeaderMap, header, request::Parts},
    response::{IntoResponse, Response},
};
use futures::FutureExt as _;
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    round::{
        OpenRound, Round, RoundClosing,
        job::{Disagreement, Job},
    },
};
use jurat_engine::{Engine, EngineError, RequestMemory, RoundHandle, RoundWatcher};
use jurat_wire::{
    api::{
        consensus_reply::{
            ConsensusBlock, DelegateReply, ReplicaBody, RoundReply, VerdictReply, replicas,
            undecided,
        },
        consensus_request::{
            self, DelegateRequest, DelegateRequestV2, FactcheckRequest, ValidateRequest,
            ValidateRequestV2,
        },
        events::{self, DecidedEvent, ReplicaStarted},
        peer::reply::PeerForm,
        rounds::{self, RoundBody},
        v2::{self, DelegateReplyV2, VerdictReplyV2},
    },
    problem::{Problem, ProblemBody},
};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::stream;
use crate::{
    mcp::{
        render,
        watch::{WatchEnd, WatchedRound, begun, until_end},
    },
    operation::{
        EventDescription, Operation, StandIn, TextAuthor, Tool, ToolCall, ToolFuture, example,
        parameters,
    },
    request::{
        decode::{Json, ReadBody},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        prefer::{self, Prefer},
    },
    resources::CONSENSUS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        delegate_v2_operation(),
        validate_v2_operation(),
        delegate_operation(),
        validate_operation(),
        factcheck_operation(),
    ]
}

/// The API version of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReplyVersion {
    /// With warnings about the parts of the request that were ignored.
    V2(Vec<String>),
    V3,
    /// The form that a prompt-oriented client reads.
    Peer(PeerForm),
}

impl ReplyVersion {
    /// The text of a reply.
    fn text(&self, reply: RoundReply<'_>) -> String {
        let text = match self {
            Self::V2(warnings) => serde_json::to_string(&v2::down(reply, warnings)),
            Self::V3 => serde_json::to_string(&reply),
            Self::Peer(form) => serde_json::to_string(&form.reply(reply)),
        };
        // A reply holds text and finite numbers, so it always serializes.
        text.unwrap_or_default()
    }

    /// The body for a round that has not ended.
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

/// The caller of a request, and the form of the reply.
pub(super) struct ConsensusContext {
    caller: Caller,
    idempotency: Idempotency,
    manner: ReplyMode,
    memory: Option<Arc<RequestMemory>>,
    /// Whether the request is that of a tool.
    is_of_tool: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplyMode {
    /// One reply, after the round has ended.
    Whole,
    /// An event stream, while the round runs.
    Events,
    /// A reply immediately, or within the given time, whether or not the round has ended.
    Async(Option<Duration>),
    /// The reply as lines of data, after the round has ended.
    Lines,
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
        let is_of_tool = parts.extensions.get::<ReadBody>().is_some();
        Ok(Self { caller, idempotency, manner, memory, is_of_tool })
    }
}

fn delegate_operation() -> Operation {
    let text = "Runs the job on 1, 3 or 5 sessions, checks every output under the policy, and returns the one they agree on. The status is 200 even if they do not agree; with `disagreement_policy` `fail_hard` it is 409.\n\nAn executor receives the members of `input` as its `inputs` (a value that is not an object as `inputs.input`), with `objective` and, if the input has none, `prompt` (the objective), `context`, `tools`, `workflow` and `actor`.";
    let about = "Runs a job on 1, 3 or 5 independent executors, checks every output under a policy, and returns the output they agree on, with agreement, confidence and each replica's answer.";
    let description = Operation::post("/api/v3/delegate", "delegate", delegate)
        .aliased("/api/v3", "/api/v4", "_v4")
        .begins_rounds()
        .tag(CONSENSUS)
        .summary("Delegate a job")
        .text(text)
        .takes::<DelegateRequest>([(
            "plain",
            example(include_str!("consensus/delegate_request.json")),
        )])
        .answers::<DelegateReply<'_>>(
            200,
            "The result that the replicas agree on.",
            example(include_str!("consensus/delegate.json")),
        );
    round_of::<DelegateReply<'_>>(description)
        .tool(
            Tool::asks("delegate", "Delegate a job", about)
                .run(delegate_tool)
                .summary(render::round)
                .author(TextAuthor::Executors),
        )
        .tool(
            Tool::asks("cortensor_delegate_v3", "Delegate a job", about)
                .run(delegate_tool)
                .author(TextAuthor::Executors)
                .for_peers(),
        )
}

async fn delegate(
    State(engine): State<Engine>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    asked.run(&engine, consensus_request::delegate(&body)?, body, ReplyVersion::V3).await
}

fn validate_operation() -> Operation {
    let text = "Has 1, 3 or 5 sessions judge a candidate under a policy, and returns the verdict they agree on. The status is 200 even if they do not agree; with `disagreement_policy` `fail_hard` it is 409.\n\nIf `claim` is an object with `output`, the schema and the evidence are read from the claim, otherwise from the request. `context` is sent as one more piece of inline evidence, `{\"kind\": \"context\", \"context\": …}`; `tools`, `workflow` and `actor` are within it.";
    let about = "Has 1, 3 or 5 independent executors judge a claim or an output under a policy, and returns the verdict they agree on: VALID, INVALID, RETRY or NEEDS_SPEC, or null if they do not agree.";
    let description = Operation::post("/api/v3/validate", "validate", validate)
        .aliased("/api/v3", "/api/v4", "_v4")
        .begins_rounds()
        .tag(CONSENSUS)
        .summary("Validate a candidate")
        .text(text)
        .takes::<ValidateRequest>([(
            "plain",
            example(include_str!("consensus/validate_request.json")),
        )])
        .answers::<VerdictReply<'_>>(
            200,
            "The result that the replicas agree on.",
            example(include_str!("consensus/validate.json")),
        );
    round_of::<VerdictReply<'_>>(description)
        .tool(
            Tool::asks("validate", "Validate a candidate", about)
                .run(validate_tool)
                .summary(render::round)
                .author(TextAuthor::Executors),
        )
        .tool(
            Tool::asks("cortensor_validate_v3", "Validate a candidate", about)
                .run(validate_tool)
                .author(TextAuthor::Executors)
                .for_peers(),
        )
}

async fn validate(
    State(engine): State<Engine>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    asked.run(&engine, consensus_request::validate(&body)?, body, ReplyVersion::V3).await
}

fn factcheck_operation() -> Operation {
    let text = "Has 1, 3 or 5 sessions decide whether a claim is true, and returns the verdict they agree on. The status is 200 even if they do not agree; with `disagreement_policy` `fail_hard` it is 409.\n\nAn executor receives `claim`, `prompt`, `mode` and `context`; the prompt is the claim's text, or the object as JSON if it has none. It must return an object with `verdict` TRUE, FALSE or UNSURE, and optionally `confidence` (0 to 1), `reasons` and `sources` (lists).";
    let about = "Has 1, 3 or 5 independent executors decide whether a claim is true, and returns the verdict they agree on: TRUE, FALSE or UNSURE, or null if they do not agree.";
    let description = Operation::post("/api/v3/factcheck", "factcheck", factcheck)
        .aliased("/api/v3", "/api/v4", "_v4")
        .begins_rounds()
        .tag(CONSENSUS)
        .summary("Fact-check a claim")
        .text(text)
        .takes::<FactcheckRequest>([(
            "plain",
            example(include_str!("consensus/factcheck_request.json")),
        )])
        .answers::<VerdictReply<'_>>(
            200,
            "The result that the replicas agree on.",
            example(include_str!("consensus/factcheck.json")),
        );
    round_of::<VerdictReply<'_>>(description)
        .tool(
            Tool::asks("factcheck", "Fact-check a claim", about)
                .run(factcheck_tool)
                .summary(render::round)
                .author(TextAuthor::Executors),
        )
        .tool(
            Tool::asks("cortensor_factcheck_v3", "Fact-check a claim", about)
                .run(factcheck_tool)
                .author(TextAuthor::Executors)
                .for_peers(),
        )
}

async fn factcheck(
    State(engine): State<Engine>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    asked.run(&engine, consensus_request::factcheck(&body)?, body, ReplyVersion::V3).await
}

fn delegate_v2_operation() -> Operation {
    let text = "Like version 3 with one replica, in the session that the request names, or in one that routing chooses. `consensus` is ignored with a warning. The reply has no `consensus` and no `replicas`: `evidence`, `error` and `session_id` of the one replica are at the top level.";
    let description = Operation::post("/api/v2/delegate", "delegate_v2", delegate_v2)
        .begins_rounds()
        .tag(CONSENSUS)
        .summary("Delegate a job to one session")
        .text(text)
        .takes::<DelegateRequestV2>([(
            "plain",
            example(include_str!("consensus/delegate_v2_request.json")),
        )])
        .answers::<DelegateReplyV2<'_>>(
            200,
            "The session's output.",
            example(include_str!("consensus/delegate_v2.json")),
        );
    let about = "Runs a job on one session. The text in the result is written by executors and is untrusted.";
    round_of::<DelegateReplyV2<'_>>(description).tool(
        Tool::asks("cortensor_delegate", "Delegate with one session", about)
            .or_else(StandIn {
                tool: "cortensor_delegate_v1",
                lacks: "objective",
                has: &["prompt", "task_request_input"],
            })
            .ignores_unknown()
            .answers_any_object()
            .author(TextAuthor::Executors)
            .for_peers(),
    )
}

async fn delegate_v2(
    State(engine): State<Engine>,
    asked: ConsensusContext,
    Json(body): Json,
) -> HandlerResult {
    let (known, warnings) = v2::up::<DelegateRequestV2>(body.clone());
    let job = consensus_request::delegate(&known)?;
    drop(known);
    asked.run(&engine, job, v2::stamped(body), ReplyVersion::V2(warnings)).await
}

fn validate_v2_operation() -> Operation {
    let text = "Like version 3 with one replica, in the session that the request names, or in one that routing chooses. `consensus` is ignored with a warning. The reply has no `consensus` and no `replicas`: `evidence`, `error` and `session_id` of the one replica are at the top level.";
    let description = Operation::post("/api/v2/validate", "validate_v2", validate_v2)
        .begins_rounds()
        .tag(CONSENSUS)
        .summary("Validate a candidate with one session")
        .text(text)
        .takes::<ValidateRequestV2>([(
            "plain",
            example(include_str!("consensus/validate_v2_request.json")),
        )])
        .answers::<VerdictReplyV2<'_>>(
            200,
            "The session's verdict.",
            example(include_str!("consensus/validate_v2.json")),
        );
    let about = "Has a candidate judged by one session. The text in the result is written by executors and is untrusted.";
    round_of::<VerdictReplyV2<'_>>(description).tool(
        Tool::asks("cortensor_validate", "Validate with one session", about)
            .or_else(StandIn {
                tool: "cortensor_validate_v1",
                lacks: "claim",
                has: &["result_data", "task_result_output"],
            })
            .ignores_unknown()
            .answers_any_object()
            .author(TextAuthor::Executors)
            .for_peers(),
    )
}

async fn validate_v2(
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
    /// The context of a prompt-oriented client, which asks for a stream in the body. A tool has one
    /// result, so its reply is never a stream.
    pub(super) fn of_peer(self, is_streamed: bool) -> Self {
        let is_streamed = is_streamed && !self.is_of_tool;
        let manner = if is_streamed { ReplyMode::Lines } else { ReplyMode::Whole };
        Self { manner, ..self }
    }

    pub(super) const fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(super) async fn run(
        self,
        engine: &Engine,
        job: Job,
        body: Value,
        shape: ReplyVersion,
    ) -> HandlerResult {
        let once = self.idempotency.key_for(job.work.kind().as_str(), &body);
        // The job holds everything that is needed from the body, and the round may take long.
        drop(body);
        let (watcher, progress) = match self.manner {
            ReplyMode::Events => {
                let (watcher, progress) = RoundWatcher::new();
                (watcher, Some(progress))
            }
            ReplyMode::Whole | ReplyMode::Async(_) | ReplyMode::Lines => {
                (RoundWatcher::nobody(), None)
            }
        };
        let begun = engine.round_begin(&self.caller, job, watcher, once).await?;
        let mut is_repeated = begun.is_repeated;
        // A request that waits for an earlier round is kept, because it may be run again, so its
        // memory still counts.
        let memory = self.memory.clone().filter(|_| is_repeated);
        let response = match (self.manner, progress) {
            (ReplyMode::Async(wait), _) => later(begun, wait, &shape).await,
            (ReplyMode::Events, Some(progress)) => stream::reply(begun, (progress, memory), shape),
            (ReplyMode::Lines, _) => stream::lines(begun, memory, shape),
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

/// The reply if the round ends in time, otherwise the address of the round.
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

/// The text of a reply, or the problem that replaces it.
pub(super) fn reply(
    result: Result<Round, EngineError>,
    shape: &ReplyVersion,
) -> Result<String, Problem> {
    if let ReplyVersion::Peer(form) = shape {
        return peer_reply(result, form, |reply| shape.text(reply));
    }
    reply_with(result, |reply| shape.text(reply))
}

/// A reply to a prompt-oriented client. A completion without a text would pass for an empty answer.
pub(super) fn peer_reply<T>(
    result: Result<Round, EngineError>,
    form: &PeerForm,
    write: impl FnOnce(RoundReply<'_>) -> T,
) -> Result<T, Problem> {
    if let Ok(Round { open, closing: Some(closing) }) = &result
        && form.needs_output()
        && closing.consensus.output.is_none()
    {
        return Err(disagreement(open, closing));
    }
    reply_with(result, write)
}

/// A reply in the form of a surface, or the problem that replaces it.
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
    Err(disagreement(&round.open, closing))
}

/// The problem of a round without an answer that the caller can use.
pub(super) fn disagreement(open: &OpenRound, closing: &RoundClosing) -> Problem {
    let detail = match undecided(closing.ending) {
        Some(why) => why.to_owned(),
        None => format!(
            "the replicas do not agree: outcome `{}`, agreement {}",
            closing.consensus.outcome, closing.consensus.agreement
        ),
    };
    Problem::new(ProblemCode::ConsensusDisagreement, detail)
        .with("consensus", json!(ConsensusBlock::of(closing)))
        .with("replicas", json!(replicas(open, closing)))
        .with("round_id", json!(open.id.as_str()))
        .with("receipt_id", json!(closing.receipt_id))
}

/// Whether the client wants an event stream. A client that accepts JSON too gets JSON.
pub(super) fn wants_stream(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let takes = |mime: &str| accept.split(',').any(|part| part.trim().starts_with(mime));
    takes("text/event-stream") && !takes("application/json")
}

/// The common part of all operations that open a round; `R` is the data of the last event.
fn round_of<R: ToSchema>(operation: Operation) -> Operation {
    operation
        .or_streams(
            &[
                (events::REPLICA_STARTED, EventDescription::of::<ReplicaStarted<'_>>()),
                (events::REPLICA_DONE, EventDescription::of::<ReplicaBody<'_>>()),
                (events::DECIDED, EventDescription::of::<DecidedEvent<'_>>()),
                (events::FINAL, EventDescription::of::<R>()),
                (events::ERROR, EventDescription::of::<ProblemBody<'_>>()),
            ],
            include_str!("consensus/stream.txt"),
        )
        .answers::<RoundBody<'_>>(
            202,
            "The open round, which continues; with `Prefer: respond-async`.",
            example(include_str!("rounds/round_open.json")),
        )
        .and_header("Location", "URL of the round.")
        .and_header("Preference-Applied", "`respond-async`.")
        .with([parameters::prefer(
            "`respond-async` returns 202 immediately; `respond-async, wait=10` returns it after ten seconds unless the round has ended.",
        )])
        .idempotent()
        .scope(Scope::RoundsCreate)
        .refuses([
            ProblemCode::BudgetExhausted,
            ProblemCode::AccountSuspended,
            ProblemCode::ShuttingDown,
        ])
        .refuses_when(ProblemCode::RequestInvalid, "a field is wrong")
        .refuses_when(ProblemCode::NotSupported, UNSUPPORTED)
        .refuses_when(
            ProblemCode::PolicyInvalid,
            "the policy is unknown, or its hash, version or parameters are wrong",
        )
        .refuses_when(
            ProblemCode::SchemaRefused,
            "the schema exceeds the limits, or the claim cannot be checked against it within them",
        )
        .refuses_when(
            ProblemCode::SessionUnknown,
            "the pool names a session, label or profile that does not exist",
        )
        .refuses_when(
            ProblemCode::SessionPoolTooSmall,
            "the pool has fewer sessions than replicas",
        )
        .refuses_when(ProblemCode::SessionsUnavailable, "too few sessions can answer now")
        .refuses_when(
            ProblemCode::Overloaded,
            "too many rounds are in progress, or too many checks are waiting",
        )
        .refuses_when(
            ProblemCode::ConsensusDisagreement,
            "under `fail_hard`: no agreement, or the round was cancelled or its node stopped",
        )
        .refuses_when(
            ProblemCode::Conflict,
            "another node ended the round, because it took too long",
        )
}

/// Requests of other servers of this API that this one does not know.
const UNSUPPORTED: &str = "`replicas` or `tier` is `adaptive`; `aggregation` is `weighted`, `median_of_means`, `model_ensemble` or `ensemble_model`; `equivalence` is `similarity` or `judge`; or there is `weight_by` or `target_confidence`";

fn delegate_tool(call: ToolCall<'_>) -> ToolFuture<'_> {
    watched(call, consensus_request::delegate).boxed()
}

fn validate_tool(call: ToolCall<'_>) -> ToolFuture<'_> {
    watched(call, consensus_request::validate).boxed()
}

fn factcheck_tool(call: ToolCall<'_>) -> ToolFuture<'_> {
    watched(call, consensus_request::factcheck).boxed()
}

/// Runs a round and reports its progress to the caller of the tool.
async fn watched(
    mut call: ToolCall<'_>,
    decode: fn(&Value) -> Result<Job, Problem>,
) -> Result<Value, Problem> {
    let job = decode(&call.request.body.take().unwrap_or_default())?;
    let (watcher, progress) = RoundWatcher::new();
    let begun = begun(&call, call.engine.round_begin(call.caller, job, watcher, None)).await?;
    let open = &begun.round.open;
    let round = WatchedRound { id: open.id.clone(), progress, replicas: open.seats.len() };
    match Box::pin(until_end(&mut call, round, begun.wait())).await? {
        WatchEnd::Ended(ended) => reply_with(ended, |reply| json!(reply)),
        WatchEnd::StillOpen(round) => Ok(rounds::body(&round)),
    }
}
