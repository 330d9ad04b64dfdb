//! What the replicas agree on, with agreement and confidence.

mod confidence;
mod equivalence;
mod merge;
mod numeric;
mod tally;
mod unordered;

use std::str::FromStr;

use serde_json::Value;

pub(crate) use self::equivalence::{form, is_within, same_form};
pub use self::{
    confidence::{effective_votes, reliability_prior},
    equivalence::equivalent,
    merge::{OutputOrigin, nearest_output, output_by, spread},
    numeric::Spread,
    tally::{TallyInput, agree, is_settled, verdict_confidence},
};
use super::{
    job::words,
    replica::{Label, Replica},
};
use crate::executor::session::{BUILTIN_SESSION, JUDGE_SESSION_PREFIX};

words!(
    /// What came of a round.
    Outcome {
        /// One side has the majority it needs.
        Agreed => "agreed",
        /// No side has; the best effort may still name a leading one.
        Split => "split",
        /// Those that declined to decide are more than any side.
        Abstained => "abstained",
        /// No replica gave an answer that counts.
        Failed => "failed",
    }
);

words!(
    /// On what the winning answer rests.
    Basis {
        /// On what the node itself computed, by a policy that needs nobody's judgement. That proves
        /// the form of an answer, and not that it is true.
        Form => "form",
        /// On what judges of a verifier said.
        Judges => "judges",
        /// On what executors answered.
        Executors => "executors",
    }
);

impl Basis {
    /// What the words of these rest on, who are named as sessions or as voters of a task. It is form
    /// alone only where nobody but the node spoke.
    pub fn of<'a>(names: impl Iterator<Item = &'a str>) -> Option<Self> {
        let of_one = |name: &str| {
            if name == BUILTIN_SESSION {
                Self::Form
            } else if name.starts_with(JUDGE_SESSION_PREFIX) {
                Self::Judges
            } else {
                Self::Executors
            }
        };
        names.map(of_one).max()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Consensus {
    pub outcome: Outcome,
    /// The winning verdict of validate and factcheck, or `OK` for delegate.
    pub verdict: Option<Label>,
    /// The merged output of the winning group.
    pub output: Option<Value>,
    /// One label per seat, in the order of choice.
    pub verdicts: Vec<Label>,
    /// The group of each seat; `None` where it has no vote.
    pub groups: Vec<Option<usize>>,
    pub winner: Option<usize>,
    pub asked: usize,
    pub started: usize,
    pub answered: usize,
    pub cancelled: usize,
    /// Size of the largest group ÷ asked.
    pub agreement: f64,
    /// Size of the largest group ÷ answered.
    pub agreement_answered: f64,
    pub strategy: String,
    /// The relation by which outputs were compared.
    pub equivalence: String,
    pub score: Option<ScoreSummary>,
    /// Probability that the winning answer is right; zero when there is none.
    pub confidence: f64,
    /// How many independent votes the votes are worth.
    pub effective_votes: f64,
    /// Whether there is significant disagreement, whatever was done about it.
    pub disagreed: bool,
    /// Whether a tie was broken to name a winner.
    pub tie_broken: bool,
    /// On what the winning answer rests. `None` without a winner, and in rounds of earlier programs.
    pub basis: Option<Basis>,
}

impl Consensus {
    /// The group of a replica; `None` where it has no vote.
    pub fn group_of(&self, replica: &Replica) -> Option<usize> {
        let group = self.groups.get(replica.seat).copied().flatten();
        group.filter(|_| replica.is_counted())
    }

    /// Whether an answer won that is no more likely right than wrong: a tie was broken, or many
    /// unreliable voices, or few of those that were asked, outvoted what the reliable ones say.
    pub fn is_unlikely(&self) -> bool {
        self.winner.is_some() && self.confidence <= 0.5
    }
}

/// The executors' scores in the winning group.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreSummary {
    /// `mean` or `median`.
    pub method: String,
    pub value: f64,
    pub min: f64,
    pub max: f64,
    pub deviation: f64,
}

/// Four places are more than any of these figures is worth, and read the same everywhere.
fn rounded(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}
