//! Policies: rule sets that decide a candidate.

use serde_json::Value;

/// Which rules apply, as it travels to an executor.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyBinding {
    pub policy_id: String,
    pub policy_version: String,
    pub policy_hash: String,
    pub policy_params: Value,
}
