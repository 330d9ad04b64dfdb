//! `/v1/prune`: removing old data.

use jurat_core::code::ProblemCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::kit::request::{self, request};
use crate::problem::Problem;

request! {
    /// A request to remove old data.
    pub strict struct PruneRequest, draft PruneDraft {
        /// Only count what would be removed; defaults to `false`.
        dry_run: Option<bool>,
    }
}

/// How much of each kind was removed, or would be.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, ToSchema)]
#[schema(as = Pruned)]
pub struct PrunedBody {
    /// Whether data was only counted.
    pub dry_run: bool,
    /// Accounts whose data was removed.
    pub accounts: u64,
    /// Replies stored under idempotency keys.
    pub idempotency_answers: u64,
    /// Rounds whose request, outputs and replica texts were erased.
    pub rounds: u64,
    /// Tasks whose events were removed.
    pub tasks: u64,
    /// Agent runs whose events were removed.
    pub runs: u64,
    /// Events to executors.
    pub agent_events: u64,
    /// Webhook deliveries.
    pub webhook_deliveries: u64,
}

/// Reads whether to only count old data.
pub fn decode(body: &Value) -> Result<bool, Problem> {
    let order: PruneRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(order.dry_run.unwrap_or(false))
}
