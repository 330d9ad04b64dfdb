//! Asks one session, and reads its reply.

mod execute;
pub(crate) mod judge;
mod node;
pub(crate) mod review;
mod verify;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use jurat_core::{
    executor::breakers::{ExecutorCallResult, ExecutorCaller},
    id::{AccountId, RoundId},
    peer::book::PeerBooking,
    round::{
        OpenRound, Seat,
        candidate::InlineEvidence,
        evidence::amend_answer,
        job::{Job, JobWork},
        replica::{AnswerContent, FailureCode, JudgeUsage, Label, ReplicaAnswer, ReplicaFailure},
    },
    time::Timestamp,
};
use jurat_guard::client::{CallError, HttpReply};
use jurat_wire::{mesh::JobCall, signature::content_digest, strict_json};
use parking_lot::Mutex;
use serde_json::{Value, value::RawValue};
use tokio::time::Instant;

pub(crate) use self::judge::JudgeBrief;
pub(crate) use super::prepare::RoundChecks;
use super::{
    evidence::{self, SharedFindings},
    seats::{SeatChoice, SeatTarget, SeatTargets},
};
use crate::{
    Engine,
    executors::{
        pool::{ExecutorRoute, HttpRoute},
        probe::bearer_headers,
        signature::{CONTENT_DIGEST, CoveredParts, SIGNATURE, SIGNATURE_INPUT},
    },
    judges::{JudgeCosts, SeatBill, VerdictLookup},
    peers::PeerCall,
    trace,
};

const ROUND_HEADER: HeaderName = HeaderName::from_static("x-jurat-round");
const REPLICA_HEADER: HeaderName = HeaderName::from_static("x-jurat-replica");
/// The maximum number of values in an executor's answer, counting lists and objects.
const MOST_REPLY_VALUES: usize = 100_000;
pub(crate) const CORRELATION_HEADER: HeaderName = HeaderName::from_static("x-correlation-id");

/// Everything that the replicas of a round need.
#[derive(Debug)]
pub(crate) struct ReplicaPlan {
    pub(crate) round: RoundId,
    pub(crate) job: Job,
    pub(crate) checks: RoundChecks,
    pub(crate) targets: SeatTargets,
    /// Sessions that may replace a failed one.
    pub(crate) spares: Vec<Seat>,
    pub(crate) opened_at: Timestamp,
    pub(crate) deadline: Instant,
    pub(crate) account: AccountId,
    /// The owner of the round's share of what accounts share.
    owner: AccountId,
    /// The findings about the candidate's references, if they are to be fetched.
    pub(crate) findings: Option<SharedFindings>,
    /// The verdicts that were available for judges before the round opened.
    verdict_lookups: Vec<VerdictLookup>,
    /// The cost of judge calls.
    pub(crate) judge_costs: Arc<JudgeCosts>,
    /// The jobs that other nodes did for the round, by their signed answers.
    pub(crate) owed: Mutex<Vec<PeerBooking>>,
    /// The body of `/verify`, the same for all replicas.
    verify: Option<OutboundBody>,
    /// The inputs of `/execute`, the same for all replicas.
    inputs: Option<Box<RawValue>>,
}

/// A body with its path and digest.
#[derive(Debug, Clone)]
struct OutboundBody {
    path: &'static str,
    body: Bytes,
    digest: String,
}

impl OutboundBody {
    fn new(path: &'static str, body: Vec<u8>) -> Self {
        let digest = content_digest(&body);
        Self { path, body: body.into(), digest }
    }
}

/// One call of an executor at its own address.
struct DirectCall<'a> {
    index: usize,
    place: &'a SeatTarget,
    route: &'a HttpRoute,
    letter: OutboundBody,
    left: Duration,
}

/// What an executor replied, directly or through its node.
#[derive(Debug)]
pub(crate) struct ExecutorReply {
    pub(crate) http: HttpReply,
    /// The price of the call, if it was answered.
    pub(crate) price_micros: u64,
    /// What another node signed.
    pub(crate) proof: Option<InlineEvidence>,
    pub(crate) booking: Option<PeerBooking>,
}

impl ReplicaPlan {
    pub(crate) fn new(
        open: &OpenRound,
        mut job: Job,
        checks: RoundChecks,
        choice: SeatChoice,
        deadline: Instant,
    ) -> Self {
        let SeatChoice { targets, spares, .. } = choice;
        let verify = match (&job.work, &targets) {
            (JobWork::Validate { .. }, SeatTargets::Executors(_)) => {
                Some(OutboundBody::new("/verify", verify::verify_request(open, &job, &checks)))
            }
            _ => None,
        };
        // From here on only the checks hold the candidate.
        if let JobWork::Validate { output, .. } = &mut job.work {
            *output = Value::Null;
        }
        Self {
            inputs: execute::take_inputs(&mut job),
            round: open.id.clone(),
            account: open.account.clone(),
            owner: open.account.clone(),
            findings: evidence::findings_cell(&job),
            job,
            checks,
            targets,
            spares,
            opened_at: open.opened_at,
            deadline,
            verify,
            verdict_lookups: Vec::new(),
            judge_costs: JudgeCosts::new(open),
            owed: Mutex::default(),
        }
    }

    /// Adds the verdicts that were available before the round opened.
    pub(crate) fn with_verdict_lookups(self, verdict_lookups: Vec<VerdictLookup>) -> Self {
        Self { verdict_lookups, ..self }
    }

    /// Names another owner of the round's share than its account.
    pub(crate) fn owned_by(self, owner: AccountId) -> Self {
        Self { owner, ..self }
    }

    /// The endpoint that the executors are called at.
    const fn job_call(&self) -> JobCall {
        match self.verify {
            Some(_) => JobCall::Verify,
            None => JobCall::Execute,
        }
    }

    /// Names one call, so that it is done once however often it is sent.
    fn execution_id(&self, index: usize) -> String {
        match (&self.job.step, &self.job.relayed) {
            (Some(step), _) => step.execution_id.clone(),
            (None, Some(relayed)) => relayed.execution_id.clone(),
            (None, None) => format!("exec-{}-{index}", self.round),
        }
    }

    /// The bill for the judge calls of a seat.
    fn seat_bill(&self, seat: usize) -> SeatBill {
        SeatBill { costs: Arc::clone(&self.judge_costs), seat }
    }
}

/// The answer of one session, and its cost.
#[derive(Debug)]
pub(crate) struct ReplicaReply {
    pub(crate) answer: ReplicaAnswer,
    pub(crate) cost_micros: u64,
    pub(crate) usage: Option<JudgeUsage>,
}

impl ReplicaReply {
    /// A cut-off answer, for which only judge calls are paid.
    pub(crate) fn cut_off(answer: ReplicaAnswer, cost_micros: u64) -> Self {
        Self { answer, cost_micros, usage: None }
    }
}

impl From<ReplicaAnswer> for ReplicaReply {
    /// An answer that costs nothing.
    fn from(answer: ReplicaAnswer) -> Self {
        Self { answer, cost_micros: 0, usage: None }
    }
}

impl Engine {
    /// Asks one session, and amends its answer by the evidence. Never fails: any problem is an
    /// answer.
    pub(crate) async fn ask(&self, errand: &Arc<ReplicaPlan>, index: usize) -> ReplicaReply {
        let (mut asked, findings) =
            tokio::join!(self.ask_seat(errand, index), self.findings(errand));
        if let Some(findings) = findings {
            asked.answer = amend_answer(asked.answer, findings);
        }
        asked
    }

    async fn ask_seat(&self, errand: &Arc<ReplicaPlan>, index: usize) -> ReplicaReply {
        match &errand.targets {
            SeatTargets::Judges(models) => self.ask_judge(errand, index, &models[index]).await,
            SeatTargets::Node => node::node_answer(&errand.checks).into(),
            SeatTargets::Executors(places) => {
                let place = &places[index];
                if let Some(problem) = &place.problem {
                    return ReplicaAnswer::nothing(FailureCode::Unavailable, problem).into();
                }
                if let Some(reason) = &place.abstention {
                    let said =
                        AnswerContent { notes: vec![reason.clone()], ..AnswerContent::default() };
                    return ReplicaAnswer::Abstained { label: Label::NeedsSpec, said }.into();
                }
                self.ask_executor(errand, index, place).await
            }
        }
    }

    async fn ask_executor(
        &self,
        errand: &Arc<ReplicaPlan>,
        index: usize,
        place: &SeatTarget,
    ) -> ReplicaReply {
        let letter = match &errand.verify {
            Some(letter) => letter.clone(),
            None => OutboundBody::new("/execute", execute::execute_request(errand, index, place)),
        };
        let turn = place.address.calls.take(&errand.owner);
        let Ok(_turn) = tokio::time::timeout_at(errand.deadline, turn).await else {
            return ReplicaAnswer::nothing(
                FailureCode::Busy,
                "the executor was at its limit of concurrent calls until the deadline",
            )
            .into();
        };
        let sent_at = Instant::now();
        let left = errand.deadline.saturating_duration_since(sent_at);
        let replied = match &place.address.route {
            ExecutorRoute::Http(route) => {
                self.call_directly(errand, DirectCall { index, place, route, letter, left }).await
            }
            ExecutorRoute::Peer(route) => {
                let job = PeerCall {
                    route,
                    round: errand.round.as_str(),
                    replica: index,
                    execution_id: errand.execution_id(index),
                    call: errand.job_call(),
                    body: letter.body,
                    left,
                };
                self.call_peer(place, job).await
            }
        };
        let took = sent_at.elapsed();
        let status = replied.as_ref().ok().map(|reply| reply.http.status);
        trace::record_reply(&place.address, status);
        let asked = match replied {
            Ok(reply) => self.read_reply(errand, index, place, reply).await,
            Err(failure) => ReplicaAnswer::failed(failure, None).into(),
        };
        self.note_call(errand, &place.declared.executor, &asked.answer, took);
        asked
    }

    async fn call_directly(
        &self,
        errand: &ReplicaPlan,
        call: DirectCall<'_>,
    ) -> Result<ExecutorReply, ReplicaFailure> {
        let headers = self.request_headers(errand, &call);
        let DirectCall { place, route, letter, left, .. } = call;
        let url = match errand.job_call() {
            JobCall::Verify => &route.verify,
            JobCall::Execute => &route.execute,
        };
        let replied = self.inner.client.post_json(url, headers, letter.body, left).await;
        let http = replied.map_err(|error| call_failure(&error, errand.job.timeout_ms))?;
        let price_micros = place.price_micros;
        Ok(ExecutorReply { http, price_micros, proof: None, booking: None })
    }

    async fn read_reply(
        &self,
        errand: &Arc<ReplicaPlan>,
        index: usize,
        place: &SeatTarget,
        reply: ExecutorReply,
    ) -> ReplicaReply {
        let ExecutorReply { http, price_micros, proof, booking } = reply;
        // Another node did the job and signed that, whatever the answer is worth.
        errand.owed.lock().extend(booking);
        let mut asked: ReplicaReply = match errand.job_call() {
            JobCall::Verify => verify::read_verify_reply(errand, place, &http).into(),
            JobCall::Execute => execute::read_execute_reply(self, errand, index, &http).await,
        };
        // A session that did not answer is not paid.
        if let Some(said) = asked.answer.content_mut() {
            said.evidence.inline.extend(proof);
            asked.cost_micros = asked.cost_micros.saturating_add(price_micros);
        }
        asked
    }

    /// Records how a call went, so that a failing executor is paused.
    fn note_call(
        &self,
        errand: &ReplicaPlan,
        executor: &str,
        answer: &ReplicaAnswer,
        took: Duration,
    ) {
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let seen = match answer.failure().map(|failure| failure.code) {
            None => ExecutorCallResult::Answered { took_ms },
            Some(FailureCode::Timeout) => ExecutorCallResult::Silent { given_ms: took_ms },
            Some(FailureCode::Unreachable) => ExecutorCallResult::Unreachable,
            Some(code) if code.is_executors_fault() => ExecutorCallResult::Failed,
            Some(_) if answer.content().is_some() => ExecutorCallResult::Answered { took_ms },
            Some(_) => return,
        };
        let now = self.inner.clock.now();
        self.inner.pool.update(executor, |standing| {
            let caller = ExecutorCaller { account: &errand.account, owner: &errand.owner };
            standing.conduct.after_call(caller, seen, now);
        });
    }

    fn request_headers(&self, errand: &ReplicaPlan, call: &DirectCall<'_>) -> HeaderMap {
        let DirectCall { index, place, route, letter, .. } = call;
        let address = &place.address;
        let replica = index.to_string();
        let full_path = format!("{}{}", route.prefix, letter.path);
        let signed = self.inner.node_key.sign(&CoveredParts {
            authority: &route.authority,
            path: &full_path,
            content_digest: &letter.digest,
            about: &[
                (ROUND_HEADER.as_str(), errand.round.as_str()),
                (REPLICA_HEADER.as_str(), &replica),
            ],
            created: errand.opened_at,
        });
        let mut heads = bearer_headers(address);
        let correlation = format!("{}-{replica}", errand.round);
        for (name, value) in [
            (ROUND_HEADER, errand.round.as_str()),
            (REPLICA_HEADER, &replica),
            (CORRELATION_HEADER, &correlation),
            (CONTENT_DIGEST, &letter.digest),
            (SIGNATURE_INPUT, &signed.input),
            (SIGNATURE, &signed.signature),
        ] {
            if let Ok(value) = HeaderValue::from_str(value) {
                heads.insert(name, value);
            }
        }
        // Not covered by the signature, because intermediaries rewrite traces.
        trace::inject(&mut heads);
        heads
    }
}

/// The JSON of a successful reply, or why there is none.
fn reply_content(reply: &HttpReply) -> Result<Value, ReplicaFailure> {
    if !reply.status.is_success() {
        let detail = format!("the executor answered {}: {}", reply.status, excerpt(&reply.body));
        return Err(ReplicaFailure::new(FailureCode::HttpStatus, detail));
    }
    strict_json::parse_within(&reply.body, MOST_REPLY_VALUES)
        .map_err(|error| ReplicaFailure::new(FailureCode::NotJson, error.to_string()))
}

/// The start of a body, for people who look for the cause.
pub(crate) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(400)]);
    let plain: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    if plain.is_empty() { "(no text)".to_owned() } else { plain }
}

fn call_failure(error: &CallError, timeout_ms: u64) -> ReplicaFailure {
    let code = match error {
        CallError::Timeout => {
            let seconds = Duration::from_millis(timeout_ms).as_secs_f64();
            let detail = format!("no answer within the {seconds} s of the round");
            return ReplicaFailure::new(FailureCode::Timeout, detail);
        }
        CallError::Unreachable(_) => FailureCode::Unreachable,
        CallError::Disconnected(_) => FailureCode::Disconnected,
        CallError::TooLarge { .. } => FailureCode::TooLarge,
        CallError::Encoded { .. } => FailureCode::EncodedReply,
        CallError::Redirect { host } => {
            tracing::warn!(host, "executor answered with a redirect, which is not followed");
            FailureCode::Redirect
        }
        CallError::Tls(_) => FailureCode::Internal,
    };
    ReplicaFailure::new(code, error.to_string())
}
