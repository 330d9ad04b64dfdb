//! What there is to do for a task at a time.

use super::{
    Proposal, Role, Standing, Task,
    decide::{can_pay, claims_of},
};
use crate::time::Timestamp;

/// Work that somebody may claim now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// So many more executors may propose.
    Proposals { count: u32 },
    /// So many more executors may verify the candidate, none of these.
    Verdicts { candidate: String, count: u32, without: Vec<String> },
    /// The votes of these are to be revealed.
    Reveals { candidate: String, voters: Vec<String> },
    /// The candidate is to be made final.
    Final { candidate: String },
}

/// What there is to do now. Nothing means to wait for claims, or for `Task::wakes_at`.
pub fn needs(task: &Task, now: Timestamp) -> Vec<Need> {
    if task.phase.is_over() || task.retry_at.is_some_and(|at| now < at) {
        return Vec::new();
    }
    if let Some(approved) = task.approved() {
        let is_free = claims_of(task, Role::Finalize) == 0 && can_pay(task, Role::Finalize);
        let last = Need::Final { candidate: approved.id.clone() };
        return if is_free { vec![last] } else { Vec::new() };
    }
    let mut needs: Vec<Need> =
        task.proposals.iter().filter_map(|it| of_candidate(task, it)).collect();
    needs.extend(proposals(task));
    needs
}

fn of_candidate(task: &Task, proposal: &Proposal) -> Option<Need> {
    match proposal.standing {
        Standing::Revealing => {
            let open = proposal.votes.iter().filter(|(_, it)| it.revealed.is_none());
            let voters: Vec<String> = open.map(|(voter, _)| voter.clone()).collect();
            (!voters.is_empty()).then(|| Need::Reveals { candidate: proposal.id.clone(), voters })
        }
        Standing::Waiting | Standing::Verifying => verdicts(task, proposal),
        Standing::Approved | Standing::Rejected | Standing::Undecided => None,
    }
}

fn verdicts(task: &Task, proposal: &Proposal) -> Option<Need> {
    let is_on_it = |it: &&super::Claim| {
        it.role == Role::Verify && it.candidate.as_deref() == Some(&proposal.id)
    };
    let under_way: Vec<&super::Claim> = task.claims.values().filter(is_on_it).collect();
    let asked = u32::try_from(under_way.len() + proposal.votes.len()).unwrap_or(u32::MAX);
    let free = task.terms.verify_at_once.saturating_sub(claims_of(task, Role::Verify));
    let count = task.terms.max_verifiers.saturating_sub(asked).min(free);
    if count == 0 || !can_pay(task, Role::Verify) {
        return None;
    }
    let mut without: Vec<String> = proposal.proposers.iter().cloned().collect();
    without.extend(proposal.votes.keys().cloned());
    without.extend(under_way.into_iter().map(|claim| claim.holder.clone()));
    Some(Need::Verdicts { candidate: proposal.id.clone(), count, without })
}

fn proposals(task: &Task) -> Option<Need> {
    let found = u32::try_from(task.proposals.len()).unwrap_or(u32::MAX);
    let proposers: usize = task.proposals.iter().map(|it| it.proposers.len()).sum();
    let under_way = claims_of(task, Role::Propose);
    let asked = u32::try_from(proposers).unwrap_or(u32::MAX).saturating_add(under_way);
    let free = task.terms.propose_at_once.saturating_sub(under_way);
    let wanted = task.terms.max_proposers.saturating_sub(asked);
    let open = task.terms.topk.saturating_sub(found.saturating_add(under_way));
    let count = wanted.min(free).min(open);
    (count != 0 && can_pay(task, Role::Propose)).then_some(Need::Proposals { count })
}
