//! Votes: committed by a digest before any of them can be seen, and revealed afterwards.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Task, event::Forfeit};
use crate::{
    canonical::{canonical, digest},
    policy::EvaluationStatus,
    round::VoteTicket,
};

/// Keeps these digests apart from all others.
const DOMAIN: &str = "jurat.vote.v1";

/// What a verifier said, as it is revealed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ballot {
    pub status: EvaluationStatus,
    /// How sure the verifier is, from 0 to 1.
    pub score: f64,
    pub reason_codes: Vec<u16>,
    /// Of all that the verifier answered.
    pub verdict_digest: String,
    /// Digests of the evidence that was there for the verifier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub available: Vec<String>,
}

/// A vote on one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// The turn in which it was committed.
    pub turn: u32,
    pub independence: String,
    pub execution_id: String,
    pub commitment: String,
    pub revealed: Option<Ballot>,
    pub forfeited: Option<Forfeit>,
    /// Whether the voter was proven to have given another verdict as well.
    pub equivocated: bool,
}

impl Vote {
    /// What counts of it.
    pub fn ballot(&self) -> Option<&Ballot> {
        self.revealed.as_ref().filter(|_| self.forfeited.is_none())
    }

    /// Whether it is still to be revealed.
    pub const fn is_hidden(&self) -> bool {
        self.revealed.is_none() && self.forfeited.is_none()
    }

    /// Whether it says that the candidate is right, or that it is wrong.
    pub(super) fn is_conclusive(&self) -> bool {
        self.ballot().is_some_and(|it| it.status != EvaluationStatus::Inconclusive)
    }
}

impl Task {
    /// Whether the verdict that was given under an execution is a secret still: its vote may be
    /// cast and is not revealed. Whoever could see it could copy it.
    pub fn hides(&self, vote: &VoteTicket, execution_id: &str) -> bool {
        if self.is_over() || self.is_waiting() {
            return false;
        }
        let is_it = |it: &str| it == execution_id;
        let Some(proposal) = self.proposal(&vote.candidate).filter(|it| it.is_live()) else {
            return false;
        };
        // Whoever is asked again for the same says the same.
        let may_come = self.unfinished.iter().any(|it| is_it(&it.execution_id))
            || self.claims.values().any(|it| is_it(&it.execution_id));
        let cast = proposal.votes.values().find(|it| is_it(&it.execution_id));
        may_come || cast.map_or(vote.turn == proposal.turn, Vote::is_hidden)
    }
}

/// What a vote is cast on, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoteContext<'a> {
    pub task: &'a str,
    pub epoch: u64,
    pub candidate: &'a str,
    /// Which time votes are being committed on the candidate.
    pub turn: u32,
    pub voter: &'a str,
}

/// The digest by which a voter is bound to a ballot. It names all that the vote is about, so that
/// nobody can use the commitment of another, nor their own a second time.
pub fn commitment(place: VoteContext<'_>, ballot: &Ballot, salt: &str) -> String {
    let document = json!({
        "domain": DOMAIN,
        "task": place.task,
        "epoch": place.epoch,
        "candidate": place.candidate,
        "turn": place.turn,
        "voter": place.voter,
        "verdict": ballot.status.as_str(),
        "score": ballot.score,
        "reason_codes": ballot.reason_codes,
        "verdict_digest": ballot.verdict_digest,
        "available": ballot.available,
        "salt": salt,
    });
    digest(&canonical(&document))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ballot(status: EvaluationStatus) -> Ballot {
        let verdict_digest = "sha256:01".to_owned();
        Ballot { status, score: 0.9, reason_codes: vec![], verdict_digest, available: vec![] }
    }

    #[test]
    fn a_commitment_binds_everything_that_it_names() {
        let place = VoteContext { task: "t", epoch: 1, candidate: "c", turn: 1, voter: "v" };
        let passed = ballot(EvaluationStatus::Passed);
        let base = commitment(place, &passed, "s");
        assert_eq!(base, commitment(place, &passed, "s"));
        let other_digest = Ballot { verdict_digest: "sha256:02".to_owned(), ..passed.clone() };
        let other_evidence = Ballot { available: vec!["sha256:03".to_owned()], ..passed.clone() };
        for other in [
            commitment(VoteContext { task: "u", ..place }, &passed, "s"),
            commitment(VoteContext { epoch: 2, ..place }, &passed, "s"),
            commitment(VoteContext { candidate: "d", ..place }, &passed, "s"),
            commitment(VoteContext { turn: 2, ..place }, &passed, "s"),
            commitment(VoteContext { voter: "w", ..place }, &passed, "s"),
            commitment(VoteContext { task: "tc", candidate: "", ..place }, &passed, "s"),
            commitment(place, &ballot(EvaluationStatus::Failed), "s"),
            commitment(place, &Ballot { score: 0.8, ..passed.clone() }, "s"),
            commitment(place, &Ballot { reason_codes: vec![101], ..passed.clone() }, "s"),
            commitment(place, &other_digest, "s"),
            commitment(place, &other_evidence, "s"),
            commitment(place, &passed, "r"),
        ] {
            assert_ne!(base, other);
        }
    }
}
