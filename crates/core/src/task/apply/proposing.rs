//! Applies the events of the explore stage to a task.

use std::collections::{BTreeMap, BTreeSet};

use crate::task::{Proposal, ProposalStanding, Task, TaskEvent};
use crate::time::Timestamp;

impl Task {
    pub(super) fn apply_proposing(&mut self, event: &TaskEvent, at: Timestamp) {
        if let TaskEvent::Proposed { token, candidate, digest, evidence, .. } = event {
            self.proposed(*token, candidate, digest, evidence);
        } else if let TaskEvent::Reused { source, candidate, digest, evidence, proposers } = event {
            self.started_at.get_or_insert(at);
            self.reuses += 1;
            let mut proposal = self.fresh(candidate, digest, evidence);
            proposal.source = Some(source.clone());
            proposal.proposers = proposers.iter().cloned().collect();
            self.proposals.push(proposal);
        } else if let TaskEvent::ExploreClosed { .. } = event {
            self.is_explored = true;
            self.retry_at = None;
        } else if let TaskEvent::RetryScheduled { at } = event {
            self.retries += 1;
            self.retry_at = Some(*at);
            self.is_explored = false;
            self.failed_proposers.clear();
        }
    }

    fn fresh(&self, id: &str, digest: &str, evidence: &[String]) -> Proposal {
        Proposal {
            id: id.to_owned(),
            digest: digest.to_owned(),
            proposers: BTreeSet::new(),
            source: None,
            evidence: evidence.iter().cloned().collect(),
            standing: ProposalStanding::Waiting,
            gap: None,
            turn: 1,
            repeats: 0,
            wanted: self.terms.quorum.min(self.terms.max_verifiers),
            votes: BTreeMap::new(),
            failed_verifiers: BTreeMap::new(),
            retry_at: None,
            reveal_until: None,
            pool_keys: 1,
            available: BTreeMap::new(),
        }
    }

    /// Equal outputs are one candidate. If an executor proposes an undecided candidate from
    /// knowledge, voters vote on it again; a rejected one stays rejected.
    fn proposed(&mut self, token: u64, id: &str, digest: &str, evidence: &[String]) {
        let Some(claim) = self.claims.remove(&token) else { return };
        let is_known = |it: &String| self.proposals.iter().any(|of| of.evidence.contains(it));
        let brings_evidence = evidence.iter().any(|it| !is_known(it));
        let wanted = self.terms.quorum;
        let most = self.terms.max_verifiers;
        let holder = claim.holder;
        self.proposed.insert(holder.clone());
        let same = self.proposals.iter_mut().find(|proposal| proposal.digest == digest);
        let is_new = match same {
            None => {
                let mut proposal = self.fresh(id, digest, evidence);
                proposal.proposers.insert(holder);
                self.proposals.push(proposal);
                true
            }
            Some(same) if same.standing == ProposalStanding::Undecided && same.source.is_some() => {
                same.drop_empty_votes();
                same.revive();
                same.made_by(holder, evidence);
                same.wanted = wanted.max(same.voter_count()).min(most);
                // Voters are asked again, because the candidate now has other answers to compare
                // with and more evidence.
                let id = same.id.clone();
                self.unfinished.retain(|it| it.candidate.as_ref() != Some(&id));
                true
            }
            Some(same) if same.is_live() => {
                same.made_by(holder, evidence);
                // No voting happens while others propose, so no vote is requested yet.
                same.wanted = wanted.max(same.voter_count()).min(most);
                brings_evidence
            }
            Some(_) => false,
        };
        self.barren = if is_new { 0 } else { self.barren + 1 };
    }
}

impl Proposal {
    /// Adds an executor that proposed it. That executor's earlier vote and findings no longer
    /// count.
    fn made_by(&mut self, holder: String, evidence: &[String]) {
        self.votes.remove(&holder);
        for seen in self.available.values_mut() {
            seen.remove(&holder);
        }
        self.proposers.insert(holder);
        self.evidence.extend(evidence.iter().cloned());
    }

    /// From now on it is a candidate like any other.
    fn revive(&mut self) {
        self.source = None;
        self.standing = ProposalStanding::Waiting;
        self.gap = None;
        self.turn += 1;
        self.repeats = 0;
        self.reveal_until = None;
        self.retry_at = None;
        self.failed_verifiers.clear();
    }
}
