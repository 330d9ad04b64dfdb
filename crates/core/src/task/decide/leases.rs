//! Decides who may take a lease.

use super::{DecideResult, TaskRefusal};
use crate::task::{LeaseRelease, Proposal, ProposalStanding, Task, TaskEvent, TaskLease, TaskRole};
use crate::time::Timestamp;

/// Work is charged when it starts. Continuing interrupted work is not charged again.
pub(super) fn leased(task: &Task, token: u64, claim: &TaskLease, now: Timestamp) -> DecideResult {
    if token <= task.last_token {
        return Err(TaskRefusal::OldToken { given: token, last: task.last_token });
    }
    let most = match claim.role {
        TaskRole::Propose => task.terms.propose_at_once,
        TaskRole::Verify => task.terms.verify_at_once,
        TaskRole::Finalize => task.terms.max_finalizers,
    };
    if most <= task.leases_of(claim.role) {
        return Err(TaskRefusal::TooMany(claim.role));
    }
    let is_reuse = match claim.role {
        TaskRole::Propose => {
            may_propose(task, claim, now)?;
            false
        }
        TaskRole::Verify => may_vote(task, claim, now)?.source.is_some(),
        TaskRole::Finalize => {
            may_finalize(task, claim)?;
            false
        }
    };
    let claim =
        TaskLease { until: claim.until.min(now.plus_millis(task.terms.lease_ms)), ..claim.clone() };
    let charged = TaskEvent::Charged { role: claim.role, reuse: is_reuse };
    let charged = (!task.is_resumption(&claim)).then_some(charged);
    Ok([TaskEvent::Claimed { token, claim }].into_iter().chain(charged).collect())
}

/// How many failures of a node in an epoch are not counted against the executor: a task must not be
/// retried for ever.
const MOST_NODE_FAILURES: u32 = 8;

/// Refunds a failure of the node, up to this limit.
pub(super) fn released(
    task: &Task,
    token: u64,
    claim: &TaskLease,
    reason: &LeaseRelease,
) -> Vec<TaskEvent> {
    let LeaseRelease::NodeFailed { code, detail } = reason else {
        return vec![TaskEvent::Released { token, reason: reason.clone() }];
    };
    if MOST_NODE_FAILURES <= task.node_failures {
        let reason = LeaseRelease::Failed { code: code.clone(), detail: detail.clone() };
        return vec![TaskEvent::Released { token, reason }];
    }
    let proposal = claim.candidate.as_deref().and_then(|id| task.proposal(id));
    let is_verdict = claim.role == TaskRole::Verify;
    let reuse = is_verdict && proposal.is_some_and(|it| it.source.is_some());
    let refunded = TaskEvent::Refunded { role: claim.role, reuse };
    vec![TaskEvent::Released { token, reason: reason.clone() }, refunded]
}

fn may_propose(task: &Task, claim: &TaskLease, now: Timestamp) -> Result<(), TaskRefusal> {
    if task.retry_at.is_some_and(|at| now < at) || task.failed_proposers.contains_key(&claim.holder)
    {
        return Err(TaskRefusal::TooEarly);
    }
    let proposes =
        task.claims.values().any(|it| it.role == TaskRole::Propose && it.holder == claim.holder);
    let is_closed =
        task.is_explored || task.approved().is_some() || task.current_candidate().is_some();
    if is_closed || proposes || task.proposed.contains(&claim.holder) || task.open_proposals() == 0
    {
        return Err(TaskRefusal::TooMany(TaskRole::Propose));
    }
    let is_paid = task.is_resumption(claim) || task.can_pay(TaskRole::Propose);
    if is_paid { Ok(()) } else { Err(TaskRefusal::Budget(TaskRole::Propose)) }
}

fn may_vote<'a>(
    task: &'a Task,
    claim: &TaskLease,
    now: Timestamp,
) -> Result<&'a Proposal, TaskRefusal> {
    let id = claim.candidate.clone().unwrap_or_default();
    let is_open = |it: &&Proposal| {
        it.id == id
            && matches!(it.standing, ProposalStanding::Waiting | ProposalStanding::Verifying)
    };
    // Once a candidate is approved, nobody votes on others: that would cost and change nothing.
    let in_turn = task.current_candidate().filter(|_| task.approved().is_none());
    let proposal = in_turn.filter(is_open).ok_or(TaskRefusal::NoCandidate(id))?;
    if task.equivocators.contains(&claim.holder) {
        return Err(TaskRefusal::Equivocator(claim.holder.clone()));
    }
    if proposal.proposers.contains(&claim.holder) {
        return Err(TaskRefusal::OwnCandidate(claim.holder.clone()));
    }
    let is_under_way = task.vote_leases(&proposal.id).any(|it| it.holder == claim.holder);
    if is_under_way || proposal.votes.contains_key(&claim.holder) {
        return Err(TaskRefusal::VotesAlready(claim.holder.clone()));
    }
    let is_early = proposal.retry_at.is_some_and(|at| now < at);
    if is_early || proposal.failed_verifiers.contains_key(&claim.holder) {
        return Err(TaskRefusal::TooEarly);
    }
    if task.open_votes(proposal) == 0 {
        return Err(TaskRefusal::TooMany(TaskRole::Verify));
    }
    let is_paid = task.is_resumption(claim) || task.payable(proposal.source.is_some()) > 0;
    if is_paid { Ok(proposal) } else { Err(TaskRefusal::Budget(TaskRole::Verify)) }
}

fn may_finalize(task: &Task, claim: &TaskLease) -> Result<(), TaskRefusal> {
    let id = claim.candidate.clone().unwrap_or_default();
    let approved = task.approved().filter(|it| it.id == id && task.decided.is_none());
    approved.ok_or(TaskRefusal::NoCandidate(id))?;
    if task.can_pay(TaskRole::Finalize) {
        Ok(())
    } else {
        Err(TaskRefusal::Budget(TaskRole::Finalize))
    }
}
