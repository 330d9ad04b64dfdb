//! Applies events to a task. It never refuses: a recorded event has happened.

mod proposing;
mod voting;

use super::{ComplaintWindow, TaskSpending};
use super::{
    DecisionMode, LeaseRelease, Proposal, ProposalStanding, Task, TaskEnd, TaskEvent, TaskLease,
    TaskPhase, TaskRole, UnfinishedWork,
};
use crate::time::Timestamp;

impl Task {
    /// Changes the task by an event.
    pub fn apply(&mut self, event: &TaskEvent, at: Timestamp) {
        match event {
            TaskEvent::Created { terms } => *self = Self::created(&self.id, (**terms).clone(), at),
            TaskEvent::Claimed { token, claim } => self.leased(*token, claim, at),
            TaskEvent::Renewed { token, until } => {
                if let Some(claim) = self.claims.get_mut(token) {
                    claim.until = *until;
                }
            }
            TaskEvent::Released { token, reason } => self.released(*token, reason, at),
            TaskEvent::Charged { role, reuse } => self.spent.charge(*role, *reuse),
            TaskEvent::Refunded { role, reuse } => self.spent.refund(*role, *reuse),
            TaskEvent::Proposed { .. }
            | TaskEvent::Reused { .. }
            | TaskEvent::ExploreClosed { .. }
            | TaskEvent::RetryScheduled { .. } => self.apply_proposing(event, at),
            TaskEvent::EvidenceSeen { .. }
            | TaskEvent::VoteCommitted { .. }
            | TaskEvent::RevealOpened { .. }
            | TaskEvent::VoteRevealed { .. }
            | TaskEvent::VoteForfeited { .. }
            | TaskEvent::Equivocated { .. }
            | TaskEvent::VotingExtended { .. }
            | TaskEvent::Committed { .. }
            | TaskEvent::Rejected { .. }
            | TaskEvent::VerificationRepeated { .. }
            | TaskEvent::Undecided { .. } => self.apply_voting(event),
            TaskEvent::Finalized { epoch, candidate, settles_at } => {
                self.finalized(*epoch, candidate, *settles_at);
            }
            TaskEvent::Complained { epoch, reason, .. } => {
                let open = self.windows.iter_mut().find(|it| it.epoch == *epoch);
                if let Some(window) = open {
                    window.complaint = Some(reason.clone());
                }
            }
            TaskEvent::Settled { epoch, .. } => self.windows.retain(|it| it.epoch != *epoch),
            TaskEvent::EpochEnded { epoch } => self.next_epoch(*epoch),
            TaskEvent::Failed { reason } => self.ended(TaskEnd::Failed { reason: reason.clone() }),
            TaskEvent::Expired { reason } => {
                self.ended(TaskEnd::Expired { reason: reason.clone() });
            }
            TaskEvent::Cancelled { reason } => {
                self.ended(TaskEnd::Cancelled { reason: reason.clone() });
            }
        }
        self.phase = self.phase_now();
    }

    fn find(&mut self, id: &str) -> Option<&mut Proposal> {
        self.proposals.iter_mut().find(|proposal| proposal.id == id)
    }

    fn leased(&mut self, token: u64, claim: &TaskLease, at: Timestamp) {
        self.started_at.get_or_insert(at);
        self.last_token = self.last_token.max(token);
        let is_resumed = |it: &UnfinishedWork| {
            it.role == claim.role && it.holder == claim.holder && it.candidate == claim.candidate
        };
        self.unfinished.retain(|it| !is_resumed(it));
        match claim.role {
            TaskRole::Propose => self.retry_at = None,
            TaskRole::Verify => {
                let candidate = claim.candidate.as_deref().unwrap_or_default();
                if let Some(proposal) = self.find(candidate) {
                    proposal.standing = ProposalStanding::Verifying;
                    proposal.retry_at = None;
                    proposal.pool_keys = claim.pool_keys;
                }
            }
            TaskRole::Finalize => {}
        }
        self.claims.insert(token, claim.clone());
    }

    fn released(&mut self, token: u64, reason: &LeaseRelease, at: Timestamp) {
        let Some(claim) = self.claims.remove(&token) else { return };
        match (reason, claim.role) {
            (LeaseRelease::LeaseRanOut | LeaseRelease::GivenUp { .. }, _) => {
                self.abandoned(claim, true);
            }
            (LeaseRelease::NodeFailed { .. }, _) => {
                let again_at = at.plus_millis(self.terms.backoff(self.node_failures));
                self.node_failures += 1;
                let candidate = claim.candidate.clone().unwrap_or_default();
                match claim.role {
                    TaskRole::Propose => self.retry_at = Some(again_at),
                    TaskRole::Verify => {
                        if let Some(proposal) = self.find(&candidate) {
                            proposal.retry_at = Some(again_at);
                        }
                    }
                    TaskRole::Finalize => {}
                }
                // An event of its own returns the payment.
                self.abandoned(claim, false);
            }
            (LeaseRelease::Failed { .. }, TaskRole::Propose) => {
                *self.failed_proposers.entry(claim.holder).or_default() += 1;
            }
            (LeaseRelease::Failed { .. }, TaskRole::Verify) => {
                let candidate = claim.candidate.unwrap_or_default();
                if let Some(proposal) = self.find(&candidate) {
                    *proposal.failed_verifiers.entry(claim.holder).or_default() += 1;
                }
            }
            (LeaseRelease::Failed { .. }, TaskRole::Finalize) => {}
        }
    }

    /// Records work with an unknown result.
    fn abandoned(&mut self, claim: TaskLease, is_charged: bool) {
        let TaskLease { role, holder, candidate, execution_id, .. } = claim;
        self.unfinished.push(UnfinishedWork { role, holder, candidate, execution_id, is_charged });
    }

    fn finalized(&mut self, epoch: u64, candidate: &str, until: Timestamp) {
        let candidate = candidate.to_owned();
        self.decided = Some(candidate.clone());
        self.windows.push(ComplaintWindow {
            epoch,
            candidate: candidate.clone(),
            until,
            complaint: None,
        });
        self.claims.clear();
        if self.terms.mode == DecisionMode::OneShot {
            self.ended(TaskEnd::Finalized { candidate });
        }
    }

    fn ended(&mut self, end: TaskEnd) {
        self.claims.clear();
        self.unfinished.clear();
        self.end = Some(end);
    }

    /// Resets everything that belongs to one decision. Tokens keep rising, and equivocators have no
    /// vote in any epoch.
    fn next_epoch(&mut self, epoch: u64) {
        let fresh = Self::created(&self.id, self.terms.clone(), self.created_at);
        *self = Self {
            epoch: epoch + 1,
            last_token: self.last_token,
            equivocators: std::mem::take(&mut self.equivocators),
            windows: std::mem::take(&mut self.windows),
            spent: TaskSpending::default(),
            ..fresh
        };
    }

    fn phase_now(&self) -> TaskPhase {
        match &self.end {
            Some(TaskEnd::Finalized { .. }) => return TaskPhase::Finalized,
            Some(TaskEnd::Failed { .. }) => return TaskPhase::Failed,
            Some(TaskEnd::Expired { .. }) => return TaskPhase::Expired,
            Some(TaskEnd::Cancelled { .. }) => return TaskPhase::Cancelled,
            None => {}
        }
        let is_under_way = |proposal: &Proposal| {
            matches!(proposal.standing, ProposalStanding::Verifying | ProposalStanding::Revealing)
        };
        let is_waiting = |proposal: &Proposal| proposal.standing == ProposalStanding::Waiting;
        if self.decided.is_some() {
            TaskPhase::Finalized
        } else if self.approved().is_some() {
            TaskPhase::Committed
        } else if self.proposals.iter().any(is_under_way) {
            TaskPhase::Verifying
        } else if self.proposals.iter().any(is_waiting) {
            TaskPhase::Proposed
        } else if self.claims.is_empty() {
            TaskPhase::Created
        } else {
            TaskPhase::Claimed
        }
    }
}
