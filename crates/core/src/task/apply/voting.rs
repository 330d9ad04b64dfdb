//! What events of the verify stage make of a task.

use super::super::{Event, Gap, Standing, Task, Vote};

impl Task {
    pub(super) fn apply_voting(&mut self, event: &Event) {
        if let Event::EvidenceSeen { candidate, verifier, digest } = event {
            if let Some(proposal) = self.find(candidate) {
                let seen = proposal.available.entry(digest.clone()).or_default();
                seen.insert(verifier.clone());
            }
        } else if let Event::VoteCommitted { token, candidate, turn, commitment, .. } = event {
            self.vote_committed(*token, candidate, (*turn, commitment));
        } else if let Event::VoteRevealed { candidate, voter, ballot } = event {
            if let Some(vote) = self.vote(candidate, voter) {
                vote.revealed = Some(ballot.clone());
            }
        } else if let Event::VoteForfeited { candidate, voter, why } = event {
            if let Some(vote) = self.vote(candidate, voter) {
                vote.forfeited = Some(*why);
            }
        } else if let Event::Equivocated { candidate, voter, .. } = event {
            self.equivocators.insert(voter.clone());
            if let Some(vote) = self.vote(candidate, voter) {
                vote.equivocated = true;
            }
        } else {
            self.apply_turn(event);
        }
    }

    /// What begins and ends a turn of voting.
    fn apply_turn(&mut self, event: &Event) {
        if let Event::RevealOpened { candidate, until, .. } = event {
            if let Some(proposal) = self.find(candidate) {
                proposal.standing = Standing::Revealing;
                proposal.reveal_until = Some(*until);
            }
        } else if let Event::VotingExtended { candidate, turn, wanted } = event {
            if let Some(proposal) = self.find(candidate) {
                proposal.standing = Standing::Verifying;
                proposal.reveal_until = None;
                proposal.turn = *turn;
                proposal.wanted = *wanted;
            }
        } else if let Event::VerificationRepeated { candidate, turn, wanted, at, .. } = event {
            if let Some(proposal) = self.find(candidate) {
                proposal.standing = Standing::Waiting;
                proposal.reveal_until = None;
                proposal.turn = *turn;
                proposal.wanted = *wanted;
                proposal.repeats += 1;
                proposal.retry_at = Some(*at);
                proposal.failed_verifiers.clear();
                proposal.drop_empty_votes();
            }
        } else if let Event::Committed { candidate } = event {
            self.stands(candidate, Standing::Approved, None);
        } else if let Event::Rejected { candidate } = event {
            self.stands(candidate, Standing::Rejected, None);
        } else if let Event::Undecided { candidate, why } = event {
            self.stands(candidate, Standing::Undecided, Some(*why));
        }
    }

    fn vote(&mut self, candidate: &str, voter: &str) -> Option<&mut Vote> {
        self.find(candidate).and_then(|it| it.votes.get_mut(voter))
    }

    fn vote_committed(&mut self, token: u64, candidate: &str, (turn, commitment): (u32, &str)) {
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

    fn stands(&mut self, id: &str, standing: Standing, gap: Option<Gap>) {
        let Some(proposal) = self.find(id) else { return };
        proposal.standing = standing;
        proposal.gap = gap;
        if standing == Standing::Rejected && proposal.source.is_some() {
            let digest = proposal.digest.clone();
            self.blacklist.insert(digest);
        }
    }
}
