//! An agent run as it is named and listed, with its events.

use super::{AgentRunEvent, AgentRunStatus};
use crate::{id::AccountId, time::Timestamp};

/// Which run of which account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentRunKey {
    pub account: AccountId,
    pub id: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunEventRow {
    /// From one, without gaps.
    pub seq: u64,
    pub event: AgentRunEvent,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsStart {
    /// Behind this one, in the order in which they happened.
    After(u64),
    /// Before this one, the newest first.
    Before(u64),
}

/// A run that is there now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentRunAddition {
    /// Whether it was added now; otherwise it was there, with the same spec.
    pub is_new: bool,
    pub status: AgentRunStatus,
}
