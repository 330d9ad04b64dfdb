//! What agents are told, and what they tell: an outbox and an inbox.

use jurat_core::{id::AccountId, time::Timestamp};
use serde_json::Value;

use crate::{
    Result,
    both::{Tx, args},
    rows::json,
};

/// An event to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAgentEvent {
    pub id: String,
    pub direction: Direction,
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

words! {
    Direction { Out => "out", In => "in" }
}

words! {
    /// How far an event has come.
    AgentEventState {
        Pending => "pending",
        Delivered => "delivered",
        Acked => "acked",
        Completed => "completed",
        Failed => "failed",
        Expired => "expired",
    }
}

const ADD: &str = "\
    insert into agent_events (\
        account_id, id, direction, executor, event_type, source_kind, dedupe_key, body, state, \
        attempts, next_at, created_at, updated_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, 'pending', 0, $9, $10, $10) on conflict do nothing";

/// Adds an event, unless it is known already.
pub(crate) async fn add(
    tx: &mut impl Tx,
    account: &AccountId,
    event: &NewAgentEvent,
    at: Timestamp,
) -> Result<bool> {
    let args = args![
        account,
        &event.id,
        event.direction.as_str(),
        &event.executor,
        &event.event_type,
        &event.source_kind,
        event.dedupe_key.as_deref(),
        json(&event.body)?,
        event.next_at,
        at
    ];
    Ok(tx.run(ADD, args).await? == 1)
}
