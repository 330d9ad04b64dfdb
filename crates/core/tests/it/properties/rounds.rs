//! Properties of every round, whatever the answers and the terms.

use std::collections::BTreeSet;

use jurat_core::{
    executor::{Independence, session::Tier},
    round::{
        candidate::Evidence,
        consensus::{
            Consensus, Outcome, TallyInput, agree, effective_votes, is_settled, reliability_prior,
        },
        job::{
            AgreementTerms, Disagreement, Equivalence, JobKind, OutputMerge, ScoreAggregation,
            TimeoutPolicy,
        },
        replica::{AnswerContent, FailureCode, Label, Replica, ReplicaAnswer, ReplicaVote},
    },
};
use proptest::{collection::vec, option, prelude::*, sample::select as one_of};
use serde_json::{Value, json};

use super::config;
use crate::consensus::{stranger, terms, vote};

#[derive(Debug, Clone)]
pub(super) struct Round {
    kind: JobKind,
    has_schema: bool,
    pub(super) terms: AgreementTerms,
    pub(super) replicas: Vec<Replica>,
}

impl Round {
    pub(super) fn agree(&self) -> Consensus {
        agree(&self.ballot())
    }

    fn ballot(&self) -> TallyInput<'_> {
        TallyInput {
            kind: self.kind,
            has_schema: self.has_schema,
            terms: &self.terms,
            replicas: &self.replicas,
        }
    }

    /// The same round on terms that name every leading side.
    fn at_best(mut self) -> Self {
        self.terms.disagreement = Disagreement::BestEffort;
        self
    }

    fn with_answer(&self, index: usize, answer: ReplicaAnswer) -> Self {
        let mut changed = self.clone();
        changed.replicas[index].answer = answer;
        changed
    }
}

fn output() -> impl Strategy<Value = Value> + Clone {
    let words = ["Paris", "paris.", " PARIS ", "Lyon", "?", "!", ""];
    let numbers = [0.0, -0.0, 1.0, 1.1, 1.2, 19.99, 20.0, -1e300, 1e308, f64::MAX, 5e-324];
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!({})),
        Just(json!([])),
        any::<bool>().prop_map(Value::from),
        (-2_i64..3).prop_map(Value::from),
        one_of(numbers.to_vec()).prop_map(Value::from),
        one_of(words.to_vec()).prop_map(Value::from),
    ];
    let inner = leaf.clone();
    let common = [json!(1), json!(1.0), json!("Paris"), json!("paris."), json!({ "a": 1 })];
    prop_oneof![
        // Often the same value, written differently.
        3 => one_of(common.to_vec()),
        1 => leaf.clone(),
        1 => vec(leaf.clone(), 1..3).prop_map(Value::from),
        1 => (leaf, option::of(inner)).prop_map(|(a, b)| match b {
            Some(b) => json!({ "a": a, "b": b }),
            None => json!({ "a": a }),
        }),
    ]
}

/// A replica without a verdict, with a failure that gives this label.
fn nothing(label: Label) -> ReplicaAnswer {
    let codes = [
        FailureCode::Timeout,
        FailureCode::Unreachable,
        FailureCode::Cancelled,
        FailureCode::InvalidOutput,
    ];
    let mut answers = codes.into_iter().map(|code| ReplicaAnswer::nothing(code, "made up"));
    answers.find(|answer| answer.label() == label).unwrap()
}

fn labels(kind: JobKind) -> Vec<Label> {
    match kind {
        JobKind::Delegate => vec![Label::Ok],
        JobKind::Validate => vec![Label::Valid, Label::Invalid],
        JobKind::Factcheck => vec![Label::True, Label::False, Label::Unsure],
    }
}

fn answer(kind: JobKind) -> impl Strategy<Value = ReplicaAnswer> {
    let said =
        (option::of(0.0..=1.0_f64), output()).prop_map(move |(score, output)| AnswerContent {
            output: (kind != JobKind::Validate).then_some(output),
            score,
            evidence: Evidence::default(),
            ..AnswerContent::default()
        });
    let silent = [Label::Timeout, Label::Error, Label::Cancelled, Label::InvalidOutput];
    let abstained = (one_of(vec![Label::Retry, Label::NeedsSpec]), said.clone())
        .prop_map(|(label, said)| ReplicaAnswer::Abstained { label, said });
    prop_oneof![
        6 => (one_of(labels(kind)), said).prop_map(|(label, said)| ReplicaAnswer::Vote(ReplicaVote { label, said })),
        2 => one_of(silent.to_vec()).prop_map(nothing),
        1 => abstained,
    ]
}

/// A tier's prior, or any value that an operator may set.
fn reliability() -> impl Strategy<Value = f64> {
    let priors = [None, Some(Tier::Fast), Some(Tier::Safe), Some(Tier::Oracle)];
    prop_oneof![
        3 => one_of(priors.map(reliability_prior).to_vec()),
        1 => 0.0..=1.0_f64,
    ]
}

fn replica(kind: JobKind) -> impl Strategy<Value = Replica> {
    (answer(kind), 0..5_usize, 0..3_usize, 0..3_usize, reliability()).prop_map(
        |(answer, executor, model, provider, reliability)| {
            let mut replica = stranger(0, answer);
            replica.reliability = reliability;
            // An executor has one provider and one model.
            replica.independence = Independence {
                provider_family: format!("p{}", (provider + executor) % 3),
                model_id: format!("m{}", (model + executor) % 4),
                host: "host".to_owned(),
                executor: format!("e{executor}{model}{provider}"),
            };
            replica
        },
    )
}

fn any_terms() -> impl Strategy<Value = AgreementTerms> {
    let equivalence = one_of(vec![
        None,
        None,
        Some(Equivalence::Canonical),
        Some(Equivalence::Fields(vec!["/a".to_owned()])),
        Some(Equivalence::Numeric { tolerance: 0.1 }),
        Some(Equivalence::Buckets(vec![0.0, 1.1])),
        Some(Equivalence::Unordered),
        Some(Equivalence::Text),
    ]);
    (
        one_of(ScoreAggregation::ALL.to_vec()),
        one_of(Disagreement::ALL.to_vec()),
        one_of(TimeoutPolicy::ALL.to_vec()),
        one_of(OutputMerge::ALL.to_vec()),
        one_of(vec![None, None, Some(0.3), Some(0.6667), Some(0.8), Some(1.0)]),
        equivalence,
    )
        .prop_map(
            |(aggregation, disagreement, timeout_policy, merge, min_agreement, equivalence)| {
                AgreementTerms {
                    aggregation,
                    disagreement,
                    timeout_policy,
                    merge,
                    min_agreement,
                    equivalence,
                    ..terms()
                }
            },
        )
}

fn numbered(mut replicas: Vec<Replica>) -> Vec<Replica> {
    for (index, replica) in replicas.iter_mut().enumerate() {
        replica.index = index;
        replica.seat = index;
        replica.session_id = format!("s{index}");
    }
    replicas
}

pub(super) fn round_of(kinds: &[JobKind]) -> impl Strategy<Value = Round> + use<> {
    (one_of(kinds.to_vec()), any::<bool>(), any_terms()).prop_flat_map(
        |(kind, has_schema, terms)| {
            vec(replica(kind), 1..=5).prop_map(move |replicas| Round {
                kind,
                has_schema,
                terms: terms.clone(),
                replicas: numbered(replicas),
            })
        },
    )
}

fn round() -> impl Strategy<Value = Round> {
    round_of(JobKind::ALL)
}

/// Groups as sets of session ids, so that their numbers do not matter.
fn parties(round: &Round, consensus: &Consensus) -> BTreeSet<BTreeSet<String>> {
    let numbers: BTreeSet<usize> = consensus.groups.iter().flatten().copied().collect();
    let members = |number: usize| -> BTreeSet<String> {
        let of_group = round.replicas.iter().zip(&consensus.groups);
        of_group
            .filter(|(_, group)| **group == Some(number))
            .map(|(replica, _)| replica.session_id.clone())
            .collect()
    };
    numbers.into_iter().map(members).collect()
}

pub(super) fn winners(round: &Round, consensus: &Consensus) -> BTreeSet<String> {
    let of_group = round.replicas.iter().zip(&consensus.groups);
    of_group
        .filter(|(_, group)| group.is_some() && **group == consensus.winner)
        .map(|(replica, _)| replica.session_id.clone())
        .collect()
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn the_order_of_the_replicas_does_not_matter(
        (round, order) in round().prop_flat_map(|round| {
            let order: Vec<usize> = (0..round.replicas.len()).collect();
            (Just(round), Just(order).prop_shuffle())
        })
    ) {
        let mut shuffled = round.clone();
        shuffled.replicas = order.iter().map(|index| round.replicas[*index].clone()).collect();
        let (before, after) = (round.agree(), shuffled.agree());
        prop_assert_eq!(parties(&round, &before), parties(&shuffled, &after));
        prop_assert_eq!(winners(&round, &before), winners(&shuffled, &after));
        let verdicts: Vec<Label> = order.iter().map(|index| before.verdicts[*index]).collect();
        prop_assert_eq!(&verdicts, &after.verdicts);
        // Everything except the two per-replica lists is equal, to the last bit.
        let unordered = |consensus: Consensus| {
            let text = consensus.output.as_ref().map(Value::to_string);
            (text, Consensus { verdicts: Vec::new(), groups: Vec::new(), winner: None, ..consensus })
        };
        prop_assert_eq!(unordered(before), unordered(after));
    }

    #[test]
    fn every_kind_of_missing_answer_counts_the_same(round in round()) {
        let before = round.agree();
        for (index, replica) in round.replicas.iter().enumerate() {
            const SILENT: [Label; 3] = [Label::Timeout, Label::Error, Label::Cancelled];
            if !SILENT.contains(&replica.answer.label()) {
                continue;
            }
            for label in SILENT {
                let after = round.with_answer(index, nothing(label)).agree();
                prop_assert_eq!(before.outcome, after.outcome);
                prop_assert_eq!(before.verdict, after.verdict);
                prop_assert_eq!(&before.output, &after.output);
                prop_assert_eq!(before.winner, after.winner);
                prop_assert_eq!(&before.groups, &after.groups);
            }
        }
    }

    #[test]
    fn a_missing_answer_never_turns_a_split_into_agreement(
        (round, label) in (round(), one_of(vec![
            Label::Timeout, Label::Error, Label::Cancelled, Label::InvalidOutput,
        ]))
    ) {
        let before = round.agree();
        let mut longer = round.clone();
        longer.replicas.push(stranger(round.replicas.len(), nothing(label)));
        let after = longer.agree();
        prop_assert!(before.outcome == Outcome::Agreed || after.outcome != Outcome::Agreed);
        prop_assert!(after.agreement <= before.agreement);
        prop_assert_eq!(after.groups.last(), Some(&None));
    }

    #[test]
    fn the_numbers_of_a_consensus_are_consistent(round in round()) {
        let found = round.agree();
        let asked = round.replicas.len();
        prop_assert_eq!((found.asked, found.groups.len(), found.verdicts.len()), (asked, asked, asked));
        prop_assert!(found.answered + found.cancelled <= asked && found.started == asked);
        let mut next = 0;
        for (replica, group) in round.replicas.iter().zip(&found.groups) {
            prop_assert_eq!(matches!(replica.answer, ReplicaAnswer::Vote(_)), group.is_some());
            if let Some(group) = group {
                prop_assert!(*group <= next, "groups are numbered by first appearance");
                next = next.max(group + 1);
            }
        }
        let largest = parties(&round, &found).iter().map(BTreeSet::len).max().unwrap_or(0);
        let share = float(largest) / float(asked);
        prop_assert!((found.agreement - share).abs() < 1e-4);
        prop_assert!(found.agreement <= found.agreement_answered || found.answered == 0);
        prop_assert_eq!(found.disagreed, found.outcome != Outcome::Agreed);
        prop_assert_eq!(found.winner.is_some(), found.verdict.is_some());
        prop_assert_eq!(found.winner.is_some(), found.confidence > 0.0);
        prop_assert!((0.0..=0.999).contains(&found.confidence));
        if let Some(winner) = found.winner {
            let won = winners(&round, &found).len();
            prop_assert_eq!(won, largest);
            let label = found.groups.iter().position(|group| *group == Some(winner)).unwrap();
            prop_assert_eq!(found.verdict, Some(found.verdicts[label]));
        }
        match found.outcome {
            Outcome::Agreed => prop_assert!(found.winner.is_some() && !found.tie_broken),
            Outcome::Failed => prop_assert!(found.winner.is_none() && largest == 0),
            Outcome::Split | Outcome::Abstained => {
                let takes_best = round.terms.disagreement == Disagreement::BestEffort;
                prop_assert_eq!(found.winner.is_some(), takes_best && 0 < largest);
            }
        }
        prop_assert!(!found.tie_broken || found.confidence <= 0.5);
        prop_assert_eq!(round.kind == JobKind::Delegate && found.winner.is_some(), found.output.is_some());
        let votes = found.groups.iter().flatten().count();
        prop_assert!(found.effective_votes <= float(votes) + 1e-4);
    }

    #[test]
    fn one_more_agreeing_vote_never_lowers_the_confidence(
        (round, anyone) in (round(), replica(JobKind::Validate))
    ) {
        let round = round.at_best();
        let before = round.agree();
        if before.winner.is_none() || before.tie_broken {
            return Ok(());
        }
        let voter = before.groups.iter().position(|group| *group == before.winner).unwrap();
        let joined_by = |mut newcomer: Replica| {
            newcomer.index = round.replicas.len();
            newcomer.seat = newcomer.index;
            newcomer.session_id = format!("s{}", newcomer.index);
            newcomer.answer = round.replicas[voter].answer.clone();
            let mut longer = round.clone();
            longer.replicas.push(newcomer);
            longer.agree().confidence
        };
        // An unrelated voter, a voter that shares something with the others, and a copy of a voter.
        let mut stranger = stranger(9, round.replicas[voter].answer.clone());
        stranger.reliability = anyone.reliability;
        for newcomer in [stranger, anyone, round.replicas[voter].clone()] {
            prop_assert!(before.confidence <= joined_by(newcomer));
        }
    }

    #[test]
    fn replacing_a_vote_with_dissent_never_raises_the_confidence(round in round()) {
        let round = round.at_best();
        let before = round.agree();
        // Combined numbers may agree better without one of them.
        if before.winner.is_none() || before.tie_broken || before.equivalence == "numbers" {
            return Ok(());
        }
        for (index, group) in before.groups.iter().enumerate() {
            if *group != before.winner {
                continue;
            }
            for label in labels(round.kind) {
                let dissent = vote(label, Some(json!(["nobody else says this"])));
                let changed = round.with_answer(index, dissent);
                let after = changed.agree();
                // Only if those who still win are among those who won before.
                let (won, wins) = (winners(&round, &before), winners(&changed, &after));
                if !wins.is_empty() && wins.is_subset(&won) && after.groups[index] != after.winner {
                    prop_assert!(after.confidence <= before.confidence);
                }
            }
        }
    }

    #[test]
    fn an_early_stop_never_changes_the_result(
        (round, asked) in round_of(&[JobKind::Validate, JobKind::Factcheck])
            .prop_flat_map(|round| {
                let ended = round.replicas.len();
                (Just(round), ended..=5)
            })
    ) {
        if is_settled(&round.ballot(), asked) {
            let early = completed(&round, &vec![nothing(Label::Cancelled); asked - round.replicas.len()]);
            prop_assert_eq!(early.outcome, Outcome::Agreed);
            for rest in completions(round.kind, asked - round.replicas.len()) {
                let late = completed(&round, &rest);
                prop_assert_eq!(late.outcome, Outcome::Agreed);
                prop_assert_eq!(late.verdict, early.verdict);
                prop_assert_eq!(late.winner, early.winner);
            }
        }
    }

    #[test]
    fn a_round_that_cannot_change_is_settled(
        labels in vec(one_of(vec![Label::Valid, Label::Invalid]), 0..=5)
    ) {
        // A round never waits once a strict majority of those asked agrees.
        let replicas: Vec<Replica> =
            labels.iter().enumerate().map(|(n, label)| stranger(n, vote(*label, None))).collect();
        let round = Round { kind: JobKind::Validate, has_schema: false, terms: terms(), replicas };
        let most = [Label::Valid, Label::Invalid]
            .map(|side| labels.iter().filter(|label| **label == side).count());
        let settled = is_settled(&round.ballot(), 5);
        prop_assert_eq!(settled, most.iter().any(|count| 3 <= *count));
    }

    #[test]
    fn votes_are_worth_between_one_and_their_number(round in round()) {
        let voters: Vec<&Independence> = round.replicas.iter().map(|r| &r.independence).collect();
        let worth = effective_votes(&voters);
        prop_assert!(1.0 - 1e-9 <= worth && worth <= float(voters.len()) + 1e-9);
    }
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

fn completed(round: &Round, rest: &[ReplicaAnswer]) -> Consensus {
    let mut whole = round.clone();
    for answer in rest {
        whole.replicas.push(stranger(whole.replicas.len(), answer.clone()));
    }
    whole.agree()
}

/// Every way in which the outstanding replicas could still end.
fn completions(kind: JobKind, outstanding: usize) -> Vec<Vec<ReplicaAnswer>> {
    let mut ways: Vec<ReplicaAnswer> =
        labels(kind).into_iter().map(|label| vote(label, None)).collect();
    ways.push(ReplicaAnswer::Abstained { label: Label::Retry, said: AnswerContent::default() });
    ways.extend([Label::Timeout, Label::Error, Label::InvalidOutput].map(nothing));
    let mut all: Vec<Vec<ReplicaAnswer>> = vec![Vec::new()];
    for _ in 0..outstanding {
        all = all
            .iter()
            .flat_map(|known| {
                ways.iter().map(|way| known.iter().cloned().chain([way.clone()]).collect())
            })
            .collect();
    }
    all
}
