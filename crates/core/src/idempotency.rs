//! Answers that are kept under an idempotency key.

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedAnswer {
    pub status: u16,
    pub text: String,
}
