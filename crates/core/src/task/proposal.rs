//! A candidate and the state of the vote on it.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use super::Vote;
use crate::{round::job::words, time::Timestamp};

words!(
    /// The state of a candidate.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    ProposalStanding {
        Waiting => "waiting",
        /// Votes are being committed; none of them is visible.
        Verifying => "verifying",
        /// Committing is over, and the votes are being revealed.
        Revealing => "revealing",
        Approved => "approved",
        Rejected => "rejected",
        /// The votes did not decide.
        Undecided => "undecided",
    }
);

words!(
    /// Why votes did not decide.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    VoteGap {
        /// Neither side reached the quorum.
        TooFewVotes => "too_few_votes",
        /// At least one side reached the quorum, but neither outweighs the other.
        Tie => "tie",
        /// Enough votes, but too many of them share an independence key.
        Dependent => "dependent",
        /// Too few voters found the evidence of the candidate.
        EvidenceMissing => "evidence_missing",
        /// The time to vote on a candidate from knowledge is over.
        ReuseTime => "reuse_time",
    }
);

/// An output under vote. Equal outputs are one candidate, whoever proposed them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    pub id: String,
    /// The digest of the output, without its author and time.
    pub digest: String,
    /// The executors that proposed it. None of them can vote on it.
    pub proposers: BTreeSet<String>,
    /// The decision that it comes from, as `knowledge:<task>#<epoch>`, until an executor proposes
    /// the same output.
    pub source: Option<String>,
    /// Digests of its evidence; each must be available before it can become final.
    pub evidence: BTreeSet<String>,
    pub standing: ProposalStanding,
    pub gap: Option<VoteGap>,
    /// The number of the vote, from 1.
    pub turn: u32,
    /// How many times the vote was repeated because it did not decide.
    pub repeats: u32,
    /// How many voters have been requested so far. More are asked if their votes do not decide.
    pub wanted: u32,
    /// Votes by voter.
    pub votes: BTreeMap<String, Vote>,
    /// Voters that were asked and gave no verdict since voting last started.
    pub failed_verifiers: BTreeMap<String, u32>,
    /// No voter is asked again before this time.
    pub retry_at: Option<Timestamp>,
    /// Until when votes can be revealed.
    pub reveal_until: Option<Timestamp>,
    /// How many independence keys exist among those who could vote on it.
    pub pool_keys: u32,
    /// The voters that found each piece of evidence.
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

    /// The voters whose votes are neither revealed nor forfeited.
    pub(super) fn hidden(&self) -> impl Iterator<Item = &String> {
        let open = self.votes.iter().filter(|(_, it)| it.is_hidden());
        open.map(|(voter, _)| voter)
    }

    /// How many have voted, whether or not their votes count.
    pub(super) fn voter_count(&self) -> u32 {
        u32::try_from(self.votes.len()).unwrap_or(u32::MAX)
    }

    /// Keeps conclusive votes, and votes of voters that are not asked again, when the vote is
    /// repeated.
    pub(super) fn drop_empty_votes(&mut self) {
        self.votes.retain(|_, it| it.is_conclusive() || it.equivocated);
    }
}
