//! The winners' outputs: the one nearest to all, its origin, and the spread of numbers.

use jurat_core::round::{
    consensus::{Consensus, OutputOrigin, TallyInput, agree, nearest_output, output_by, spread},
    job::{AgreementTerms, Equivalence, JobKind, ScoreAggregation},
    replica::{AnswerContent, FailureCode, Label, Replica, ReplicaAnswer, ReplicaFailure},
};
use serde_json::{Value, json};

use crate::consensus::{stranger, terms, vote};

fn said(output: Value) -> ReplicaAnswer {
    vote(Label::Ok, Some(output))
}

/// An answer that failed the policy, with its content.
fn invalid(output: Value) -> ReplicaAnswer {
    let failure = ReplicaFailure::new(FailureCode::InvalidOutput, "made up");
    ReplicaAnswer::failed(
        failure,
        Some(AnswerContent { output: Some(output), ..AnswerContent::default() }),
    )
}

fn counted(terms: &AgreementTerms, replicas: &[Replica]) -> Consensus {
    agree(&TallyInput { kind: JobKind::Delegate, has_schema: false, terms, replicas })
}

fn delegated(terms: &AgreementTerms, answers: Vec<ReplicaAnswer>) -> (Vec<Replica>, Consensus) {
    let answers = answers.into_iter().enumerate();
    let replicas: Vec<Replica> = answers.map(|(index, answer)| stranger(index, answer)).collect();
    let consensus = counted(terms, &replicas);
    (replicas, consensus)
}

fn averaged() -> AgreementTerms {
    let equivalence = Some(Equivalence::Numeric { tolerance: 1.0 });
    AgreementTerms { aggregation: ScoreAggregation::Mean, equivalence, ..terms() }
}

#[test]
fn the_nearest_output_is_one_that_a_winner_gave() {
    let answers = [10.0, 99.0, 10.5, 10.4, 10.4].map(|number| said(json!(number)));
    let (replicas, consensus) = delegated(&averaged(), answers.to_vec());
    assert_eq!(consensus.groups, [Some(0), Some(1), Some(0), Some(0), Some(0)]);
    assert_eq!(nearest_output(&replicas, &consensus), Some(json!(10.4)));
    assert_eq!(output_by(&replicas, &consensus), Some(OutputOrigin::Merge));
    let spread = spread(&replicas, &consensus);
    assert_eq!(spread.keys().collect::<Vec<_>>(), [""]);
    let found = spread[""];
    assert!((found.min - 10.0).abs() < 1e-9 && (found.max - 10.5).abs() < 1e-9, "{found:?}");
    assert!((found.deviation - 0.1920).abs() < 1e-9, "{found:?}");
}

#[test]
fn a_later_group_can_win() {
    let answers = ["no", "yes", "yes"].map(|word| said(json!({ "answer": word })));
    let (replicas, consensus) = delegated(&terms(), answers.to_vec());
    assert_eq!(nearest_output(&replicas, &consensus), Some(json!({ "answer": "yes" })));
    assert_eq!(output_by(&replicas, &consensus), Some(OutputOrigin::Replica));
    assert!(spread(&replicas, &consensus).is_empty());
    let groups: Vec<Option<usize>> = replicas.iter().map(|it| consensus.group_of(it)).collect();
    assert_eq!(groups, [Some(0), Some(1), Some(1)]);
}

#[test]
fn without_a_winner_there_is_no_output() {
    let answers = vec![said(json!(1)), said(json!(2)), invalid(json!(3))];
    let (replicas, consensus) = delegated(&terms(), answers);
    assert_eq!(consensus.winner, None);
    assert_eq!(nearest_output(&replicas, &consensus), None);
    assert_eq!(output_by(&replicas, &consensus), None);
    assert!(spread(&replicas, &consensus).is_empty());
}

#[test]
fn a_replica_that_was_replaced_adds_nothing() {
    let answers = [10.0, 10.2, 10.4].map(|number| said(json!(number)));
    let (mut replicas, consensus) = delegated(&averaged(), answers.to_vec());
    let mut replaced = stranger(3, invalid(json!(50)));
    replaced.seat = 0;
    replaced.replaced_by = Some(0);
    assert_eq!(consensus.group_of(&replaced), None);
    replicas.push(replaced);
    // A seat that does not count has no group, either.
    let unknown = stranger(7, said(json!(70)));
    assert_eq!(consensus.group_of(&unknown), None);
    replicas.push(unknown);
    let found = spread(&replicas, &consensus)[""];
    assert!((found.max - 10.4).abs() < 1e-9, "{found:?}");
    assert_eq!(nearest_output(&replicas, &consensus), Some(json!(10.2)));
}
