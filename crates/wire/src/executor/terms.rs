//! The terms of a contract that govern the lifecycle of a task.

use jurat_core::{
    task::{Budget, BudgetRenewal, DecisionMode, TaskTerms, VoteAggregation},
    time::Timestamp,
};
use serde_json::Value;

use super::TaskContract;

/// How often proposing restarts after all proposers failed, unless the contract sets it.
pub const USUAL_RETRIES: u32 = 3;
/// How often an undecided vote is repeated, unless the contract sets it.
pub const USUAL_REPEATS: u32 = 2;
/// Delay before the first restart or repeat, unless the contract sets it.
pub const USUAL_BACKOFF_MS: u64 = 1_000;

impl TaskContract {
    /// The terms. An unknown word counts as the default; submissions with unknown words are
    /// refused.
    pub fn terms(&self) -> TaskTerms {
        let Self { assignment, acceptance, budget, .. } = self;
        TaskTerms {
            mode: self.task_mode.parse().unwrap_or(DecisionMode::OneShot),
            lease_ms: assignment.claim.lease_ms,
            propose_at_once: assignment.claim.max_concurrency.propose,
            verify_at_once: assignment.claim.max_concurrency.verify,
            max_proposers: assignment.explore.max_proposers,
            topk: assignment.explore.topk,
            no_new_evidence_rounds: assignment.explore.stop.no_new_evidence_rounds,
            max_verifiers: assignment.verify.max_verifiers,
            max_finalizers: assignment.finalize.max_finalizers,
            quorum: acceptance.quorum_threshold,
            da_quorum: self.da_quorum(),
            reveal_ms: acceptance.vote.reveal_deadline_ms,
            max_repeats: assignment.verify.max_repeats.unwrap_or(USUAL_REPEATS),
            max_retries: assignment.explore.max_retries.unwrap_or(USUAL_RETRIES),
            backoff_ms: assignment.explore.backoff_ms.unwrap_or(USUAL_BACKOFF_MS),
            aggregation: acceptance.aggregation.unwrap_or(VoteAggregation::Quorum),
            budget: Budget {
                time_ms: budget.time_ms,
                max_steps: budget.max_steps,
                cost_units: budget.cost_units,
                explore: budget.explore_cost_units,
                verify: budget.verify_cost_units,
                finalize: budget.finalize_cost_units,
                reuse_verify_time_ms: budget.reuse_verify_time_ms,
                reuse_verify_cost_units: budget.reuse_verify_cost_units,
                reuse_max_attempts: budget.reuse_max_attempts,
                renewal: budget.mode.parse().unwrap_or(BudgetRenewal::Lifetime),
            },
            window_ms: acceptance.settlement.window_ms,
            expires_at: Timestamp::from_millis(i64::try_from(self.expiry_ms).unwrap_or(i64::MAX)),
        }
    }

    /// Number of voters that must be able to fetch each piece of evidence; 0 if neither the
    /// contract nor its policy requires evidence to be fetched.
    fn da_quorum(&self) -> u32 {
        let params = &self.acceptance.verifier_policy.policy_params;
        let is_asked_for = params.get("fetch_evidence") == Some(&Value::Bool(true));
        self.acceptance.da_quorum_threshold.unwrap_or_else(|| u32::from(is_asked_for))
    }
}
