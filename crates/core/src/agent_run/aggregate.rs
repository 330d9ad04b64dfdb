//! What the agents of a run say, taken together.

use std::{collections::BTreeMap, str::FromStr};

use serde_json::Value;

use super::{AggregationSpec, UnresolvedCause, tie};
use crate::{canonical::canonical, round::job::words};

words!(
    /// What an agent may say: what is to be done, and what is so. Each is counted for itself.
    BucketName {
        Decision => "decision",
        Answer => "answer",
    }
);

/// What one agent said in the end.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOutput {
    pub agent_id: String,
    pub weight: f64,
    pub output: Value,
}

/// A value that somebody said, and who did.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueCandidate {
    /// As it was said first, in the order of the agents.
    pub value: Value,
    /// What makes two values the same.
    pub key: String,
    pub agents: Vec<String>,
    /// In millionths, so that the order of the agents makes no difference to the sum.
    pub weight_micros: u64,
}

impl ValueCandidate {
    #[expect(clippy::cast_precision_loss, reason = "64 weights of at most a million fit exactly")]
    pub fn weight(&self) -> f64 {
        self.weight_micros as f64 / 1e6
    }
}

/// What the agents said of one thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Bucket {
    pub name: BucketName,
    /// The heaviest first.
    pub candidates: Vec<ValueCandidate>,
    pub outcome: BucketOutcome,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BucketOutcome {
    /// The value that won, and what decided a tie where there was one.
    Value { value: Value, decided_by: Option<&'static str> },
    /// There is none; what was tried did not help.
    None(UnresolvedCause),
    /// The agents are to be asked once more.
    Reexplore(UnresolvedCause),
}

impl BucketOutcome {
    pub const fn value(&self) -> Option<&Value> {
        match self {
            Self::Value { value, .. } => Some(value),
            Self::None(_) | Self::Reexplore(_) => None,
        }
    }
}

/// Counts what was said. A thing of which nobody says anything is left out, as long as somebody
/// says something of another.
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
    // The sort is stable: of equal weight, whoever said it first stands first.
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

/// What makes a value the same as another, and the value as it is shown. Text is compared without
/// case and without white space around it, and keeps both.
fn comparison_key(value: &Value) -> Option<(String, Value)> {
    match value {
        Value::Null => None,
        Value::String(text) => {
            let trimmed = text.trim();
            let shown = Value::String(trimmed.to_owned());
            (!trimmed.is_empty()).then(|| (trimmed.to_lowercase(), shown))
        }
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            // A mark keeps the number 1 from the text "1".
            let text = String::from_utf8_lossy(&canonical(value)).into_owned();
            Some((format!("\u{0}{text}"), value.clone()))
        }
    }
}
