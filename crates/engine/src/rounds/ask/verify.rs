//! `/verify`: the request of a validate job, and how its reply is read.

use http::{StatusCode, header::CONTENT_TYPE};
use jurat_core::{
    executor::Independence,
    policy::{EvaluationStatus, HashCheck, ResultFields, check_result_hash, result_hash},
    round::{
        OpenRound,
        job::Job,
        replica::{AnswerContent, FailureCode, Label, ReplicaAnswer, ReplicaFailure, ReplicaVote},
    },
};
use jurat_guard::client::HttpReply;
use jurat_wire::executor::{
    VerificationStatus, VerifyResponse, WireArtifactRef, decode_verify_response,
    verify_request_bytes,
};

use super::{ReplicaPlan, RoundChecks, excerpt, reply_content};
use crate::rounds::seats::SeatTarget;

/// The body for every replica.
pub(super) fn verify_request(open: &OpenRound, job: &Job, checks: &RoundChecks) -> Vec<u8> {
    if let Some(relayed) = &job.relayed {
        return serde_json::to_vec(&*relayed.body).unwrap_or_default();
    }
    let Some(candidate) = &checks.candidate else { return Vec::new() };
    let (created_at, producer) = match job.step.as_ref().and_then(|step| step.candidate.as_ref()) {
        Some(proposed) => (proposed.proposed_at, proposed.producer.as_str()),
        None => (open.opened_at, open.account.as_str()),
    };
    let created_at = created_at.millis().unsigned_abs();
    let output_ref = WireArtifactRef::to_output(&candidate.output, created_at, producer);
    verify_request_bytes(candidate, &output_ref, &job.output_schema, &job.policy)
}

pub(super) fn read_verify_reply(
    errand: &ReplicaPlan,
    place: &SeatTarget,
    reply: &HttpReply,
) -> ReplicaAnswer {
    let is_refusal =
        matches!(reply.status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY);
    // An HTML page comes from a proxy, not from the executor.
    if is_refusal && !is_html(reply) {
        // The executor refuses the binding: it cannot decide under this policy.
        let said = AnswerContent { notes: vec![excerpt(&reply.body)], ..AnswerContent::default() };
        return ReplicaAnswer::Abstained { label: Label::NeedsSpec, said };
    }
    vote_of(errand, place, reply).unwrap_or_else(|failure| ReplicaAnswer::failed(failure, None))
}

fn vote_of(
    errand: &ReplicaPlan,
    place: &SeatTarget,
    reply: &HttpReply,
) -> Result<ReplicaAnswer, ReplicaFailure> {
    let response = decode_verify_response(reply_content(reply)?)
        .map_err(|error| ReplicaFailure::new(FailureCode::BadShape, error.to_string()))?;
    let status = response
        .status()
        .map_err(|error| ReplicaFailure::new(FailureCode::StatusContradicts, error.to_string()))?;
    let said = checked_content(errand, place, response)?;
    Ok(match (status, &errand.checks.own_evaluation) {
        (VerificationStatus::Inconclusive, _) => {
            ReplicaAnswer::Abstained { label: Label::Retry, said }
        }
        (VerificationStatus::Failed, _) => {
            ReplicaAnswer::Vote(ReplicaVote { label: Label::Invalid, said })
        }
        // A pass that our own evaluation of the same policy does not confirm is not a vote.
        (VerificationStatus::Passed, Some(own)) if own.status != EvaluationStatus::Passed => {
            let detail = format!(
                "the executor passed the candidate, but this server's evaluation is {}, with reason codes {:?}: {}",
                own.status.as_str(),
                own.reason_codes,
                own.notes.join("; ")
            );
            ReplicaAnswer::failed(
                ReplicaFailure::new(FailureCode::PolicyContradicted, detail),
                Some(said),
            )
        }
        (VerificationStatus::Passed, _) => {
            ReplicaAnswer::Vote(ReplicaVote { label: Label::Valid, said })
        }
    })
}

/// The content of the reply, if its hash is correct or absent.
fn checked_content(
    errand: &ReplicaPlan,
    place: &SeatTarget,
    response: VerifyResponse,
) -> Result<AnswerContent, ReplicaFailure> {
    let Some(candidate) = &errand.checks.candidate else {
        return Err(ReplicaFailure::new(FailureCode::Internal, "there is no candidate"));
    };
    let declared = &place.declared;
    if let Some(detail) = identity_mismatch(declared, &response) {
        return Err(ReplicaFailure::new(FailureCode::BadShape, detail));
    }
    let fields = ResultFields {
        candidate_id: &candidate.candidate_id,
        execution_id: &candidate.execution_id,
        passed: response.passed,
        score: response.score,
        reason_codes: &response.reason_codes,
        provider_family: response.provider_family.as_deref().unwrap_or(&declared.provider_family),
        model_id: response.model_id.as_deref().unwrap_or(&declared.model_id),
        policy_hash: &errand.job.policy.policy_hash,
    };
    let mut notes = Vec::new();
    match check_result_hash(response.verifier_result_hash.as_deref().unwrap_or_default(), &fields) {
        HashCheck::Right => {}
        HashCheck::Missing => {
            notes.push(
                "verifier_result_hash was absent or malformed and was computed here".to_owned(),
            );
        }
        HashCheck::Wrong => {
            let detail = "verifier_result_hash does not match the answer";
            return Err(ReplicaFailure::new(FailureCode::HashMismatch, detail));
        }
    }
    let result_hash = result_hash(&fields);
    Ok(AnswerContent {
        output: None,
        score: Some(response.score),
        reason_codes: response.reason_codes,
        evidence: jurat_core::round::candidate::Evidence::default(),
        result_hash: Some(result_hash),
        notes,
    })
}

/// The objection to an answer that names another provider or model than declared: replicas count as
/// independent by the declarations of their executors.
fn identity_mismatch(declared: &Independence, response: &VerifyResponse) -> Option<String> {
    let named = [
        ("provider_family", response.provider_family.as_deref(), &declared.provider_family),
        ("model_id", response.model_id.as_deref(), &declared.model_id),
    ];
    let (field, said, declared) =
        named.into_iter().find(|(_, said, declared)| said.is_some_and(|it| it != *declared))?;
    let said = excerpt(said.unwrap_or_default().as_bytes());
    Some(format!("the verdict gives `{said}` as `{field}`, but the capabilities say `{declared}`"))
}

fn is_html(reply: &HttpReply) -> bool {
    let content_type = reply.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|text| text.trim_start().to_ascii_lowercase().starts_with("text/html"))
}
