//! Disputes of final decisions.

use jurat_core::{code::ProblemCode, task::TaskComplaint};
use serde_json::Value;

use crate::{
    api::kit::request::{
        self, FieldFault, request, text, values,
        values::{PlainText, Whole, text_of},
    },
    problem::Problem,
};

/// The largest number that can be stored.
const LARGEST: u64 = i64::MAX as u64;
/// Number of hex digits of an Ed25519 signature.
const SIGNATURE_DIGITS: usize = 128;

request! {
    /// A dispute of a decision.
    pub strict struct FeedbackRequest, draft FeedbackDraft {
        /// Why the decision was wrong; stored with the task.
        reason: PlainText<500>,
        /// The epoch of a continuous task's decision; defaults to the newest.
        epoch: Option<Whole<1, LARGEST>>,
        /// Must be `BAD`.
        outcome: Option<BadOutcome>,
        /// Time of signing, in milliseconds since 1970.
        timestamp: Option<Whole<0, LARGEST>>,
        /// Ed25519 signature of `account|task_id|epoch|BAD|reason|timestamp` in hex, by the key in the
        /// contract's `acceptance.settlement.feedback.authority_pubkey`. Required if that is a key.
        signature: Option<SignatureHex>,
    }
}

values! {
    /// The only outcome that can be disputed.
    pub struct BadOutcome(() as String): text().pattern(Some("^BAD$")) => outcome;

    /// An Ed25519 signature in hex.
    pub struct SignatureHex(String): text().pattern(Some("^[0-9A-Fa-f]{128}$")) => signature;
}

/// Reads a dispute.
pub fn decode_feedback(body: &Value) -> Result<TaskComplaint, Problem> {
    let feedback: FeedbackRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(TaskComplaint {
        epoch: feedback.epoch.map(|epoch| epoch.0),
        reason: feedback.reason.0,
        timestamp: feedback.timestamp.map(|timestamp| timestamp.0),
        signature: feedback.signature.map(|signature| signature.0),
    })
}

fn outcome(value: &Value) -> Result<(), FieldFault> {
    if text_of(value)? == "BAD" { Ok(()) } else { Err("must be `BAD`".into()) }
}

fn signature(value: &Value) -> Result<String, FieldFault> {
    let text = text_of(value)?;
    let is_hex = text.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_hex && text.len() == SIGNATURE_DIGITS {
        Ok(text.to_owned())
    } else {
        Err("must be 128 hex digits".into())
    }
}
