//! What the one answer of a step's round amounts to.

use jurat_core::{
    candidate::Candidate,
    canonical::digest_json,
    evidence::{self, Checked},
    policy::Status,
    replica::{Answer, Failure, FailureCode, Label, Replica, Said},
    round::{Closing, Ending, Round},
    select::SelectError,
    session::BUILTIN_LANE,
};
use jurat_wire::executor::read_task_contract;
use serde_json::json;

use super::{StepBy, StepDone, StepOrder, StepOutcome, StepVerdict, StepWork};
use crate::EngineError;

/// Why a verifier that refuses the policy has no verdict.
const POLICY_UNSUPPORTED: &str = "policy_unsupported";

pub(super) fn read(order: &StepOrder, round: Round) -> Result<StepDone, EngineError> {
    let Some(closing) = round.closing else {
        return Err(EngineError::Bug("the round of a step has not ended"));
    };
    let Closing { ending, replicas, receipt_id, .. } = closing;
    let [replica] = <[Replica; 1]>::try_from(replicas)
        .map_err(|_| EngineError::Bug("the round of a step has not one seat"))?;
    let Replica { executor, independence, reliability, latency_ms, cost_micros, answer, .. } =
        replica;
    let policy_hash = &round.open.policy_hash;
    let checked = answer.said().and_then(evidence::checked);
    let available = checked.as_ref().map(Checked::available).unwrap_or_default();
    let evidence = checked.map(|checked| checked.findings).unwrap_or_default();
    let outcome = match (ending, answer) {
        (Ending::Closed, answer) => outcome(order, policy_hash, &executor, answer),
        // What was said before the round was stopped decides nothing.
        (Ending::Expired | Ending::Cancelled, answer) => {
            let failure = answer.failure().cloned().unwrap_or_else(|| {
                Failure::new(FailureCode::Cancelled, "the round was stopped before it was decided")
            });
            failed(failure)
        }
    };
    Ok(StepDone {
        round_id: Some(round.open.id),
        receipt_id: Some(receipt_id),
        executor,
        independence: independence.to_string(),
        reliability,
        outcome,
        evidence,
        available,
        latency_ms,
        cost_micros,
    })
}

/// What an earlier round of the same step came to; nothing where its answer cannot be used.
pub(super) fn before(order: &StepOrder, round: Round) -> Result<Option<StepDone>, EngineError> {
    let done = read(order, round)?;
    Ok((!matches!(done.outcome, StepOutcome::Failed { .. })).then_some(done))
}

/// A step that no round was opened for. What this node cannot do is an error.
pub(super) fn refused(order: &StepOrder, error: EngineError) -> Result<StepDone, EngineError> {
    let is_outcome = matches!(
        error,
        EngineError::Select(_)
            | EngineError::Policy(_)
            | EngineError::Schema(_)
            | EngineError::TooMuchWork(_)
            | EngineError::NotSupported { .. }
    );
    if !is_outcome {
        return Err(error);
    }
    let detail = if let EngineError::Select(SelectError::Unavailable { problems, .. }) = &error {
        problems.iter().map(|it| it.problem.as_str()).collect::<Vec<_>>().join("; ")
    } else {
        error.to_string()
    };
    let executor = match &order.by {
        StepBy::Executor { name, .. } => name.clone(),
        StepBy::Node => BUILTIN_LANE.to_owned(),
    };
    Ok(StepDone {
        round_id: None,
        receipt_id: None,
        independence: executor.clone(),
        executor,
        reliability: 0.0,
        outcome: StepOutcome::Failed { code: error.code().as_str(), detail },
        evidence: Vec::new(),
        available: Vec::new(),
        latency_ms: 0,
        cost_micros: 0,
    })
}

fn outcome(order: &StepOrder, policy_hash: &str, executor: &str, answer: Answer) -> StepOutcome {
    let (label, said) = match answer {
        Answer::Vote(vote) => (vote.label, vote.said),
        Answer::Abstained { label, said } => (label, said),
        Answer::Nothing { failure, .. } => return failed(failure),
    };
    match &order.work {
        StepWork::Propose { .. } => proposed(order, said),
        StepWork::Verify { candidate, .. } => {
            verdict((candidate, policy_hash, executor), label, said)
        }
    }
}

fn proposed(order: &StepOrder, said: Said) -> StepOutcome {
    let Some(output) = said.output else {
        return failed(Failure::new(FailureCode::Internal, "the proposal has no output"));
    };
    // It was read when the job was made.
    let terms = read_task_contract(&order.contract).map(|it| it.evidence_policy.terms());
    if let Some(fault) = terms.ok().and_then(|terms| terms.fault(&said.evidence)) {
        return failed(Failure::new(FailureCode::InvalidOutput, fault));
    }
    StepOutcome::Candidate(Candidate {
        candidate_id: format!("cand-{}", order.execution_id),
        execution_id: order.execution_id.clone(),
        output,
        evidence: said.evidence,
    })
}

fn verdict(
    (candidate, policy_hash, executor): (&Candidate, &str, &str),
    label: Label,
    said: Said,
) -> StepOutcome {
    if label == Label::NeedsSpec {
        // Whoever cannot decide under the policy is no verifier of it, and somebody else is asked.
        let said = said.notes.first().map_or("no reason given", String::as_str);
        let detail = format!("`{executor}` refuses the policy binding: {said}");
        return StepOutcome::Failed { code: POLICY_UNSUPPORTED, detail };
    }
    let Some(status) = status_of(label) else {
        let detail = format!("`{label}` is not a verdict on a candidate");
        return failed(Failure::new(FailureCode::Internal, detail));
    };
    let no_doubt = if status == Status::Inconclusive { 0.0 } else { 1.0 };
    let score = said.score.unwrap_or(no_doubt);
    // What this node found out about evidence is no part of what the verifier answered.
    let before = evidence::checked(&said);
    let (said_label, said_codes) = before
        .as_ref()
        .map_or((label, &said.reason_codes), |before| (before.label, &before.reason_codes));
    let result_hash = digest_json(&json!({
        "candidate_id": candidate.candidate_id,
        "execution_id": candidate.execution_id,
        "policy_hash": policy_hash,
        "verifier": executor,
        "status": status_of(said_label).map(Status::as_str),
        "score": said.score,
        "reason_codes": said_codes,
        "verifier_result_hash": said.result_hash,
    }));
    let Said { reason_codes, notes, .. } = said;
    StepOutcome::Verdict(StepVerdict { status, score, reason_codes, result_hash, notes })
}

const fn status_of(label: Label) -> Option<Status> {
    match label {
        Label::Valid => Some(Status::Passed),
        Label::Invalid => Some(Status::Failed),
        Label::Retry => Some(Status::Inconclusive),
        Label::NeedsSpec
        | Label::True
        | Label::False
        | Label::Unsure
        | Label::Ok
        | Label::InvalidOutput
        | Label::Timeout
        | Label::Error
        | Label::Cancelled => None,
    }
}

fn failed(failure: Failure) -> StepOutcome {
    StepOutcome::Failed { code: failure.code.as_str(), detail: failure.detail }
}
