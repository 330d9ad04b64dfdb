//! Defines the names, pages and events of stored agent runs.

use super::{AgentRunEvent, AgentRunStatus};
use crate::{id::AccountId, time::Timestamp};

/// Names a run of an account.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentRunKey {
    pub account: AccountId,
    pub id: String,
}

/// A stored event of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunEventRow {
    /// Starts at one, without gaps.
    pub seq: u64,
    pub event: AgentRunEvent,
    pub at: Timestamp,
}

/// Where a page of events starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsStart {
    /// After this event, oldest first.
    After(u64),
    /// Before this event, newest first.
    Before(u64),
}

/// A submitted run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentRunAddition {
    /// Whether this request added it; otherwise it existed with the same spec.
    pub is_new: bool,
    pub status: AgentRunStatus,
}
