//! Does a job of another node: it becomes a round of that node's account, with one seat.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use jurat_core::{
    account::caller::Caller,
    canonical::{canonical, digest},
    code::ProblemCode,
    executor::session::Session,
    footprint::footprint,
    peer::{Peer, PeerId},
    policy::{PolicyBinding, SCHEMA_ONLY, SEMANTIC},
    round::{
        Round,
        candidate::Candidate,
        job::{AgreementTerms, Job, JobWork, PoolEntry, RelayedCall, RelayedCandidate},
    },
};
use jurat_mesh::IncomingRequest;
use jurat_wire::{
    executor::{VerifyRequest, decode_verify_request},
    mesh::{JobCall, JobRequest, NodeReply, RefusalCode, SignedMessage, body_digest},
    strict_json,
};
use serde_json::{Map, Value, json};

use super::{answer::job_answer, serve::PeerRefusal};
use crate::{Engine, EngineError, IdempotencyKey, RequestMemory, RoundHandle, RoundWatcher};

/// The longest time that a job may take, as for a round.
const LONGEST_MS: u64 = 600_000;
/// The longest id of an execution.
const LONGEST_ID: usize = 200;
/// The operation under which a job is noted, so that it is done once.
const OPERATION: &str = "peer_job";

impl Engine {
    /// Does a job, and returns the signed answer with its body.
    pub(super) async fn do_job(
        &self,
        peer: &Peer,
        head: &SignedMessage<()>,
        job: &JobRequest,
        incoming: &mut IncomingRequest,
    ) -> Result<(NodeReply, Bytes), PeerRefusal> {
        if incoming.body_bytes > peer.terms.payload_bytes {
            let most = peer.terms.payload_bytes;
            return Err(PeerRefusal::new(RefusalCode::TooLarge, format!("at most {most} bytes")));
        }
        let session = self.lent_session(job).await?;
        let caller = self.peer_caller(peer).await?;
        let memory = self.request_memory(&caller);
        let body = self.job_body(peer, job, incoming, &memory).await?;
        check_task_type(peer, job.call, &body)?;
        let key = IdempotencyKey {
            key: format!("job:{}", job.execution_id),
            operation: OPERATION,
            request_digest: job_digest(job),
        };
        let work = relayed_job(&peer.id, job, body, &session)?;
        let watcher = RoundWatcher::nobody();
        let handle = self.round_begin(&caller, work, watcher, Some(key)).await?;
        // The round has its own share by now.
        drop(memory);
        let round = self.wait_unless_cancelled(&caller, handle, incoming).await?;
        Ok(job_answer(self.route_to(&peer.id), &head.digest, job, &round))
    }

    async fn job_body(
        &self,
        peer: &Peer,
        job: &JobRequest,
        incoming: &mut IncomingRequest,
        memory: &RequestMemory,
    ) -> Result<Value, PeerRefusal> {
        let most = usize::try_from(peer.terms.payload_bytes).unwrap_or(usize::MAX);
        // Counted before it is read, by what the peer announced.
        memory.hold(usize::try_from(incoming.body_bytes).unwrap_or(usize::MAX))?;
        let bytes =
            incoming.body(most).await.map_err(|error| PeerRefusal::bad(error.to_string()))?;
        if body_digest(&bytes) != job.body_digest {
            return Err(PeerRefusal::bad("the body does not have the digest that is signed"));
        }
        let body = strict_json::parse_within(&bytes, memory.most_values())
            .map_err(|error| PeerRefusal::bad(error.to_string()))?;
        memory.hold(footprint(&body))?;
        Ok(body)
    }

    /// The session that does the job, if the peer may use it and pays its price.
    async fn lent_session(&self, job: &JobRequest) -> Result<Session, PeerRefusal> {
        let view = self.pool_view().await?;
        let is_asked = |session: &&Session| {
            let executor = view.pool.executors.get(&session.executor);
            session.profile == job.profile
                && executor.is_some_and(|it| it.remote.is_none() && it.url == job.executor)
        };
        let mut fitting: Vec<&Session> = view.pool.sessions.values().filter(is_asked).collect();
        fitting.sort_by_key(|session| session.price_micros);
        let Some(session) = fitting.first() else {
            let detail = format!(
                "no executor at `{}` with the profile `{}` is lent",
                job.executor, job.profile
            );
            return Err(PeerRefusal::new(RefusalCode::UnknownExecutor, detail));
        };
        let price = session.price_micros;
        if job.most_price_micros < price {
            let detail = format!(
                "it costs {price} micro-credits, and at most {} are paid",
                job.most_price_micros
            );
            return Err(PeerRefusal::new(RefusalCode::PriceTooHigh, detail));
        }
        Ok((*session).clone())
    }

    /// Waits for the round. A peer that gives the job up cancels it; a peer that only lost its
    /// connection may ask again, so the round goes on to its end.
    async fn wait_unless_cancelled(
        &self,
        caller: &Caller,
        handle: RoundHandle,
        incoming: &mut IncomingRequest,
    ) -> Result<Round, PeerRefusal> {
        let id = handle.round.open.id.clone();
        let waiting = handle.wait();
        tokio::pin!(waiting);
        let given_up = tokio::select! {
            round = &mut waiting => return Ok(round?),
            given_up = incoming.reply.given_up() => given_up,
        };
        if given_up && let Err(error) = self.round_cancel(caller, &id).await {
            tracing::debug!(round.id = %id, error = %error, "a peer cancelled a job that had ended");
        }
        Ok(waiting.await?)
    }
}

/// A peer asks only for the types of tasks that its terms name. A verification has none.
fn check_task_type(peer: &Peer, call: JobCall, body: &Value) -> Result<(), PeerRefusal> {
    let task_type = body["task_type"].as_str().unwrap_or_default();
    if call == JobCall::Verify || peer.terms.takes_task_type(task_type) {
        return Ok(());
    }
    let detail = "the operator of this node does not lend executors for this type of task";
    Err(PeerRefusal::new(RefusalCode::TaskTypeNotLent, detail))
}

/// Identifies the content of a job, without what differs if it is sent again: a task that was
/// interrupted asks in another round.
fn job_digest(job: &JobRequest) -> String {
    let call = match job.call {
        JobCall::Execute => "execute",
        JobCall::Verify => "verify",
    };
    let same = json!([call, job.executor, job.profile, job.body_digest]);
    digest(&canonical(&same))
}

/// The round's job for the call of another node. That node checks the answer, so nothing is checked
/// here but its form.
fn relayed_job(
    origin: &PeerId,
    job: &JobRequest,
    body: Value,
    session: &Session,
) -> Result<Job, PeerRefusal> {
    let is_id = |id: &str| {
        !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if !is_id(&job.execution_id) {
        return Err(PeerRefusal::bad(format!(
            "`execution_id` must have 1 to {LONGEST_ID} visible ASCII characters"
        )));
    }
    let request = canonical(&body);
    let (work, policy, output_schema, candidate) = match job.call {
        JobCall::Execute => execute_work(origin, &body)?,
        JobCall::Verify => verify_work(&body)?,
    };
    let pool = vec![PoolEntry::Session(session.id.clone())];
    Ok(Job {
        work,
        policy,
        has_schema: output_schema != Value::Object(Map::new()),
        output_schema,
        context: None,
        passed_on: Map::new(),
        tier: None,
        labels: BTreeSet::new(),
        terms: AgreementTerms::plain(1, pool),
        timeout_ms: job.within_ms.clamp(1, LONGEST_MS),
        max_steps: None,
        request_digest: digest(&request),
        request: String::from_utf8(request).ok(),
        step: None,
        relayed: Some(RelayedCall {
            origin: origin.clone(),
            execution_id: job.execution_id.clone(),
            body: Arc::new(body),
            candidate,
            most_price_micros: job.most_price_micros,
        }),
    })
}

type RelayedWork = (JobWork, PolicyBinding, Value, Option<RelayedCandidate>);

fn execute_work(origin: &PeerId, body: &Value) -> Result<RelayedWork, PeerRefusal> {
    let Some(task_type) = body["task_type"].as_str().filter(|it| !it.is_empty()) else {
        return Err(PeerRefusal::bad("`task_type` is missing in the body"));
    };
    let work = JobWork::Delegate {
        objective: format!("{task_type} for the node {}", origin.short()),
        input: Value::Null,
        task_type: task_type.to_owned(),
    };
    let any = Value::Object(Map::new());
    Ok((work, PolicyBinding::new(SCHEMA_ONLY, any.clone()), any, None))
}

fn verify_work(body: &Value) -> Result<RelayedWork, PeerRefusal> {
    let request = decode_verify_request(body.clone());
    let VerifyRequest { candidate, output_schema, policy } =
        request.map_err(|error| PeerRefusal::bad(error.to_string()))?;
    let candidate = Candidate::from(candidate);
    let policy = PolicyBinding::from(policy);
    if policy.policy_id == SEMANTIC {
        let detail = "verifiers are judged on the node that has them";
        return Err(PeerRefusal::new(RefusalCode::Unsupported, detail));
    }
    let of_origin = RelayedCandidate {
        candidate_id: candidate.candidate_id,
        execution_id: candidate.execution_id,
    };
    let work = JobWork::Validate { output: candidate.output, evidence: candidate.evidence };
    Ok((work, policy, output_schema, Some(of_origin)))
}

impl From<EngineError> for PeerRefusal {
    fn from(error: EngineError) -> Self {
        let code = refusal_code(error.code());
        // What went wrong inside is for the operator of this node.
        let is_inside =
            matches!(error.code(), ProblemCode::Internal | ProblemCode::StoreUnavailable);
        if is_inside {
            tracing::warn!(error = %error, "a request of a peer failed");
        }
        let detail = if is_inside { "the node has a fault".to_owned() } else { error.to_string() };
        Self::new(code, detail)
    }
}

/// What a refusal of this node means to another; most mean that the job cannot be done now.
fn refusal_code(code: ProblemCode) -> RefusalCode {
    let known: [(RefusalCode, &[ProblemCode]); 5] = [
        (RefusalCode::RateLimited, &[ProblemCode::RateLimited]),
        (RefusalCode::Mismatch, &[ProblemCode::IdempotencyMismatch]),
        (RefusalCode::TooLarge, &[ProblemCode::PayloadTooLarge]),
        (RefusalCode::NotTrusted, &[ProblemCode::AccountSuspended, ProblemCode::Forbidden]),
        (
            RefusalCode::Unsupported,
            &[
                ProblemCode::ValidationError,
                ProblemCode::RequestInvalid,
                ProblemCode::PolicyInvalid,
                ProblemCode::SchemaRefused,
                ProblemCode::NotSupported,
            ],
        ),
    ];
    let found = known.into_iter().find(|(_, codes)| codes.contains(&code));
    found.map_or(RefusalCode::Unavailable, |(meaning, _)| meaning)
}
