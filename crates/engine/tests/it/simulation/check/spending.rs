//! Checks that a task spends no more than its contract allows, in each stage of each epoch.

use std::collections::{BTreeMap, BTreeSet};

use jurat_core::task::{LeaseRelease, TaskEvent, TaskLease, TaskRole};

use super::{Epoch, count, epochs};
use crate::simulation::shelf::Kept;

/// The charges of an epoch, minus refunds.
struct Paid {
    explore: u64,
    verify: u64,
    finalize: u64,
    /// The part that went to candidates from knowledge.
    reuse: u64,
}

impl Paid {
    fn in_epoch(epoch: Epoch<'_>) -> Self {
        let of = |is_such: &dyn Fn(TaskRole, bool) -> bool| {
            let paid = count(
                epoch,
                |it| matches!(it, TaskEvent::Charged { role, reuse } if is_such(*role, *reuse)),
            );
            let back = count(
                epoch,
                |it| matches!(it, TaskEvent::Refunded { role, reuse } if is_such(*role, *reuse)),
            );
            paid.saturating_sub(back) as u64
        };
        Self {
            explore: of(&|role, _| role == TaskRole::Propose),
            verify: of(&|role, _| role == TaskRole::Verify),
            finalize: of(&|role, _| role == TaskRole::Finalize),
            reuse: of(&|_, reuse| reuse),
        }
    }

    const fn steps(&self) -> u64 {
        self.explore + self.verify
    }

    const fn units(&self) -> u64 {
        self.steps() + self.finalize
    }
}

pub(super) fn is_within(kept: &Kept, epoch: Epoch<'_>) -> Result<(), String> {
    let budget = kept.filed.task.terms.budget;
    let paid = Paid::in_epoch(epoch);
    let stages = [
        ("explore", paid.explore, budget.explore),
        ("verify", paid.verify, budget.verify),
        ("finalize", paid.finalize, budget.finalize),
        ("reuse", paid.reuse, budget.reuse_verify_cost_units),
        ("steps", paid.steps(), budget.max_steps.into()),
        ("units", paid.units(), budget.cost_units),
    ];
    if let Some((stage, spent, most)) = stages.iter().find(|(_, spent, most)| most < spent) {
        return Err(format!("spent {spent} of {most} on {stage} in one epoch"));
    }
    let reuses = count(epoch, |it| matches!(it, TaskEvent::Reused { .. }));
    if (budget.reuse_max_attempts as usize) < reuses {
        return Err(format!("reused {reuses} decisions in one epoch"));
    }
    are_charged_once(epoch)
}

/// Work is charged when it is leased, and again only after a refund. Continuing abandoned work
/// under the same execution id is not charged.
fn are_charged_once(epoch: Epoch<'_>) -> Result<(), String> {
    let mut live: BTreeMap<u64, &TaskLease> = BTreeMap::new();
    let mut left: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut events = epoch.iter().map(|(_, event)| event).peekable();
    while let Some(event) = events.next() {
        if let TaskEvent::Claimed { token, claim } = event {
            let is_charged = matches!(events.peek(), Some(TaskEvent::Charged { .. }));
            let is_resumed = left.remove(&(claim.holder.as_str(), claim.execution_id.as_str()));
            if is_charged == is_resumed {
                let how = if is_charged { "twice" } else { "not at all" };
                return Err(format!("{} of {} is paid {how}", claim.role, claim.holder));
            }
            live.insert(*token, claim);
        } else if let TaskEvent::Released { token, reason } = event
            && let Some(claim) = live.remove(token)
            && matches!(reason, LeaseRelease::LeaseRanOut | LeaseRelease::GivenUp { .. })
        {
            left.insert((&claim.holder, &claim.execution_id));
        }
    }
    Ok(())
}

/// The task knows the spending of its last epoch.
pub(super) fn is_known(kept: &Kept) -> Result<(), String> {
    let Some(last) = epochs(&kept.events).last() else { return Ok(()) };
    let (paid, spent) = (Paid::in_epoch(last), kept.filed.task.spent);
    let is_known = (paid.explore, paid.verify, paid.finalize, paid.reuse)
        == (spent.explore, spent.verify, spent.finalize, spent.reuse)
        && paid.steps() == u64::from(spent.steps);
    if is_known { Ok(()) } else { Err("does not know what it spent".to_owned()) }
}
