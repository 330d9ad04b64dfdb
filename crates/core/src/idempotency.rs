//! Defines the answer that is stored under an idempotency key.

/// An answer as the surface wrote it. Only the surface reads it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedAnswer {
    pub status: u16,
    pub text: String,
}
