//! What each event makes of a task. It never refuses: what is recorded has happened.

mod proposing;
mod voting;

use super::{Claim, End, Event, Mode, Phase, Proposal, Release, Role, Standing, Task, Unfinished};
use super::{Spent, Window};
use crate::time::Timestamp;

impl Task {
    /// The task after an event.
    pub fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::Created { terms } => *self = Self::created(&self.id, (**terms).clone(), at),
            Event::Claimed { token, claim } => self.claimed(*token, claim, at),
            Event::Renewed { token, until } => {
                if let Some(claim) = self.claims.get_mut(token) {
                    claim.until = *until;
                }
            }
            Event::Released { token, reason } => self.released(*token, reason, at),
            Event::Charged { role, reuse } => self.spent.charge(*role, *reuse),
            Event::Refunded { role, reuse } => self.spent.refund(*role, *reuse),
            Event::Proposed { .. }
            | Event::Reused { .. }
            | Event::ExploreClosed { .. }
            | Event::RetryScheduled { .. } => self.apply_proposing(event, at),
            Event::EvidenceSeen { .. }
            | Event::VoteCommitted { .. }
            | Event::RevealOpened { .. }
            | Event::VoteRevealed { .. }
            | Event::VoteForfeited { .. }
            | Event::Equivocated { .. }
            | Event::VotingExtended { .. }
            | Event::Committed { .. }
            | Event::Rejected { .. }
            | Event::VerificationRepeated { .. }
            | Event::Undecided { .. } => self.apply_voting(event),
            Event::Finalized { epoch, candidate, settles_at } => {
                self.finalized(*epoch, candidate, *settles_at);
            }
            Event::Complained { epoch, reason, .. } => {
                let open = self.windows.iter_mut().find(|it| it.epoch == *epoch);
                if let Some(window) = open {
                    window.complaint = Some(reason.clone());
                }
            }
            Event::Settled { epoch, .. } => self.windows.retain(|it| it.epoch != *epoch),
            Event::EpochEnded { epoch } => self.next_epoch(*epoch),
            Event::Failed { reason } => self.ended(End::Failed { reason: reason.clone() }),
            Event::Expired { reason } => self.ended(End::Expired { reason: reason.clone() }),
            Event::Cancelled { reason } => self.ended(End::Cancelled { reason: reason.clone() }),
        }
        self.phase = self.phase_now();
    }

    fn find(&mut self, id: &str) -> Option<&mut Proposal> {
        self.proposals.iter_mut().find(|proposal| proposal.id == id)
    }

    fn claimed(&mut self, token: u64, claim: &Claim, at: Timestamp) {
        self.started_at.get_or_insert(at);
        self.last_token = self.last_token.max(token);
        let is_resumed = |it: &Unfinished| {
            it.role == claim.role && it.holder == claim.holder && it.candidate == claim.candidate
        };
        self.unfinished.retain(|it| !is_resumed(it));
        match claim.role {
            Role::Propose => self.retry_at = None,
            Role::Verify => {
                let candidate = claim.candidate.as_deref().unwrap_or_default();
                if let Some(proposal) = self.find(candidate) {
                    proposal.standing = Standing::Verifying;
                    proposal.retry_at = None;
                    proposal.pool_keys = claim.pool_keys;
                }
            }
            Role::Finalize => {}
        }
        self.claims.insert(token, claim.clone());
    }

    fn released(&mut self, token: u64, reason: &Release, at: Timestamp) {
        let Some(claim) = self.claims.remove(&token) else { return };
        match (reason, claim.role) {
            (Release::LeaseRanOut | Release::GivenUp { .. }, _) => self.left(claim, true),
            (Release::NodeFailed { .. }, _) => {
                let again_at = at.plus_millis(self.terms.backoff(self.node_failures));
                self.node_failures += 1;
                let candidate = claim.candidate.clone().unwrap_or_default();
                match claim.role {
                    Role::Propose => self.retry_at = Some(again_at),
                    Role::Verify => {
                        if let Some(proposal) = self.find(&candidate) {
                            proposal.retry_at = Some(again_at);
                        }
                    }
                    Role::Finalize => {}
                }
                // What was paid is given back by an event of its own.
                self.left(claim, false);
            }
            (Release::Failed { .. }, Role::Propose) => {
                *self.failed_proposers.entry(claim.holder).or_default() += 1;
            }
            (Release::Failed { .. }, Role::Verify) => {
                let candidate = claim.candidate.unwrap_or_default();
                if let Some(proposal) = self.find(&candidate) {
                    *proposal.failed_verifiers.entry(claim.holder).or_default() += 1;
                }
            }
            (Release::Failed { .. }, Role::Finalize) => {}
        }
    }

    /// Nobody knows what came of the work.
    fn left(&mut self, claim: Claim, is_charged: bool) {
        let Claim { role, holder, candidate, execution_id, .. } = claim;
        self.unfinished.push(Unfinished { role, holder, candidate, execution_id, is_charged });
    }

    fn finalized(&mut self, epoch: u64, candidate: &str, until: Timestamp) {
        let candidate = candidate.to_owned();
        self.decided = Some(candidate.clone());
        self.windows.push(Window { epoch, candidate: candidate.clone(), until, complaint: None });
        self.claims.clear();
        if self.terms.mode == Mode::OneShot {
            self.ended(End::Finalized { candidate });
        }
    }

    fn ended(&mut self, end: End) {
        self.claims.clear();
        self.unfinished.clear();
        self.end = Some(end);
    }

    /// All that belongs to one decision begins anew. Tokens go on rising, and who was proven to
    /// equivocate has no vote in any epoch.
    fn next_epoch(&mut self, epoch: u64) {
        let fresh = Self::created(&self.id, self.terms.clone(), self.created_at);
        *self = Self {
            epoch: epoch + 1,
            last_token: self.last_token,
            equivocators: std::mem::take(&mut self.equivocators),
            windows: std::mem::take(&mut self.windows),
            spent: Spent::default(),
            ..fresh
        };
    }

    fn phase_now(&self) -> Phase {
        match &self.end {
            Some(End::Finalized { .. }) => return Phase::Finalized,
            Some(End::Failed { .. }) => return Phase::Failed,
            Some(End::Expired { .. }) => return Phase::Expired,
            Some(End::Cancelled { .. }) => return Phase::Cancelled,
            None => {}
        }
        let is_under_way = |proposal: &Proposal| {
            matches!(proposal.standing, Standing::Verifying | Standing::Revealing)
        };
        let is_waiting = |proposal: &Proposal| proposal.standing == Standing::Waiting;
        if self.decided.is_some() {
            Phase::Finalized
        } else if self.approved().is_some() {
            Phase::Committed
        } else if self.proposals.iter().any(is_under_way) {
            Phase::Verifying
        } else if self.proposals.iter().any(is_waiting) {
            Phase::Proposed
        } else if self.claims.is_empty() {
            Phase::Created
        } else {
            Phase::Claimed
        }
    }
}
