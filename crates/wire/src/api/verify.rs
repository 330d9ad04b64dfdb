//! `/verify` and `/capabilities` of the server: what an executor is asked becomes a job, and the
//! round of that job an executor's answer.

use std::collections::BTreeSet;

use jurat_core::{
    candidate,
    canonical::{canonical, digest},
    code::Code,
    job::{Job, PoolEntry, Terms, Work},
    policy::{PolicyBinding, ResultFields, SEMANTIC, Status, result_hash},
    reason,
    replica::{Answer, Label, Replica, Vote},
    round::Round,
    session::{BUILTIN_LANE, NODE_FAMILY, NODE_MODEL},
};
use serde_json::{Map, Value};

use super::consensus_request::DEFAULT_TIMEOUT_MS;
use crate::{
    executor::{CapabilitiesResponse, VerifyRequest, VerifyResponse, decode_verify_request},
    problem::Problem,
};

/// What the answer repeats of the request, as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    candidate_id: String,
    execution_id: String,
    policy_hash: String,
}

/// Reads a request. A verifier is decided by its judge, all else by the server itself: it never
/// passes the question on, so that servers that are each other's executors do not go in circles.
pub fn decode(body: &Value) -> Result<(Job, Asked), Problem> {
    let request = decode_verify_request(body.clone()).map_err(|error| {
        // Positions in lists are written as in every other message of this API.
        let field = error.field.replace('[', ".").replace(']', "");
        Problem::new(Code::ValidationError, format!("`{field}` {}", error.problem)).at(field)
    })?;
    let VerifyRequest { candidate, output_schema, policy } = request;
    let candidate = candidate::Candidate::from(candidate);
    let policy = PolicyBinding::from(policy);
    let pool = if policy.policy_id == SEMANTIC {
        Vec::new()
    } else {
        vec![PoolEntry::Session(BUILTIN_LANE.to_owned())]
    };
    let asked = Asked {
        candidate_id: candidate.candidate_id,
        execution_id: candidate.execution_id,
        policy_hash: policy.policy_hash.clone(),
    };
    let request = canonical(body);
    let job = Job {
        work: Work::Validate { output: candidate.output, evidence: candidate.evidence },
        policy,
        has_schema: output_schema != Value::Object(Map::new()),
        output_schema,
        context: None,
        passed_on: Map::new(),
        tier: None,
        labels: BTreeSet::new(),
        terms: Terms::plain(1, pool),
        timeout_ms: DEFAULT_TIMEOUT_MS,
        max_steps: None,
        request_digest: digest(&request),
        request: String::from_utf8(request).ok(),
        step: None,
    };
    Ok((job, asked))
}

/// The answer; `None` while the round runs.
pub fn response(asked: &Asked, round: &Round) -> Option<VerifyResponse> {
    let closing = round.closing.as_ref()?;
    let replica = closing.replicas.first()?;
    let status = status(replica);
    let said = replica.answer.said();
    let score = match status {
        Status::Passed | Status::Failed => {
            said.and_then(|said| said.score).unwrap_or(closing.consensus.confidence)
        }
        Status::Inconclusive => 0.0,
    };
    let mut reason_codes = said.map(|said| said.reason_codes.clone()).unwrap_or_default();
    if status == Status::Inconclusive && reason_codes.is_empty() {
        reason_codes.push(reason::JUDGE_FAILED);
    }
    let passed = status == Status::Passed;
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

/// Only a vote is a verdict.
fn status(replica: &Replica) -> Status {
    match &replica.answer {
        Answer::Vote(Vote { label: Label::Valid, .. }) => Status::Passed,
        Answer::Vote(Vote { label: Label::Invalid, .. }) => Status::Failed,
        Answer::Vote(_) | Answer::Abstained { .. } | Answer::Nothing { .. } => Status::Inconclusive,
    }
}

/// What the server declares where it is somebody's executor: it verifies, and executes nothing.
pub fn capabilities() -> CapabilitiesResponse {
    CapabilitiesResponse {
        task_types: Vec::new(),
        profiles: vec!["default".to_owned()],
        provider_family: NODE_FAMILY.to_owned(),
        model_id: NODE_MODEL.to_owned(),
        policies: Vec::new(),
    }
}
