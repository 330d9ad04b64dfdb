//! Asks a judge of a verifier, and reads what it said as the answer of a replica.

use std::sync::Arc;

use jurat_core::{
    id::AccountId,
    judge::{JudgeVerdict, Judgment, Question},
    ledger::Estimate,
    policy::{Evaluation, Status},
    reason,
    replica::{Answer, Failure, FailureCode, Label, Said, Vote},
    run::REASONING,
    verifier::{Effort, ModelRef},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Asked, Errand};
use crate::{
    Engine,
    judge::{AtHand, Bill, JudgeTask, Judged, Reckoned, SharedImage},
    semantic::Bound,
};

/// What every judge of a round is asked.
#[derive(Debug)]
pub(crate) struct Judging {
    pub(crate) question: Arc<Question>,
    /// Fetched once, whoever needs it first.
    pub(crate) image: Option<Arc<SharedImage>>,
    effort: Option<Effort>,
    pub(crate) commit_first: bool,
    is_fresh: bool,
    account: AccountId,
    sharer: AccountId,
    verifier_id: String,
}

impl Judging {
    pub(crate) fn new(bound: &Bound, question: Question, media_url: Option<String>) -> Self {
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

    /// The same for one judge.
    pub(crate) fn task(
        &self,
        model: &ModelRef,
        deadline: Instant,
        bill: Option<Bill>,
    ) -> JudgeTask {
        JudgeTask {
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
            bill,
        }
    }

    fn reckoned<'a>(&'a self, model: &'a ModelRef) -> Reckoned<'a> {
        Reckoned {
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
        errand: &Arc<Errand>,
        index: usize,
        model: &ModelRef,
    ) -> Asked {
        let Some(judging) = &errand.checks.judging else {
            return Answer::nothing(FailureCode::Internal, "there is nothing to judge").into();
        };
        if let Some(own) = errand.checks.own.as_ref().filter(|own| own.status != Status::Passed) {
            return unjudged(own).into();
        }
        let Judged { outcome, usage, cost_micros } = match errand.at_hand.get(index) {
            Some(AtHand::Told(judged)) => Judged::clone(judged),
            Some(AtHand::Nothing(others)) => {
                let task = judging.task(model, errand.deadline, Some(errand.bill(index)));
                let judged = self.judge(&task).await;
                if let Some(others) = others {
                    others.tell(&judged.outcome);
                }
                judged
            }
            None => {
                self.judge(&judging.task(model, errand.deadline, Some(errand.bill(index)))).await
            }
        };
        let answer = match outcome {
            Ok(judgment) => answer(&judgment),
            Err(failure) => Answer::failed(failure, None),
        };
        Asked { answer, cost_micros, usage: Some(usage) }
    }

    /// The most that one judge's answer can cost.
    pub(crate) fn judge_bound(&self, judging: &Judging, model: &ModelRef) -> i64 {
        self.judge_bound_micros(&judging.reckoned(model))
    }

    /// What one judge's answer may cost.
    pub(crate) async fn judging_estimate(&self, judging: &Judging, model: &ModelRef) -> Estimate {
        let judgment = judging.reckoned(model);
        self.judge_estimate(&judgment, &judging.account, &judging.verifier_id).await
    }
}

/// The reason code of a verdict; none for a pass.
pub(super) fn reason_code(verdict: JudgeVerdict) -> Option<u16> {
    match verdict {
        JudgeVerdict::Met => None,
        JudgeVerdict::NotMet => Some(reason::CRITERION_NOT_MET),
        JudgeVerdict::CannotConfirm => Some(reason::CRITERION_UNCONFIRMED),
        JudgeVerdict::Conflicting => Some(reason::CRITERION_CONFLICTING),
    }
}

fn answer(judgment: &Judgment) -> Answer {
    let label = match judgment.verdict {
        JudgeVerdict::Met => Label::Valid,
        JudgeVerdict::NotMet => Label::Invalid,
        JudgeVerdict::CannotConfirm | JudgeVerdict::Conflicting => Label::Retry,
    };
    let said = Said {
        output: Some(judgment.document()),
        reason_codes: reason_code(judgment.verdict).into_iter().collect(),
        notes: if label == Label::Retry { vec![judgment.reasoning.clone()] } else { Vec::new() },
        ..Said::default()
    };
    match judgment.verdict {
        JudgeVerdict::Met | JudgeVerdict::NotMet => Answer::Vote(Vote { label, said }),
        JudgeVerdict::CannotConfirm | JudgeVerdict::Conflicting => {
            Answer::Abstained { label, said }
        }
    }
}

/// What stands for a judge that need not be asked: the candidate does not match its schema.
fn unjudged(own: &Evaluation) -> Answer {
    let output: Value = json!({ REASONING: own.notes.join("; ") });
    let said = Said {
        output: Some(output),
        score: Some(own.score),
        reason_codes: own.reason_codes.clone(),
        notes: own.notes.clone(),
        ..Said::default()
    };
    match own.status {
        Status::Passed | Status::Failed => Answer::Vote(Vote { label: Label::Invalid, said }),
        Status::Inconclusive => {
            let failure = Failure::new(FailureCode::OutputUnchecked, own.notes.join("; "));
            Answer::failed(failure, Some(said))
        }
    }
}
