//! Adds the events that follow from the state of a task: opened reveals, decided votes, ends.

use std::{cmp::Reverse, collections::BTreeSet};

use super::{
    ExhaustedRoles, ExploreEnd, Proposal, ProposalStanding, Task, TaskEvent, TaskLease, TaskRole,
    VoteGap, VoteTally, VoterReliability, aggregate::VoteSides,
};
use crate::time::Timestamp;

/// The facts that a consequence depends on.
struct FollowContext<'a> {
    exhausted: ExhaustedRoles,
    now: Timestamp,
    known: &'a VoterReliability,
}

/// Adds all consequences, one after the other. Each one moves the task forward, so the loop ends.
pub(super) fn follow_up(
    task: &mut Task,
    exhausted: ExhaustedRoles,
    now: Timestamp,
    known: &VoterReliability,
) -> Vec<TaskEvent> {
    let view = FollowContext { exhausted, now, known };
    let mut events = Vec::new();
    while let Some(event) = consequence(task, &view) {
        task.apply(&event, now);
        events.push(event);
    }
    events
}

fn consequence(task: &Task, view: &FollowContext<'_>) -> Option<TaskEvent> {
    if task.is_over() || task.is_waiting() {
        return None;
    }
    if task.approved().is_some() {
        let is_stuck = task.leases_of(TaskRole::Finalize) == 0 && !task.can_pay(TaskRole::Finalize);
        return is_stuck.then(|| failed("the budget to finalize the decision is used up"));
    }
    if let Some(proposal) = task.current_candidate() {
        return of_votes(task, proposal, view);
    }
    if task.is_explored { Some(of_refusals(task, view)) } else { of_exploring(task, view) }
}

fn failed(reason: &str) -> TaskEvent {
    TaskEvent::Failed { reason: reason.to_owned() }
}

/// Votes are revealed once nobody else is to vote, and decide once they are revealed.
fn of_votes(task: &Task, proposal: &Proposal, view: &FollowContext<'_>) -> Option<TaskEvent> {
    let is_early = proposal.retry_at.is_some_and(|at| view.now < at);
    if is_early || task.vote_leases(&proposal.id).next().is_some() {
        return None;
    }
    let has_hidden = proposal.hidden().next().is_some();
    if proposal.standing == ProposalStanding::Revealing {
        return (!has_hidden).then(|| of_revealed(task, proposal, view));
    }
    let can_ask = !view.exhausted.verifiers
        && task.open_votes(proposal) > 0
        && task.can_pay_verdict(proposal)
        && task.is_reachable(proposal, view.known);
    if can_ask {
        return None;
    }
    if !has_hidden {
        return Some(of_revealed(task, proposal, view));
    }
    let until = view.now.plus_millis(task.terms.reveal_ms);
    Some(TaskEvent::RevealOpened { candidate: proposal.id.clone(), turn: proposal.turn, until })
}

/// The result of the votes once all of them are visible.
fn of_revealed(task: &Task, proposal: &Proposal, view: &FollowContext<'_>) -> TaskEvent {
    let candidate = proposal.id.clone();
    let sides = VoteSides::of(proposal, &task.terms, view.known);
    let (why, lack) = match sides.tally() {
        VoteTally::Approved if task.is_available(proposal) => {
            return TaskEvent::Committed { candidate };
        }
        VoteTally::Rejected => return TaskEvent::Rejected { candidate },
        VoteTally::Approved => (VoteGap::EvidenceMissing, 1),
        VoteTally::Open(why) => (why, task.terms.quorum.saturating_sub(sides.strongest()).max(1)),
    };
    let is_late = task.reuse_until().is_some_and(|until| until <= view.now);
    if proposal.source.is_some() && is_late {
        return TaskEvent::Undecided { candidate, why: VoteGap::ReuseTime };
    }
    let (turn, asked) = (proposal.turn + 1, proposal.voter_count());
    let wanted = asked.saturating_add(lack).min(task.terms.max_verifiers);
    let can_extend = !view.exhausted.verifiers
        && asked < wanted
        && task.can_pay_verdict(proposal)
        && task.is_reachable(proposal, view.known);
    if can_extend {
        return TaskEvent::VotingExtended { candidate, turn, wanted };
    }
    let mut rest = proposal.clone();
    rest.drop_empty_votes();
    let wanted = rest.voter_count().saturating_add(lack).min(task.terms.max_verifiers);
    if may_repeat(task, proposal, &rest, view) {
        let at = view.now.plus_millis(task.terms.backoff(proposal.repeats));
        return TaskEvent::VerificationRepeated { candidate, turn, wanted, why, at };
    }
    TaskEvent::Undecided { candidate, why }
}

/// A vote is repeated if a voter could say more than the last time. Contradicting votes are not
/// repeated: asking again until the result fits would not be verification.
fn may_repeat(task: &Task, proposal: &Proposal, rest: &Proposal, view: &FollowContext<'_>) -> bool {
    let is_open = rest.voter_count() < proposal.voter_count()
        || !proposal.failed_verifiers.is_empty()
        || rest.voter_count() < task.terms.quorum;
    proposal.repeats < task.terms.max_repeats
        && is_open
        && rest.voter_count() < task.terms.max_verifiers
        && task.can_pay_verdict(proposal)
        && task.is_reachable(rest, view.known)
}

fn of_exploring(task: &Task, view: &FollowContext<'_>) -> Option<TaskEvent> {
    let is_early = task.retry_at.is_some_and(|at| view.now < at);
    if is_early || task.leases_of(TaskRole::Propose) > 0 {
        return None;
    }
    let nobody = view.exhausted.proposers.then_some(ExploreEnd::NobodyLeft);
    task.stop().or(nobody).map(|why| TaskEvent::ExploreClosed { why })
}

/// What follows if no candidate can be approved any more.
fn of_refusals(task: &Task, view: &FollowContext<'_>) -> TaskEvent {
    // Failed executors may recover; executors whose candidates were rejected do not change.
    let is_hopeful = !task.failed_proposers.is_empty() || task.proposed.is_empty();
    if is_hopeful && task.stop().is_none() && task.retries < task.terms.max_retries {
        let at = view.now.plus_millis(task.terms.backoff(task.retries));
        return TaskEvent::RetryScheduled { at };
    }
    let is_left = |gap: VoteGap| task.proposals.iter().any(|it| it.gap == Some(gap));
    let has_none = task.proposals.is_empty();
    failed(if has_none && !task.can_pay(TaskRole::Propose) {
        "no executor proposed a candidate, and the budget cannot pay for another proposal"
    } else if has_none {
        "no executor proposed a candidate"
    } else if is_left(VoteGap::EvidenceMissing) {
        "too few voters could fetch the evidence"
    } else if is_left(VoteGap::Tie) {
        "the voters contradict each other"
    } else if is_left(VoteGap::TooFewVotes) && !task.can_pay(TaskRole::Verify) {
        "the voters reached no decision, and the budget cannot pay for another verdict"
    } else if is_left(VoteGap::TooFewVotes) || is_left(VoteGap::Dependent) {
        "the voters reached no decision"
    } else if task.proposed.is_empty() {
        "no executor proposed a candidate"
    } else {
        "the voters rejected every candidate"
    })
}

impl Task {
    /// The candidate to vote on: first one from knowledge; once proposing is over, the candidate
    /// whose vote was started, or the one that most executors proposed.
    pub fn current_candidate(&self) -> Option<&Proposal> {
        let live = || self.proposals.iter().enumerate().filter(|(_, it)| it.is_live());
        let (_, known) = live().find(|(_, it)| it.source.is_some()).unzip();
        if known.is_some() || !self.is_explored {
            return known;
        }
        let rank = |at: &usize, it: &Proposal| {
            let is_begun = it.standing != ProposalStanding::Waiting || it.repeats > 0;
            (is_begun, it.proposers.len(), Reverse(*at))
        };
        live().max_by_key(|(at, it)| rank(at, it)).map(|(_, it)| it)
    }

    /// The leases to vote on a candidate.
    pub(super) fn vote_leases<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a TaskLease> {
        let on_it = move |it: &&TaskLease| {
            it.role == TaskRole::Verify && it.candidate.as_deref() == Some(id)
        };
        self.claims.values().filter(on_it)
    }

    /// How many more voters a candidate needs now.
    pub(super) fn open_votes(&self, proposal: &Proposal) -> u32 {
        let under_way = u32::try_from(self.vote_leases(&proposal.id).count()).unwrap_or(u32::MAX);
        proposal.wanted.saturating_sub(proposal.voter_count().saturating_add(under_way))
    }

    /// How many more executors may be asked to propose, regardless of cost.
    pub(super) fn open_proposals(&self) -> u32 {
        let under_way = self.leases_of(TaskRole::Propose);
        let proposed = u32::try_from(self.proposed.len()).unwrap_or(u32::MAX);
        let more = self.terms.max_proposers.saturating_sub(proposed);
        let more = more.min(self.terms.topk.saturating_sub(self.candidates()));
        more.saturating_sub(under_way)
    }

    fn candidates(&self) -> u32 {
        let count = self.proposals.iter().filter(|it| it.source.is_none()).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Why proposing ends, as far as the contract says.
    pub(super) fn stop(&self) -> Option<ExploreEnd> {
        let proposed = u32::try_from(self.proposed.len()).unwrap_or(u32::MAX);
        if self.terms.max_proposers <= proposed {
            Some(ExploreEnd::MaxProposers)
        } else if self.terms.topk <= self.candidates() {
            Some(ExploreEnd::TopK)
        } else if self.terms.no_new_evidence_rounds <= self.barren {
            Some(ExploreEnd::NothingNew)
        } else if !self.can_pay(TaskRole::Propose) && self.resumable_proposers().is_empty() {
            Some(ExploreEnd::Budget)
        } else {
            None
        }
    }

    /// Whether the votes that are still available and affordable could decide. If not, nobody is
    /// asked: it would cost and change nothing.
    fn is_reachable(&self, proposal: &Proposal, known: &VoterReliability) -> bool {
        let strongest = VoteSides::of(proposal, &self.terms, known).strongest();
        let hidden = proposal.hidden().count();
        let open = self.terms.max_verifiers.saturating_sub(proposal.voter_count());
        let begun = u64::try_from(self.resumable_voters(proposal).len()).unwrap_or(u64::MAX);
        let more = self.payable(proposal.source.is_some()).saturating_add(begun);
        let more = more.min(u64::from(open));
        let all = u64::from(strongest) + u64::try_from(hidden).unwrap_or(u64::MAX) + more;
        u64::from(self.terms.quorum) <= all
    }

    /// Whether enough voters found all evidence of a candidate.
    pub(super) fn is_available(&self, proposal: &Proposal) -> bool {
        let needed = usize::try_from(self.terms.da_quorum).unwrap_or(usize::MAX);
        let seen = |digest: &String| proposal.available.get(digest).map_or(0, BTreeSet::len);
        needed == 0 || proposal.evidence.iter().all(|digest| needed <= seen(digest))
    }
}
