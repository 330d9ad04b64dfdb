//! The terms of a contract that the lifecycle keeps.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{round::job::words, time::Timestamp};

words!(
    /// How verdicts become a decision. Every one of them needs the quorum: weights decide between
    /// the sides, and never make one voter into several.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    VoteAggregation {
        /// As many approvals as the quorum asks for, and more of them than rejections.
        Quorum => "QUORUM",
        /// By how sure each verifier says it is.
        ConfidenceWeighted => "CONFIDENCE_WEIGHTED",
        /// By what is known of how often each verifier is right.
        ReputationWeighted => "REPUTATION_WEIGHTED",
    }
);

words!(
    /// Whether a task is decided once or again and again.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    DecisionMode {
        OneShot => "ONE_SHOT",
        /// Each epoch has a decision; the task goes on until its contract expires.
        Continuous => "CONTINUOUS",
    }
);

words!(
    /// What the budget is for.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    BudgetRenewal {
        Lifetime => "LIFETIME",
        EpochRenew => "EPOCH_RENEW",
    }
);

/// What a task may use. A step is a call of an executor, and costs one unit of its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub time_ms: u64,
    pub max_steps: u32,
    pub cost_units: u64,
    pub explore: u64,
    pub verify: u64,
    pub finalize: u64,
    /// How long, with how many units of `verify`, and how often candidates from knowledge are
    /// tried.
    pub reuse_verify_time_ms: u64,
    pub reuse_verify_cost_units: u64,
    pub reuse_max_attempts: u32,
    pub renewal: BudgetRenewal,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskTerms {
    pub mode: DecisionMode,
    pub lease_ms: u64,
    /// Claims of each role at a time.
    pub propose_at_once: u32,
    pub verify_at_once: u32,
    /// Executors that propose, in all.
    pub max_proposers: u32,
    /// Candidates that are verified, at the most.
    pub topk: u32,
    /// So many proposals in a row that bring nothing new are the last.
    pub no_new_evidence_rounds: u32,
    /// Votes on one candidate, at the most. As many as the quorum are asked for first, and more
    /// only when those decide nothing.
    pub max_verifiers: u32,
    /// Claims to make final, at a time.
    pub max_finalizers: u32,
    /// Votes on one side that a decision needs.
    pub quorum: u32,
    /// Verifiers that must have found each piece of evidence; 0 when evidence is not looked for.
    pub da_quorum: u32,
    pub reveal_ms: u64,
    /// How often a verification that decided nothing is made anew.
    pub max_repeats: u32,
    /// How often proposing is tried anew.
    pub max_retries: u32,
    /// How long to wait before the first time that something is tried anew. It doubles.
    pub backoff_ms: u64,
    pub aggregation: VoteAggregation,
    pub budget: Budget,
    /// How long a final decision can be complained of.
    pub window_ms: u64,
    pub expires_at: Timestamp,
}

impl TaskTerms {
    /// How long to wait before something is tried anew for the n-th time, counted from 0.
    pub(super) fn backoff(&self, before: u32) -> u64 {
        self.backoff_ms.saturating_mul(1 << before.min(16))
    }
}
