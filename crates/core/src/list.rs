//! Defines pages of lists: one by name, and one that starts at a position of a newest-first list.

use crate::time::Timestamp;

/// A page of a list in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// Starts after this name or identifier.
    pub after: Option<String>,
    pub limit: u32,
}

/// The position after which a page of a newest-first list starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPosition {
    pub created_at: Timestamp,
    pub id: String,
}
