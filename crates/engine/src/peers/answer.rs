//! The answer to a job of another node, made of the round that did it.

use bytes::Bytes;
use http::StatusCode;
use jurat_core::{
    peer::book::{BookSide, PeerBooking},
    round::{
        Round, RoundEnding,
        job::RelayedCall,
        replica::{AnswerContent, FailureCode, Label, Replica, ReplicaAnswer},
    },
};
use jurat_wire::{
    executor::{ExecuteResponse, VerificationStatus, VerifyResponse},
    mesh::{
        AnswerOutcome, JobAnswer, JobCall, JobRequest, NodeReply, Route, ServedBy, body_digest,
    },
};
use serde_json::json;

/// The booking of a job that was done for another node. A job without an answer is not booked.
pub(crate) fn earned(relayed: &RelayedCall, replicas: &[Replica]) -> Option<PeerBooking> {
    let replica = replicas.iter().find(|it| it.is_counted() && is_answered(&it.answer))?;
    Some(PeerBooking {
        peer: relayed.origin.clone(),
        side: BookSide::Earned,
        origin: relayed.origin.clone(),
        execution_id: relayed.execution_id.clone(),
        price_micros: price(replica, relayed.most_price_micros),
    })
}

/// The price may have been raised since the job was accepted.
fn price(replica: &Replica, most_micros: u64) -> u64 {
    replica.cost_micros.min(most_micros)
}

/// Whether the executor answered as its contract says, even if it declined to decide.
const fn is_answered(answer: &ReplicaAnswer) -> bool {
    matches!(answer, ReplicaAnswer::Vote(_) | ReplicaAnswer::Abstained { .. })
}

/// The answer with its body.
pub(super) fn job_answer(
    route: Route,
    request: &str,
    job: &JobRequest,
    round: &Round,
) -> (NodeReply, Bytes) {
    let closing = round.closing.as_ref();
    let replica = closing.and_then(|it| it.replicas.iter().find(|replica| replica.is_counted()));
    let (outcome, body) = match (closing.map(|it| it.ending), replica) {
        (Some(RoundEnding::Closed), Some(replica)) => outcome_of(job.call, replica),
        (Some(RoundEnding::Cancelled), _) => failed(FailureCode::Cancelled, "it was cancelled"),
        _ => failed(FailureCode::NodeStopped, "the node stopped before there was an answer"),
    };
    let is_paid = matches!(outcome, AnswerOutcome::Answered { .. });
    let paid = replica.filter(|_| is_paid);
    let served_by = replica.zip(closing).map(|(replica, closing)| ServedBy {
        provider_family: replica.independence.provider_family.clone(),
        model_id: replica.independence.model_id.clone(),
        round: round.open.id.to_string(),
        receipt_id: closing.receipt_id.clone(),
    });
    let answer = JobAnswer {
        route,
        request: request.to_owned(),
        round: job.round.clone(),
        replica: job.replica,
        execution_id: job.execution_id.clone(),
        outcome,
        price_micros: paid.map_or(0, |replica| price(replica, job.most_price_micros)),
        served_by,
        body_digest: body_digest(&body),
    };
    (NodeReply::Answer(answer), body.into())
}

fn failed(code: FailureCode, detail: &str) -> (AnswerOutcome, Vec<u8>) {
    let (code, detail) = (code.to_string(), detail.to_owned());
    (AnswerOutcome::Failed { code, detail }, Vec::new())
}

fn outcome_of(call: JobCall, replica: &Replica) -> (AnswerOutcome, Vec<u8>) {
    let answered = |status: StatusCode, body: Vec<u8>| {
        (AnswerOutcome::Answered { status: status.as_u16() }, body)
    };
    match &replica.answer {
        ReplicaAnswer::Nothing { failure, .. } => failed(failure.code, &failure.detail),
        ReplicaAnswer::Abstained { label: Label::NeedsSpec, said } => {
            let body = json!({ "error": said.notes.join("; ") });
            answered(StatusCode::BAD_REQUEST, body.to_string().into_bytes())
        }
        ReplicaAnswer::Vote(vote) => match call {
            JobCall::Execute => answered(StatusCode::OK, execute_body(&vote.said)),
            JobCall::Verify => {
                let is_passed = vote.label == Label::Valid;
                answered(StatusCode::OK, verify_body(replica, &vote.said, Some(is_passed)))
            }
        },
        ReplicaAnswer::Abstained { said, .. } => {
            answered(StatusCode::OK, verify_body(replica, said, None))
        }
    }
}

fn execute_body(said: &AnswerContent) -> Vec<u8> {
    let output = said.output.clone().unwrap_or_default();
    let response = ExecuteResponse::new(output, said.evidence.clone());
    serde_json::to_vec(&response).unwrap_or_default()
}

/// `passed` is `None` if the executor could not decide.
fn verify_body(replica: &Replica, said: &AnswerContent, passed: Option<bool>) -> Vec<u8> {
    let status = match passed {
        Some(true) => VerificationStatus::Passed,
        Some(false) => VerificationStatus::Failed,
        None => VerificationStatus::Inconclusive,
    };
    let response = VerifyResponse {
        verification_status: Some(status),
        passed: passed.unwrap_or(false),
        score: said.score.unwrap_or_default(),
        reason_codes: said.reason_codes.clone(),
        verifier_result_hash: said.result_hash.clone(),
        provider_family: Some(replica.independence.provider_family.clone()),
        model_id: Some(replica.independence.model_id.clone()),
    };
    serde_json::to_vec(&response).unwrap_or_default()
}
