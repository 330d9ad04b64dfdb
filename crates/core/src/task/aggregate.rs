//! What the revealed votes on a candidate come to.

use std::collections::BTreeMap;

use super::{Aggregation, Gap, Proposal, Terms};
use crate::policy::Status;

/// What is known of how often each executor is right; one half where nothing is known.
pub type Weigher = BTreeMap<String, f64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tally {
    Approved,
    Rejected,
    Open(Gap),
}

/// The votes for, or those against.
#[derive(Default)]
struct Side<'a> {
    voters: u32,
    /// The highest weight under each independence key.
    keys: BTreeMap<&'a str, f64>,
    weight: f64,
}

impl<'a> Side<'a> {
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

/// Both sides of a vote, and how they are to be counted.
pub(super) struct Sides<'a> {
    pro: Side<'a>,
    contra: Side<'a>,
    quorum: u32,
    /// How many independence keys a side needs.
    keys: u32,
}

impl<'a> Sides<'a> {
    /// Counts the votes that were revealed as they were committed.
    pub(super) fn of(proposal: &'a Proposal, terms: &Terms, known: &Weigher) -> Self {
        let (mut pro, mut contra) = (Side::default(), Side::default());
        for (voter, vote) in &proposal.votes {
            let Some(ballot) = vote.ballot() else { continue };
            let weight = match terms.aggregation {
                Aggregation::Quorum => 1.0,
                Aggregation::ConfidenceWeighted => ballot.score.clamp(0.0, 1.0),
                Aggregation::ReputationWeighted => {
                    known.get(voter).copied().unwrap_or(0.5).clamp(0.0, 1.0)
                }
            };
            match ballot.status {
                Status::Passed => pro.add(&vote.independence, weight),
                Status::Failed => contra.add(&vote.independence, weight),
                Status::Inconclusive => {}
            }
        }
        let keys = terms.quorum.min(proposal.pool_keys.max(1));
        Self { pro, contra, quorum: terms.quorum, keys }
    }

    /// What a side counts toward the quorum: its keys where the pool has enough of them for the
    /// quorum, so that two voters with one key are one, and its voters where it has not.
    fn count(&self, side: &Side<'_>) -> u32 {
        if self.keys == self.quorum { side.key_count() } else { side.voters }
    }

    fn has_quorum(&self, side: &Side<'_>) -> bool {
        self.quorum <= self.count(side) && self.keys <= side.key_count()
    }

    fn weight(&self, side: &Side<'_>) -> f64 {
        if self.keys == self.quorum { side.keys.values().sum() } else { side.weight }
    }

    /// How much the stronger side counts toward the quorum.
    pub(super) fn strongest(&self) -> u32 {
        self.count(&self.pro).max(self.count(&self.contra))
    }

    /// A decision needs the quorum under every aggregation: weights decide between sides, and
    /// never make one voter into several. A tie is no decision.
    pub(super) fn tally(&self) -> Tally {
        let (pro, contra) = (self.weight(&self.pro), self.weight(&self.contra));
        if self.has_quorum(&self.pro) && contra < pro {
            Tally::Approved
        } else if self.has_quorum(&self.contra) && pro < contra {
            Tally::Rejected
        } else if self.has_quorum(&self.pro) || self.has_quorum(&self.contra) {
            Tally::Open(Gap::Tie)
        } else if self.quorum <= self.pro.voters.max(self.contra.voters) {
            Tally::Open(Gap::Dependent)
        } else {
            Tally::Open(Gap::TooFewVotes)
        }
    }
}
