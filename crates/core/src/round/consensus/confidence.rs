//! Computes the confidence: a posterior probability that discounts votes that are not independent.
//!
//! The model assumes that a voter gives the right answer with its reliability `r`, and each other
//! answer with an equal share of `1 - r`. With a uniform prior over the answers, the posterior of
//! an answer is the soft-max of the evidence of the sides. Voters that share a model or a provider
//! make the same errors, so a vote counts for as much as it adds to the effective number (Kish) of
//! votes on its side, starting with the most reliable.

use std::collections::BTreeMap;

use crate::executor::{Independence, session::Tier};

/// The confidence never reaches one, because all voters can be wrong together.
pub(super) const CEILING: f64 = 0.999;

/// How many votes of a side are counted, the most reliable first. A round has at most five votes.
const MOST_ON_A_SIDE: usize = 8;

/// Assumed correlations of errors. Language models of different providers correlate at about one
/// third on public vote data; closer relations correlate more.
const SAME_EXECUTOR: f64 = 0.95;
const SAME_MODEL: f64 = 0.80;
const SAME_PROVIDER: f64 = 0.60;
const UNRELATED: f64 = 0.30;

/// The assumed probability that a session of this tier is right, before anything is measured.
pub const fn reliability_prior(tier: Option<Tier>) -> f64 {
    match tier {
        Some(Tier::Fast) => 0.70,
        None => 0.75,
        Some(Tier::Safe) => 0.80,
        Some(Tier::Oracle) => 0.85,
    }
}

/// A vote as input of the posterior.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightedVote<'a> {
    pub(super) group: usize,
    pub(super) reliability: f64,
    pub(super) independence: &'a Independence,
}

/// The number of independent votes that these votes are worth: between one and their count.
#[expect(clippy::cast_precision_loss, reason = "a round has at most five votes")]
pub fn effective_votes(voters: &[&Independence]) -> f64 {
    if voters.is_empty() {
        return 0.0;
    }
    // Sums of floats depend on their order, and the order of the voters must not matter.
    let mut voters = voters.to_vec();
    voters.sort();
    let mut total = 0.0;
    for (index, left) in voters.iter().enumerate() {
        for (other, right) in voters.iter().enumerate() {
            total += if index == other { 1.0 } else { correlation(left, right) };
        }
    }
    let count = voters.len() as f64;
    count * count / total
}

/// The posterior of the winning group. `answers` is the number of possible answers.
#[expect(clippy::cast_precision_loss, reason = "a handful of answers")]
pub(super) fn posterior(votes: &[WeightedVote<'_>], winner: usize, answers: usize) -> f64 {
    let mut sides: BTreeMap<usize, Vec<WeightedVote<'_>>> = BTreeMap::new();
    for vote in votes {
        sides.entry(vote.group).or_default().push(*vote);
    }
    let answers = answers.max(sides.len()).max(2);
    // An answer that no voter gave has no evidence, which is a weight of one.
    let unnamed = (answers - sides.len()) as f64;
    let won = sides.remove(&winner).map_or(0.0, |side| evidence(side, answers).exp());
    let mut others: Vec<f64> =
        sides.into_values().map(|side| evidence(side, answers).exp()).collect();
    // Sorting makes the sum independent of the order of the replicas.
    others.sort_by(f64::total_cmp);
    (won / (won + unnamed + others.iter().sum::<f64>())).min(CEILING)
}

/// The evidence of one side: each vote counts for what it adds to the effective number of the votes
/// that are at least as reliable.
///
/// The effective number of all votes can fall when a copy of a voter joins, because it weighs all
/// votes alike. So the best effective number of any subset is used, which never falls: one more
/// vote never weakens its side, whatever it shares with the others and however it is named.
fn evidence(side: Vec<WeightedVote<'_>>, answers: usize) -> f64 {
    let mut side: Vec<(f64, &Independence)> = side
        .into_iter()
        .map(|vote| (log_odds(vote.reliability, answers), vote.independence))
        .collect();
    side.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(right.1)));
    side.truncate(MOST_ON_A_SIDE);
    let mut most = 0.0_f64;
    let mut sum = 0.0;
    // The bits of `choice` select a subset of the votes. All subsets of the first votes come before
    // any subset with a later vote, so the last vote of a subset accounts for what it adds.
    for choice in 1..1_usize << side.len() {
        let is_chosen = |slot: &usize| choice >> slot & 1 == 1;
        let voters: Vec<&Independence> =
            (0..side.len()).filter(is_chosen).map(|slot| side[slot].1).collect();
        let weight = (0..side.len()).rfind(is_chosen).map_or(0.0, |slot| side[slot].0);
        let worth = effective_votes(&voters);
        sum += (worth - most).max(0.0) * weight;
        most = worth.max(most);
    }
    sum
}

/// The log-likelihood ratio of a vote. The reliability is clamped below 1, where the ratio would be
/// infinite, and to at least chance, below which a vote would count against its own answer.
#[expect(clippy::cast_precision_loss, reason = "a handful of answers")]
pub(super) fn log_odds(reliability: f64, answers: usize) -> f64 {
    let chance = 1.0 / answers as f64;
    // A reliability that is not a number counts as chance.
    let known = if reliability.is_nan() { chance } else { reliability };
    let right = known.clamp(chance, 0.99);
    // Rounding can put chance itself slightly below zero evidence.
    (right * (answers - 1) as f64 / (1.0 - right)).ln().max(0.0)
}

fn correlation(left: &Independence, right: &Independence) -> f64 {
    if left.executor == right.executor {
        SAME_EXECUTOR
    } else if left.model_id == right.model_id {
        // The same model makes the same errors, whoever serves it.
        SAME_MODEL
    } else if left.provider_family == right.provider_family {
        SAME_PROVIDER
    } else {
        UNRELATED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(family: &str, model: &str, executor: &str) -> Independence {
        Independence {
            provider_family: family.to_owned(),
            model_id: model.to_owned(),
            host: "127.0.0.1".to_owned(),
            executor: executor.to_owned(),
        }
    }

    fn sure(voters: &[Independence], groups: &[usize], answers: usize) -> f64 {
        let votes: Vec<WeightedVote<'_>> = voters
            .iter()
            .zip(groups)
            .map(|(independence, group)| WeightedVote {
                group: *group,
                reliability: 0.8,
                independence,
            })
            .collect();
        posterior(&votes, 0, answers)
    }

    #[test]
    fn one_vote_is_worth_its_reliability() {
        let voter = [of("a", "m", "x")];
        assert!((sure(&voter, &[0], 2) - 0.8).abs() < 1e-9);
    }

    #[test]
    fn unrelated_voters_add_more_than_related_ones() {
        let strangers = [of("a", "m", "x"), of("b", "n", "y"), of("c", "o", "z")];
        let siblings = [of("a", "m", "x"), of("a", "m", "y"), of("a", "m", "z")];
        let apart = sure(&strangers, &[0, 0, 0], 2);
        let together = sure(&siblings, &[0, 0, 0], 2);
        assert!(apart > together && together > 0.8, "{apart} {together}");
        let all: Vec<&Independence> = strangers.iter().collect();
        assert!((effective_votes(&all) - 9.0 / 4.8).abs() < 1e-9);
    }

    #[test]
    fn dissent_lowers_it_and_it_never_reaches_one() {
        let many: Vec<Independence> =
            (0..5).map(|n| of(&n.to_string(), &n.to_string(), &n.to_string())).collect();
        let agreed = sure(&many, &[0; 5], 10);
        let dissent = sure(&many, &[0, 0, 0, 0, 1], 10);
        assert!(dissent < agreed && agreed <= CEILING);
    }

    #[test]
    fn a_voter_below_chance_does_not_count_against_its_answer() {
        assert!(log_odds(0.1, 2).abs() < f64::EPSILON);
    }

    #[test]
    fn a_model_behind_two_providers_is_still_one_model() {
        let resold = [of("a", "m", "x"), of("b", "m", "y")];
        let all: Vec<&Independence> = resold.iter().collect();
        assert!((effective_votes(&all) - 4.0 / 3.6).abs() < 1e-9);
    }

    #[test]
    fn a_weak_vote_for_the_winner_does_not_lower_it() {
        let voters: Vec<Independence> =
            (0..5).map(|n| of(&n.to_string(), &n.to_string(), &n.to_string())).collect();
        let vote = |slot: usize, reliability: f64| WeightedVote {
            group: 0,
            reliability,
            independence: &voters[slot],
        };
        let strong: Vec<WeightedVote<'_>> = (0..4).map(|slot| vote(slot, 0.85)).collect();
        let mut joined = strong.clone();
        joined.push(vote(4, 0.55));
        assert!(posterior(&strong, 0, 2) <= posterior(&joined, 0, 2));
    }

    #[test]
    fn a_copy_of_a_voter_does_not_lower_it_whatever_its_name() {
        let strangers = [of("a", "m", "x"), of("b", "n", "y")];
        let pair = sure(&strangers, &[0, 0], 2);
        for name in ["a", "z"] {
            let copied = [of("a", "m", "x"), of("b", "n", "y"), of(name, "m", "x")];
            assert!((sure(&copied, &[0, 0, 0], 2) - pair).abs() < 1e-12);
        }
    }

    #[test]
    fn both_sides_are_weighed_by_the_same_rule() {
        let voters = [of("a", "m", "x"), of("a", "m", "y"), of("b", "n", "z"), of("c", "o", "w")];
        let votes = |groups: [usize; 4]| -> Vec<WeightedVote<'_>> {
            let reliabilities = [0.7, 0.8, 0.85, 0.75];
            (0..4)
                .map(|slot| WeightedVote {
                    group: groups[slot],
                    reliability: reliabilities[slot],
                    independence: &voters[slot],
                })
                .collect()
        };
        let split = votes([0, 1, 0, 1]);
        let both = posterior(&split, 0, 2) + posterior(&split, 1, 2);
        assert!((both - 1.0).abs() < 1e-12);
        let alike: Vec<WeightedVote<'_>> =
            split.iter().map(|vote| WeightedVote { reliability: 0.8, ..*vote }).collect();
        assert!((posterior(&alike, 0, 2) - 0.5).abs() < 1e-12, "strangers face strangers");
    }

    #[test]
    fn a_reliability_that_is_not_a_number_counts_as_chance() {
        assert!(log_odds(f64::NAN, 3).abs() < 1e-9);
        assert!(log_odds(1.0, 2).is_finite());
    }

    #[test]
    fn five_sure_voters_stop_at_the_ceiling() {
        let voters: Vec<Independence> =
            (0..5).map(|n| of(&n.to_string(), &n.to_string(), &n.to_string())).collect();
        let votes: Vec<WeightedVote<'_>> = voters
            .iter()
            .map(|independence| WeightedVote { group: 0, reliability: 1.0, independence })
            .collect();
        assert!((posterior(&votes, 0, 10) - CEILING).abs() < f64::EPSILON);
    }

    #[test]
    fn the_order_of_the_voters_does_not_change_the_last_bit() {
        let voters = [
            of("a", "m", "x"),
            of("a", "n", "y"),
            of("b", "m", "z"),
            of("c", "o", "x"),
            of("d", "p", "w"),
        ];
        let mut order: Vec<&Independence> = voters.iter().collect();
        let expected = effective_votes(&order).to_bits();
        for swap in 1..order.len() {
            order.swap(0, swap);
            assert_eq!(effective_votes(&order).to_bits(), expected);
            order.reverse();
            assert_eq!(effective_votes(&order).to_bits(), expected);
        }
    }
}
