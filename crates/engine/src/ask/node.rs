//! What the node itself says of a candidate, under a policy that needs nobody's judgement.

use jurat_core::{
    policy::Status,
    replica::{Answer, FailureCode, Label, Said, Vote},
};

use super::Checks;

pub(super) fn answer(checks: &Checks) -> Answer {
    let Some(own) = &checks.own else {
        return Answer::nothing(FailureCode::Internal, "the node has decided nothing");
    };
    let said = Said {
        score: Some(own.score),
        reason_codes: own.reason_codes.clone(),
        notes: own.notes.clone(),
        ..Said::default()
    };
    match own.status {
        Status::Passed => Answer::Vote(Vote { label: Label::Valid, said }),
        Status::Failed => Answer::Vote(Vote { label: Label::Invalid, said }),
        Status::Inconclusive => Answer::Abstained { label: Label::Retry, said },
    }
}
