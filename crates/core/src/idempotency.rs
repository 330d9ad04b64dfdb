//! Defines the answer that is stored under an idempotency key.

/// An answer as the surface encoded it. Only the surface can read it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedAnswer {
    /// Chosen by the surface, which needs it to repeat the answer.
    pub tag: u16,
    pub text: String,
}
