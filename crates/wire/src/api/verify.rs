//! `/verify` and `/capabilities` of the server, which acts as an executor: a request becomes a job,
//! and the round of that job becomes the reply.

use std::collections::BTreeSet;

use jurat_core::{
    canonical::{canonical, digest},
    code::ProblemCode,
    executor::session::{BUILTIN_SESSION, NODE_FAMILY, NODE_MODEL},
    policy::{EvaluationStatus, PolicyBinding, ResultFields, SEMANTIC, result_hash},
    reason,
    round::{
        Round, candidate,
        job::{AgreementTerms, Job, JobWork, PoolEntry},
        replica::{Label, Replica, ReplicaAnswer, ReplicaVote},
    },
};
use serde_json::{Map, Value};

use super::consensus_request::DEFAULT_TIMEOUT_MS;
use crate::{
    executor::{CapabilitiesResponse, VerifyRequest, VerifyResponse, decode_verify_request},
    problem::Problem,
};

/// Values of the request that the reply's hash covers, as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyEcho {
    candidate_id: String,
    execution_id: String,
    policy_hash: String,
}

/// Reads a request. If its policy names a verifier, the verifier's judge decides; otherwise the
/// server itself does. The server never passes a request on to executors, because servers that are
/// each other's executors would otherwise call each other forever.
pub fn decode(body: &Value) -> Result<(Job, VerifyEcho), Problem> {
    let request = decode_verify_request(body.clone()).map_err(|error| {
        // Writes list positions like every other message of this API.
        let field = error.field.replace('[', ".").replace(']', "");
        Problem::new(ProblemCode::ValidationError, format!("`{field}` {}", error.problem)).at(field)
    })?;
    let VerifyRequest { candidate, output_schema, policy } = request;
    let candidate = candidate::Candidate::from(candidate);
    let policy = PolicyBinding::from(policy);
    let pool = if policy.policy_id == SEMANTIC {
        Vec::new()
    } else {
        vec![PoolEntry::Session(BUILTIN_SESSION.to_owned())]
    };
    let asked = VerifyEcho {
        candidate_id: candidate.candidate_id,
        execution_id: candidate.execution_id,
        policy_hash: policy.policy_hash.clone(),
    };
    let request = canonical(body);
    let job = Job {
        work: JobWork::Validate { output: candidate.output, evidence: candidate.evidence },
        policy,
        has_schema: output_schema != Value::Object(Map::new()),
        output_schema,
        context: None,
        passed_on: Map::new(),
        tier: None,
        labels: BTreeSet::new(),
        terms: AgreementTerms::plain(1, pool),
        timeout_ms: DEFAULT_TIMEOUT_MS,
        max_steps: None,
        request_digest: digest(&request),
        request: String::from_utf8(request).ok(),
        step: None,
        relayed: None,
    };
    Ok((job, asked))
}

/// The reply; `None` while the round is open.
pub fn response(asked: &VerifyEcho, round: &Round) -> Option<VerifyResponse> {
    let closing = round.closing.as_ref()?;
    let replica = closing.replicas.first()?;
    let status = status(replica);
    let said = replica.answer.content();
    let score = match status {
        EvaluationStatus::Passed | EvaluationStatus::Failed => {
            said.and_then(|said| said.score).unwrap_or(closing.consensus.confidence)
        }
        EvaluationStatus::Inconclusive => 0.0,
    };
    let mut reason_codes = said.map(|said| said.reason_codes.clone()).unwrap_or_default();
    if status == EvaluationStatus::Inconclusive && reason_codes.is_empty() {
        reason_codes.push(reason::JUDGE_FAILED);
    }
    let passed = status == EvaluationStatus::Passed;
    let by = &replica.independence;
    let hash = result_hash(&ResultFields {
        candidate_id: &asked.candidate_id,
        execution_id: &asked.execution_id,
        passed,
        score,
        reason_codes: &reason_codes,
        provider_family: &by.provider_family,
        model_id: &by.model_id,
        policy_hash: &asked.policy_hash,
    });
    Some(VerifyResponse {
        verification_status: Some(status.into()),
        passed,
        score,
        reason_codes,
        verifier_result_hash: Some(hash),
        provider_family: Some(by.provider_family.clone()),
        model_id: Some(by.model_id.clone()),
    })
}

/// The verdict of a replica; anything but a vote of `VALID` or `INVALID` is inconclusive.
fn status(replica: &Replica) -> EvaluationStatus {
    match &replica.answer {
        ReplicaAnswer::Vote(ReplicaVote { label: Label::Valid, .. }) => EvaluationStatus::Passed,
        ReplicaAnswer::Vote(ReplicaVote { label: Label::Invalid, .. }) => EvaluationStatus::Failed,
        ReplicaAnswer::Vote(_)
        | ReplicaAnswer::Abstained { .. }
        | ReplicaAnswer::Nothing { .. } => EvaluationStatus::Inconclusive,
    }
}

/// The capabilities of the server as an executor: it verifies, but executes nothing.
pub fn capabilities() -> CapabilitiesResponse {
    CapabilitiesResponse {
        task_types: Vec::new(),
        profiles: vec!["default".to_owned()],
        provider_family: NODE_FAMILY.to_owned(),
        model_id: NODE_MODEL.to_owned(),
        policies: Vec::new(),
    }
}
