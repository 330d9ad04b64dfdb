//! Checks an executor's answer: by the policy, and by the judge if a verifier decides.

use std::sync::Arc;

use jurat_core::{
    account::ledger::CostEstimate,
    canonical::digest_json,
    judge::{JudgeVerdict, Judgment},
    policy::{Evaluation, EvaluationStatus},
    reason,
    round::{
        candidate::{Candidate, InlineEvidence},
        evidence::amend,
        replica::{FailureCode, JudgeUsage, ReplicaFailure},
    },
};
use jurat_guard::sandbox::SandboxError;
use serde_json::{Value, json};

use super::{ReplicaPlan, judge::reason_code};
use crate::{
    Engine, judges::JudgeResult, node::keyed_locks::KeyedLocks, rounds::semantic::BoundVerifier,
};

/// A verifier whose judge decides the answers of executors.
#[derive(Debug)]
pub(crate) struct AnswerReview {
    verifier: Arc<BoundVerifier>,
    /// The estimated cost of judging one answer.
    pub(crate) estimate: CostEstimate,
    /// One lock for each distinct answer, so that the judge is not asked about the same answer
    /// concurrently, and the second check finds the verdict of the first.
    locks: KeyedLocks<String>,
}

impl AnswerReview {
    pub(in crate::rounds) fn new(verifier: Arc<BoundVerifier>, estimate: CostEstimate) -> Self {
        Self { verifier, estimate, locks: KeyedLocks::default() }
    }
}

/// The result of checking an answer.
#[derive(Debug, Default)]
pub(super) struct ReviewResult {
    /// Why it is not a vote; `None` for a pass.
    pub(super) refused: Option<FailureCode>,
    pub(super) reason_codes: Vec<u16>,
    pub(super) notes: Vec<String>,
    /// The judgment, as evidence.
    pub(super) judgment: Option<InlineEvidence>,
    /// The cost and usage of the judge.
    pub(super) cost_micros: u64,
    pub(super) usage: Option<JudgeUsage>,
}

impl ReviewResult {
    fn refused(code: FailureCode, reason_code: Option<u16>, note: impl Into<String>) -> Self {
        Self {
            refused: Some(code),
            reason_codes: reason_code.into_iter().collect(),
            notes: vec![note.into()],
            ..Self::default()
        }
    }
}

impl From<Evaluation> for ReviewResult {
    fn from(verdict: Evaluation) -> Self {
        let refused = match verdict.status {
            EvaluationStatus::Passed => None,
            EvaluationStatus::Failed => Some(FailureCode::InvalidOutput),
            EvaluationStatus::Inconclusive => Some(FailureCode::OutputUnchecked),
        };
        let Evaluation { reason_codes, notes, .. } = verdict;
        Self { refused, reason_codes, notes, ..Self::default() }
    }
}

impl Engine {
    /// Checks without a judge come first, so that no judge is paid for an answer that fails anyway.
    pub(super) async fn review(
        &self,
        errand: &ReplicaPlan,
        index: usize,
        candidate: &Arc<Candidate>,
    ) -> ReviewResult {
        let checks = &errand.checks;
        let mut reviewed = ReviewResult::default();
        if let Some(policy) = &checks.own_policy {
            let (policy, schema) = (Arc::clone(policy), checks.schema.clone());
            let checking =
                self.check_candidate(&errand.account, policy, Arc::clone(candidate), schema);
            let Ok(verdict) = tokio::time::timeout_at(errand.deadline, checking).await else {
                let code = FailureCode::OutputUnchecked;
                return ReviewResult::refused(code, None, "the check did not finish in time");
            };
            reviewed = verdict.unwrap_or_else(SandboxError::evaluation).into();
        }
        match &checks.review {
            Some(review) if reviewed.refused.is_none() => {
                self.judge_answer(errand, index, review, &candidate.output).await
            }
            None if checks.own_policy.is_none() => {
                let code = FailureCode::OutputUnchecked;
                ReviewResult::refused(code, None, "the policy is not known here")
            }
            Some(_) | None => reviewed,
        }
    }

    /// Checks the references of an answer, if the policy asks for that.
    pub(super) async fn review_evidence(
        &self,
        errand: &ReplicaPlan,
        candidate: &Candidate,
        mut reviewed: ReviewResult,
    ) -> ReviewResult {
        let refs = &candidate.evidence.refs;
        let is_asked = errand.job.policy.fetches_evidence() && !refs.is_empty();
        if !is_asked || reviewed.refused.is_some() {
            return reviewed;
        }
        let findings = self.evidence_check(&errand.account, refs, errand.deadline).await;
        let amended = ReviewResult::from(amend(Evaluation::passed(Vec::new()), &findings));
        reviewed.refused = amended.refused;
        reviewed.reason_codes.extend(amended.reason_codes);
        reviewed.notes.extend(amended.notes);
        reviewed
    }

    async fn judge_answer(
        &self,
        errand: &ReplicaPlan,
        index: usize,
        review: &AnswerReview,
        output: &Value,
    ) -> ReviewResult {
        let judging = match self.judge_brief(&review.verifier, output) {
            Ok(judging) => judging,
            Err(unfit) => {
                let code = Some(reason::CRITERION_UNFIT);
                return ReviewResult::refused(FailureCode::InvalidOutput, code, unfit.to_string());
            }
        };
        let judge = review.verifier.judge();
        if review.estimate.most_micros < self.judge_cost_ceiling(&judging, judge) {
            return ReviewResult::refused(
                FailureCode::OutputUnchecked,
                Some(reason::OUTPUT_TOO_LARGE),
                "its judgment may cost more than the round has reserved; raise `policy_params.max_chars` to reserve more",
            );
        }
        let _lock = review.locks.of(digest_json(output)).acquire().await;
        let task = judging.question_for(judge, errand.deadline, Some(errand.seat_bill(index)));
        let judged = self.judge(&task).await;
        let JudgeResult { outcome, usage, cost_micros } = judged;
        let said = match outcome {
            Ok(judgment) => judged_result(&judgment, &judge.to_string()),
            Err(failure) => failed_result(failure),
        };
        ReviewResult { cost_micros, usage: Some(usage), ..said }
    }
}

fn judged_result(judgment: &Judgment, judge: &str) -> ReviewResult {
    let refused = match judgment.verdict {
        JudgeVerdict::Met => None,
        JudgeVerdict::NotMet => Some(FailureCode::InvalidOutput),
        JudgeVerdict::CannotConfirm | JudgeVerdict::Conflicting => {
            Some(FailureCode::OutputUnchecked)
        }
    };
    let evidence = json!({ "kind": "judgment", "judge": judge, "judgment": judgment.document() });
    ReviewResult {
        refused,
        reason_codes: reason_code(judgment.verdict).into_iter().collect(),
        notes: refused.map(|_| judgment.reasoning.clone()).into_iter().collect(),
        judgment: Some(InlineEvidence {
            mime: "application/json".to_owned(),
            content: evidence.to_string(),
        }),
        ..ReviewResult::default()
    }
}

/// A failed judge says nothing about the answer, and nothing about the executor.
fn failed_result(failure: ReplicaFailure) -> ReviewResult {
    let is_of_judge = matches!(
        failure.code,
        FailureCode::JudgeUnavailable
            | FailureCode::JudgeUnreadable
            | FailureCode::MediaUnavailable
            | FailureCode::Internal
    );
    // If the deadline passed while the judge had the answer, the executor did not miss it.
    let code = if is_of_judge { failure.code } else { FailureCode::OutputUnchecked };
    ReviewResult::refused(code, Some(reason::JUDGE_FAILED), failure.detail)
}
