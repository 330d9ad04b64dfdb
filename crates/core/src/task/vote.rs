//! Votes: committed as a digest before any of them is visible, and revealed afterwards.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Task, event::Forfeit};
use crate::{
    canonical::{canonical, digest},
    policy::EvaluationStatus,
    round::VoteTicket,
};

/// Separates these digests from all others.
const DOMAIN: &str = "jurat.vote.v1";

/// The answer of a voter, as it is revealed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ballot {
    pub status: EvaluationStatus,
    /// The confidence of the voter, from 0 to 1.
    pub score: f64,
    pub reason_codes: Vec<u16>,
    /// The digest of the voter's complete answer.
    pub verdict_digest: String,
    /// Digests of the evidence that the voter could see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub available: Vec<String>,
}

/// A vote on one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// The number of the vote in which it was committed.
    pub turn: u32,
    pub independence: String,
    pub execution_id: String,
    pub commitment: String,
    pub revealed: Option<Ballot>,
    pub forfeited: Option<Forfeit>,
    /// Whether the voter provably gave another verdict as well.
    pub equivocated: bool,
}

impl Vote {
    /// The ballot, if it counts.
    pub fn ballot(&self) -> Option<&Ballot> {
        self.revealed.as_ref().filter(|_| self.forfeited.is_none())
    }

    /// Whether it is still to be revealed.
    pub const fn is_hidden(&self) -> bool {
        self.revealed.is_none() && self.forfeited.is_none()
    }

    /// Whether it approves or rejects the candidate.
    pub(super) fn is_conclusive(&self) -> bool {
        self.ballot().is_some_and(|it| it.status != EvaluationStatus::Inconclusive)
    }
}

impl Task {
    /// Whether the verdict of an execution is still secret: its vote may be cast and is not
    /// revealed. Anybody who saw it could copy it.
    pub fn hides(&self, vote: &VoteTicket, execution_id: &str) -> bool {
        if self.is_over() || self.is_waiting() {
            return false;
        }
        let is_it = |it: &str| it == execution_id;
        let Some(proposal) = self.proposal(&vote.candidate).filter(|it| it.is_live()) else {
            return false;
        };
        // A voter that is asked again gives the same answer.
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
    /// The number of the vote on the candidate.
    pub turn: u32,
    pub voter: &'a str,
}

/// The digest that binds a voter to a ballot. It covers everything that identifies the vote, so
/// that nobody can reuse a commitment, neither another voter's nor their own.
pub fn commitment(context: VoteContext<'_>, ballot: &Ballot, salt: &str) -> String {
    let document = json!({
        "domain": DOMAIN,
        "task": context.task,
        "epoch": context.epoch,
        "candidate": context.candidate,
        "turn": context.turn,
        "voter": context.voter,
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
        let context = VoteContext { task: "t", epoch: 1, candidate: "c", turn: 1, voter: "v" };
        let passed = ballot(EvaluationStatus::Passed);
        let base = commitment(context, &passed, "s");
        assert_eq!(base, commitment(context, &passed, "s"));
        let other_digest = Ballot { verdict_digest: "sha256:02".to_owned(), ..passed.clone() };
        let other_evidence = Ballot { available: vec!["sha256:03".to_owned()], ..passed.clone() };
        for other in [
            commitment(VoteContext { task: "u", ..context }, &passed, "s"),
            commitment(VoteContext { epoch: 2, ..context }, &passed, "s"),
            commitment(VoteContext { candidate: "d", ..context }, &passed, "s"),
            commitment(VoteContext { turn: 2, ..context }, &passed, "s"),
            commitment(VoteContext { voter: "w", ..context }, &passed, "s"),
            commitment(VoteContext { task: "tc", candidate: "", ..context }, &passed, "s"),
            commitment(context, &ballot(EvaluationStatus::Failed), "s"),
            commitment(context, &Ballot { score: 0.8, ..passed.clone() }, "s"),
            commitment(context, &Ballot { reason_codes: vec![101], ..passed.clone() }, "s"),
            commitment(context, &other_digest, "s"),
            commitment(context, &other_evidence, "s"),
            commitment(context, &passed, "r"),
        ] {
            assert_ne!(base, other);
        }
    }
}
