//! Combines the numbers of a group: averages, medians and their spread.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::{ScoreSummary, rounded};
use crate::round::job::ScoreAggregation;

/// Combines several numbers into one.
pub(super) fn combine(method: ScoreAggregation, numbers: &[f64]) -> f64 {
    match method {
        ScoreAggregation::Median => median(numbers),
        ScoreAggregation::Majority | ScoreAggregation::Mean => mean(numbers),
    }
}

/// A summary of the executors' scores; `None` if no executor gave one.
pub(super) fn summary(method: ScoreAggregation, scores: &[f64]) -> Option<ScoreSummary> {
    if scores.is_empty() {
        return None;
    }
    // Sums of floats depend on their order, and the order of the replicas must not matter.
    let mut scores = scores.to_vec();
    scores.sort_by(f64::total_cmp);
    let average = mean(&scores);
    let squares: Vec<f64> = scores.iter().map(|score| (score - average).powi(2)).collect();
    let method_name = if method == ScoreAggregation::Median { "median" } else { "mean" };
    Some(ScoreSummary {
        method: method_name.to_owned(),
        value: rounded(combine(method, &scores)),
        min: scores.iter().copied().fold(f64::INFINITY, f64::min),
        max: scores.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        deviation: rounded(mean(&squares).sqrt()),
    })
}

/// The spread of the numbers at one position of the winning outputs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    pub min: f64,
    pub max: f64,
    pub deviation: f64,
}

/// The spread of the numbers in these outputs, by JSON Pointer, if they differ.
pub(super) fn spreads(outputs: &[&Value]) -> BTreeMap<String, Spread> {
    let mut found = BTreeMap::new();
    collect_spreads(outputs, String::new(), &mut found);
    found
}

fn collect_spreads(outputs: &[&Value], at: String, found: &mut BTreeMap<String, Spread>) {
    const MOST: usize = 100;
    let Some(first) = outputs.first() else { return };
    if MOST <= found.len() {
        return;
    }
    match first {
        Value::Number(_) => {
            let numbers: Vec<f64> = outputs.iter().filter_map(|value| value.as_f64()).collect();
            if let Some(ScoreSummary { min, max, deviation, .. }) =
                summary(ScoreAggregation::Mean, &numbers)
                && min < max
            {
                found.insert(at, Spread { min, max, deviation });
            }
        }
        Value::Array(items) => {
            for index in 0..items.len() {
                let inner: Vec<&Value> = outputs.iter().filter_map(|o| o.get(index)).collect();
                collect_spreads(&inner, format!("{at}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for name in members.keys() {
                let inner: Vec<&Value> = outputs.iter().filter_map(|o| o.get(name)).collect();
                let step = name.replace('~', "~0").replace('/', "~1");
                collect_spreads(&inner, format!("{at}/{step}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Combines outputs: numbers at the same position are combined, everything else comes from the
/// first output.
pub(super) fn combine_outputs(method: ScoreAggregation, outputs: &[&Value]) -> Value {
    let Some(first) = outputs.first() else { return Value::Null };
    match first {
        Value::Number(_) => {
            let numbers: Vec<f64> = outputs.iter().filter_map(|value| value.as_f64()).collect();
            if numbers.len() == outputs.len() {
                number(combine(method, &numbers))
            } else {
                (*first).clone()
            }
        }
        Value::Array(items) => Value::Array(
            (0..items.len())
                .map(|index| {
                    let at: Vec<&Value> = outputs.iter().filter_map(|o| o.get(index)).collect();
                    combine_outputs(method, &at)
                })
                .collect(),
        ),
        Value::Object(members) => {
            let merged: Map<String, Value> = members
                .keys()
                .map(|name| {
                    let at: Vec<&Value> = outputs.iter().filter_map(|o| o.get(name)).collect();
                    (name.clone(), combine_outputs(method, &at))
                })
                .collect();
            Value::Object(merged)
        }
        Value::Null | Value::Bool(_) | Value::String(_) => (*first).clone(),
    }
}

fn number(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[expect(clippy::cast_precision_loss, reason = "a round has at most five numbers")]
fn mean(numbers: &[f64]) -> f64 {
    let count = numbers.len() as f64;
    let sum: f64 = numbers.iter().sum();
    if sum.is_finite() {
        return sum / count;
    }
    // The sum of huge numbers can overflow although their mean does not.
    numbers.iter().map(|number| number / count).sum::<f64>().clamp(f64::MIN, f64::MAX)
}

fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_median_resists_an_outlier_and_a_mean_does_not() {
        assert!((median(&[1.0, 100.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[1.0, 2.0]) - 1.5).abs() < 1e-9);
        assert!((median(&[1.0, 9.0, 4.0, 2.0]) - 3.0).abs() < 1e-9);
        assert!((median(&[5.0, 9.0, 4.0, 2.0, 1.0]) - 4.0).abs() < 1e-9);
        let outputs = [json!({"total": 10, "unit": "EUR"}), json!({"total": 20, "unit": "EUR"})];
        let merged = combine_outputs(ScoreAggregation::Mean, &outputs.iter().collect::<Vec<_>>());
        assert_eq!(merged, json!({"total": 15.0, "unit": "EUR"}));
    }

    #[test]
    fn the_mean_of_huge_numbers_is_a_number() {
        assert!((mean(&[f64::MAX, f64::MAX]) / f64::MAX - 1.0).abs() < 1e-9);
        assert!(mean(&[f64::MAX, f64::MIN, 3.0]).is_finite());
        let outputs = [json!(1e308), json!(1.2e308), json!(1.4e308)];
        let merged = combine_outputs(ScoreAggregation::Mean, &outputs.iter().collect::<Vec<_>>());
        assert!(merged.is_number());
    }

    #[test]
    fn numbers_that_differ_have_a_spread_at_their_pointer() {
        let outputs = [json!({"a/b": [1, 5], "n": 2}), json!({"a/b": [3, 5], "n": 2})];
        let found = spreads(&outputs.iter().collect::<Vec<_>>());
        assert_eq!(found.keys().collect::<Vec<_>>(), ["/a~1b/0"]);
        let spread = found["/a~1b/0"];
        assert!((spread.min - 1.0).abs() < 1e-9 && (spread.max - 3.0).abs() < 1e-9);
        assert!((spread.deviation - 1.0).abs() < 1e-9);
    }

    #[test]
    fn no_more_than_a_hundred_spreads_are_reported() {
        let zeros = Value::from(vec![0; 150]);
        let ones = Value::from(vec![1; 150]);
        assert_eq!(spreads(&[&zeros, &ones]).len(), 100);
    }

    #[test]
    fn a_member_that_is_not_always_a_number_is_not_averaged() {
        let outputs = [json!([1, {"n": 3}, null]), json!(["one", {"n": 5}, true])];
        let merged = combine_outputs(ScoreAggregation::Mean, &outputs.iter().collect::<Vec<_>>());
        assert_eq!(merged, json!([1, {"n": 4.0}, null]));
    }

    #[test]
    fn a_summary_includes_the_spread() {
        let summary = summary(ScoreAggregation::Majority, &[0.5, 1.0]).unwrap();
        assert!((summary.value - 0.75).abs() < 1e-9 && (summary.deviation - 0.25).abs() < 1e-9);
        assert!((summary.min - 0.5).abs() < 1e-9 && (summary.max - 1.0).abs() < 1e-9);
    }

    #[test]
    fn the_order_of_the_scores_does_not_change_the_last_bit() {
        let forth = summary(ScoreAggregation::Mean, &[0.1, 0.2, 0.3]).unwrap();
        let back = summary(ScoreAggregation::Mean, &[0.3, 0.2, 0.1]).unwrap();
        assert_eq!(forth.value.to_bits(), back.value.to_bits());
        assert_eq!(forth.deviation.to_bits(), back.deviation.to_bits());
    }
}
