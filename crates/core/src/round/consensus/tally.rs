//! Counts the votes: groups equal answers, finds the winner, and computes the consensus.

use std::{cell::OnceCell, cmp::Ordering};

use serde_json::Value;

use super::{
    Basis, Consensus, Outcome,
    confidence::{WeightedVote, effective_votes, log_odds, posterior},
    equivalence::{Relation, group},
    merge::merged,
    numeric, rounded,
};
use crate::{
    canonical::{digest_json, same_json},
    executor::Independence,
    round::{
        job::{AgreementTerms, Disagreement, JobKind, ScoreAggregation, TimeoutPolicy},
        replica::{FailureCode, Label, Replica, ReplicaAnswer, ReplicaVote},
    },
};

/// The assumed number of possible answers if the set is open.
const OPEN_ANSWERS: usize = 10;
/// A broken tie is worth no more than a coin toss.
const TIE_CEILING: f64 = 0.5;

/// The input of a count.
#[derive(Debug, Clone, Copy)]
pub struct TallyInput<'a> {
    pub kind: JobKind,
    /// Whether the caller gave an output schema.
    pub has_schema: bool,
    pub terms: &'a AgreementTerms,
    /// The replica that counts for each seat, in the order of the seats.
    pub replicas: &'a [Replica],
}

struct VoteGroup {
    members: Vec<usize>,
    evidence: f64,
    /// The smallest digest of its members. Computing it reads whole outputs, and few rounds need
    /// it.
    digest: OnceCell<String>,
}

impl VoteGroup {
    fn digest(&self, replicas: &[Replica]) -> &str {
        let of_members = || self.members.iter().map(|index| vote_digest(&replicas[*index]));
        self.digest.get_or_init(|| of_members().min().unwrap_or_default())
    }
}

/// Computes the consensus. A split is a result; nothing here fails.
pub fn agree(ballot: &TallyInput<'_>) -> Consensus {
    let votes = votes(ballot.replicas);
    let relation = relation(ballot);
    let groups_of_votes = group_votes(ballot, &relation, &votes);
    let groups = collect_groups(ballot, &votes, &groups_of_votes);
    let (leading, is_tied) = leading(ballot.replicas, &groups);

    let asked = ballot.replicas.len();
    let answered = ballot.replicas.iter().filter(|r| r.answer.has_answered()).count();
    let size = leading.map_or(0, |index| groups[index].members.len());
    let is_agreed = !is_tied && has_majority(ballot.terms, size, asked, answered);
    let outcome = outcome(ballot.replicas, is_agreed, size);
    let takes_best = ballot.terms.disagreement == Disagreement::BestEffort;
    let winner = leading.filter(|_| is_agreed || takes_best);
    let tie_broken = winner.is_some() && is_tied;

    let voters: Vec<&Independence> =
        votes.iter().map(|(index, _)| &ballot.replicas[*index].independence).collect();
    let has_won = |index: &usize| winner.is_some_and(|it| groups[it].members.contains(index));
    let winning_votes: Vec<&ReplicaVote> =
        votes.iter().filter(|(index, _)| has_won(index)).map(|(_, vote)| *vote).collect();
    let won = winner.map(|winner| &groups[winner]);
    let sure = confidence(ballot, &votes, &groups_of_votes, winner)
        .min(combined_ceiling(ballot, &relation, won));
    let scores: Vec<f64> = winning_votes.iter().filter_map(|vote| vote.said.score).collect();
    let outputs: Vec<&Value> = votes.iter().filter_map(|(_, v)| v.said.output.as_ref()).collect();

    Consensus {
        outcome,
        verdict: winning_votes.first().map(|vote| vote.label),
        output: match ballot.kind {
            JobKind::Delegate => merged(ballot.terms, &winning_votes),
            JobKind::Validate | JobKind::Factcheck => None,
        },
        verdicts: ballot.replicas.iter().map(|replica| replica.answer.label()).collect(),
        groups: groups_by_replica(asked, &votes, &groups_of_votes),
        winner,
        asked,
        started: asked - unavailable(ballot.replicas),
        answered,
        cancelled: count_label(ballot.replicas, Label::Cancelled),
        agreement: rounded(ratio(size, asked)),
        agreement_answered: rounded(ratio(size, answered)),
        strategy: ballot.terms.aggregation.to_string(),
        equivalence: match ballot.kind {
            JobKind::Delegate => relation.name(&outputs).to_owned(),
            JobKind::Validate | JobKind::Factcheck => "label".to_owned(),
        },
        score: numeric::summary(ballot.terms.aggregation, &scores),
        confidence: rounded(if tie_broken { sure.min(TIE_CEILING) } else { sure }),
        effective_votes: rounded(effective_votes(&voters)),
        disagreed: !is_agreed,
        tie_broken,
        basis: won.and_then(|won| {
            Basis::of(won.members.iter().map(|it| ballot.replicas[*it].session_id.as_str()))
        }),
    }
}

/// The outcome, given whether the largest group agrees and how large it is.
fn outcome(replicas: &[Replica], is_agreed: bool, size: usize) -> Outcome {
    let has_abstained = |it: &&Replica| matches!(it.answer, ReplicaAnswer::Abstained { .. });
    let abstained = replicas.iter().filter(has_abstained).count();
    match (is_agreed, size) {
        (true, _) => Outcome::Agreed,
        (false, 0) if abstained == 0 => Outcome::Failed,
        (false, _) if size < abstained || size == 0 => Outcome::Abstained,
        (false, _) => Outcome::Split,
    }
}

/// The maximum confidence in a combined number. Answers that differ do not confirm each other, so
/// together they are worth no more than the best of them.
fn combined_ceiling(
    ballot: &TallyInput<'_>,
    relation: &Relation<'_>,
    won: Option<&VoteGroup>,
) -> f64 {
    let (JobKind::Delegate, Relation::Numbers { .. }, Some(won)) = (ballot.kind, relation, won)
    else {
        return 1.0;
    };
    let members = || won.members.iter().map(|index| &ballot.replicas[*index]);
    let mut outputs = members().filter_map(|it| it.answer.content()?.output.as_ref());
    let is_same = outputs.next().is_none_or(|first| outputs.all(|it| same_json(first, it)));
    if is_same { 1.0 } else { members().map(|it| it.reliability).fold(0.0, f64::max) }
}

/// Whether no outstanding replica can change the winner any more.
///
/// `ballot.replicas` holds the replicas that have ended; `asked` also counts the outstanding ones.
pub fn is_settled(ballot: &TallyInput<'_>, asked: usize) -> bool {
    let votes = votes(ballot.replicas);
    if votes.len() * 2 <= asked {
        // Even all of them together would not be enough, so there is nothing to compare.
        return false;
    }
    let relation = relation(ballot);
    if matches!(relation, Relation::Numbers { .. }) && ballot.kind == JobKind::Delegate {
        // Every outstanding number still moves the result.
        return votes.len() == asked;
    }
    let groups = group_votes(ballot, &relation, &votes);
    let size_of = |group: &usize| groups.iter().filter(|other| *other == group).count();
    let size = groups.iter().map(size_of).max().unwrap_or(0);
    // A strict majority of all replicas asked outweighs everything else together.
    size * 2 > asked && is_enough(ballot.terms, size, asked)
}

fn votes(replicas: &[Replica]) -> Vec<(usize, &ReplicaVote)> {
    replicas
        .iter()
        .enumerate()
        .filter_map(|(index, replica)| match &replica.answer {
            ReplicaAnswer::Vote(vote) => Some((index, vote)),
            ReplicaAnswer::Abstained { .. } | ReplicaAnswer::Nothing { .. } => None,
        })
        .collect()
}

fn relation<'a>(ballot: &TallyInput<'a>) -> Relation<'a> {
    static CANONICAL: crate::round::job::Equivalence = crate::round::job::Equivalence::Canonical;
    let combines =
        matches!(ballot.terms.aggregation, ScoreAggregation::Mean | ScoreAggregation::Median);
    match &ballot.terms.equivalence {
        Some(named) => Relation::Named(named),
        None if combines => Relation::Numbers { has_schema: ballot.has_schema },
        None if ballot.has_schema => Relation::Named(&CANONICAL),
        None => Relation::Default,
    }
}

/// The group of each vote, numbered by first appearance.
fn group_votes(
    ballot: &TallyInput<'_>,
    relation: &Relation<'_>,
    votes: &[(usize, &ReplicaVote)],
) -> Vec<usize> {
    match ballot.kind {
        JobKind::Delegate => {
            let outputs: Vec<&Value> = votes
                .iter()
                .map(|(_, vote)| vote.said.output.as_ref().unwrap_or(&Value::Null))
                .collect();
            group(relation, &outputs)
        }
        JobKind::Validate | JobKind::Factcheck => {
            let mut seen: Vec<Label> = Vec::new();
            let number = |(_, vote): &(usize, &ReplicaVote)| {
                seen.iter().position(|label| *label == vote.label).unwrap_or_else(|| {
                    seen.push(vote.label);
                    seen.len() - 1
                })
            };
            votes.iter().map(number).collect()
        }
    }
}

fn collect_groups(
    ballot: &TallyInput<'_>,
    votes: &[(usize, &ReplicaVote)],
    of_votes: &[usize],
) -> Vec<VoteGroup> {
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
            VoteGroup { members, evidence, digest: OnceCell::new() }
        })
        .collect()
}

fn vote_digest(replica: &Replica) -> String {
    let output = replica.answer.content().and_then(|said| said.output.as_ref());
    match (replica.answer.label(), output) {
        (Label::Ok, Some(output)) => digest_json(output),
        (label, _) => label.to_string(),
    }
}

/// The leading group, and whether another group has the same size. Among equals the more reliable
/// side leads, then the side with the smaller digest.
fn leading(replicas: &[Replica], groups: &[VoteGroup]) -> (Option<usize>, bool) {
    let rank = |left: &VoteGroup, right: &VoteGroup| -> Ordering {
        right
            .members
            .len()
            .cmp(&left.members.len())
            .then_with(|| {
                // Sums in another order may differ in the last bit, which must not decide.
                if (left.evidence - right.evidence).abs() < 1e-9 {
                    Ordering::Equal
                } else {
                    right.evidence.total_cmp(&left.evidence)
                }
            })
            .then_with(|| left.digest(replicas).cmp(right.digest(replicas)))
    };
    let first = (0..groups.len()).min_by(|left, right| rank(&groups[*left], &groups[*right]));
    let is_tied = first.is_some_and(|first| {
        groups.iter().enumerate().any(|(index, group)| {
            index != first && group.members.len() == groups[first].members.len()
        })
    });
    (first, is_tied)
}

fn has_majority(terms: &AgreementTerms, size: usize, asked: usize, answered: usize) -> bool {
    let of = match terms.timeout_policy {
        TimeoutPolicy::Ignore => answered,
        TimeoutPolicy::Count | TimeoutPolicy::Negative => asked,
    };
    size * 2 > of && is_enough(terms, size, of)
}

/// Whether the share reaches `min_agreement`, as a caller sees it after rounding: two of three
/// reach 0.6667.
fn is_enough(terms: &AgreementTerms, size: usize, of: usize) -> bool {
    let share = ratio(size, of);
    terms.min_agreement.is_none_or(|least| least <= share || least <= rounded(share))
}

const fn possible_answers(kind: JobKind) -> usize {
    match kind {
        JobKind::Validate => 2,
        JobKind::Factcheck => 3,
        JobKind::Delegate => OPEN_ANSWERS,
    }
}

/// The confidence that a candidate is right, given the verdicts, the reliability and the
/// independence of executors. It is the same measure as the confidence of a round.
pub fn verdict_confidence<'a>(
    verdicts: impl Iterator<Item = (bool, f64, &'a Independence)>,
) -> f64 {
    let weighed: Vec<WeightedVote<'_>> = verdicts
        .map(|(is_for, reliability, independence)| WeightedVote {
            group: usize::from(!is_for),
            reliability,
            independence,
        })
        .collect();
    rounded(posterior(&weighed, 0, possible_answers(JobKind::Validate)))
}

fn confidence(
    ballot: &TallyInput<'_>,
    votes: &[(usize, &ReplicaVote)],
    of_votes: &[usize],
    winner: Option<usize>,
) -> f64 {
    let Some(winner) = winner else { return 0.0 };
    let weighed: Vec<WeightedVote<'_>> = votes
        .iter()
        .zip(of_votes)
        .map(|((index, _), group)| WeightedVote {
            group: *group,
            reliability: ballot.replicas[*index].reliability,
            independence: &ballot.replicas[*index].independence,
        })
        .collect();
    let sure = posterior(&weighed, winner, possible_answers(ballot.kind));
    match ballot.terms.timeout_policy {
        TimeoutPolicy::Negative => {
            let silent = ballot.replicas.iter().filter(|r| !r.answer.has_answered()).count()
                - count_label(ballot.replicas, Label::Cancelled);
            sure * (1.0 - ratio(silent, ballot.replicas.len()))
        }
        TimeoutPolicy::Count | TimeoutPolicy::Ignore => sure,
    }
}

fn groups_by_replica(
    asked: usize,
    votes: &[(usize, &ReplicaVote)],
    of_votes: &[usize],
) -> Vec<Option<usize>> {
    let mut groups = vec![None; asked];
    for ((index, _), group) in votes.iter().zip(of_votes) {
        groups[*index] = Some(*group);
    }
    groups
}

/// How many seats had no session to ask.
fn unavailable(replicas: &[Replica]) -> usize {
    let code = |replica: &Replica| replica.answer.failure().map(|failure| failure.code);
    replicas.iter().filter(|it| code(it) == Some(FailureCode::Unavailable)).count()
}

fn count_label(replicas: &[Replica], label: Label) -> usize {
    replicas.iter().filter(|replica| replica.answer.label() == label).count()
}

#[expect(clippy::cast_precision_loss, reason = "a round has at most five replicas")]
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
