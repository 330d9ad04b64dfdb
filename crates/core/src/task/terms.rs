//! The terms of a contract that the lifecycle keeps.

use std::str::FromStr;

use crate::{job::words, time::Timestamp};

words!(
    /// How verdicts become a decision.
    Aggregation {
        /// As many approvals as the quorum asks for, and more of them than rejections.
        Quorum => "QUORUM",
        /// By how sure each verifier says it is.
        ConfidenceWeighted => "CONFIDENCE_WEIGHTED",
        /// By what is known of how often each verifier is right.
        ReputationWeighted => "REPUTATION_WEIGHTED",
    }
);

/// What a task may use. A step is a call of an executor, and costs one unit of its stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub time_ms: u64,
    pub max_steps: u32,
    pub cost_units: u64,
    pub explore: u64,
    pub verify: u64,
    pub finalize: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    pub lease_ms: u64,
    /// Claims of each role at a time.
    pub propose_at_once: u32,
    pub verify_at_once: u32,
    /// Executors that propose, in all.
    pub max_proposers: u32,
    /// Candidates that are verified, at the most.
    pub topk: u32,
    /// Verdicts on one candidate, at the most.
    pub max_verifiers: u32,
    pub max_finalizers: u32,
    /// Approvals that a decision needs.
    pub quorum: u32,
    /// Verifiers that must have found each piece of evidence.
    pub da_quorum: u32,
    pub reveal_ms: u64,
    /// How often a verification that decided nothing is made anew.
    pub max_repeats: u32,
    /// How often proposing is tried anew, and how long to wait before the first of those.
    pub max_retries: u32,
    pub backoff_ms: u64,
    pub aggregation: Aggregation,
    pub budget: Budget,
    pub expires_at: Timestamp,
}

/// A term that no task can be held to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermError {
    /// Where it stands in the contract.
    pub field: &'static str,
    pub reason: String,
}

/// The most of anything that is counted: a task is walked by one node.
const MOST: u32 = 64;

impl Terms {
    /// All that is wrong with the terms, by field.
    pub fn check(&self, now: Timestamp) -> Vec<TermError> {
        let mut errors = Vec::new();
        let mut refuse = |is_wrong: bool, field: &'static str, reason: String| {
            if is_wrong {
                errors.push(TermError { field, reason });
            }
        };
        let counts = [
            (self.propose_at_once, "assignment.claim.max_concurrency.propose"),
            (self.verify_at_once, "assignment.claim.max_concurrency.verify"),
            (self.max_proposers, "assignment.explore.max_proposers"),
            (self.topk, "assignment.explore.topk"),
            (self.max_verifiers, "assignment.verify.max_verifiers"),
            (self.max_finalizers, "assignment.finalize.max_finalizers"),
            (self.quorum, "acceptance.quorum_threshold"),
            (self.da_quorum, "acceptance.da_quorum_threshold"),
        ];
        for (count, field) in counts {
            refuse(!(1..=MOST).contains(&count), field, format!("must be from 1 to {MOST}"));
        }
        let most = self.max_verifiers;
        let reachable = format!("cannot be reached: at most {most} verifiers are asked");
        refuse(most < self.quorum, "acceptance.quorum_threshold", reachable.clone());
        refuse(most < self.da_quorum, "acceptance.da_quorum_threshold", reachable);
        let spans = [
            (self.lease_ms, "assignment.claim.lease_ms"),
            (self.reveal_ms, "acceptance.vote.reveal_deadline_ms"),
        ];
        for (span, field) in spans {
            refuse(
                !(100..=86_400_000).contains(&span),
                field,
                "must be from 100 to 86400000".into(),
            );
        }
        refuse(self.expires_at <= now, "expiry_ms", "lies in the past".to_owned());
        errors.extend(self.budget_errors());
        errors
    }

    /// A budget must pay for one candidate and its quorum, or the task could never end well.
    fn budget_errors(&self) -> Vec<TermError> {
        let Budget { time_ms, max_steps, cost_units, explore, verify, finalize } = self.budget;
        let mut errors = Vec::new();
        let mut refuse = |is_wrong: bool, field: &'static str, reason: String| {
            if is_wrong {
                errors.push(TermError { field, reason });
            }
        };
        refuse(time_ms == 0, "budget.time_ms", "must be more than 0".to_owned());
        let steps = self.quorum.saturating_add(1);
        let why = format!("must be {steps} or more: one proposal and a quorum of verdicts");
        refuse(max_steps < steps, "budget.max_steps", why);
        refuse(explore == 0, "budget.explore_cost_units", "must pay for one proposal".to_owned());
        let quorum = u64::from(self.quorum);
        let why = format!("must pay for a quorum of verdicts, which is {quorum}");
        refuse(verify < quorum, "budget.verify_cost_units", why);
        refuse(finalize == 0, "budget.finalize_cost_units", "must pay for one decision".to_owned());
        let sum = explore.saturating_add(verify).saturating_add(finalize);
        let why = format!("must be {sum} or more, the sum of its stages");
        refuse(cost_units < sum, "budget.cost_units", why);
        errors
    }
}
