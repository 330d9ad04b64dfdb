//! Decides whether two outputs are equivalent, and groups the outputs of a round.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization as _;

use super::unordered::sorted;
use crate::{canonical::same_json, round::job::Equivalence};

/// Whether two outputs are equivalent under the relation. Reflexive and symmetric.
pub fn equivalent(relation: &Equivalence, left: &Value, right: &Value) -> bool {
    same_form(relation, &form(relation, left), &form(relation, right))
}

/// The part of an output that the relation compares. It is computed once for each output, however
/// many others the output is compared with.
pub(crate) fn form<'a>(relation: &Equivalence, output: &'a Value) -> Cow<'a, Value> {
    match relation {
        Equivalence::Canonical | Equivalence::Numeric { .. } | Equivalence::Buckets(_) => {
            Cow::Borrowed(output)
        }
        Equivalence::Fields(pointers) => Cow::Owned(named_fields(pointers, output)),
        Equivalence::Unordered => Cow::Owned(sorted(output)),
        Equivalence::Text => Cow::Owned(normalised_text(output)),
    }
}

/// Whether two outputs with these forms are equivalent.
pub(crate) fn same_form(relation: &Equivalence, left: &Value, right: &Value) -> bool {
    match relation {
        Equivalence::Numeric { tolerance } => {
            alike(left, right, &|left, right| is_within(*tolerance, left, right))
        }
        Equivalence::Buckets(bounds) => {
            alike(left, right, &|left, right| bucket(bounds, left) == bucket(bounds, right))
        }
        Equivalence::Canonical
        | Equivalence::Fields(_)
        | Equivalence::Unordered
        | Equivalence::Text => same_json(left, right),
    }
}

/// How the outputs of a round are compared.
#[derive(Debug)]
pub(super) enum Relation<'a> {
    Named(&'a Equivalence),
    /// The caller named no relation and wants numbers combined: outputs that differ only in numbers
    /// join the same group, in addition to those that the default joins.
    Numbers {
        has_schema: bool,
    },
    /// The caller named no relation: outputs are compared canonically, except that two strings, or
    /// two objects that differ in one string member, are compared as text. Each pair is decided on
    /// its own, so that no third output changes it.
    Default,
}

impl Relation<'_> {
    /// The name of the relation in the reply.
    pub(super) fn name(&self, outputs: &[&Value]) -> &'static str {
        match self {
            Self::Named(relation) => relation.as_str(),
            Self::Numbers { .. } => "numbers",
            Self::Default => {
                let has_text_pair = outputs.iter().enumerate().any(|(index, left)| {
                    outputs
                        .iter()
                        .skip(index + 1)
                        .any(|right| matches!(difference(left, right), Difference::OneText { .. }))
                });
                if has_text_pair { "text" } else { "canonical" }
            }
        }
    }
}

/// Numbers the groups of equivalent outputs by first appearance.
pub(super) fn group(relation: &Relation<'_>, outputs: &[&Value]) -> Vec<usize> {
    match relation {
        Relation::Named(relation) => {
            let forms: Vec<Cow<'_, Value>> =
                outputs.iter().map(|output| form(relation, output)).collect();
            connected(outputs.len(), |left, right| same_form(relation, &forms[left], &forms[right]))
        }
        Relation::Numbers { has_schema: true } => {
            connected(outputs.len(), |left, right| but_for_numbers(outputs[left], outputs[right]))
        }
        Relation::Default | Relation::Numbers { has_schema: false } => {
            let combines = matches!(relation, Relation::Numbers { .. });
            // Long texts are normalised once, however many others they are compared with.
            let mut texts: BTreeMap<(usize, Option<&str>), String> = BTreeMap::new();
            connected(outputs.len(), |left, right| {
                if combines && but_for_numbers(outputs[left], outputs[right]) {
                    return true;
                }
                match difference(outputs[left], outputs[right]) {
                    Difference::None => true,
                    Difference::More => false,
                    Difference::OneText { at, texts: [one, other] } => {
                        texts.entry((left, at)).or_insert_with(|| normalised(one));
                        texts.entry((right, at)).or_insert_with(|| normalised(other));
                        texts.get(&(left, at)) == texts.get(&(right, at))
                    }
                }
            })
        }
    }
}

/// Numbers the connected components by first appearance.
///
/// A relation with a tolerance is not transitive. Connected components make the order of the
/// outputs irrelevant.
fn connected(count: usize, mut holds: impl FnMut(usize, usize) -> bool) -> Vec<usize> {
    let mut root: Vec<usize> = (0..count).collect();
    for index in 0..count {
        for other in index + 1..count {
            if root[index] != root[other] && holds(index, other) {
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

/// The text without case, width variants, white space and closing punctuation.
pub(super) fn normalised(text: &str) -> String {
    let folded: String = if text.is_ascii() {
        // ASCII text has no variants, and this is much faster.
        text.to_ascii_lowercase()
    } else {
        text.nfkc().flat_map(char::to_lowercase).collect()
    };
    let words = folded.split_whitespace().collect::<Vec<&str>>().join(" ");
    let kept = words.trim_end_matches(['.', '!', '?', ';', ',', ' ']);
    // A text of punctuation alone keeps it: `?` is not `!`.
    if kept.is_empty() { words } else { kept.to_owned() }
}

/// The values at the pointers. If none of them exists, there is nothing to agree on and the whole
/// output is compared. The two cases are lists of different lengths, so that no output can imitate
/// the fields of another.
fn named_fields(pointers: &[String], output: &Value) -> Value {
    let found: Map<String, Value> = outermost(pointers)
        .into_iter()
        .filter_map(|pointer| Some((pointer.to_owned(), output.pointer(pointer)?.clone())))
        .collect();
    if found.is_empty() {
        Value::Array(vec![Value::Null, output.clone()])
    } else {
        Value::Array(vec![Value::Object(found)])
    }
}

/// The pointers, without those that lead into the value of another one: that value is compared
/// already.
fn outermost(pointers: &[String]) -> Vec<&str> {
    let mut ordered: Vec<&str> = pointers.iter().map(String::as_str).collect();
    // Sorting by path segments puts everything within a value directly after it.
    ordered.sort_by(|left, right| left.split('/').cmp(right.split('/')));
    let mut kept: Vec<&str> = Vec::new();
    for pointer in ordered {
        let is_within = kept.last().is_some_and(|outer| {
            pointer.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if !is_within {
            kept.push(pointer);
        }
    }
    kept
}

/// Whether two numbers differ by at most the tolerance, as written in decimal: 19.99 and 20 are
/// within 0.01, although their binary difference is slightly more.
pub(crate) fn is_within(tolerance: f64, left: f64, right: f64) -> bool {
    let hair = (f64::EPSILON * left.abs().max(right.abs())).min(tolerance / 1_000.0);
    (left - right).abs() <= tolerance + hair
}

fn bucket(bounds: &[f64], number: f64) -> usize {
    // The limits ascend.
    bounds.partition_point(|limit| *limit <= number)
}

/// Whether two outputs differ only in numbers.
fn but_for_numbers(left: &Value, right: &Value) -> bool {
    alike(left, right, &|_, _| true)
}

/// Compares two values member by member, numbers by the given test.
fn alike(left: &Value, right: &Value, numbers: &dyn Fn(f64, f64) -> bool) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let both = left.as_f64().zip(right.as_f64());
            both.is_some_and(|(left, right)| numbers(left, right))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| alike(left, right, numbers))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| left.0 == right.0 && alike(left.1, right.1, numbers))
        }
        _ => left == right,
    }
}

/// The value with all its texts normalised, but not the names of members.
fn normalised_text(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(normalised(text)),
        Value::Array(items) => Value::Array(items.iter().map(normalised_text).collect()),
        Value::Object(members) => {
            let members = members.iter().map(|(name, item)| (name.clone(), normalised_text(item)));
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// How two outputs differ.
enum Difference<'a> {
    None,
    /// Both are texts, or objects that differ in one member, which is a text in both.
    OneText {
        at: Option<&'a str>,
        texts: [&'a str; 2],
    },
    More,
}

fn difference<'a>(left: &'a Value, right: &'a Value) -> Difference<'a> {
    match (left, right) {
        (Value::String(one), Value::String(other)) if one != other => {
            Difference::OneText { at: None, texts: [one, other] }
        }
        (Value::Object(left), Value::Object(right)) => difference_of_members(left, right),
        _ if same_json(left, right) => Difference::None,
        _ => Difference::More,
    }
}

fn difference_of_members<'a>(
    left: &'a Map<String, Value>,
    right: &'a Map<String, Value>,
) -> Difference<'a> {
    if left.len() != right.len() {
        return Difference::More;
    }
    let mut found = Difference::None;
    // Both maps are sorted by name, so equal names come in the same order.
    for ((name, one), (same_name, other)) in left.iter().zip(right) {
        if name == same_name && same_json(one, other) {
            continue;
        }
        found = match (found, one, other) {
            (Difference::None, Value::String(one), Value::String(other)) if name == same_name => {
                Difference::OneText { at: Some(name), texts: [one, other] }
            }
            _ => return Difference::More,
        };
    }
    found
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
    fn numbers_are_compared_by_position() {
        let relation = Equivalence::Numeric { tolerance: 0.1 };
        let lists = [json!([1, 2]), json!([1.05, 2]), json!([1, 2, 3]), json!([5, 2])];
        check(&relation, &lists, &[0, 0, 1, 2]);
        let objects = [
            json!({"a": 1, "b": 2}),
            json!({"a": 1.05, "b": 2}),
            json!({"a": 1}),
            json!({"a": 1, "c": 2}),
            json!({"a": 9, "b": 2}),
            json!({"a": "1", "b": 2}),
        ];
        check(&relation, &objects, &[0, 0, 1, 2, 3, 4]);
        check(&relation, &[json!([{"a": [1]}]), json!([{"a": [1.1]}]), json!("1")], &[0, 0, 1]);
    }

    #[test]
    fn two_outputs_are_equivalent_or_not() {
        for (relation, is_same) in [
            (Equivalence::Canonical, false),
            (Equivalence::Fields(vec!["/a".to_owned()]), true),
            (Equivalence::Numeric { tolerance: 1.0 }, false),
            (Equivalence::Text, false),
        ] {
            let (left, right) = (json!({"a": 1, "b": "x"}), json!({"a": 1.0, "b": "y"}));
            assert_eq!(equivalent(&relation, &left, &right), is_same, "{relation:?}");
            assert!(equivalent(&relation, &left, &left), "{relation:?}");
        }
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
    fn a_field_inside_another_adds_nothing() {
        let pointers = ["/a/b", "/a!", "/a", "/c/0", "/a/b", "/c/01"].map(str::to_owned);
        assert_eq!(outermost(&pointers), ["/a", "/a!", "/c/0", "/c/01"]);
        assert_eq!(outermost(&[String::new(), "/".to_owned(), "/a".to_owned()]), [""]);
    }

    #[test]
    fn an_output_cannot_imitate_the_fields_of_another() {
        let relation = Equivalence::Fields(vec!["/a".to_owned()]);
        let outputs =
            [json!({"a": 1}), json!([{"/a": 1}]), json!({"/a": 1}), json!([null, {"a": 1}])];
        check(&relation, &outputs, &[0, 1, 2, 3]);
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
    fn a_tolerance_is_widened_by_no_more_than_rounding() {
        for (tolerance, left, right, expected) in [
            (1.0, 0.0, 1.0, true),
            (1.0, 1.0, 0.0, true),
            (1.0, 0.0, 1.000_5, false),
            (1e-20, 0.0, 1e-20, true),
            (1e-20, 0.0, 1.000_5e-20, false),
            // If neighbouring floats are further apart than the tolerance, rounding excuses
            // nothing.
            (1.0, 1e16, 1e16 + 2.0, false),
            (1.0, -3.0, -2.5, true),
            (1.0, -3.0, 3.0, false),
        ] {
            assert_eq!(is_within(tolerance, left, right), expected, "{tolerance} {left} {right}");
        }
    }

    #[test]
    fn punctuation_alone_is_compared() {
        check(&Equivalence::Text, &[json!("?"), json!("!"), json!("")], &[0, 1, 2]);
        check(&Equivalence::Text, &[json!("Paris ."), json!("paris")], &[0, 0]);
    }

    #[test]
    fn zero_has_no_sign_and_absent_is_not_null() {
        check(&Equivalence::Canonical, &[json!(-0.0), json!(0), json!(0.0)], &[0, 0, 0]);
        check(
            &Equivalence::Canonical,
            &[json!({}), json!({}), json!([]), json!(null)],
            &[0, 0, 1, 2],
        );
    }

    #[test]
    fn buckets_hold_the_numbers_between_their_limits() {
        let relation = Equivalence::Buckets(vec![0.3, 0.7]);
        check(&relation, &[json!(0.1), json!(0.29), json!(0.3), json!(0.9)], &[0, 0, 1, 2]);
    }

    #[test]
    fn the_default_compares_text_only_if_one_string_differs() {
        #[track_caller]
        fn check(outputs: &[Value], name: &str, groups: &[usize]) {
            let outputs: Vec<&Value> = outputs.iter().collect();
            assert_eq!(Relation::Default.name(&outputs), name);
            assert_eq!(group(&Relation::Default, &outputs), groups);
        }
        check(&[json!("Paris"), json!("paris.")], "text", &[0, 0]);
        // Equal texts are equal under any relation.
        check(&[json!("Paris"), json!("Paris")], "canonical", &[0, 0]);
        check(&[json!({"a": "x"}), json!({"a": "x"})], "canonical", &[0, 0]);
        // A member of another name is another answer.
        check(&[json!({"a": "x"}), json!({"b": "x"})], "canonical", &[0, 1]);
        check(&[json!({"a": 1}), json!({"b": 1})], "canonical", &[0, 1]);
        check(&[json!({"a": "x"}), json!({"a": "x", "b": "y"})], "canonical", &[0, 1]);
        check(&[json!({"a": "x"}), json!({"a": 1})], "canonical", &[0, 1]);
        check(&[json!("x"), json!(["x"])], "canonical", &[0, 1]);
        check(&[json!({"answer": "a", "n": 1}), json!({"answer": "A", "n": 1})], "text", &[0, 0]);
        check(
            &[json!({"answer": "a", "n": 1}), json!({"answer": "A", "n": 2})],
            "canonical",
            &[0, 1],
        );
        // An unrelated output does not change how the others are compared.
        check(&[json!("Paris"), json!({"x": 1}), json!("paris.")], "text", &[0, 1, 0]);
    }
}
