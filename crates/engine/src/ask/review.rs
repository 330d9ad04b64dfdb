//! Checks what an executor answered: by the policy, and by the judge of a verifier where one decides.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use jurat_core::{
    candidate::{Candidate, InlineEvidence},
    canonical::digest_json,
    evidence::amend,
    judge::{JudgeVerdict, Judgment},
    ledger::Estimate,
    policy::{Evaluation, Status},
    reason,
    replica::{Failure, FailureCode, Usage},
};
use jurat_guard::bounded::NotDone;
use serde_json::{Value, json};

use super::{Errand, judge::reason_code};
use crate::{Engine, judge::Judged, semantic::Bound};

/// A verifier whose judge decides the answers of executors.
#[derive(Debug)]
pub(crate) struct Review {
    verifier: Arc<Bound>,
    /// What the judgment of one answer may cost.
    pub(crate) estimate: Estimate,
    /// One lock for each answer that is different, so that the judge is not asked twice at once
    /// about the same and the second one finds the verdict of the first.
    turns: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Review {
    pub(super) fn new(verifier: Arc<Bound>, estimate: Estimate) -> Self {
        Self { verifier, estimate, turns: Mutex::default() }
    }

    fn turn(&self, output: &Value) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(digest_json(output)).or_default())
    }
}

/// What the check of an answer came to.
#[derive(Debug, Default)]
pub(super) struct Reviewed {
    /// Why it is no vote; `None` for a pass.
    pub(super) refused: Option<FailureCode>,
    pub(super) reason_codes: Vec<u16>,
    pub(super) notes: Vec<String>,
    /// What the judge said, as evidence.
    pub(super) judgment: Option<InlineEvidence>,
    /// What the judge cost and used.
    pub(super) cost_micros: u64,
    pub(super) usage: Option<Usage>,
}

impl Reviewed {
    fn refused(code: FailureCode, reason_code: Option<u16>, note: impl Into<String>) -> Self {
        Self {
            refused: Some(code),
            reason_codes: reason_code.into_iter().collect(),
            notes: vec![note.into()],
            ..Self::default()
        }
    }
}

impl From<Evaluation> for Reviewed {
    fn from(verdict: Evaluation) -> Self {
        let refused = match verdict.status {
            Status::Passed => None,
            Status::Failed => Some(FailureCode::InvalidOutput),
            Status::Inconclusive => Some(FailureCode::OutputUnchecked),
        };
        let Evaluation { reason_codes, notes, .. } = verdict;
        Self { refused, reason_codes, notes, ..Self::default() }
    }
}

impl Engine {
    /// What needs no judge comes first, so that nobody is paid for an answer that cannot stand.
    pub(super) async fn review(
        &self,
        errand: &Errand,
        index: usize,
        candidate: &Arc<Candidate>,
    ) -> Reviewed {
        let checks = &errand.checks;
        let mut reviewed = Reviewed::default();
        if let Some(policy) = &checks.ours {
            let (policy, schema) = (Arc::clone(policy), checks.schema.clone());
            let checking = self.checked(&errand.account, policy, Arc::clone(candidate), schema);
            let Ok(verdict) = tokio::time::timeout_at(errand.deadline, checking).await else {
                let code = FailureCode::OutputUnchecked;
                return Reviewed::refused(code, None, "the check did not finish in time");
            };
            reviewed = verdict.unwrap_or_else(NotDone::evaluation).into();
        }
        match &checks.review {
            Some(review) if reviewed.refused.is_none() => {
                self.judge_answer((errand, index), review, &candidate.output).await
            }
            None if checks.ours.is_none() => {
                let code = FailureCode::OutputUnchecked;
                Reviewed::refused(code, None, "the policy is not known here")
            }
            Some(_) | None => reviewed,
        }
    }

    /// What an answer refers to must be what it says, where the policy asks for that.
    pub(super) async fn review_evidence(
        &self,
        errand: &Errand,
        candidate: &Candidate,
        mut reviewed: Reviewed,
    ) -> Reviewed {
        let refs = &candidate.evidence.refs;
        let is_asked = errand.job.policy.fetches_evidence() && !refs.is_empty();
        if !is_asked || reviewed.refused.is_some() {
            return reviewed;
        }
        let findings = self.evidence_check(&errand.account, refs, errand.deadline).await;
        let amended = Reviewed::from(amend(Evaluation::passed(Vec::new()), &findings));
        reviewed.refused = amended.refused;
        reviewed.reason_codes.extend(amended.reason_codes);
        reviewed.notes.extend(amended.notes);
        reviewed
    }

    async fn judge_answer(
        &self,
        (errand, index): (&Errand, usize),
        review: &Review,
        output: &Value,
    ) -> Reviewed {
        let judging = match self.judging(&review.verifier, output) {
            Ok(judging) => judging,
            Err(unfit) => {
                let code = Some(reason::CRITERION_UNFIT);
                return Reviewed::refused(FailureCode::InvalidOutput, code, unfit.to_string());
            }
        };
        let judge = review.verifier.judge();
        if review.estimate.most_micros < self.judge_bound(&judging, judge) {
            return Reviewed::refused(
                FailureCode::OutputUnchecked,
                Some(reason::OUTPUT_TOO_LARGE),
                "its judgment may cost more than the round has reserved; raise `policy_params.max_chars` to reserve more",
            );
        }
        let turn = review.turn(output);
        let _turn = turn.lock().await;
        let task = judging.task(judge, errand.deadline, Some(errand.bill(index)));
        let judged = self.judge(&task).await;
        let Judged { outcome, usage, cost_micros } = judged;
        let said = match outcome {
            Ok(judgment) => decided(&judgment, &judge.to_string()),
            Err(failure) => undecided(failure),
        };
        Reviewed { cost_micros, usage: Some(usage), ..said }
    }
}

fn decided(judgment: &Judgment, judge: &str) -> Reviewed {
    let refused = match judgment.verdict {
        JudgeVerdict::Met => None,
        JudgeVerdict::NotMet => Some(FailureCode::InvalidOutput),
        JudgeVerdict::CannotConfirm | JudgeVerdict::Conflicting => {
            Some(FailureCode::OutputUnchecked)
        }
    };
    let evidence = json!({ "kind": "judgment", "judge": judge, "judgment": judgment.document() });
    Reviewed {
        refused,
        reason_codes: reason_code(judgment.verdict).into_iter().collect(),
        notes: refused.map(|_| judgment.reasoning.clone()).into_iter().collect(),
        judgment: Some(InlineEvidence {
            mime: "application/json".to_owned(),
            content: evidence.to_string(),
        }),
        ..Reviewed::default()
    }
}

/// A judge that fails says nothing about the answer, and nothing about the executor either.
fn undecided(failure: Failure) -> Reviewed {
    let is_of_judge = matches!(
        failure.code,
        FailureCode::JudgeUnavailable
            | FailureCode::JudgeUnreadable
            | FailureCode::MediaUnavailable
            | FailureCode::Internal
    );
    // A deadline that passed while the judge had the answer is none that the executor missed.
    let code = if is_of_judge { failure.code } else { FailureCode::OutputUnchecked };
    Reviewed::refused(code, Some(reason::JUDGE_FAILED), failure.detail)
}
