//! Votes: committed by a digest before any of them can be seen, and revealed afterwards.

use serde_json::json;

use super::event::Forfeit;
use crate::{
    canonical::{canonical, digest},
    policy::Status,
};

/// Keeps these digests apart from all others.
const DOMAIN: &str = "jurat.vote.v1";

/// What a verifier said, as it is revealed.
#[derive(Debug, Clone, PartialEq)]
pub struct Ballot {
    pub status: Status,
    /// How sure the verifier is, from 0 to 1.
    pub score: f64,
    pub reason_codes: Vec<u16>,
    /// Of all that the verifier answered.
    pub verdict_digest: String,
}

/// A vote on one candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Vote {
    pub independence: String,
    pub execution_id: String,
    pub commitment: String,
    pub revealed: Option<Ballot>,
    pub forfeited: Option<Forfeit>,
}

impl Vote {
    /// What counts of it.
    pub fn ballot(&self) -> Option<&Ballot> {
        self.revealed.as_ref().filter(|_| self.forfeited.is_none())
    }
}

/// The digest by which a voter is bound to a ballot. It names the task, the candidate and the voter,
/// so that nobody can use the commitment of another.
pub fn commitment(place: (&str, &str, &str), ballot: &Ballot, salt: &str) -> String {
    let (task, candidate, voter) = place;
    let document = json!({
        "domain": DOMAIN,
        "task": task,
        "candidate": candidate,
        "voter": voter,
        "verdict": ballot.status.as_str(),
        "verdict_digest": ballot.verdict_digest,
        "salt": salt,
    });
    digest(&canonical(&document))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ballot(status: Status) -> Ballot {
        Ballot { status, score: 0.9, reason_codes: vec![], verdict_digest: "sha256:01".to_owned() }
    }

    #[test]
    fn a_commitment_binds_everything_that_it_names() {
        let base = commitment(("t", "c", "v"), &ballot(Status::Passed), "s");
        assert_eq!(base, commitment(("t", "c", "v"), &ballot(Status::Passed), "s"));
        let other_digest =
            Ballot { verdict_digest: "sha256:02".to_owned(), ..ballot(Status::Passed) };
        for other in [
            commitment(("u", "c", "v"), &ballot(Status::Passed), "s"),
            commitment(("t", "d", "v"), &ballot(Status::Passed), "s"),
            commitment(("t", "c", "w"), &ballot(Status::Passed), "s"),
            commitment(("t", "c", "v"), &ballot(Status::Failed), "s"),
            commitment(("t", "c", "v"), &ballot(Status::Passed), "r"),
            commitment(("t", "c", "v"), &other_digest, "s"),
            commitment(("tc", "", "v"), &ballot(Status::Passed), "s"),
        ] {
            assert_ne!(base, other);
        }
    }
}
