//! Applies the events of the verify stage to a task.

use crate::task::{ProposalStanding, Task, TaskEvent, Vote, VoteGap};

impl Task {
    pub(super) fn apply_voting(&mut self, event: &TaskEvent) {
        if let TaskEvent::EvidenceSeen { candidate, verifier, digest } = event {
            if let Some(proposal) = self.find(candidate) {
                let seen = proposal.available.entry(digest.clone()).or_default();
                seen.insert(verifier.clone());
            }
        } else if let TaskEvent::VoteCommitted { token, candidate, turn, commitment, .. } = event {
            self.vote_committed(*token, candidate, *turn, commitment);
        } else if let TaskEvent::VoteRevealed { candidate, voter, ballot } = event {
            if let Some(vote) = self.vote(candidate, voter) {
                vote.revealed = Some(ballot.clone());
            }
        } else if let TaskEvent::VoteForfeited { candidate, voter, why } = event {
            if let Some(vote) = self.vote(candidate, voter) {
                vote.forfeited = Some(*why);
            }
        } else if let TaskEvent::Equivocated { candidate, voter, .. } = event {
            self.equivocators.insert(voter.clone());
            if let Some(vote) = self.vote(candidate, voter) {
                vote.equivocated = true;
            }
        } else {
            self.apply_turn(event);
        }
    }

    /// Starts and ends a vote on a candidate.
    fn apply_turn(&mut self, event: &TaskEvent) {
        if let TaskEvent::RevealOpened { candidate, until, .. } = event {
            if let Some(proposal) = self.find(candidate) {
                proposal.standing = ProposalStanding::Revealing;
                proposal.reveal_until = Some(*until);
            }
        } else if let TaskEvent::VotingExtended { candidate, turn, wanted } = event {
            if let Some(proposal) = self.find(candidate) {
                proposal.standing = ProposalStanding::Verifying;
                proposal.reveal_until = None;
                proposal.turn = *turn;
                proposal.wanted = *wanted;
            }
        } else if let TaskEvent::VerificationRepeated { candidate, turn, wanted, at, .. } = event {
            if let Some(proposal) = self.find(candidate) {
                proposal.standing = ProposalStanding::Waiting;
                proposal.reveal_until = None;
                proposal.turn = *turn;
                proposal.wanted = *wanted;
                proposal.repeats += 1;
                proposal.retry_at = Some(*at);
                proposal.failed_verifiers.clear();
                proposal.drop_empty_votes();
            }
        } else if let TaskEvent::Committed { candidate } = event {
            self.stands(candidate, ProposalStanding::Approved, None);
        } else if let TaskEvent::Rejected { candidate } = event {
            self.stands(candidate, ProposalStanding::Rejected, None);
        } else if let TaskEvent::Undecided { candidate, why } = event {
            self.stands(candidate, ProposalStanding::Undecided, Some(*why));
        }
    }

    fn vote(&mut self, candidate: &str, voter: &str) -> Option<&mut Vote> {
        self.find(candidate).and_then(|it| it.votes.get_mut(voter))
    }

    fn vote_committed(&mut self, token: u64, candidate: &str, turn: u32, commitment: &str) {
        let Some(claim) = self.claims.remove(&token) else { return };
        let Some(proposal) = self.find(candidate) else { return };
        let vote = Vote {
            turn,
            independence: claim.independence,
            execution_id: claim.execution_id,
            commitment: commitment.to_owned(),
            revealed: None,
            forfeited: None,
            equivocated: false,
        };
        proposal.votes.insert(claim.holder, vote);
    }

    fn stands(&mut self, id: &str, standing: ProposalStanding, gap: Option<VoteGap>) {
        let Some(proposal) = self.find(id) else { return };
        proposal.standing = standing;
        proposal.gap = gap;
        if standing == ProposalStanding::Rejected && proposal.source.is_some() {
            let digest = proposal.digest.clone();
            self.blacklist.insert(digest);
        }
    }
}
