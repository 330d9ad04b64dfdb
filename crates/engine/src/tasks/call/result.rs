//! Reads the result of a task call from its round.

use jurat_core::{
    canonical::digest_json,
    code::ProblemCode,
    executor::session::BUILTIN_SESSION,
    policy::EvaluationStatus,
    round::{
        Round, RoundClosing, RoundEnding,
        candidate::Candidate,
        evidence::{self, EvidenceCheck},
        replica::{AnswerContent, FailureCode, Label, Replica, ReplicaAnswer, ReplicaFailure},
        select::SelectError,
    },
};
use jurat_wire::executor::read_task_contract;
use serde_json::json;

use super::{
    TaskCallFailure, TaskCallOrder, TaskCallOutcome, TaskCallResult, TaskCallTarget,
    TaskCallVerdict, TaskCallWork,
};
use crate::EngineError;

pub(super) fn task_call_result(
    order: &TaskCallOrder,
    round: Round,
) -> Result<TaskCallResult, EngineError> {
    let Some(closing) = round.closing else {
        return Err(EngineError::Bug("the round of a step has not ended"));
    };
    let RoundClosing { ending, replicas, receipt_id, .. } = closing;
    let [replica] = <[Replica; 1]>::try_from(replicas)
        .map_err(|_| EngineError::Bug("the round of a step has not one seat"))?;
    let Replica { executor, independence, reliability, latency_ms, cost_micros, answer, .. } =
        replica;
    let policy_hash = &round.open.policy_hash;
    let checked = answer.content().and_then(evidence::evidence_check);
    let available = checked.as_ref().map(EvidenceCheck::available).unwrap_or_default();
    let evidence = checked.map(|checked| checked.findings).unwrap_or_default();
    let outcome = match (ending, answer) {
        (RoundEnding::Closed, answer) => answer_outcome(order, policy_hash, &executor, answer),
        // Answers that came before the round was stopped decide nothing.
        (RoundEnding::Expired | RoundEnding::Cancelled, answer) => {
            let failure = answer.failure().cloned().unwrap_or_else(|| {
                ReplicaFailure::new(
                    FailureCode::Cancelled,
                    "the round was stopped before it was decided",
                )
            });
            failed_outcome(failure)
        }
    };
    Ok(TaskCallResult {
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

/// The result of an earlier round of the same call; `None` if its answer cannot be used.
pub(super) fn earlier_result(
    order: &TaskCallOrder,
    round: Round,
) -> Result<Option<TaskCallResult>, EngineError> {
    let done = task_call_result(order, round)?;
    Ok((!matches!(done.outcome, TaskCallOutcome::Failed { .. })).then_some(done))
}

/// A call without a round. A fault of this node is an error.
pub(super) fn refused_result(
    order: &TaskCallOrder,
    error: EngineError,
) -> Result<TaskCallResult, EngineError> {
    let code = error.code();
    let is_outcome = matches!(error, EngineError::Select(_))
        || matches!(
            code,
            ProblemCode::PolicyInvalid | ProblemCode::SchemaRefused | ProblemCode::NotSupported
        );
    if !is_outcome {
        return Err(error);
    }
    let detail = if let EngineError::Select(SelectError::Unavailable { problems, .. }) = &error {
        problems.iter().map(|it| it.problem.as_str()).collect::<Vec<_>>().join("; ")
    } else {
        error.to_string()
    };
    let executor = match &order.target {
        TaskCallTarget::Executor { name, .. } => name.clone(),
        TaskCallTarget::Node => BUILTIN_SESSION.to_owned(),
    };
    Ok(TaskCallResult {
        round_id: None,
        receipt_id: None,
        independence: executor.clone(),
        executor,
        reliability: 0.0,
        outcome: TaskCallOutcome::Failed { code: TaskCallFailure::Refused(code), detail },
        evidence: Vec::new(),
        available: Vec::new(),
        latency_ms: 0,
        cost_micros: 0,
    })
}

fn answer_outcome(
    order: &TaskCallOrder,
    policy_hash: &str,
    executor: &str,
    answer: ReplicaAnswer,
) -> TaskCallOutcome {
    let (label, said) = match answer {
        ReplicaAnswer::Vote(vote) => (vote.label, vote.said),
        ReplicaAnswer::Abstained { label, said } => (label, said),
        ReplicaAnswer::Nothing { failure, .. } => return failed_outcome(failure),
    };
    match &order.work {
        TaskCallWork::Propose { .. } => proposal_outcome(order, said),
        TaskCallWork::Vote { candidate, .. } => {
            vote_outcome(candidate, policy_hash, executor, label, said)
        }
    }
}

fn proposal_outcome(order: &TaskCallOrder, said: AnswerContent) -> TaskCallOutcome {
    let Some(output) = said.output else {
        return failed_outcome(ReplicaFailure::new(
            FailureCode::Internal,
            "the proposal has no output",
        ));
    };
    // It was read when the job was built.
    let terms = read_task_contract(&order.contract).map(|it| it.evidence_policy.terms());
    if let Some(fault) = terms.ok().and_then(|terms| terms.fault(&said.evidence)) {
        return failed_outcome(ReplicaFailure::new(FailureCode::InvalidOutput, fault));
    }
    TaskCallOutcome::Candidate(Candidate {
        candidate_id: format!("cand-{}", order.execution_id),
        execution_id: order.execution_id.clone(),
        output,
        evidence: said.evidence,
    })
}

fn vote_outcome(
    candidate: &Candidate,
    policy_hash: &str,
    executor: &str,
    label: Label,
    said: AnswerContent,
) -> TaskCallOutcome {
    if label == Label::NeedsSpec {
        // An executor that cannot decide under the policy is not a voter, and another one is asked.
        let said = said.notes.first().map_or("no reason given", String::as_str);
        let detail = format!("`{executor}` refuses the policy binding: {said}");
        return TaskCallOutcome::Failed { code: TaskCallFailure::PolicyUnsupported, detail };
    }
    let Some(status) = status_of(label) else {
        let detail = format!("`{label}` is not a verdict on a candidate");
        return failed_outcome(ReplicaFailure::new(FailureCode::Internal, detail));
    };
    let no_doubt = if status == EvaluationStatus::Inconclusive { 0.0 } else { 1.0 };
    let score = said.score.unwrap_or(no_doubt);
    // This node's findings about evidence are not part of the voter's answer.
    let before = evidence::evidence_check(&said);
    let (said_label, said_codes) = before
        .as_ref()
        .map_or((label, &said.reason_codes), |before| (before.label, &before.reason_codes));
    let result_hash = digest_json(&json!({
        "candidate_id": candidate.candidate_id,
        "execution_id": candidate.execution_id,
        "policy_hash": policy_hash,
        "verifier": executor,
        "status": status_of(said_label).map(EvaluationStatus::as_str),
        "score": said.score,
        "reason_codes": said_codes,
        "verifier_result_hash": said.result_hash,
    }));
    let AnswerContent { reason_codes, notes, .. } = said;
    TaskCallOutcome::Verdict(TaskCallVerdict { status, score, reason_codes, result_hash, notes })
}

const fn status_of(label: Label) -> Option<EvaluationStatus> {
    match label {
        Label::Valid => Some(EvaluationStatus::Passed),
        Label::Invalid => Some(EvaluationStatus::Failed),
        Label::Retry => Some(EvaluationStatus::Inconclusive),
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

fn failed_outcome(failure: ReplicaFailure) -> TaskCallOutcome {
    let code = TaskCallFailure::Replica(failure.code);
    TaskCallOutcome::Failed { code, detail: failure.detail }
}
