//! Checks the terms of a task.

use super::{Budget, BudgetRenewal, DecisionMode, TaskTerms};
use crate::time::Timestamp;

/// A term that no task can satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermError {
    /// The path of the term in the contract.
    pub field: &'static str,
    pub reason: String,
}

/// The upper limit of every count: one node drives a whole task.
pub(super) const MOST: u32 = 64;
/// The longest time for which a contract may hold up a task: a day.
const LONGEST_MS: u64 = 86_400_000;
/// The longest time to work on a decision, or to dispute one: a year.
const YEAR_MS: u64 = 366 * 86_400_000;
/// An earlier time is a duration by mistake. The year 2001.
const FIRST_MOMENT_MS: i64 = 1_000_000_000_000;
/// The upper limit of units and calls, far above what a task could use.
const MOST_UNITS: u64 = 1_000_000_000;

/// Collects faults.
#[derive(Default)]
struct TermErrors(Vec<TermError>);

impl TermErrors {
    fn refuse(&mut self, is_wrong: bool, field: &'static str, reason: impl Into<String>) {
        if is_wrong {
            self.0.push(TermError { field, reason: reason.into() });
        }
    }
}

impl TaskTerms {
    /// All faults of the terms, by field.
    pub fn check(&self, now: Timestamp) -> Vec<TermError> {
        let mut errors = self.check_lasting();
        errors.extend(self.check_clock(now));
        errors
    }

    /// The faults of the terms that do not depend on the time.
    pub fn check_lasting(&self) -> Vec<TermError> {
        let mut errors = TermErrors::default();
        self.check_counts(&mut errors);
        self.check_spans(&mut errors);
        self.check_budget(&mut errors);
        self.check_reuse(&mut errors);
        errors.0
    }

    /// The fault of the contract's expiry at this time. An existing task stays valid after its
    /// expiry.
    pub fn check_clock(&self, now: Timestamp) -> Option<TermError> {
        let mut errors = TermErrors::default();
        let is_span = self.expires_at.millis() < FIRST_MOMENT_MS && FIRST_MOMENT_MS <= now.millis();
        let why = if is_span {
            "is in the past: it must be a point in time, in milliseconds since 1970, not a duration"
        } else {
            "is in the past"
        };
        errors.refuse(self.expires_at <= now, "expiry_ms", why);
        let last = now.plus_millis(10 * YEAR_MS);
        errors.refuse(last < self.expires_at, "expiry_ms", "is more than ten years in the future");
        errors.0.pop()
    }

    fn check_counts(&self, errors: &mut TermErrors) {
        let counts = [
            (self.propose_at_once, "assignment.claim.max_concurrency.propose"),
            (self.verify_at_once, "assignment.claim.max_concurrency.verify"),
            (self.max_proposers, "assignment.explore.max_proposers"),
            (self.topk, "assignment.explore.topk"),
            (self.no_new_evidence_rounds, "assignment.explore.stop.no_new_evidence_rounds"),
            (self.max_verifiers, "assignment.verify.max_verifiers"),
            (self.max_finalizers, "assignment.finalize.max_finalizers"),
            (self.quorum, "acceptance.quorum_threshold"),
        ];
        for (count, field) in counts {
            let is_wrong = !(1..=MOST).contains(&count);
            errors.refuse(is_wrong, field, format!("must be from 1 to {MOST}"));
        }
        let most = self.max_verifiers;
        let asked = if most == 1 { "verifier is" } else { "verifiers are" };
        let reachable = format!("cannot be reached: at most {most} {asked} asked");
        errors.refuse(most < self.quorum, "acceptance.quorum_threshold", reachable.clone());
        errors.refuse(most < self.da_quorum, "acceptance.da_quorum_threshold", reachable);
        let limit = format!("must be at most {MOST}");
        errors.refuse(MOST < self.max_repeats, "assignment.verify.max_repeats", limit.clone());
        errors.refuse(MOST < self.max_retries, "assignment.explore.max_retries", limit);
    }

    fn check_spans(&self, errors: &mut TermErrors) {
        let spans = [
            (self.lease_ms, "assignment.claim.lease_ms"),
            (self.reveal_ms, "acceptance.vote.reveal_deadline_ms"),
        ];
        for (span, field) in spans {
            let is_wrong = !(100..=LONGEST_MS).contains(&span);
            errors.refuse(is_wrong, field, format!("must be from 100 to {LONGEST_MS}"));
        }
        let why = format!("must be from 1 to {LONGEST_MS}");
        let is_wrong = !(1..=LONGEST_MS).contains(&self.backoff_ms);
        errors.refuse(is_wrong, "assignment.explore.backoff_ms", why);
        let why = format!("must be at most {YEAR_MS}");
        let is_wrong = YEAR_MS < self.window_ms;
        errors.refuse(is_wrong, "acceptance.settlement.window_ms", why);
    }

    /// A budget must pay for one candidate and its quorum, or the task could never succeed.
    fn check_budget(&self, errors: &mut TermErrors) {
        let Budget { time_ms, max_steps, cost_units, explore, verify, finalize, .. } = self.budget;
        let why = format!("must be from 1 to {YEAR_MS}");
        errors.refuse(!(1..=YEAR_MS).contains(&time_ms), "budget.time_ms", why);
        // More voters may have to find the evidence than have to approve.
        let verdicts = self.quorum.max(self.da_quorum);
        let steps = verdicts.saturating_add(1);
        let votes = if verdicts == 1 { "verdict" } else { "verdicts" };
        let why = format!("must be at least {steps}: one proposal and {verdicts} {votes}");
        errors.refuse(max_steps < steps, "budget.max_steps", why);
        let why = "must be at least 1, to pay for one proposal";
        errors.refuse(explore == 0, "budget.explore_cost_units", why);
        let units = u64::from(verdicts);
        let why =
            format!("must be at least {units}, to pay for the verdicts that a decision needs");
        errors.refuse(verify < units, "budget.verify_cost_units", why);
        let why = "must be at least 1, to pay for one decision";
        errors.refuse(finalize == 0, "budget.finalize_cost_units", why);
        let sum = explore.saturating_add(verify).saturating_add(finalize);
        let why = format!("must be at least {sum}, the sum of its stages");
        errors.refuse(cost_units < sum, "budget.cost_units", why);
        let why = format!("must be at most {MOST_UNITS}");
        errors.refuse(MOST_UNITS < cost_units, "budget.cost_units", why);
        let is_continuous = self.mode == DecisionMode::Continuous;
        let is_renewed = self.budget.renewal == BudgetRenewal::EpochRenew;
        let why = "must be EPOCH_RENEW for a task in mode CONTINUOUS";
        errors.refuse(is_continuous && !is_renewed, "budget.mode", why);
    }

    fn check_reuse(&self, errors: &mut TermErrors) {
        let Budget { time_ms, cost_units, .. } = self.budget;
        let Budget { reuse_verify_time_ms, reuse_verify_cost_units, reuse_max_attempts, .. } =
            self.budget;
        let why = format!("must be from 1 to {MOST}");
        let is_wrong = !(1..=MOST).contains(&reuse_max_attempts);
        errors.refuse(is_wrong, "budget.reuse_max_attempts", why);
        let why = format!("must be at most {time_ms}, the budget's `time_ms`");
        errors.refuse(time_ms < reuse_verify_time_ms, "budget.reuse_verify_time_ms", why);
        let why = format!("must be at most {cost_units}, the budget's `cost_units`");
        errors.refuse(cost_units < reuse_verify_cost_units, "budget.reuse_verify_cost_units", why);
    }
}
