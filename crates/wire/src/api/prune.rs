//! `/v1/prune`: what is removed because it is old.

use jurat_core::code::Code;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::fields::Fields;
use crate::problem::Problem;

/// A request to remove what is old.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PruneRequest {
    /// Only counts what would go; `false` when left out.
    pub dry_run: Option<bool>,
}

/// How much of each kind went, or would go.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Pruned)]
pub struct PrunedBody {
    /// Whether it was only counted.
    pub dry_run: bool,
    /// Accounts of which something went.
    pub accounts: u64,
    /// Answers under idempotency keys.
    pub idempotency_answers: u64,
    /// Rounds of which the request, the outputs and the texts of replicas were erased.
    pub rounds: u64,
    /// Tasks whose events were removed.
    pub tasks: u64,
    /// Runs of several agents whose events were removed.
    pub runs: u64,
    /// Events to executors.
    pub agent_events: u64,
}

/// Whether it is only to be counted.
pub fn decode(body: &Value) -> Result<bool, Problem> {
    let body = Fields::of_body(body, Code::ValidationError)?;
    body.keep_to::<PruneRequest>()?;
    Ok(body.flag("dry_run")?.unwrap_or(false))
}
