//! What a node has booked of its jobs with another.

use serde::{Deserialize, Serialize};

use super::Route;

/// Asks a peer for the totals of its book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementRequest {
    pub route: Route,
}

/// The totals of the sender's book about the receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementReply {
    pub route: Route,
    /// The digest of the request's document.
    pub request: String,
    /// Jobs that the sender did for the receiver.
    pub earned_jobs: u64,
    pub earned_micros: u64,
    /// Jobs that the receiver did for the sender.
    pub owed_jobs: u64,
    pub owed_micros: u64,
}
