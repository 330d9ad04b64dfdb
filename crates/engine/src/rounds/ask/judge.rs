//! Asks a judge of a verifier, and reads its judgment as the answer of a replica.

use std::sync::Arc;

use jurat_core::{
    account::ledger::CostEstimate,
    id::AccountId,
    judge::{JudgeVerdict, Judgment, Question},
    policy::{Evaluation, EvaluationStatus},
    reason,
    round::replica::{
        AnswerContent, FailureCode, Label, ReplicaAnswer, ReplicaFailure, ReplicaVote,
    },
    verifier::{Effort, ModelRef, run::REASONING},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{ReplicaPlan, ReplicaReply};
use crate::{
    Engine,
    judges::{CostBasis, JudgeQuestion, JudgeResult, SeatBill, SharedImage, VerdictLookup},
    rounds::semantic::BoundVerifier,
};

/// The question for every judge of a round.
#[derive(Debug)]
pub(crate) struct JudgeBrief {
    pub(crate) question: Arc<Question>,
    /// Fetched once, by the replica that needs it first.
    pub(crate) image: Option<Arc<SharedImage>>,
    effort: Option<Effort>,
    pub(crate) commit_first: bool,
    is_fresh: bool,
    account: AccountId,
    sharer: AccountId,
    verifier_id: String,
}

impl JudgeBrief {
    pub(crate) fn new(
        bound: &BoundVerifier,
        question: Question,
        media_url: Option<String>,
    ) -> Self {
        Self {
            question: Arc::new(question),
            image: media_url.map(|url| Arc::new(SharedImage::new(url))),
            effort: bound.version.config.judge.effort,
            commit_first: bound.commit_first(),
            is_fresh: bound.is_fresh(),
            account: bound.account().clone(),
            sharer: bound.sharer(),
            verifier_id: bound.version.verifier.id.clone(),
        }
    }

    /// The question for one judge.
    pub(crate) fn question_for(
        &self,
        model: &ModelRef,
        deadline: Instant,
        bill: Option<SeatBill>,
    ) -> JudgeQuestion {
        JudgeQuestion {
            question: Arc::clone(&self.question),
            model: model.clone(),
            effort: self.effort,
            commit_first: self.commit_first,
            image: self.image.clone(),
            account: self.account.clone(),
            sharer: self.sharer.clone(),
            verifier_id: self.verifier_id.clone(),
            is_fresh: self.is_fresh,
            deadline,
            seat_bill: bill,
        }
    }

    fn cost_basis<'a>(&'a self, model: &'a ModelRef) -> CostBasis<'a> {
        CostBasis {
            question: &self.question,
            model,
            has_image: self.image.is_some(),
            commit_first: self.commit_first,
        }
    }
}

impl Engine {
    pub(super) async fn ask_judge(
        &self,
        errand: &Arc<ReplicaPlan>,
        index: usize,
        model: &ModelRef,
    ) -> ReplicaReply {
        let Some(judging) = &errand.checks.judge_brief else {
            return ReplicaAnswer::nothing(FailureCode::Internal, "there is nothing to judge")
                .into();
        };
        if let Some(own) = errand
            .checks
            .own_evaluation
            .as_ref()
            .filter(|own| own.status != EvaluationStatus::Passed)
        {
            return answer_without_judge(own).into();
        }
        let JudgeResult { outcome, usage, cost_micros } = match errand.verdict_lookups.get(index) {
            Some(VerdictLookup::Told(judged)) => JudgeResult::clone(judged),
            Some(VerdictLookup::Nothing(others)) => {
                let task =
                    judging.question_for(model, errand.deadline, Some(errand.seat_bill(index)));
                let judged = self.judge(&task).await;
                if let Some(others) = others {
                    others.publish(&judged.outcome);
                }
                judged
            }
            None => {
                self.judge(&judging.question_for(
                    model,
                    errand.deadline,
                    Some(errand.seat_bill(index)),
                ))
                .await
            }
        };
        let answer = match outcome {
            Ok(judgment) => judgment_answer(&judgment),
            Err(failure) => ReplicaAnswer::failed(failure, None),
        };
        ReplicaReply { answer, cost_micros, usage: Some(usage) }
    }

    /// The maximum cost of one judge's answer.
    pub(crate) fn judge_cost_ceiling(&self, judging: &JudgeBrief, model: &ModelRef) -> i64 {
        self.cost_ceiling_micros(&judging.cost_basis(model))
    }

    /// The estimated cost of one judge's answer.
    pub(crate) async fn judge_brief_estimate(
        &self,
        judging: &JudgeBrief,
        model: &ModelRef,
    ) -> CostEstimate {
        let judgment = judging.cost_basis(model);
        self.judge_estimate(&judgment, &judging.account, &judging.verifier_id).await
    }
}

/// The reason code of a verdict; `None` for a pass.
pub(super) fn reason_code(verdict: JudgeVerdict) -> Option<u16> {
    match verdict {
        JudgeVerdict::Met => None,
        JudgeVerdict::NotMet => Some(reason::CRITERION_NOT_MET),
        JudgeVerdict::CannotConfirm => Some(reason::CRITERION_UNCONFIRMED),
        JudgeVerdict::Conflicting => Some(reason::CRITERION_CONFLICTING),
    }
}

fn judgment_answer(judgment: &Judgment) -> ReplicaAnswer {
    let label = match judgment.verdict {
        JudgeVerdict::Met => Label::Valid,
        JudgeVerdict::NotMet => Label::Invalid,
        JudgeVerdict::CannotConfirm | JudgeVerdict::Conflicting => Label::Retry,
    };
    let said = AnswerContent {
        output: Some(judgment.document()),
        reason_codes: reason_code(judgment.verdict).into_iter().collect(),
        notes: if label == Label::Retry { vec![judgment.reasoning.clone()] } else { Vec::new() },
        ..AnswerContent::default()
    };
    match judgment.verdict {
        JudgeVerdict::Met | JudgeVerdict::NotMet => {
            ReplicaAnswer::Vote(ReplicaVote { label, said })
        }
        JudgeVerdict::CannotConfirm | JudgeVerdict::Conflicting => {
            ReplicaAnswer::Abstained { label, said }
        }
    }
}

/// The answer if no judge needs to be asked, because the candidate does not match its schema.
fn answer_without_judge(own: &Evaluation) -> ReplicaAnswer {
    let output: Value = json!({ REASONING: own.notes.join("; ") });
    let said = AnswerContent {
        output: Some(output),
        score: Some(own.score),
        reason_codes: own.reason_codes.clone(),
        notes: own.notes.clone(),
        ..AnswerContent::default()
    };
    match own.status {
        EvaluationStatus::Passed | EvaluationStatus::Failed => {
            ReplicaAnswer::Vote(ReplicaVote { label: Label::Invalid, said })
        }
        EvaluationStatus::Inconclusive => {
            let failure = ReplicaFailure::new(FailureCode::OutputUnchecked, own.notes.join("; "));
            ReplicaAnswer::failed(failure, Some(said))
        }
    }
}
