//! Adds up the revealed votes on a candidate.

use std::collections::BTreeMap;

use super::{Proposal, TaskTerms, VoteAggregation, VoteGap};
use crate::policy::EvaluationStatus;

/// How often each executor is right; one half for an executor without a record.
pub type VoterReliability = BTreeMap<String, f64>;

/// The result of the votes on a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoteTally {
    Approved,
    Rejected,
    Open(VoteGap),
}

/// The votes for a candidate, or those against it.
#[derive(Default)]
struct VoteSide<'a> {
    voters: u32,
    /// The highest weight under each independence key.
    keys: BTreeMap<&'a str, f64>,
    weight: f64,
}

impl<'a> VoteSide<'a> {
    fn add(&mut self, key: &'a str, weight: f64) {
        self.voters += 1;
        self.weight += weight;
        let highest = self.keys.entry(key).or_insert(weight);
        *highest = highest.max(weight);
    }

    fn key_count(&self) -> u32 {
        u32::try_from(self.keys.len()).unwrap_or(u32::MAX)
    }
}

/// Both sides of a vote, and how to count them.
pub(super) struct VoteSides<'a> {
    pro: VoteSide<'a>,
    contra: VoteSide<'a>,
    quorum: u32,
    /// How many independence keys a side needs.
    keys: u32,
}

impl<'a> VoteSides<'a> {
    /// Counts the votes that were revealed as they were committed.
    pub(super) fn of(proposal: &'a Proposal, terms: &TaskTerms, known: &VoterReliability) -> Self {
        let (mut pro, mut contra) = (VoteSide::default(), VoteSide::default());
        for (voter, vote) in &proposal.votes {
            let Some(ballot) = vote.ballot() else { continue };
            let weight = match terms.aggregation {
                VoteAggregation::Quorum => 1.0,
                VoteAggregation::ConfidenceWeighted => ballot.score.clamp(0.0, 1.0),
                VoteAggregation::ReputationWeighted => {
                    known.get(voter).copied().unwrap_or(0.5).clamp(0.0, 1.0)
                }
            };
            match ballot.status {
                EvaluationStatus::Passed => pro.add(&vote.independence, weight),
                EvaluationStatus::Failed => contra.add(&vote.independence, weight),
                EvaluationStatus::Inconclusive => {}
            }
        }
        let keys = terms.quorum.min(proposal.pool_keys.max(1));
        Self { pro, contra, quorum: terms.quorum, keys }
    }

    /// How much a side counts towards the quorum: its keys if the pool has enough of them, so that
    /// two voters with one key count once; otherwise its voters.
    fn count(&self, side: &VoteSide<'_>) -> u32 {
        if self.keys == self.quorum { side.key_count() } else { side.voters }
    }

    fn has_quorum(&self, side: &VoteSide<'_>) -> bool {
        self.quorum <= self.count(side) && self.keys <= side.key_count()
    }

    fn weight(&self, side: &VoteSide<'_>) -> f64 {
        if self.keys == self.quorum { side.keys.values().sum() } else { side.weight }
    }

    /// How much the stronger side counts towards the quorum.
    pub(super) fn strongest(&self) -> u32 {
        self.count(&self.pro).max(self.count(&self.contra))
    }

    /// A decision needs the quorum under every aggregation: weights decide between the sides, but
    /// never turn one voter into several. A tie is not a decision.
    pub(super) fn tally(&self) -> VoteTally {
        let (pro, contra) = (self.weight(&self.pro), self.weight(&self.contra));
        if self.has_quorum(&self.pro) && contra < pro {
            VoteTally::Approved
        } else if self.has_quorum(&self.contra) && pro < contra {
            VoteTally::Rejected
        } else if self.has_quorum(&self.pro) || self.has_quorum(&self.contra) {
            VoteTally::Open(VoteGap::Tie)
        } else if self.quorum <= self.pro.voters.max(self.contra.voters) {
            VoteTally::Open(VoteGap::Dependent)
        } else {
            VoteTally::Open(VoteGap::TooFewVotes)
        }
    }
}
