//! The terms of a contract that the task enforces.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{round::job::words, time::Timestamp};

words!(
    /// How votes become a decision. Each aggregation needs the quorum: weights decide between the
    /// sides, but never turn one voter into several.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    VoteAggregation {
        /// As many approvals as the quorum, and more approvals than rejections.
        Quorum => "QUORUM",
        /// Weighted by the confidence that each voter states.
        ConfidenceWeighted => "CONFIDENCE_WEIGHTED",
        /// Weighted by how often each voter was right.
        ReputationWeighted => "REPUTATION_WEIGHTED",
    }
);

words!(
    /// Whether a task is decided once or repeatedly.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    DecisionMode {
        OneShot => "ONE_SHOT",
        /// Each epoch has a decision; the task continues until its contract expires.
        Continuous => "CONTINUOUS",
    }
);

words!(
    /// The period that the budget covers.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    BudgetRenewal {
        Lifetime => "LIFETIME",
        EpochRenew => "EPOCH_RENEW",
    }
);

/// The budget of a task. A step is a call of an executor, and costs one unit of its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub time_ms: u64,
    pub max_steps: u32,
    pub cost_units: u64,
    pub explore: u64,
    pub verify: u64,
    pub finalize: u64,
    /// How long voters may vote on candidates from knowledge.
    pub reuse_verify_time_ms: u64,
    /// How many units of `verify` candidates from knowledge may use.
    pub reuse_verify_cost_units: u64,
    /// How many candidates from knowledge are tried.
    pub reuse_max_attempts: u32,
    pub renewal: BudgetRenewal,
}

/// The terms of a contract.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskTerms {
    pub mode: DecisionMode,
    pub lease_ms: u64,
    /// Concurrent leases to propose.
    pub propose_at_once: u32,
    /// Concurrent leases to vote.
    pub verify_at_once: u32,
    /// The maximum number of executors that propose.
    pub max_proposers: u32,
    /// The maximum number of candidates.
    pub topk: u32,
    /// Proposing ends after so many consecutive proposals without anything new.
    pub no_new_evidence_rounds: u32,
    /// The maximum number of votes on one candidate. The quorum is asked first, and more voters
    /// only if those do not decide.
    pub max_verifiers: u32,
    /// Concurrent leases to finalize.
    pub max_finalizers: u32,
    /// The votes on one side that a decision needs.
    pub quorum: u32,
    /// How many voters must have found each piece of evidence; 0 if evidence is not checked.
    pub da_quorum: u32,
    pub reveal_ms: u64,
    /// How many times a vote that did not decide is repeated.
    pub max_repeats: u32,
    /// How many times proposing is retried.
    pub max_retries: u32,
    /// The wait before the first retry. It doubles.
    pub backoff_ms: u64,
    pub aggregation: VoteAggregation,
    pub budget: Budget,
    /// How long a final decision can be disputed.
    pub window_ms: u64,
    pub expires_at: Timestamp,
}

impl TaskTerms {
    /// The wait before the n-th retry, counted from 0.
    pub(super) fn backoff(&self, before: u32) -> u64 {
        self.backoff_ms.saturating_mul(1 << before.min(16))
    }
}
