//! Evaluates a candidate on the node itself, under a policy that needs no judge.

use jurat_core::{
    policy::EvaluationStatus,
    round::replica::{AnswerContent, FailureCode, Label, ReplicaAnswer, ReplicaVote},
};

use super::RoundChecks;

pub(super) fn node_answer(checks: &RoundChecks) -> ReplicaAnswer {
    let Some(own) = &checks.own_evaluation else {
        return ReplicaAnswer::nothing(FailureCode::Internal, "the node has decided nothing");
    };
    let said = AnswerContent {
        score: Some(own.score),
        reason_codes: own.reason_codes.clone(),
        notes: own.notes.clone(),
        ..AnswerContent::default()
    };
    match own.status {
        EvaluationStatus::Passed => ReplicaAnswer::Vote(ReplicaVote { label: Label::Valid, said }),
        EvaluationStatus::Failed => {
            ReplicaAnswer::Vote(ReplicaVote { label: Label::Invalid, said })
        }
        EvaluationStatus::Inconclusive => ReplicaAnswer::Abstained { label: Label::Retry, said },
    }
}
