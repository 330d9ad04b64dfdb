//! Lists the work that a task needs now.

use std::collections::BTreeSet;

use super::{Proposal, ProposalStanding, Task, TaskRole};
use crate::time::Timestamp;

/// Work that can be leased now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskNeed {
    /// So many more executors may propose, except those in `without`. If the budget pays for
    /// nothing new, `only` names the interrupted executors that may continue.
    Proposals { count: u32, without: Vec<String>, only: Option<Vec<String>> },
    /// So many more executors may vote on the candidate, except those in `without`, and preferably
    /// none with these independence keys. If the budget pays for nothing new, `only` names the
    /// interrupted executors that may continue.
    Verdicts {
        candidate: String,
        count: u32,
        without: Vec<String>,
        keys: Vec<String>,
        only: Option<Vec<String>>,
    },
    /// These voters must reveal their votes.
    Reveals { candidate: String, voters: Vec<String> },
    /// The candidate must be made final.
    Final { candidate: String },
}

/// The work to do now. If it is empty, wait for the leases or for `Task::wakes_at`. If nobody can
/// do the work, a tick must say so, or the task waits until it expires.
pub fn needs(task: &Task, now: Timestamp) -> Vec<TaskNeed> {
    if task.is_over() || task.is_waiting() {
        return Vec::new();
    }
    let need = if let Some(approved) = task.approved() {
        let is_free = task.leases_of(TaskRole::Finalize) == 0 && task.can_pay(TaskRole::Finalize);
        is_free.then(|| TaskNeed::Final { candidate: approved.id.clone() })
    } else if let Some(proposal) = task.current_candidate() {
        of_candidate(task, proposal, now)
    } else {
        proposals(task, now)
    };
    need.into_iter().collect()
}

fn of_candidate(task: &Task, proposal: &Proposal, now: Timestamp) -> Option<TaskNeed> {
    if proposal.standing == ProposalStanding::Revealing {
        let voters: Vec<String> = proposal.hidden().cloned().collect();
        let candidate = proposal.id.clone();
        return (!voters.is_empty()).then_some(TaskNeed::Reveals { candidate, voters });
    }
    let free = task.terms.verify_at_once.saturating_sub(task.leases_of(TaskRole::Verify));
    let (payable, only) =
        had(task.payable(proposal.source.is_some()), || task.resumable_voters(proposal));
    let count = task.open_votes(proposal).min(free).min(payable);
    let is_early = proposal.retry_at.is_some_and(|at| now < at);
    if count == 0 || is_early {
        return None;
    }
    let mut keys: Vec<String> =
        proposal.votes.values().map(|vote| vote.independence.clone()).collect();
    keys.extend(task.vote_leases(&proposal.id).map(|claim| claim.independence.clone()));
    keys.sort();
    keys.dedup();
    let without = task.cannot_vote(proposal).into_iter().collect();
    Some(TaskNeed::Verdicts { candidate: proposal.id.clone(), count, without, keys, only })
}

/// How many can be asked: as many as can be paid for, or those already paid.
fn had(payable: u64, begun: impl FnOnce() -> Vec<String>) -> (u32, Option<Vec<String>>) {
    if 0 < payable {
        return (u32::try_from(payable).unwrap_or(u32::MAX), None);
    }
    let begun = begun();
    (u32::try_from(begun.len()).unwrap_or(u32::MAX), Some(begun))
}

fn proposals(task: &Task, now: Timestamp) -> Option<TaskNeed> {
    let is_early = task.retry_at.is_some_and(|at| now < at);
    if task.is_explored || is_early {
        return None;
    }
    let free = task.terms.propose_at_once.saturating_sub(task.leases_of(TaskRole::Propose));
    let (payable, only) = had(task.payable_proposals(), || task.resumable_proposers());
    let count = task.open_proposals().min(free).min(payable);
    let without = task.cannot_propose().into_iter().collect();
    (count != 0).then_some(TaskNeed::Proposals { count, without, only })
}

impl Task {
    /// Executors that cannot propose now: they proposed, failed, or are proposing.
    pub(super) fn cannot_propose(&self) -> BTreeSet<String> {
        let at_work = self.claims.values().filter(|it| it.role == TaskRole::Propose);
        let mut without = self.proposed.clone();
        without.extend(self.failed_proposers.keys().cloned());
        without.extend(at_work.map(|claim| claim.holder.clone()));
        without
    }

    /// Executors that cannot vote on a candidate now: they proposed it, voted, failed, are voting,
    /// or have lost their vote.
    pub(super) fn cannot_vote(&self, proposal: &Proposal) -> BTreeSet<String> {
        let mut without = proposal.proposers.clone();
        without.extend(proposal.votes.keys().cloned());
        without.extend(proposal.failed_verifiers.keys().cloned());
        without.extend(self.equivocators.iter().cloned());
        without.extend(self.vote_leases(&proposal.id).map(|claim| claim.holder.clone()));
        without
    }
}
