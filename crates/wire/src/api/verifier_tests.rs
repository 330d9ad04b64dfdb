//! Measurements of verifiers, in requests and replies.

mod reply;
mod request;
mod scores;

pub use self::{
    reply::{CaseBody, CaseError, CaseEvent, ComparedBody, FlipBody, ReportBody},
    request::{
        AttackVerifierDraft, AttackVerifierRequest, CaseOrder, CaseSource, LabelledCase,
        MeasureOrder, TestVerifierDraft, TestVerifierRequest, decode_attack, decode_test,
    },
    scores::{FamilyScores, MeasuredRate, MeasurementScores},
};
