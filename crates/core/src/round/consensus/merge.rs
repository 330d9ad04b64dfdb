//! Builds the output of the winning group: the member nearest to all others, a field-wise merge, or
//! an average.

use std::collections::BTreeSet;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    Consensus,
    numeric::{self, Spread},
};
use crate::{
    canonical::digest_json,
    round::{
        job::{AgreementTerms, OutputMerge, ScoreAggregation},
        replica::{Replica, ReplicaVote},
    },
};

/// The output of the winners: the average if numbers are averaged; otherwise the output nearest to
/// all others, or a new object with the most frequent members.
pub(super) fn merged(terms: &AgreementTerms, winners: &[&ReplicaVote]) -> Option<Value> {
    let outputs =
        nearest_first(winners.iter().filter_map(|vote| vote.said.output.as_ref()).collect())?;
    Some(match (terms.aggregation, terms.merge) {
        (ScoreAggregation::Majority, OutputMerge::Medoid) => outputs[0].clone(),
        (ScoreAggregation::Majority, OutputMerge::Fields) => merge_fields(&outputs),
        (method @ (ScoreAggregation::Mean | ScoreAggregation::Median), _) => {
            numeric::combine_outputs(method, &outputs)
        }
    })
}

/// The winning output that is nearest to all other winning outputs, without any merging.
pub fn nearest_output(replicas: &[Replica], consensus: &Consensus) -> Option<Value> {
    nearest_first(winning_outputs(replicas, consensus))?.first().map(|output| (*output).clone())
}

/// The spread of the numbers in the winning outputs, by JSON Pointer.
pub fn spread(replicas: &[Replica], consensus: &Consensus) -> BTreeMap<String, Spread> {
    numeric::spreads(&winning_outputs(replicas, consensus))
}

/// Whether the output comes from a replica or from a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputOrigin {
    /// A replica gave exactly this output.
    Replica,
    /// It was merged from several outputs.
    Merge,
}

/// The origin of the output; `None` without an output.
pub fn output_by(replicas: &[Replica], consensus: &Consensus) -> Option<OutputOrigin> {
    let output = consensus.output.as_ref()?;
    let is_given = winning_outputs(replicas, consensus).contains(&output);
    Some(if is_given { OutputOrigin::Replica } else { OutputOrigin::Merge })
}

fn winning_outputs<'a>(replicas: &'a [Replica], consensus: &Consensus) -> Vec<&'a Value> {
    let is_winner = |replica: &&Replica| {
        let group = consensus.group_of(replica);
        group.is_some() && group == consensus.winner
    };
    replicas
        .iter()
        .filter(is_winner)
        .filter_map(|replica| replica.answer.content()?.output.as_ref())
        .collect()
}

/// The outputs in an order independent of the replicas, with the one nearest to all others first.
fn nearest_first(mut outputs: Vec<&Value>) -> Option<Vec<&Value>> {
    outputs.sort_by_cached_key(|output| rank(output));
    let nearest = medoid(&outputs)?;
    outputs.swap(0, nearest);
    Some(outputs)
}

fn medoid(outputs: &[&Value]) -> Option<usize> {
    let mut totals = vec![0.0; outputs.len()];
    for (index, left) in outputs.iter().enumerate() {
        for (other, right) in outputs.iter().enumerate().skip(index + 1) {
            let apart = distance(left, right);
            totals[index] += apart;
            totals[other] += apart;
        }
    }
    (0..outputs.len()).min_by(|left, right| totals[*left].total_cmp(&totals[*right]))
}

fn distance(left: &Value, right: &Value) -> f64 {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_f64(), right.as_f64()) {
            (Some(left), Some(right)) => relative_distance(left, right),
            _ => 1.0,
        },
        (Value::Array(left), Value::Array(right)) => {
            let shared: f64 =
                left.iter().zip(right).map(|(left, right)| distance(left, right)).sum();
            shared + whole(left.len().abs_diff(right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let shared: f64 = left
                .iter()
                .map(|(name, value)| right.get(name).map_or(1.0, |other| distance(value, other)))
                .sum();
            let missing = right.keys().filter(|name| !left.contains_key(*name)).count();
            shared + whole(missing)
        }
        _ if left == right => 0.0,
        _ => 1.0,
    }
}

/// Between 0 and 1, and never `NaN`: two zeros have no scale to divide by, and the difference of
/// huge numbers overflows.
fn relative_distance(left: f64, right: f64) -> f64 {
    let scale = left.abs().max(right.abs());
    if scale == 0.0 {
        return 0.0;
    }
    let (left, right) = (left / scale, right / scale);
    (left - right).abs() / (left.abs() + right.abs())
}

/// Each member takes the value that most of the group give it.
fn merge_fields(outputs: &[&Value]) -> Value {
    let objects: Vec<&Map<String, Value>> = outputs.iter().filter_map(|o| o.as_object()).collect();
    if objects.len() < outputs.len() {
        return outputs.first().map_or(Value::Null, |first| (*first).clone());
    }
    let mut merged = Map::new();
    let names: BTreeSet<&String> = objects.iter().flat_map(|object| object.keys()).collect();
    for name in names {
        let given: Vec<&Value> = objects.iter().filter_map(|object| object.get(name)).collect();
        if given.len() * 2 <= objects.len() {
            continue;
        }
        if let Some(value) = most_frequent(&given) {
            merged.insert(name.clone(), value.clone());
        }
    }
    Value::Object(merged)
}

/// Counts by digest, so that `1` and `1.0` are one value; ties go to the first by rank.
fn most_frequent<'a>(given: &[&'a Value]) -> Option<&'a Value> {
    // Most members are equal in all outputs and need no digest.
    if let [first, rest @ ..] = given
        && rest.iter().all(|other| other == first)
    {
        return Some(first);
    }
    let mut ranked: Vec<((String, usize, String), &'a Value)> =
        given.iter().map(|value| (rank(value), *value)).collect();
    ranked.sort_by(|left, right| left.0.cmp(&right.0));
    let count = |digest: &str| ranked.iter().filter(|(other, _)| other.0 == digest).count();
    ranked.iter().rev().max_by_key(|(rank, _)| count(&rank.0)).map(|(_, value)| *value)
}

/// An order independent of the order of the replicas: by digest, then by text, because `1` and
/// `1.0` have the same digest but read differently in the reply.
fn rank(value: &Value) -> (String, usize, String) {
    let text = value.to_string();
    (digest_json(value), text.len(), text)
}

#[expect(clippy::cast_precision_loss, reason = "a count of members")]
fn whole(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_distance_is_always_a_number() {
        for (left, right, expected) in [
            (json!(0.0), json!(-0.0), 0.0),
            (json!(1), json!(1.0), 0.0),
            (json!(f64::MAX), json!(f64::MIN), 1.0),
            (json!(5e-324), json!(0), 1.0),
            (json!({}), json!({}), 0.0),
            (json!([1, 2]), json!([1, 2, 3, 4]), 2.0),
            (json!(2), json!(3), 0.2),
            (json!(-2), json!(3), 1.0),
            (json!([2, 3, 7]), json!([3, 2]), 1.4),
            (json!({"a": 2, "b": 1}), json!({"a": 3, "c": 1, "d": 1}), 3.2),
            (json!("a"), json!("a"), 0.0),
            (json!("a"), json!("b"), 1.0),
            (json!(1), json!("1"), 1.0),
            (json!([]), json!({}), 1.0),
        ] {
            for (left, right) in [(&left, &right), (&right, &left)] {
                let found = distance(left, right);
                assert!((found - expected).abs() < 1e-9, "{left} and {right}: {found}");
            }
        }
    }

    /// All orders of a few outputs.
    fn orders(outputs: &[Value]) -> Vec<Vec<&Value>> {
        let mut all = vec![Vec::new()];
        for output in outputs {
            let mut longer = Vec::new();
            for known in &all {
                for at in 0..=known.len() {
                    let mut order: Vec<&Value> = known.clone();
                    order.insert(at, output);
                    longer.push(order);
                }
            }
            all = longer;
        }
        all
    }

    #[test]
    fn the_nearest_is_the_same_in_any_order() {
        for (outputs, expected) in [
            (vec![json!(1), json!(2), json!(9)], json!(2)),
            (vec![json!("a"), json!("b"), json!("b"), json!("c")], json!("b")),
            // Of outputs that differ only in writing, the shorter one comes first.
            (vec![json!(1.0), json!(1)], json!(1)),
            (vec![json!([1, 2, 3]), json!([1, 2]), json!([1, 2, 3, 4])], json!([1, 2, 3])),
        ] {
            for order in orders(&outputs) {
                let found = nearest_first(order.clone()).unwrap();
                assert_eq!(found[0].to_string(), expected.to_string(), "{order:?}");
                assert_eq!(found.len(), outputs.len());
            }
        }
        let strangers = [json!("a"), json!("b"), json!("c")];
        let firsts: BTreeSet<String> = orders(&strangers)
            .into_iter()
            .map(|order| nearest_first(order).unwrap()[0].to_string())
            .collect();
        assert_eq!(firsts.len(), 1);
        assert_eq!(nearest_first(Vec::new()), None);
    }

    #[test]
    fn a_member_takes_the_most_frequent_value_in_any_order() {
        let values = [json!("a"), json!("b"), json!("b"), json!("c")];
        for order in orders(&values) {
            assert_eq!(most_frequent(&order), Some(&values[1]), "{order:?}");
        }
        let equals = [json!("x"), json!("y"), json!("z")];
        let found: BTreeSet<&str> =
            orders(&equals).iter().filter_map(|order| most_frequent(order)?.as_str()).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(most_frequent(&[]), None);
    }

    #[test]
    fn a_member_of_half_the_objects_is_left_out() {
        let merge = |outputs: &[Value]| merge_fields(&outputs.iter().collect::<Vec<_>>());
        assert_eq!(merge(&[json!({"n": 1, "x": 2}), json!({"n": 1})]), json!({"n": 1}));
        let with_x = json!({"x": 2});
        let three_of_five = [with_x.clone(), json!({}), with_x.clone(), json!({}), with_x.clone()];
        assert_eq!(merge(&three_of_five), with_x);
    }

    #[test]
    fn only_objects_are_merged() {
        let outputs = [json!("b"), json!({"n": 1}), json!({"n": 1})];
        assert_eq!(merge_fields(&outputs.iter().collect::<Vec<_>>()), json!("b"));
    }

    #[test]
    fn a_list_with_one_more_item_is_near() {
        let outputs = [json!([1, 2, 3]), json!([1, 2]), json!([7, 8])];
        assert_eq!(medoid(&outputs.iter().collect::<Vec<_>>()), Some(1));
    }

    #[test]
    fn whole_floats_count_with_whole_numbers() {
        let outputs = [json!({"n": 1}), json!({"n": 2}), json!({"n": 1.0})];
        assert_eq!(merge_fields(&outputs.iter().collect::<Vec<_>>()), json!({"n": 1}));
    }
}
