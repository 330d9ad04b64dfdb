//! What each event makes of a task. It never refuses: what is recorded has happened.

use std::collections::{BTreeMap, BTreeSet};

use super::{End, Event, Phase, Proposal, Role, Spent, Standing, Task, Terms, Vote};
use crate::time::Timestamp;

impl Task {
    /// The task that its first event makes.
    pub fn created(id: &str, terms: Terms, at: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            terms,
            phase: Phase::Created,
            created_at: at,
            started_at: None,
            last_token: 0,
            claims: BTreeMap::new(),
            proposals: Vec::new(),
            failed_proposers: BTreeMap::new(),
            retries: 0,
            retry_at: None,
            spent: Spent::default(),
            end: None,
        }
    }

    /// The task after an event.
    pub fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::Created { terms } => *self = Self::created(&self.id, (**terms).clone(), at),
            Event::Claimed { token, claim } => {
                self.started_at.get_or_insert(at);
                self.retry_at = None;
                self.last_token = self.last_token.max(*token);
                if let Some(proposal) = claim.candidate.as_deref().and_then(|id| self.find(id))
                    && claim.role == Role::Verify
                {
                    proposal.standing = Standing::Verifying;
                }
                self.claims.insert(*token, claim.clone());
            }
            Event::Renewed { token, until } => {
                if let Some(claim) = self.claims.get_mut(token) {
                    claim.until = *until;
                }
            }
            Event::Released { token, .. } => self.released(*token),
            Event::Charged { role } => self.charged(*role),
            Event::Proposed { token, candidate, digest, evidence } => {
                self.proposed(*token, candidate, digest, evidence);
            }
            Event::EvidenceSeen { candidate, verifier, digest } => {
                if let Some(proposal) = self.find(candidate) {
                    let seen = proposal.available.entry(digest.clone()).or_default();
                    seen.insert(verifier.clone());
                }
            }
            Event::VoteCommitted { .. }
            | Event::RevealOpened { .. }
            | Event::VoteRevealed { .. }
            | Event::VoteForfeited { .. } => self.voted(event),
            Event::Committed { candidate } => self.stands(candidate, Standing::Approved),
            Event::Rejected { candidate } => self.stands(candidate, Standing::Rejected),
            Event::Undecided { candidate } => self.stands(candidate, Standing::Undecided),
            Event::VerificationRepeated { candidate } => {
                if let Some(proposal) = self.find(candidate) {
                    proposal.repeats += 1;
                    proposal.votes.clear();
                    proposal.reveal_until = None;
                    proposal.standing = Standing::Waiting;
                }
            }
            Event::RetryScheduled { at } => {
                self.retries += 1;
                self.retry_at = Some(*at);
                self.failed_proposers.clear();
            }
            Event::Ended { end } => {
                self.claims.clear();
                self.end = Some(end.clone());
            }
        }
        self.phase = self.phase_now();
    }

    fn find(&mut self, id: &str) -> Option<&mut Proposal> {
        self.proposals.iter_mut().find(|proposal| proposal.id == id)
    }

    fn stands(&mut self, id: &str, standing: Standing) {
        if let Some(proposal) = self.find(id) {
            proposal.standing = standing;
        }
    }

    fn released(&mut self, token: u64) {
        let Some(claim) = self.claims.remove(&token) else { return };
        if claim.role == Role::Propose {
            *self.failed_proposers.entry(claim.holder).or_default() += 1;
        }
    }

    fn charged(&mut self, role: Role) {
        match role {
            Role::Propose => self.spent.explore += 1,
            Role::Verify => self.spent.verify += 1,
            Role::Finalize => self.spent.finalize += 1,
        }
        if role != Role::Finalize {
            self.spent.steps += 1;
        }
    }

    fn proposed(&mut self, token: u64, candidate: &str, digest: &str, evidence: &[String]) {
        let Some(claim) = self.claims.remove(&token) else { return };
        if let Some(same) = self.proposals.iter_mut().find(|proposal| proposal.digest == digest) {
            same.proposers.insert(claim.holder);
            same.evidence.extend(evidence.iter().cloned());
            return;
        }
        self.proposals.push(Proposal {
            id: candidate.to_owned(),
            digest: digest.to_owned(),
            proposers: BTreeSet::from([claim.holder]),
            evidence: evidence.iter().cloned().collect(),
            standing: Standing::Waiting,
            repeats: 0,
            votes: BTreeMap::new(),
            reveal_until: None,
            available: BTreeMap::new(),
        });
    }

    fn voted(&mut self, event: &Event) {
        match event {
            Event::VoteCommitted { token, candidate, commitment } => {
                let Some(claim) = self.claims.remove(token) else { return };
                let Some(proposal) = self.find(candidate) else { return };
                let vote = Vote {
                    independence: claim.independence,
                    execution_id: claim.execution_id,
                    commitment: commitment.clone(),
                    revealed: None,
                    forfeited: None,
                };
                proposal.votes.insert(claim.holder, vote);
            }
            Event::RevealOpened { candidate, until } => {
                if let Some(proposal) = self.find(candidate) {
                    proposal.standing = Standing::Revealing;
                    proposal.reveal_until = Some(*until);
                }
            }
            Event::VoteRevealed { candidate, voter, ballot } => {
                if let Some(vote) = self.find(candidate).and_then(|it| it.votes.get_mut(voter)) {
                    vote.revealed = Some(ballot.clone());
                }
            }
            Event::VoteForfeited { candidate, voter, why } => {
                if let Some(vote) = self.find(candidate).and_then(|it| it.votes.get_mut(voter)) {
                    vote.forfeited = Some(*why);
                }
            }
            Event::Created { .. }
            | Event::Claimed { .. }
            | Event::Renewed { .. }
            | Event::Released { .. }
            | Event::Charged { .. }
            | Event::Proposed { .. }
            | Event::EvidenceSeen { .. }
            | Event::Committed { .. }
            | Event::Rejected { .. }
            | Event::VerificationRepeated { .. }
            | Event::Undecided { .. }
            | Event::RetryScheduled { .. }
            | Event::Ended { .. } => {}
        }
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
        if self.approved().is_some() {
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
