//! Writes that happen once: what is kept of them under the caller's idempotency key.

use jurat_core::{
    id::{AccountId, RoundId},
    time::Timestamp,
};

/// What a write leaves behind, in the transaction that does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Once {
    pub account: AccountId,
    pub key: String,
    pub operation: String,
    /// Tells whether a later request with the key is the same one.
    pub request_digest: String,
    /// `None` for a round, which is its own answer.
    pub answer: Option<SavedAnswer>,
    pub at: Timestamp,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedAnswer {
    pub status: u16,
    pub text: String,
}

/// What was done before under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoneBefore {
    pub operation: String,
    pub request_digest: String,
    pub round: Option<RoundId>,
    pub answer: Option<SavedAnswer>,
    pub at: Timestamp,
}
