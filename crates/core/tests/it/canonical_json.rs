//! Our fast canonical JSON gives the same bytes as the reference crate.

use jurat_core::canonical::{canonical, same_json};
use proptest::prelude::*;
use serde_json::{Map, Number, Value, json};

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|float| Number::from_f64(float).map_or(Value::Null, Value::Number)),
        any::<String>().prop_map(Value::String),
    ];
    let name = prop_oneof![
        "[a-z]{0,4}",
        any::<String>(),
        Just("\u{ff5e}".to_owned()),
        Just("\u{1f600}".to_owned())
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec((name.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// The same value with every number written as a float.
fn in_floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64().unwrap()),
        Value::Array(items) => items.iter().map(in_floats).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, item)| (name.clone(), in_floats(item))).collect()
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// Few enough values that two of them are often equal.
fn small_values() -> impl Strategy<Value = Value> {
    let leaves =
        [json!(null), json!(0), json!(-0.0), json!(1), json!(1.0), json!("a"), json!(true)];
    prop::sample::select(leaves.to_vec()).prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::vec(("[ab]", inner), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_fast_path_equals_the_reference(value in values()) {
        let reference = serde_json_canonicalizer::to_vec(&value).unwrap();
        prop_assert_eq!(canonical(&value), reference);
    }

    #[test]
    fn values_are_equal_if_their_canonical_bytes_are(
        left in values(), right in values(), small in small_values(), other in small_values()
    ) {
        prop_assert!(same_json(&left, &left) && same_json(&left, &in_floats(&left)));
        for (left, right) in [(&left, &right), (&small, &other), (&left, &small)] {
            let expected = canonical(left) == canonical(right);
            prop_assert_eq!(same_json(left, right), expected);
            prop_assert_eq!(same_json(right, left), expected);
        }
    }
}

#[test]
fn the_numbers_of_the_standard_are_written_as_it_requires() {
    let numbers = json!([
        333_333_333.333_333_3,
        1e30,
        4.50,
        2e-3,
        0.000_000_000_000_000_000_000_000_001,
        -0.0,
        1.0
    ]);
    assert_eq!(canonical(&numbers), b"[333333333.3333333,1e+30,4.5,0.002,1e-27,0,1]");
}

#[test]
fn members_are_sorted_by_utf_16() {
    // By bytes the first of these would come last; by UTF-16 the second does.
    let value = json!({ "\u{1f600}": 1, "\u{ff5e}": 2 });
    assert_eq!(canonical(&value), "{\"\u{1f600}\":1,\"\u{ff5e}\":2}".as_bytes());
}
