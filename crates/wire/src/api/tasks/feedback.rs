//! What is said against a decision that is final.

use jurat_core::code::ProblemCode;
use serde_json::Value;
use utoipa::ToSchema;

use super::request::reason;
use crate::{api::kit::fields::RequestFields, problem::Problem};

/// The largest number that can be stored.
const LARGEST: u64 = i64::MAX as u64;
/// Hex digits of an Ed25519 signature.
const SIGNATURE_DIGITS: usize = 128;

/// A dispute of a decision.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FeedbackRequest {
    /// Why the decision was wrong; stored with the task.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 500)]
    pub reason: String,
    /// The epoch of a continuous task's decision; defaults to the newest.
    #[schema(minimum = 1, maximum = 9_223_372_036_854_775_807u64)]
    pub epoch: Option<u64>,
    /// Must be `BAD`.
    #[schema(pattern = "^BAD$")]
    pub outcome: Option<String>,
    /// Time of signing, in milliseconds since 1970.
    #[schema(maximum = 9_223_372_036_854_775_807u64)]
    pub timestamp: Option<u64>,
    /// Ed25519 signature of `account|task_id|epoch|BAD|reason|timestamp` in hex, by the key in the
    /// contract's `acceptance.settlement.feedback.authority_pubkey`. Required if that is a key.
    #[schema(pattern = "^[0-9A-Fa-f]{128}$")]
    pub signature: Option<String>,
}

/// A complaint as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskComplaint {
    pub epoch: Option<u64>,
    pub reason: String,
    pub timestamp: Option<u64>,
    /// In hex.
    pub signature: Option<String>,
}

pub fn decode_feedback(body: &Value) -> Result<TaskComplaint, Problem> {
    let fields = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    fields.keep_to::<FeedbackRequest>()?;
    let reason = reason(&fields)?.ok_or_else(|| fields.wrong("reason", "is required"))?;
    if fields.text("outcome")?.is_some_and(|outcome| outcome != "BAD") {
        return Err(fields.wrong("outcome", "must be `BAD`"));
    }
    let signature = fields.text("signature")?;
    let is_hex = |text: &str| {
        text.len() == SIGNATURE_DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    if signature.is_some_and(|text| !is_hex(text)) {
        return Err(fields.wrong("signature", "must be 128 hex digits"));
    }
    Ok(TaskComplaint {
        epoch: fields.whole("epoch", 1, LARGEST)?,
        reason,
        timestamp: fields.whole("timestamp", 0, LARGEST)?,
        signature: signature.map(str::to_owned),
    })
}
