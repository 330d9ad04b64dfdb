//! Parts of lists: a page by name, and a position in a list that shows the newest first.

use crate::time::Timestamp;

/// A part of a list in ascending order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// Starts behind this name or identifier.
    pub after: Option<String>,
    pub limit: u32,
}

/// Where a page of a list that shows the newest first goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPosition {
    pub created_at: Timestamp,
    pub id: String,
}
