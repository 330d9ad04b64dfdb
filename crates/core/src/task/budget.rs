//! Decides what a task can still pay for.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Proposal, Task, TaskLease, TaskRole, UnfinishedWork};
use crate::time::Timestamp;

/// The spending of this epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskSpending {
    pub steps: u32,
    pub explore: u64,
    pub verify: u64,
    pub finalize: u64,
    /// The part of `verify` that went to candidates from knowledge.
    pub reuse: u64,
}

impl TaskSpending {
    /// In all stages together.
    pub const fn units(&self) -> u64 {
        self.explore.saturating_add(self.verify).saturating_add(self.finalize)
    }

    pub(super) fn charge(&mut self, role: TaskRole, is_reuse: bool) {
        match role {
            TaskRole::Propose => self.explore += 1,
            TaskRole::Verify => self.verify += 1,
            TaskRole::Finalize => self.finalize += 1,
        }
        // Making a candidate final does not call an executor.
        self.steps += u32::from(role != TaskRole::Finalize);
        self.reuse += u64::from(is_reuse);
    }

    pub(super) fn refund(&mut self, role: TaskRole, is_reuse: bool) {
        let stage = match role {
            TaskRole::Propose => &mut self.explore,
            TaskRole::Verify => &mut self.verify,
            TaskRole::Finalize => &mut self.finalize,
        };
        *stage = stage.saturating_sub(1);
        self.steps = self.steps.saturating_sub(u32::from(role != TaskRole::Finalize));
        self.reuse = self.reuse.saturating_sub(u64::from(is_reuse));
    }
}

impl Task {
    /// Whether another call of a role can be paid for.
    pub(super) fn can_pay(&self, role: TaskRole) -> bool {
        match role {
            TaskRole::Propose => self.payable_proposals() > 0,
            TaskRole::Verify => self.payable(false) > 0,
            TaskRole::Finalize => {
                let (budget, spent) = (&self.terms.budget, &self.spent);
                spent.finalize < budget.finalize && spent.units() < budget.cost_units
            }
        }
    }

    /// How many more proposals can be paid for. Each must leave the calls and units that a quorum
    /// needs: a candidate without voters would cost and change nothing.
    pub(super) fn payable_proposals(&self) -> u64 {
        let (budget, spent) = (&self.terms.budget, &self.spent);
        let quorum = u64::from(self.terms.quorum);
        if budget.verify.saturating_sub(spent.verify) < quorum {
            return 0;
        }
        let steps = u64::from(budget.max_steps.saturating_sub(spent.steps));
        let all = budget.cost_units.saturating_sub(spent.units());
        let units = budget.explore.saturating_sub(spent.explore);
        units.min(steps.saturating_sub(quorum)).min(all.saturating_sub(quorum))
    }

    /// How many more votes can be paid for. A remembered candidate never uses up the budget that a
    /// fresh candidate and its quorum need.
    pub(super) fn payable(&self, is_reuse: bool) -> u64 {
        let (budget, spent) = (&self.terms.budget, &self.spent);
        let steps = u64::from(budget.max_steps.saturating_sub(spent.steps));
        let units = budget.verify.saturating_sub(spent.verify);
        let all = budget.cost_units.saturating_sub(spent.units());
        if !is_reuse {
            return steps.min(units).min(all);
        }
        let quorum = u64::from(self.terms.quorum);
        let own = budget.reuse_verify_cost_units.saturating_sub(spent.reuse);
        let steps = steps.saturating_sub(quorum + 1);
        own.min(steps).min(units.saturating_sub(quorum)).min(all.saturating_sub(quorum + 1))
    }

    /// Whether another vote on a candidate is possible: payable now, or already paid.
    pub(super) fn can_pay_verdict(&self, proposal: &Proposal) -> bool {
        self.payable(proposal.source.is_some()) > 0 || !self.resumable_voters(proposal).is_empty()
    }

    /// Executors that were interrupted while proposing and may continue without another charge.
    pub(super) fn resumable_proposers(&self) -> Vec<String> {
        self.resumable_holders(TaskRole::Propose, None, &self.cannot_propose())
    }

    /// Executors that were interrupted while voting on a candidate and may continue without another
    /// charge.
    pub(super) fn resumable_voters(&self, proposal: &Proposal) -> Vec<String> {
        self.resumable_holders(TaskRole::Verify, Some(&proposal.id), &self.cannot_vote(proposal))
    }

    fn resumable_holders(
        &self,
        role: TaskRole,
        candidate: Option<&str>,
        without: &BTreeSet<String>,
    ) -> Vec<String> {
        let is_such = |it: &&UnfinishedWork| {
            it.is_charged && it.role == role && it.candidate.as_deref() == candidate
        };
        let holders = self.unfinished.iter().filter(is_such).map(|it| &it.holder);
        holders.filter(|it| !without.contains(*it)).cloned().collect()
    }

    /// Whether a lease continues work that was charged and interrupted.
    pub(super) fn is_resumption(&self, claim: &TaskLease) -> bool {
        self.unfinished.iter().any(|it| {
            it.is_charged
                && it.role == claim.role
                && it.holder == claim.holder
                && it.candidate == claim.candidate
                && it.execution_id == claim.execution_id
        })
    }

    /// Until when voters vote on candidates from knowledge.
    pub(super) fn reuse_until(&self) -> Option<Timestamp> {
        self.started_at.map(|at| at.plus_millis(self.terms.budget.reuse_verify_time_ms))
    }

    pub(super) fn leases_of(&self, role: TaskRole) -> u32 {
        let count = self.claims.values().filter(|claim| claim.role == role).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}
