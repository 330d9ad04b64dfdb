//! Who may take up which work.

use super::{
    super::{Claim, Event, Proposal, Release, Role, Standing, Task},
    Decided, Refusal,
};
use crate::time::Timestamp;

/// Work is paid for when it begins. Whoever goes on with what was interrupted is not charged again.
pub(super) fn claimed(task: &Task, token: u64, claim: &Claim, now: Timestamp) -> Decided {
    if token <= task.last_token {
        return Err(Refusal::OldToken { given: token, last: task.last_token });
    }
    let most = match claim.role {
        Role::Propose => task.terms.propose_at_once,
        Role::Verify => task.terms.verify_at_once,
        Role::Finalize => task.terms.max_finalizers,
    };
    if most <= task.claims_of(claim.role) {
        return Err(Refusal::TooMany(claim.role));
    }
    let is_reuse = match claim.role {
        Role::Propose => {
            may_propose(task, claim, now)?;
            false
        }
        Role::Verify => may_verify(task, claim, now)?.source.is_some(),
        Role::Finalize => {
            may_finalize(task, claim)?;
            false
        }
    };
    let claim =
        Claim { until: claim.until.min(now.plus_millis(task.terms.lease_ms)), ..claim.clone() };
    let charged = Event::Charged { role: claim.role, reuse: is_reuse };
    let charged = (!task.is_begun(&claim)).then_some(charged);
    Ok([Event::Claimed { token, claim }].into_iter().chain(charged).collect())
}

/// How often in an epoch a node may fail before it counts against whom it asks: a task must not be
/// tried for ever.
const MOST_NODE_FAILURES: u32 = 8;

/// What a failure of a node costs is given back, so often.
pub(super) fn released(task: &Task, token: u64, claim: &Claim, reason: &Release) -> Vec<Event> {
    let Release::NodeFailed { code, detail } = reason else {
        return vec![Event::Released { token, reason: reason.clone() }];
    };
    if MOST_NODE_FAILURES <= task.node_failures {
        let reason = Release::Failed { code: code.clone(), detail: detail.clone() };
        return vec![Event::Released { token, reason }];
    }
    let proposal = claim.candidate.as_deref().and_then(|id| task.proposal(id));
    let is_verdict = claim.role == Role::Verify;
    let reuse = is_verdict && proposal.is_some_and(|it| it.source.is_some());
    let refunded = Event::Refunded { role: claim.role, reuse };
    vec![Event::Released { token, reason: reason.clone() }, refunded]
}

fn may_propose(task: &Task, claim: &Claim, now: Timestamp) -> Result<(), Refusal> {
    if task.retry_at.is_some_and(|at| now < at) || task.failed_proposers.contains_key(&claim.holder)
    {
        return Err(Refusal::TooEarly);
    }
    let proposes =
        task.claims.values().any(|it| it.role == Role::Propose && it.holder == claim.holder);
    let is_closed = task.is_explored || task.approved().is_some() || task.in_turn().is_some();
    if is_closed || proposes || task.proposed.contains(&claim.holder) || task.open_proposals() == 0
    {
        return Err(Refusal::TooMany(Role::Propose));
    }
    let is_paid = task.is_begun(claim) || task.can_pay(Role::Propose);
    if is_paid { Ok(()) } else { Err(Refusal::Budget(Role::Propose)) }
}

fn may_verify<'a>(task: &'a Task, claim: &Claim, now: Timestamp) -> Result<&'a Proposal, Refusal> {
    let id = claim.candidate.clone().unwrap_or_default();
    let is_open = |it: &&Proposal| {
        it.id == id && matches!(it.standing, Standing::Waiting | Standing::Verifying)
    };
    // Once one is approved nothing else is verified: the rest would cost and change nothing.
    let in_turn = task.in_turn().filter(|_| task.approved().is_none());
    let proposal = in_turn.filter(is_open).ok_or(Refusal::NoCandidate(id))?;
    if task.equivocators.contains(&claim.holder) {
        return Err(Refusal::Equivocator(claim.holder.clone()));
    }
    if proposal.proposers.contains(&claim.holder) {
        return Err(Refusal::OwnCandidate(claim.holder.clone()));
    }
    let is_under_way = task.verifies(&proposal.id).any(|it| it.holder == claim.holder);
    if is_under_way || proposal.votes.contains_key(&claim.holder) {
        return Err(Refusal::VotesAlready(claim.holder.clone()));
    }
    let is_early = proposal.retry_at.is_some_and(|at| now < at);
    if is_early || proposal.failed_verifiers.contains_key(&claim.holder) {
        return Err(Refusal::TooEarly);
    }
    if task.open_votes(proposal) == 0 {
        return Err(Refusal::TooMany(Role::Verify));
    }
    let is_paid = task.is_begun(claim) || task.payable(proposal.source.is_some()) > 0;
    if is_paid { Ok(proposal) } else { Err(Refusal::Budget(Role::Verify)) }
}

fn may_finalize(task: &Task, claim: &Claim) -> Result<(), Refusal> {
    let id = claim.candidate.clone().unwrap_or_default();
    let approved = task.approved().filter(|it| it.id == id && task.decided.is_none());
    approved.ok_or(Refusal::NoCandidate(id))?;
    if task.can_pay(Role::Finalize) { Ok(()) } else { Err(Refusal::Budget(Role::Finalize)) }
}
