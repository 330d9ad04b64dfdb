//! Defines an agent event as it is stored and listed.

use serde_json::Value;

use super::{AgentEventType, Delivery, EventDirection};
use crate::{id::AccountId, list::ListPosition, time::Timestamp};

/// A new event.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAgentEvent {
    pub id: String,
    pub direction: EventDirection,
    /// The executor that receives or sends the event.
    pub executor: String,
    pub event_type: String,
    pub source_kind: String,
    /// The store keeps one event for each key and executor.
    pub dedupe_key: Option<String>,
    /// The event as it is sent.
    pub body: Value,
    /// When it is sent; `None` if it is not.
    pub next_at: Option<Timestamp>,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEventRecord {
    pub account: AccountId,
    pub event: NewAgentEvent,
    pub state: Delivery,
    /// The number of delivery attempts.
    pub attempts: u32,
    /// The decision of the agent.
    pub decision: Option<Value>,
    pub last_error: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The event that was added, or the earlier one with the same key.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEventAddition {
    pub record: AgentEventRecord,
    pub is_new: bool,
}

/// An event that a caller sends to an executor.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentEventOrder {
    pub event_type: AgentEventType,
    pub target_executor: String,
    pub payload: Value,
    pub source_node_id: Option<String>,
    pub target_agent_id: Option<String>,
    pub agent_envelope: Option<Value>,
    pub requires_commit: bool,
    pub correlation_id: Option<String>,
    pub dedupe_key: Option<String>,
}

/// Selects events for a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentEventFilter {
    pub state: Option<Delivery>,
    pub executor: Option<String>,
    /// Whether the executor asks for a human review.
    pub needs_review: Option<bool>,
    /// Starts after this event, towards older ones.
    pub before: Option<ListPosition>,
    pub limit: u32,
}
