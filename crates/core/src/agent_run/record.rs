//! Defines the names, pages and events of stored agent runs.

use std::collections::BTreeMap;

use super::{AgentRunEvent, AgentRunSpec, AgentRunStatus};
use crate::{id::AccountId, list::ListPosition, time::Timestamp};

/// A run to submit.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunOrder {
    /// Whether its steps start now.
    pub kickoff: bool,
    pub spec: AgentRunSpec,
    /// Words of the caller that are stored with the spec and mean nothing here.
    pub labels: BTreeMap<String, String>,
    /// The digest of the spec as the caller wrote it: an equal one is the same run.
    pub spec_digest: String,
}

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

/// Selects runs for a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentRunFilter {
    pub status: Option<AgentRunStatus>,
    /// Starts after this run, towards older ones.
    pub before: Option<ListPosition>,
    pub limit: u32,
}
