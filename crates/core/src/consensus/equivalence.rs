//! When two outputs say the same, and which outputs of a round belong together.

use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization as _;

use crate::{canonical::canonical, job::Equivalence};

/// Whether two outputs are equivalent under the relation. Reflexive and symmetric.
pub fn equivalent(relation: &Equivalence, left: &Value, right: &Value) -> bool {
    match relation {
        Equivalence::Canonical => same(left, right),
        Equivalence::Fields(pointers) => same_fields(pointers, left, right),
        Equivalence::Numeric { tolerance } => {
            alike(left, right, &|left, right| is_within(*tolerance, left, right))
        }
        Equivalence::Buckets(bounds) => {
            alike(left, right, &|left, right| bucket(bounds, left) == bucket(bounds, right))
        }
        Equivalence::Unordered => canonical(&sorted(left)) == canonical(&sorted(right)),
        Equivalence::Text => alike_text(left, right),
    }
}

/// How the outputs of a round are compared.
#[derive(Debug)]
pub(super) enum Relation<'a> {
    Named(&'a Equivalence),
    /// Numbers are the same whatever their value, because they are averaged afterwards.
    AnyNumber,
    /// The caller named none: canonical, but two strings, or two objects that differ in one string
    /// member only, are compared as text. Decided pair by pair, so that no third output changes it.
    Default,
}

impl Relation<'_> {
    fn holds(&self, left: &Value, right: &Value) -> bool {
        match self {
            Self::Named(relation) => equivalent(relation, left, right),
            Self::AnyNumber => alike(left, right, &|_, _| true),
            Self::Default => {
                same(left, right) || (differs_in_one_text(left, right) && alike_text(left, right))
            }
        }
    }

    /// The name that goes into the answer.
    pub(super) fn name(&self, outputs: &[&Value]) -> &'static str {
        match self {
            Self::Named(relation) => relation.as_str(),
            Self::AnyNumber => "numeric",
            Self::Default => {
                let has_text_pair = outputs.iter().enumerate().any(|(index, left)| {
                    outputs.iter().skip(index + 1).any(|right| differs_in_one_text(left, right))
                });
                if has_text_pair { "text" } else { "canonical" }
            }
        }
    }
}

/// Numbers the groups of equivalent outputs by first appearance.
///
/// A relation with a tolerance is not transitive, so groups are the connected ones:
/// that way the order of the outputs does not matter.
pub(super) fn group(relation: &Relation<'_>, outputs: &[&Value]) -> Vec<usize> {
    let mut root: Vec<usize> = (0..outputs.len()).collect();
    for (index, left) in outputs.iter().enumerate() {
        for (other, right) in outputs.iter().enumerate().skip(index + 1) {
            if root[index] != root[other] && relation.holds(left, right) {
                let (keep, drop) = (root[index].min(root[other]), root[index].max(root[other]));
                for entry in root.iter_mut().filter(|entry| **entry == drop) {
                    *entry = keep;
                }
            }
        }
    }
    let mut seen: Vec<usize> = Vec::new();
    root.iter()
        .map(|root| {
            seen.iter().position(|known| known == root).unwrap_or_else(|| {
                seen.push(*root);
                seen.len() - 1
            })
        })
        .collect()
}

/// Text without case, variants of width, white space and closing punctuation.
pub(super) fn normalised(text: &str) -> String {
    let folded: String = text.nfkc().flat_map(char::to_lowercase).collect();
    let words = folded.split_whitespace().collect::<Vec<&str>>().join(" ");
    let kept = words.trim_end_matches(['.', '!', '?', ';', ',', ' ']);
    // Text that is nothing but marks says what it says: `?` is not `!`.
    if kept.is_empty() { words } else { kept.to_owned() }
}

/// Compares what the pointers name. Where they name nothing in either output there is nothing that
/// the two could agree on, and the whole is compared.
fn same_fields(pointers: &[String], left: &Value, right: &Value) -> bool {
    let mut has_field = false;
    let all_same =
        pointers.iter().all(|pointer| match (left.pointer(pointer), right.pointer(pointer)) {
            (Some(left), Some(right)) => {
                has_field = true;
                same(left, right)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        });
    all_same && (has_field || same(left, right))
}

/// Whether two numbers differ by at most the tolerance, as written in decimal: 19.99 and 20 are
/// within 0.01, although their binary difference is a hair more.
fn is_within(tolerance: f64, left: f64, right: f64) -> bool {
    let hair = (f64::EPSILON * left.abs().max(right.abs())).min(tolerance / 1_000.0);
    (left - right).abs() <= tolerance + hair
}

fn same(left: &Value, right: &Value) -> bool {
    left == right || canonical(left) == canonical(right)
}

fn bucket(bounds: &[f64], number: f64) -> usize {
    bounds.iter().filter(|bound| **bound <= number).count()
}

/// Compares two values member by member, numbers by the given test.
fn alike(left: &Value, right: &Value, numbers: &dyn Fn(f64, f64) -> bool) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_f64(), right.as_f64()) {
            (Some(left), Some(right)) => numbers(left, right),
            _ => left == right,
        },
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| alike(left, right, numbers))
        }
        (Value::Object(left), Value::Object(right)) => {
            same_members(left, right, |left, right| alike(left, right, numbers))
        }
        _ => left == right,
    }
}

fn alike_text(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => normalised(left) == normalised(right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| alike_text(left, right))
        }
        (Value::Object(left), Value::Object(right)) => same_members(left, right, alike_text),
        _ => same(left, right),
    }
}

fn same_members(
    left: &Map<String, Value>,
    right: &Map<String, Value>,
    test: impl Fn(&Value, &Value) -> bool,
) -> bool {
    left.len() == right.len()
        && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| test(value, other)))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<(Vec<u8>, Value)> =
                items.iter().map(sorted).map(|item| (canonical(&item), item)).collect();
            items.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Array(items.into_iter().map(|(_, item)| item).collect())
        }
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, item)| (name.clone(), sorted(item))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

fn differs_in_one_text(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left != right,
        (Value::Object(left), Value::Object(right)) => {
            if left.len() != right.len() {
                return false;
            }
            let mut differing = left
                .iter()
                .filter(|(name, value)| right.get(*name).is_none_or(|other| !same(value, other)));
            match (differing.next(), differing.next()) {
                (Some((name, value)), None) => {
                    value.is_string() && right.get(name).is_some_and(Value::is_string)
                }
                (None, _) | (Some(_), Some(_)) => false,
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(relation: &Equivalence, outputs: &[Value], expected: &[usize]) {
        let outputs: Vec<&Value> = outputs.iter().collect();
        assert_eq!(group(&Relation::Named(relation), &outputs), expected);
    }

    #[test]
    fn whole_numbers_equal_their_floats() {
        check(
            &Equivalence::Canonical,
            &[json!({"a": 1}), json!({"a": 1.0}), json!({"a": 2})],
            &[0, 0, 1],
        );
    }

    #[test]
    fn chained_numbers_form_one_group_in_any_order() {
        let relation = Equivalence::Numeric { tolerance: 0.1 };
        check(&relation, &[json!(1.0), json!(1.2), json!(1.1)], &[0, 0, 0]);
        check(&relation, &[json!(1.0), json!(1.1), json!(1.3)], &[0, 0, 1]);
    }

    #[test]
    fn text_ignores_case_space_and_closing_marks() {
        check(&Equivalence::Text, &[json!(" Paris. "), json!("paris"), json!("Lyon")], &[0, 0, 1]);
        check(&Equivalence::Text, &[json!({"a": "X"}), json!({"a": "x!"})], &[0, 0]);
    }

    #[test]
    fn unordered_lists_are_multisets() {
        check(
            &Equivalence::Unordered,
            &[json!([1, 2, 2]), json!([2, 1, 2]), json!([1, 1, 2])],
            &[0, 0, 1],
        );
    }

    #[test]
    fn fields_compare_only_what_they_name() {
        let relation = Equivalence::Fields(vec!["/total".to_owned()]);
        check(&relation, &[json!({"total": 1, "x": 1}), json!({"total": 1, "x": 2})], &[0, 0]);
        check(&relation, &[json!({"total": 1}), json!({})], &[0, 1]);
    }

    #[test]
    fn without_any_of_the_fields_the_whole_is_compared() {
        let relation = Equivalence::Fields(vec!["/total".to_owned()]);
        check(&relation, &[json!("sorry"), json!({"x": 1}), json!({"x": 1.0})], &[0, 1, 1]);
    }

    #[test]
    fn a_tolerance_is_meant_in_decimal() {
        let relation = Equivalence::Numeric { tolerance: 0.01 };
        check(&relation, &[json!(19.99), json!(20.0), json!(20.011)], &[0, 0, 1]);
        let exact = Equivalence::Numeric { tolerance: 0.0 };
        check(&exact, &[json!(0.3), json!(0.1 + 0.2), json!(-0.0), json!(0)], &[0, 1, 2, 2]);
        check(&relation, &[json!(f64::MAX), json!(f64::MIN)], &[0, 1]);
    }

    #[test]
    fn marks_alone_are_not_nothing() {
        check(&Equivalence::Text, &[json!("?"), json!("!"), json!("")], &[0, 1, 2]);
        check(&Equivalence::Text, &[json!("Paris ."), json!("paris")], &[0, 0]);
    }

    #[test]
    fn zero_has_no_sign_and_nothing_is_not_null() {
        check(&Equivalence::Canonical, &[json!(-0.0), json!(0), json!(0.0)], &[0, 0, 0]);
        check(
            &Equivalence::Canonical,
            &[json!({}), json!({}), json!([]), json!(null)],
            &[0, 0, 1, 2],
        );
    }

    #[test]
    fn buckets_hold_what_lies_between_bounds() {
        let relation = Equivalence::Buckets(vec![0.3, 0.7]);
        check(&relation, &[json!(0.1), json!(0.29), json!(0.3), json!(0.9)], &[0, 0, 1, 2]);
    }

    #[test]
    fn the_default_is_text_only_where_one_string_differs() {
        #[track_caller]
        fn check(outputs: &[Value], name: &str, groups: &[usize]) {
            let outputs: Vec<&Value> = outputs.iter().collect();
            assert_eq!(Relation::Default.name(&outputs), name);
            assert_eq!(group(&Relation::Default, &outputs), groups);
        }
        check(&[json!("Paris"), json!("paris.")], "text", &[0, 0]);
        check(&[json!({"answer": "a", "n": 1}), json!({"answer": "A", "n": 1})], "text", &[0, 0]);
        check(
            &[json!({"answer": "a", "n": 1}), json!({"answer": "A", "n": 2})],
            "canonical",
            &[0, 1],
        );
        // A stranger in the round does not change how the others are compared.
        check(&[json!("Paris"), json!({"x": 1}), json!("paris.")], "text", &[0, 1, 0]);
    }
}
