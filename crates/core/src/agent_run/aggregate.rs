//! Combines the outputs of the agents of a run.

use std::{collections::BTreeMap, str::FromStr};

use serde_json::Value;

use super::{AggregationSpec, UnresolvedCause, tie};
use crate::{canonical::canonical, round::job::words};

words!(
    /// A part of an agent's output: what should be done, or what is true. Each part is counted
    /// separately.
    BucketName {
        Decision => "decision",
        Answer => "answer",
    }
);

/// The final output of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutput {
    pub agent_id: String,
    pub weight: f64,
    pub output: Value,
}

/// A value and the agents that gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueCandidate {
    /// As the first agent wrote it, in the order of the agents.
    pub value: Value,
    /// Two values with the same key count as equal.
    pub key: String,
    pub agents: Vec<String>,
    /// In millionths, so that the order of the agents does not change the sum.
    pub weight_micros: u64,
}

impl ValueCandidate {
    /// The weight of the agents that gave the value.
    #[expect(clippy::cast_precision_loss, reason = "64 weights of at most a million fit exactly")]
    pub fn weight(&self) -> f64 {
        self.weight_micros as f64 / 1e6
    }
}

/// The values that the agents gave for one part of the output.
#[derive(Debug, Clone, PartialEq)]
pub struct Bucket {
    pub name: BucketName,
    /// The heaviest first.
    pub candidates: Vec<ValueCandidate>,
    pub outcome: BucketOutcome,
}

/// The result of one bucket.
#[derive(Debug, Clone, PartialEq)]
pub enum BucketOutcome {
    /// The winning value, and the rule that broke a tie, if there was one.
    Value { value: Value, decided_by: Option<&'static str> },
    /// No value wins, and no tie break or null action helps.
    None(UnresolvedCause),
    /// The agents are asked again.
    Reexplore(UnresolvedCause),
}

impl BucketOutcome {
    /// The winning value, if there is one.
    pub const fn value(&self) -> Option<&Value> {
        match self {
            Self::Value { value, .. } => Some(value),
            Self::None(_) | Self::Reexplore(_) => None,
        }
    }
}

/// Counts the outputs. A bucket that no agent filled is left out if another bucket has a value.
pub fn aggregate(
    run_id: &str,
    said: &[AgentOutput],
    spec: &AggregationSpec,
    may_reexplore: tie::ReexplorePermission,
) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = BucketName::ALL
        .iter()
        .map(|name| {
            let candidates = candidates(*name, said);
            let count =
                tie::BucketCount { run_id, name: *name, candidates: &candidates, said, spec };
            let outcome = count.outcome(may_reexplore);
            Bucket { name: *name, candidates, outcome }
        })
        .collect();
    let is_silent = |bucket: &Bucket| bucket.candidates.is_empty();
    if !buckets.iter().all(is_silent) {
        buckets.retain(|bucket| !is_silent(bucket));
    }
    buckets
}

fn candidates(name: BucketName, said: &[AgentOutput]) -> Vec<ValueCandidate> {
    let mut order: Vec<String> = Vec::new();
    let mut by_key: BTreeMap<String, ValueCandidate> = BTreeMap::new();
    for one in said {
        let Some((key, value)) = one.output.get(name.as_str()).and_then(comparison_key) else {
            continue;
        };
        let entry = by_key.entry(key.clone()).or_insert_with(|| {
            order.push(key.clone());
            ValueCandidate { value, key, agents: Vec::new(), weight_micros: 0 }
        });
        entry.agents.push(one.agent_id.clone());
        entry.weight_micros = entry.weight_micros.saturating_add(micros(one.weight));
    }
    let mut candidates: Vec<ValueCandidate> =
        order.into_iter().filter_map(|key| by_key.remove(&key)).collect();
    // The sort is stable: of equal weights, the value that was given first stays first.
    candidates.sort_by_key(|it| std::cmp::Reverse(it.weight_micros));
    candidates
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a weight was checked to be from 0 to a million"
)]
fn micros(weight: f64) -> u64 {
    (weight * 1e6).round() as u64
}

/// The key by which values are compared, and the value to show. Texts are compared without case and
/// surrounding white space, and shown with both.
fn comparison_key(value: &Value) -> Option<(String, Value)> {
    match value {
        Value::Null => None,
        Value::String(text) => {
            let trimmed = text.trim();
            let shown = Value::String(trimmed.to_owned());
            (!trimmed.is_empty()).then(|| (trimmed.to_lowercase(), shown))
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            // The prefix tells the number 1 from the text "1".
            let text = String::from_utf8_lossy(&canonical(value)).into_owned();
            Some((format!("\u{0}{text}"), value.clone()))
        }
    }
}
