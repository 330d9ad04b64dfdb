//! Properties of checks: equal canonical JSON gets equal verdicts, and no input panics.

use std::sync::LazyLock;

use jurat_core::{policy::Policy, schema::Schema};
use proptest::{collection, prelude::*};
use serde_json::{Map, Value, json};

use super::config;
use crate::checks::{bind, candidate};

static OPEN: LazyLock<Schema> = LazyLock::new(|| Schema::compile(&json!({})).unwrap());
static EVERY_KIND: LazyLock<Policy> = LazyLock::new(|| bind(&checks()).unwrap());

fn output() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-20..20_i32).prop_map(Value::from),
        (-20..20_i32).prop_map(|n| json!(f64::from(n) / 4.0)),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 40, 6, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            collection::btree_map("[a-h]", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same canonical JSON, with integers written as floats and back.
fn rewritten(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.iter().map(rewritten).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), rewritten(value)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// One check of every kind, and expressions whose result could depend on an order.
fn checks() -> Value {
    json!([
        {"schema": {"type": ["object", "array"], "maxItems": 3, "maxProperties": 3}},
        {"required": ["a", "/b/0"]},
        {"count": {"min": 2, "max": 4}},
        {"path": "/a", "bounds": {"min": -1, "value": 1, "tolerance": 2}},
        {"path": "/b", "regex": "^a"},
        {"path": "/c", "set": {"subset_of": ["a", 1, 2, null], "superset_of": [1]}},
        {"path": "/d", "hash": {"equals_path": "/e"}},
        {"cel": "output.map(k, string(k)).filter(k, k > 'a') == ['b', 'c']"},
        {"cel": "output.exists(k, output[k] > 1)"},
        {"cel": "output.map(k, [k] + []).sum() == 3"},
        {"cel": "output.a + output.b == output.c / output.d"},
        {"cel": "{'z': output, 'y': 1, 'x': 2}.map(k, k)[0] == 'x' && output.map(k, k)[0] == 'a'"},
        {"cel": "output.all(k, output[k].all(l, l != null))"},
    ])
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_verdict_depends_on_the_canonical_json_only(output in output()) {
        let said = |output: Value| EVERY_KIND.evaluate(&candidate(output), &OPEN);
        let first = said(output.clone());
        prop_assert_eq!(&said(output.clone()), &first);
        let again = said(rewritten(&output));
        prop_assert_eq!((again.status, again.reason_codes), (first.status, first.reason_codes));
        prop_assert!(first.notes.iter().all(|note| note.chars().count() <= 201));
    }

    #[test]
    fn no_text_makes_the_expression_parser_panic(text in "\\PC{0,60}") {
        read(&text)?;
    }

    #[test]
    fn no_row_of_symbols_makes_the_expression_parser_panic(
        parts in collection::vec(
            prop_oneof![
                Just("output"), Just("."), Just("("), Just(")"), Just("["), Just("]"), Just("{"),
                Just("}"), Just("?"), Just(":"), Just("1"), Just("0x"), Just("-"), Just("!"),
                Just("'"), Just("\"\"\""), Just("r'"), Just("b'\\x"), Just("\\u12"), Just("all"),
                Just("(x,"), Just(","), Just("in"), Just("has("), Just("`"), Just("é"), Just("&&"),
                Just("||"), Just("=="), Just(" "), Just("\n"), Just("//"), Just("1e"), Just("9u"),
                Just("map"), Just("true"), Just("x"),
            ],
            0..40,
        ),
    ) {
        read(&parts.concat())?;
    }

    #[test]
    fn no_parameters_make_the_check_parser_panic(check in output(), kind in 0..8_usize) {
        let kinds = ["schema", "required", "count", "bounds", "regex", "set", "hash", "cel"];
        let error = |checks: Value| bind(&checks).err().map(|error| error.to_string());
        for error in [error(json!([check])), error(json!([{kinds[kind]: check}]))].into_iter().flatten() {
            prop_assert!(error.starts_with("`policy_params.checks."), "{}", error);
            prop_assert!(!error.contains(['[', ']']), "{}", error);
        }
    }
}

/// Parses an expression; an accepted one must also evaluate.
fn read(text: &str) -> Result<(), TestCaseError> {
    match bind(&json!([{ "cel": text }])) {
        Ok(policy) => {
            let candidate = candidate(json!({"x": [1, "é"]}));
            let said = policy.evaluate(&candidate, &OPEN);
            prop_assert!(said.notes.len() <= 1, "{:?}", said);
        }
        Err(error) => {
            let error = error.to_string();
            prop_assert!(error.starts_with("`policy_params.checks.0.cel` "), "{}", error);
            prop_assert!(!error.contains(['[', ']']), "{}", error);
        }
    }
    Ok(())
}
