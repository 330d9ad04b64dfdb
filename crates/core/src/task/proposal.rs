//! A candidate, and how its verification stands.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use super::Vote;
use crate::{round::job::words, time::Timestamp};

words!(
    /// How a candidate stands.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    ProposalStanding {
        Waiting => "waiting",
        /// Votes are being committed; none of this turn can be seen.
        Verifying => "verifying",
        /// No vote can be committed now, and those that were are being revealed.
        Revealing => "revealing",
        Approved => "approved",
        Rejected => "rejected",
        /// The votes decided nothing.
        Undecided => "undecided",
    }
);

words!(
    /// Why votes decided nothing.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    VoteGap {
        /// Fewer than the quorum said that it is right, or that it is wrong.
        TooFewVotes => "too_few_votes",
        /// A quorum on one side at least, and neither side outweighs the other.
        Tie => "tie",
        /// Enough votes, and too many of them from verifiers that have a key in common.
        Dependent => "dependent",
        /// Too few verifiers found what the candidate refers to.
        EvidenceMissing => "evidence_missing",
        /// The time to verify a candidate from knowledge was used up.
        ReuseTime => "reuse_time",
    }
);

/// An output that is being verified. Equal outputs are one candidate, whoever proposed them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    pub id: String,
    /// Of the output, without who made it and when.
    pub digest: String,
    /// Who made it. None of them has a vote on it.
    pub proposers: BTreeSet<String>,
    /// The decision that it is taken from, as `knowledge:<task>#<epoch>`, until an executor
    /// proposes the same.
    pub source: Option<String>,
    /// Digests of what it refers to; each must be available to be final.
    pub evidence: BTreeSet<String>,
    pub standing: ProposalStanding,
    pub gap: Option<VoteGap>,
    /// Which time votes are being committed on it, from 1.
    pub turn: u32,
    /// How often its verification began anew because it decided nothing.
    pub repeats: u32,
    /// How many verifiers are to vote on it so far. More are asked when their votes do not decide.
    pub wanted: u32,
    /// By who votes.
    pub votes: BTreeMap<String, Vote>,
    /// Verifiers that were asked and gave no verdict, since its verification last began.
    pub failed_verifiers: BTreeMap<String, u32>,
    /// Not before this time is anybody asked to verify it again.
    pub retry_at: Option<Timestamp>,
    /// Until when votes are revealed.
    pub reveal_until: Option<Timestamp>,
    /// How many independence keys there are among those who could verify it.
    pub pool_keys: u32,
    /// Who found which evidence.
    pub available: BTreeMap<String, BTreeSet<String>>,
}

impl Proposal {
    /// Whether it can still be approved.
    pub const fn is_live(&self) -> bool {
        matches!(
            self.standing,
            ProposalStanding::Waiting | ProposalStanding::Verifying | ProposalStanding::Revealing
        )
    }

    /// The votes of this turn that are neither revealed nor forfeited.
    pub(super) fn hidden(&self) -> impl Iterator<Item = &String> {
        let open = self.votes.iter().filter(|(_, it)| it.is_hidden());
        open.map(|(voter, _)| voter)
    }

    /// How many have voted, whether or not it counts.
    pub(super) fn voter_count(&self) -> u32 {
        u32::try_from(self.votes.len()).unwrap_or(u32::MAX)
    }

    /// What is left of the votes when the verification begins anew: those that say something, and
    /// those of voters who are not asked again.
    pub(super) fn drop_empty_votes(&mut self) {
        self.votes.retain(|_, it| it.is_conclusive() || it.equivocated);
    }
}
