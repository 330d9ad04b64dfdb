//! The consensus of the replicas, with its agreement and confidence.

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
    /// The outcome of a round.
    Outcome {
        /// One side has the majority that it needs.
        Agreed => "agreed",
        /// No side has it; under best effort a leading side may still win.
        Split => "split",
        /// More replicas declined to decide than support any side.
        Abstained => "abstained",
        /// No replica gave a valid answer.
        Failed => "failed",
    }
);

words!(
    /// The kind of replicas behind the winning answer.
    Basis {
        /// The node itself, under a policy that needs no judge. That proves the form of an answer,
        /// not its truth.
        Form => "form",
        /// The judges of a verifier.
        Judges => "judges",
        /// Executors.
        Executors => "executors",
    }
);

impl Basis {
    /// The basis of an answer given by these sessions or voters. It is `form` only if the node
    /// alone answered.
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

/// The counted result of a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Consensus {
    pub outcome: Outcome,
    /// The winning verdict of validate and factcheck, or `OK` for delegate.
    pub verdict: Option<Label>,
    /// The merged output of the winning group.
    pub output: Option<Value>,
    /// One label per seat, in the order of choice.
    pub verdicts: Vec<Label>,
    /// The group of each seat; `None` if it has no vote.
    pub groups: Vec<Option<usize>>,
    pub winner: Option<usize>,
    pub asked: usize,
    pub started: usize,
    pub answered: usize,
    pub cancelled: usize,
    /// The size of the largest group divided by `asked`.
    pub agreement: f64,
    /// The size of the largest group divided by `answered`.
    pub agreement_answered: f64,
    pub strategy: String,
    /// The relation that compared the outputs.
    pub equivalence: String,
    pub score: Option<ScoreSummary>,
    /// The probability that the winning answer is right; zero without a winner.
    pub confidence: f64,
    /// The number of independent votes that the votes are worth.
    pub effective_votes: f64,
    /// Whether the replicas disagree significantly, regardless of the disagreement policy.
    pub disagreed: bool,
    /// Whether a tie was broken to name a winner.
    pub tie_broken: bool,
    /// The basis of the winning answer. `None` without a winner, and in rounds of earlier versions.
    pub basis: Option<Basis>,
}

impl Consensus {
    /// The group of a replica; `None` if it has no vote.
    pub fn group_of(&self, replica: &Replica) -> Option<usize> {
        let group = self.groups.get(replica.seat).copied().flatten();
        group.filter(|_| replica.is_counted())
    }

    /// Whether the winning answer is no more likely right than wrong: a tie was broken, or many
    /// unreliable replicas, or few of those asked, outvoted the reliable ones.
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

/// Four decimals are more precise than any of these numbers deserves, and read the same everywhere.
fn rounded(number: f64) -> f64 {
    (number * 10_000.0).round() / 10_000.0
}
