//! An agent event as it is stored and listed.

use serde_json::Value;

use super::{Delivery, EventDirection};
use crate::{id::AccountId, time::Timestamp};

/// An event to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAgentEvent {
    pub id: String,
    pub direction: EventDirection,
    /// Who is told, or who tells.
    pub executor: String,
    pub event_type: String,
    pub source_kind: String,
    /// Of several with the same key for one executor, one is kept.
    pub dedupe_key: Option<String>,
    /// The whole event.
    pub body: Value,
    /// When it is to be sent; `None` when there is nothing to do.
    pub next_at: Option<Timestamp>,
}

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEventRecord {
    pub account: AccountId,
    pub event: NewAgentEvent,
    pub state: Delivery,
    /// How often it was taken to be sent.
    pub attempts: u32,
    /// What the agent decided.
    pub decision: Option<Value>,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The event that was added, or the one that was there.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEventAddition {
    pub record: AgentEventRecord,
    pub is_new: bool,
}
