//! Outputs of the maximum size, built to be expensive to compare.

use jurat_core::round::{
    consensus::{Consensus, TallyInput, agree, is_settled},
    job::{AgreementTerms, Equivalence, JobKind, OutputMerge},
    replica::{Label, Replica},
};
use serde_json::{Value, json};

use crate::consensus::{stranger, terms, vote};

const LARGEST: usize = 2 * 1024 * 1024;

fn delegated(terms: &AgreementTerms, outputs: Vec<Value>) -> Consensus {
    let answers = outputs.into_iter().map(|output| vote(Label::Ok, Some(output)));
    let replicas: Vec<Replica> =
        answers.enumerate().map(|(index, answer)| stranger(index, answer)).collect();
    let ballot =
        TallyInput { kind: JobKind::Delegate, has_schema: false, terms, replicas: &replicas };
    let consensus = agree(&ballot);
    assert_eq!(is_settled(&ballot, replicas.len()), !consensus.disagreed);
    consensus
}

/// Lists nested 64 levels deep, in an order that depends on `shift`.
fn nested(shift: usize) -> Value {
    const LEVELS: usize = 64;
    const TEXT: &str = "some more text";
    let width = LARGEST / LEVELS / (TEXT.len() + 8);
    (0..LEVELS).fold(json!([]), |inner, level| {
        let mut items: Vec<Value> =
            (0..width).map(|n| json!(format!("{TEXT} {:04}", n * 7 % width + level))).collect();
        items.push(inner);
        items.rotate_left(shift * 11 % width);
        Value::Array(items)
    })
}

#[test]
fn five_deep_unordered_lists_are_compared() {
    let size = nested(0).to_string().len();
    assert!(LARGEST * 9 / 10 < size && size < LARGEST * 11 / 10, "{size}");
    let terms = AgreementTerms { equivalence: Some(Equivalence::Unordered), ..terms() };
    let mut outputs: Vec<Value> = (0..5).map(nested).collect();
    // One output differs only in its innermost list.
    let mut innermost = &mut outputs[4];
    while innermost.as_array().unwrap().iter().any(|item| item != &json!([]) && item.is_array()) {
        innermost =
            innermost.as_array_mut().unwrap().iter_mut().find(|item| item.is_array()).unwrap();
    }
    innermost.as_array_mut().unwrap()[0] = json!("something else");
    let found = delegated(&terms, outputs);
    assert_eq!(found.groups, [Some(0), Some(0), Some(0), Some(0), Some(1)]);
}

/// Two branches at each level, so that every list has large items to sort.
fn branching(levels: u32, shift: usize) -> Value {
    if levels == 0 {
        return json!(7);
    }
    let mut items =
        vec![branching(levels - 1, shift), branching(levels - 1, shift + 1), json!(shift % 2)];
    items.rotate_left(shift % 3);
    Value::Array(items)
}

#[test]
fn five_branching_unordered_lists_are_compared() {
    let terms = AgreementTerms { equivalence: Some(Equivalence::Unordered), ..terms() };
    let found = delegated(&terms, (0..5).map(|shift| branching(15, shift % 2 * 2)).collect());
    assert_eq!(found.groups, [Some(0); 5]);
}

#[test]
fn five_long_texts_are_compared_although_all_differ() {
    let texts = (0..5).map(|n| json!(format!("{}{n}", "Paris ".repeat(LARGEST / 6))));
    let found = delegated(&terms(), texts.collect());
    assert_eq!(found.groups, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
    assert_eq!(found.equivalence, "text");
}

#[test]
fn five_objects_of_many_members_are_merged() {
    let terms = AgreementTerms { merge: OutputMerge::Fields, equivalence: None, ..terms() };
    let members = LARGEST / 32;
    let object = |replica: usize| -> Value {
        let value = |n: usize| if n == 5 && replica == 0 { json!("b") } else { json!("B.") };
        (0..members).map(|n| (format!("a longer name {n:09}"), value(n))).collect()
    };
    let found = delegated(&terms, (0..5).map(object).collect());
    assert_eq!(found.groups, [Some(0); 5]);
    let output = found.output.unwrap();
    assert_eq!(output.as_object().unwrap().len(), members);
    assert_eq!(output["a longer name 000000005"], "B.");
}

#[test]
fn a_thousand_fields_of_one_large_output_read_it_once() {
    let pointers = (0..1_000).map(|n| if n % 2 == 0 { String::new() } else { "/0".to_owned() });
    let terms =
        AgreementTerms { equivalence: Some(Equivalence::Fields(pointers.collect())), ..terms() };
    let found = delegated(&terms, vec![nested(0); 5]);
    assert_eq!(found.groups, [Some(0); 5]);
    assert_eq!(found.equivalence, "fields");
}
