//! Properties of the decision entry: equal decisions have equal bytes, and different ones do not.

use jurat_core::{
    canonical::digest,
    round::decision::{DecisionEntry, DecisionReplica, FORMAT},
};
use proptest::{option, prelude::*};
use serde_json::Value;

use super::config;

fn text() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9:_é\"\\\\ ]{0,12}"
}

fn replica() -> impl Strategy<Value = DecisionReplica> {
    let names = (text(), text(), text(), text());
    (names, option::of(0..5_usize), option::of(text()), option::of(text()), option::of(text()))
        .prop_map(|((session_id, executor, independence, label), group, answer, hash, failure)| {
            DecisionReplica {
                session_id,
                executor,
                independence,
                label,
                group,
                replaced_by: None,
                answer_digest: answer,
                result_hash: hash,
                failure,
            }
        })
}

fn entry() -> impl Strategy<Value = DecisionEntry> {
    let names = [(); 10].map(|()| text());
    let shares = [(); 3].map(|()| 0..=10_000_u32);
    let times = (0..4_000_000_000_000_000_i64, 0..4_000_000_000_000_000_i64);
    let replicas = proptest::collection::vec(replica(), 1..=5);
    (names, shares, times, option::of(text()), option::of(text()), replicas).prop_map(
        |(names, shares, times, verdict, output_digest, replicas)| {
            let [
                round_id,
                account_id,
                kind,
                ending,
                request_digest,
                policy_id,
                policy_hash,
                strategy,
                equivalence,
                outcome,
            ] = names;
            let [agreement, confidence, effective_votes] =
                shares.map(|share| f64::from(share) / 10_000.0);
            DecisionEntry {
                format: FORMAT.to_owned(),
                round_id,
                account_id,
                kind,
                ending,
                request_digest,
                policy_id,
                policy_hash,
                strategy,
                equivalence,
                disagreement_policy: "return_all".to_owned(),
                outcome,
                verdict,
                output_digest,
                agreement,
                basis: None,
                confidence,
                effective_votes,
                tie_broken: false,
                replicas,
                opened_at_us: times.0,
                closed_at_us: times.1,
            }
        },
    )
}

/// The pointers to all scalar values of a document.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                pointers(member, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            found.push(at.to_owned());
        }
    }
}

/// Another value that the same field could have.
fn another(pointer: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => Value::from(format!("{text}x")),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::from(whole + 1),
            None => Value::from(number.as_f64().unwrap() + 0.0001),
        },
        Value::Null if pointer.ends_with("/group") => Value::from(9),
        Value::Bool(flag) => Value::from(!flag),
        Value::Null | Value::Array(_) | Value::Object(_) => Value::from("x"),
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn any_change_of_any_field_changes_the_digest(entry in entry()) {
        let canonical = entry.canonical_entry();
        prop_assert_eq!(&canonical, &entry.clone().canonical_entry());
        prop_assert_eq!(digest(canonical.text.as_bytes()), canonical.digest.clone());
        let document: Value = serde_json::from_str(&canonical.text).unwrap();
        prop_assert_eq!(&serde_json::from_value::<DecisionEntry>(document.clone()).unwrap(), &entry);
        let mut fields = Vec::new();
        pointers(&document, "", &mut fields);
        // Twenty scalar members, and eight for each replica.
        prop_assert_eq!(fields.len(), 20 + 8 * entry.replicas.len());
        for pointer in fields {
            let mut changed = document.clone();
            let place = changed.pointer_mut(&pointer).unwrap();
            *place = another(&pointer, place);
            let changed: DecisionEntry = serde_json::from_value(changed).unwrap();
            prop_assert!(changed.canonical_entry().digest != canonical.digest, "{} does not count", pointer);
        }
        let mut fewer = entry.clone();
        fewer.replicas.pop();
        prop_assert!(fewer.canonical_entry().digest != canonical.digest);
    }
}
