//! Counting: who is with whom, who wins, and what the winners say together.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::{
    Consensus, Outcome,
    confidence::{Weighed, effective_votes, log_odds, posterior},
    equivalence::{Relation, group},
    numeric,
};
use crate::{
    canonical::digest_json,
    executor::Independence,
    job::{Aggregation, Disagreement, Kind, Merge, Terms, TimeoutPolicy},
    replica::{Answer, Label, Replica, Vote},
};

/// Answers that are taken to be possible where the set is open.
const OPEN_ANSWERS: usize = 10;
/// A tie that was broken says no more than a coin.
const TIE_CEILING: f64 = 0.5;

/// What is to be counted.
#[derive(Debug, Clone, Copy)]
pub struct Ballot<'a> {
    pub kind: Kind,
    /// Whether the caller gave an output schema.
    pub has_schema: bool,
    pub terms: &'a Terms,
    /// In the order of choice.
    pub replicas: &'a [Replica],
}

struct Group {
    members: Vec<usize>,
    evidence: f64,
    digest: String,
}

/// What the replicas agree on. A split is a result; nothing here fails.
pub fn agree(ballot: &Ballot<'_>) -> Consensus {
    let votes = votes(ballot.replicas);
    let relation = relation(ballot);
    let groups_of_votes = group_votes(ballot, &relation, &votes);
    let groups = collect_groups(ballot, &votes, &groups_of_votes);
    let (leading, is_tied) = leading(&groups);

    let asked = ballot.replicas.len();
    let answered = ballot.replicas.iter().filter(|r| r.answer.has_answered()).count();
    let abstained =
        ballot.replicas.iter().filter(|r| matches!(r.answer, Answer::Abstained { .. })).count();
    let size = leading.map_or(0, |index| groups[index].members.len());
    let is_agreed = !is_tied && has_majority(ballot.terms, size, asked, answered);
    let outcome = match (is_agreed, size) {
        (true, _) => Outcome::Agreed,
        (false, 0) if abstained == 0 => Outcome::Failed,
        (false, _) if size < abstained || size == 0 => Outcome::Abstained,
        (false, _) => Outcome::Split,
    };
    let takes_best = ballot.terms.disagreement == Disagreement::BestEffort;
    let winner = leading.filter(|_| is_agreed || takes_best);
    let tie_broken = winner.is_some() && is_tied;

    let voters: Vec<&Independence> =
        votes.iter().map(|(index, _)| &ballot.replicas[*index].independence).collect();
    let winning_votes: Vec<&Vote> = winner.map_or_else(Vec::new, |winner| {
        votes
            .iter()
            .filter(|(index, _)| groups[winner].members.contains(index))
            .map(|(_, vote)| *vote)
            .collect()
    });
    let sure = confidence(ballot, &votes, &groups_of_votes, groups.len(), winner);
    let scores: Vec<f64> = winning_votes.iter().filter_map(|vote| vote.said.score).collect();
    let outputs: Vec<&Value> = votes.iter().filter_map(|(_, v)| v.said.output.as_ref()).collect();

    Consensus {
        outcome,
        verdict: winning_votes.first().map(|vote| vote.label),
        output: merged(ballot, &winning_votes),
        verdicts: ballot.replicas.iter().map(|replica| replica.answer.label()).collect(),
        groups: groups_by_replica(asked, &votes, &groups_of_votes),
        winner,
        asked,
        // All are asked at once.
        started: asked,
        answered,
        cancelled: count_label(ballot.replicas, Label::Cancelled),
        agreement: ratio(size, asked),
        agreement_answered: ratio(size, answered),
        strategy: ballot.terms.aggregation.to_string(),
        equivalence: match ballot.kind {
            Kind::Delegate => relation.name(&outputs).to_owned(),
            Kind::Validate | Kind::Factcheck => "label".to_owned(),
        },
        score: numeric::summary(ballot.terms.aggregation, &scores),
        confidence: if tie_broken { sure.min(TIE_CEILING) } else { sure },
        effective_votes: effective_votes(&voters),
        disagreed: !is_agreed,
        tie_broken,
    }
}

/// Whether no outstanding replica can change the winner any more.
///
/// `ballot.replicas` holds those that have ended; `asked` counts the outstanding ones too.
pub fn is_settled(ballot: &Ballot<'_>, asked: usize) -> bool {
    let votes = votes(ballot.replicas);
    let groups_of_votes = group_votes(ballot, &relation(ballot), &votes);
    let groups = collect_groups(ballot, &votes, &groups_of_votes);
    let size = groups.iter().map(|group| group.members.len()).max().unwrap_or(0);
    // A strict majority of all that were asked outweighs everything else together.
    size * 2 > asked && ballot.terms.min_agreement.is_none_or(|least| least <= ratio(size, asked))
}

fn votes(replicas: &[Replica]) -> Vec<(usize, &Vote)> {
    replicas
        .iter()
        .enumerate()
        .filter_map(|(index, replica)| match &replica.answer {
            Answer::Vote(vote) => Some((index, vote)),
            Answer::Abstained { .. } | Answer::Nothing { .. } => None,
        })
        .collect()
}

fn relation<'a>(ballot: &Ballot<'a>) -> Relation<'a> {
    static CANONICAL: crate::job::Equivalence = crate::job::Equivalence::Canonical;
    match (&ballot.terms.equivalence, ballot.terms.aggregation) {
        (Some(named), _) => Relation::Named(named),
        (None, Aggregation::Mean | Aggregation::Median) => Relation::AnyNumber,
        (None, Aggregation::Majority) if ballot.has_schema => Relation::Named(&CANONICAL),
        (None, Aggregation::Majority) => Relation::Default,
    }
}

/// The group of each vote, numbered by first appearance.
fn group_votes(
    ballot: &Ballot<'_>,
    relation: &Relation<'_>,
    votes: &[(usize, &Vote)],
) -> Vec<usize> {
    match ballot.kind {
        Kind::Delegate => {
            let outputs: Vec<&Value> = votes
                .iter()
                .map(|(_, vote)| vote.said.output.as_ref().unwrap_or(&Value::Null))
                .collect();
            group(relation, &outputs)
        }
        Kind::Validate | Kind::Factcheck => {
            let mut seen: Vec<Label> = Vec::new();
            let number = |(_, vote): &(usize, &Vote)| {
                seen.iter().position(|label| *label == vote.label).unwrap_or_else(|| {
                    seen.push(vote.label);
                    seen.len() - 1
                })
            };
            votes.iter().map(number).collect()
        }
    }
}

fn collect_groups(ballot: &Ballot<'_>, votes: &[(usize, &Vote)], of_votes: &[usize]) -> Vec<Group> {
    let count = of_votes.iter().max().map_or(0, |last| last + 1);
    (0..count)
        .map(|number| {
            let members: Vec<usize> = votes
                .iter()
                .zip(of_votes)
                .filter(|(_, group)| **group == number)
                .map(|((index, _), _)| *index)
                .collect();
            let evidence = members
                .iter()
                .map(|index| {
                    log_odds(ballot.replicas[*index].reliability, possible_answers(ballot.kind))
                })
                .sum();
            let digest = members
                .iter()
                .map(|index| vote_digest(&ballot.replicas[*index]))
                .min()
                .unwrap_or_default();
            Group { members, evidence, digest }
        })
        .collect()
}

fn vote_digest(replica: &Replica) -> String {
    let output = replica.answer.said().and_then(|said| said.output.as_ref());
    match (replica.answer.label(), output) {
        (Label::Ok, Some(output)) => digest_json(output),
        (label, _) => label.to_string(),
    }
}

/// The group that leads, and whether another is of the same size.
/// Of equals the more reliable side leads, then the one with the smaller digest.
fn leading(groups: &[Group]) -> (Option<usize>, bool) {
    let rank = |left: &Group, right: &Group| -> Ordering {
        right
            .members
            .len()
            .cmp(&left.members.len())
            .then_with(|| {
                // Sums in another order may differ in the last bit; that must not decide.
                if (left.evidence - right.evidence).abs() < 1e-9 {
                    Ordering::Equal
                } else {
                    right.evidence.total_cmp(&left.evidence)
                }
            })
            .then_with(|| left.digest.cmp(&right.digest))
    };
    let first = (0..groups.len()).min_by(|left, right| rank(&groups[*left], &groups[*right]));
    let is_tied = first.is_some_and(|first| {
        groups.iter().enumerate().any(|(index, group)| {
            index != first && group.members.len() == groups[first].members.len()
        })
    });
    (first, is_tied)
}

fn has_majority(terms: &Terms, size: usize, asked: usize, answered: usize) -> bool {
    let of = match terms.timeout_policy {
        TimeoutPolicy::Ignore => answered,
        TimeoutPolicy::Count | TimeoutPolicy::Negative => asked,
    };
    size * 2 > of && terms.min_agreement.is_none_or(|least| least <= ratio(size, of))
}

const fn possible_answers(kind: Kind) -> usize {
    match kind {
        Kind::Validate => 2,
        Kind::Factcheck => 3,
        Kind::Delegate => OPEN_ANSWERS,
    }
}

fn confidence(
    ballot: &Ballot<'_>,
    votes: &[(usize, &Vote)],
    of_votes: &[usize],
    groups: usize,
    winner: Option<usize>,
) -> f64 {
    let Some(winner) = winner else { return 0.0 };
    let weighed: Vec<Weighed<'_>> = votes
        .iter()
        .zip(of_votes)
        .map(|((index, _), group)| Weighed {
            group: *group,
            reliability: ballot.replicas[*index].reliability,
            independence: &ballot.replicas[*index].independence,
        })
        .collect();
    let sure = posterior(&weighed, groups, possible_answers(ballot.kind))[winner];
    match ballot.terms.timeout_policy {
        TimeoutPolicy::Negative => {
            let silent = ballot.replicas.iter().filter(|r| !r.answer.has_answered()).count()
                - count_label(ballot.replicas, Label::Cancelled);
            sure * (1.0 - ratio(silent, ballot.replicas.len()))
        }
        TimeoutPolicy::Count | TimeoutPolicy::Ignore => sure,
    }
}

/// What the winners say together: for numbers that are averaged, the average; else the member
/// that is nearest to all others, or a new object of the most frequent members.
fn merged(ballot: &Ballot<'_>, winners: &[&Vote]) -> Option<Value> {
    if ballot.kind != Kind::Delegate {
        return None;
    }
    let mut outputs: Vec<(String, &Value)> = winners
        .iter()
        .filter_map(|vote| vote.said.output.as_ref())
        .map(|output| (digest_json(output), output))
        .collect();
    // By digest, so that the order of the replicas does not matter.
    outputs.sort_by(|left, right| left.0.cmp(&right.0));
    let mut outputs: Vec<&Value> = outputs.into_iter().map(|(_, output)| output).collect();
    let nearest = medoid(&outputs)?;
    outputs.swap(0, nearest);
    Some(match (ballot.terms.aggregation, ballot.terms.merge) {
        (Aggregation::Majority, Merge::Medoid) => outputs[0].clone(),
        (Aggregation::Majority, Merge::Fields) => merge_fields(&outputs),
        (method @ (Aggregation::Mean | Aggregation::Median), _) => {
            numeric::combine_outputs(method, &outputs)
        }
    })
}

fn medoid(outputs: &[&Value]) -> Option<usize> {
    let total = |index: &usize| -> f64 {
        outputs.iter().map(|other| distance(outputs[*index], other)).sum()
    };
    (0..outputs.len()).min_by(|left, right| total(left).total_cmp(&total(right)))
}

fn distance(left: &Value, right: &Value) -> f64 {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_f64(), right.as_f64()) {
            (Some(left), Some(right)) if left.total_cmp(&right).is_eq() => 0.0,
            (Some(left), Some(right)) => (left - right).abs() / (left.abs() + right.abs()),
            _ => 1.0,
        },
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            left.iter().zip(right).map(|(left, right)| distance(left, right)).sum()
        }
        (Value::Object(left), Value::Object(right)) => {
            let shared: f64 = left
                .iter()
                .map(|(name, value)| right.get(name).map_or(1.0, |other| distance(value, other)))
                .sum();
            let missing = right.keys().filter(|name| !left.contains_key(*name)).count();
            shared + ratio(missing, 1)
        }
        _ if left == right => 0.0,
        _ => 1.0,
    }
}

/// Each member takes the value that most of the group give it.
fn merge_fields(outputs: &[&Value]) -> Value {
    let objects: Vec<&Map<String, Value>> = outputs.iter().filter_map(|o| o.as_object()).collect();
    if objects.len() < outputs.len() {
        return outputs.first().map_or(Value::Null, |first| (*first).clone());
    }
    let mut merged = Map::new();
    for name in objects.iter().flat_map(|object| object.keys()) {
        let given: Vec<&Value> = objects.iter().filter_map(|object| object.get(name)).collect();
        if given.len() * 2 <= objects.len() {
            continue;
        }
        let most = given.iter().max_by_key(|value| {
            let same = given.iter().filter(|other| other == value).count();
            (same, std::cmp::Reverse(digest_json(value)))
        });
        if let Some(value) = most {
            merged.insert(name.clone(), (**value).clone());
        }
    }
    Value::Object(merged)
}

fn groups_by_replica(
    asked: usize,
    votes: &[(usize, &Vote)],
    of_votes: &[usize],
) -> Vec<Option<usize>> {
    let mut groups = vec![None; asked];
    for ((index, _), group) in votes.iter().zip(of_votes) {
        groups[*index] = Some(*group);
    }
    groups
}

fn count_label(replicas: &[Replica], label: Label) -> usize {
    replicas.iter().filter(|replica| replica.answer.label() == label).count()
}

#[expect(clippy::cast_precision_loss, reason = "a round has at most five replicas")]
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
