//! Adds the events that fall due by the clock: leases, reveals, waits, settlements and the end of
//! the task.

use super::{Forfeit, LeaseRelease, Proposal, ProposalStanding, Task, TaskEvent, VoteGap};
use crate::time::Timestamp;

impl Task {
    /// The next time at which the clock alone changes something, or at which there is work again;
    /// `None` if nothing will ever happen by itself.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        let windows = self.windows.iter().map(|it| it.until);
        if self.is_over() {
            return windows.min();
        }
        let leases = self.claims.values().map(|claim| claim.until);
        let candidates = self.proposals.iter().filter_map(|it| self.candidate_wakes_at(it));
        let waits = self.retry_at.into_iter().chain([self.deadline()]);
        leases.chain(candidates).chain(waits).chain(windows).min()
    }

    fn candidate_wakes_at(&self, proposal: &Proposal) -> Option<Timestamp> {
        match proposal.standing {
            ProposalStanding::Revealing => proposal.reveal_until,
            ProposalStanding::Waiting | ProposalStanding::Verifying => {
                let reuse = self.reuse_until().filter(|_| proposal.source.is_some());
                proposal.retry_at.into_iter().chain(reuse).min()
            }
            ProposalStanding::Approved
            | ProposalStanding::Rejected
            | ProposalStanding::Undecided => None,
        }
    }

    /// The events that are due at a time.
    pub(super) fn due(&self, now: Timestamp) -> Vec<TaskEvent> {
        let mut events = self.settled(now);
        if self.is_over() {
            return events;
        }
        if self.deadline() <= now {
            let is_expired = self.terms.expires_at <= now;
            let reason =
                if is_expired { "its contract expired" } else { "its time budget is used up" };
            events.push(TaskEvent::Expired { reason: reason.to_owned() });
            return events;
        }
        for (token, claim) in &self.claims {
            if claim.until <= now {
                events
                    .push(TaskEvent::Released { token: *token, reason: LeaseRelease::LeaseRanOut });
            }
        }
        for proposal in &self.proposals {
            events.extend(late_votes(proposal, now));
            events.extend(self.late_reuse(proposal, now));
        }
        events
    }

    fn settled(&self, now: Timestamp) -> Vec<TaskEvent> {
        let over = self.windows.iter().filter(|it| it.until <= now);
        over.map(|it| TaskEvent::Settled {
            epoch: it.epoch,
            candidate: it.candidate.clone(),
            is_bad: it.complaint.is_some(),
        })
        .collect()
    }

    /// A candidate from knowledge has a time limit of its own. Votes that are being revealed come
    /// first: they cost nothing more.
    fn late_reuse(&self, proposal: &Proposal, now: Timestamp) -> Vec<TaskEvent> {
        let is_over = self.reuse_until().is_some_and(|until| until <= now);
        let is_at_work =
            matches!(proposal.standing, ProposalStanding::Waiting | ProposalStanding::Verifying);
        if proposal.source.is_none() || !is_at_work || !is_over {
            return Vec::new();
        }
        let on_it = |it: &super::TaskLease| it.candidate.as_ref() == Some(&proposal.id);
        let at_work = self.claims.iter().filter(|(_, it)| on_it(it) && now < it.until);
        let detail = "the time to vote on reused decisions is used up";
        let give_up = |token: &u64| TaskEvent::Released {
            token: *token,
            reason: LeaseRelease::GivenUp { detail: detail.to_owned() },
        };
        let mut events: Vec<TaskEvent> = at_work.map(|(token, _)| give_up(token)).collect();
        events
            .push(TaskEvent::Undecided { candidate: proposal.id.clone(), why: VoteGap::ReuseTime });
        events
    }
}

fn late_votes(proposal: &Proposal, now: Timestamp) -> Vec<TaskEvent> {
    let is_over = proposal.reveal_until.is_some_and(|until| until <= now);
    if proposal.standing != ProposalStanding::Revealing || !is_over {
        return Vec::new();
    }
    let forfeit = |voter: &String| TaskEvent::VoteForfeited {
        candidate: proposal.id.clone(),
        voter: voter.clone(),
        why: Forfeit::Late,
    };
    proposal.hidden().map(forfeit).collect()
}
