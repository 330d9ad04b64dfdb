//! What the revealed votes on a candidate come to.

use std::collections::BTreeMap;

use super::{Aggregation, Proposal, Terms};
use crate::policy::Status;

/// What is known of how often each executor is right; one half where nothing is known.
pub type Weigher = BTreeMap<String, f64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tally {
    Approved,
    Rejected,
    /// Too few votes, or as many on both sides.
    Undecided,
}

/// Counts the votes that were revealed as they were committed. An approval needs the quorum under
/// every aggregation: weights decide between sides, and never make one voter into several.
pub(super) fn tally(proposal: &Proposal, terms: &Terms, known: &Weigher) -> Tally {
    let (mut approvals, mut rejections) = (0_u32, 0_u32);
    let (mut pro, mut contra) = (0.0_f64, 0.0_f64);
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
            Status::Passed => {
                approvals += 1;
                pro += weight;
            }
            Status::Failed => {
                rejections += 1;
                contra += weight;
            }
            Status::Inconclusive => {}
        }
    }
    if terms.quorum <= approvals && contra < pro {
        Tally::Approved
    } else if terms.quorum <= rejections && pro < contra {
        Tally::Rejected
    } else {
        Tally::Undecided
    }
}
