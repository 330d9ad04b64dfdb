//! How sure we may be: a posterior probability that discounts votes which are not independent.
//!
//! Every voter is taken to name the right answer with its reliability `r`, and each of the other
//! answers with an equal share of `1 - r`. With no preference between answers beforehand, the
//! posterior of an answer is the soft-max of its summed log-likelihood ratios.
//! Voters that share a model or a provider err together, so the ratios are scaled by
//! `effective votes / votes` (Kish) before they are summed.
//! That scale treats all votes alike, so a weak or redundant vote could pull the stronger ones down.
//! Therefore those of the agreeing votes are counted that together make the strongest case:
//! one more voice for the winner never lowers its posterior.

use std::collections::{BTreeMap, BTreeSet};

use crate::{executor::Independence, session::Tier};

/// No confidence ever reaches one: there is always a way in which all are wrong.
pub(super) const CEILING: f64 = 0.999;

/// Of this many agreeing votes every subset is tried; no round has more than five.
const MOST_WEIGHED: usize = 8;

/// Assumed correlation of errors. Language models of different providers correlate at about one
/// third on public vote data; the nearer the relation, the higher the assumption.
const SAME_EXECUTOR: f64 = 0.95;
const SAME_MODEL: f64 = 0.80;
const SAME_PROVIDER: f64 = 0.60;
const UNRELATED: f64 = 0.30;

/// The probability that a session of this tier is right, before anything is measured.
pub const fn reliability_prior(tier: Option<Tier>) -> f64 {
    match tier {
        Some(Tier::Fast) => 0.70,
        None => 0.75,
        Some(Tier::Safe) => 0.80,
        Some(Tier::Oracle) => 0.85,
    }
}

/// One vote as the posterior sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighed<'a> {
    pub(super) group: usize,
    pub(super) reliability: f64,
    pub(super) independence: &'a Independence,
}

/// How many independent votes these are worth: between one and their number.
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

/// The posterior of the winning group. `answers` is how many answers are possible at all.
pub(super) fn posterior(votes: &[Weighed<'_>], winner: usize, answers: usize) -> f64 {
    let (agreeing, dissenting): (Vec<Weighed<'_>>, Vec<Weighed<'_>>) =
        votes.iter().copied().partition(|vote| vote.group == winner);
    let all = (1_usize << agreeing.len().min(MOST_WEIGHED)) - 1;
    let strength_of = |case: usize| {
        let is_counted = |slot: &usize| MOST_WEIGHED <= *slot || case >> *slot & 1 == 1;
        let mut counted: Vec<Weighed<'_>> =
            (0..agreeing.len()).filter(is_counted).map(|slot| agreeing[slot]).collect();
        counted.extend(&dissenting);
        posterior_of_case(counted, winner, answers)
    };
    (1..=all).map(strength_of).fold(0.0, f64::max).min(CEILING)
}

/// The posterior of the winning group when exactly these votes count.
#[expect(clippy::cast_precision_loss, reason = "a round has at most five votes")]
fn posterior_of_case(mut votes: Vec<Weighed<'_>>, winner: usize, answers: usize) -> f64 {
    // One order for all sums, whatever the order of the replicas was.
    votes.sort_by(|left, right| {
        left.reliability
            .total_cmp(&right.reliability)
            .then_with(|| left.independence.cmp(right.independence))
    });
    let voters: Vec<&Independence> = votes.iter().map(|vote| vote.independence).collect();
    let scale = effective_votes(&voters) / votes.len().max(1) as f64;
    let mut sides: BTreeMap<usize, f64> = BTreeMap::new();
    let answers = {
        let given: BTreeSet<usize> = votes.iter().map(|vote| vote.group).collect();
        answers.max(given.len()).max(2)
    };
    for vote in &votes {
        *sides.entry(vote.group).or_insert(0.0) += scale * log_odds(vote.reliability, answers);
    }
    // An answer that nobody gave has no evidence, which is a weight of one.
    let unnamed = (answers - sides.len()) as f64;
    let won = sides.remove(&winner).map_or(0.0, f64::exp);
    let mut others: Vec<f64> = sides.into_values().map(f64::exp).collect();
    others.sort_by(f64::total_cmp);
    won / (won + unnamed + others.iter().sum::<f64>())
}

/// The log-likelihood ratio of a vote. Reliability is kept off its ends, where it would be infinite,
/// and off chance, below which a vote would count against what it says.
#[expect(clippy::cast_precision_loss, reason = "a handful of answers")]
pub(super) fn log_odds(reliability: f64, answers: usize) -> f64 {
    let chance = 1.0 / answers as f64;
    // What is not a number says nothing, which is chance.
    let known = if reliability.is_nan() { chance } else { reliability };
    let right = known.clamp(chance, 0.99);
    // Rounding may put chance itself a hair below no evidence at all.
    (right * (answers - 1) as f64 / (1.0 - right)).ln().max(0.0)
}

fn correlation(left: &Independence, right: &Independence) -> f64 {
    if left.executor == right.executor {
        SAME_EXECUTOR
    } else if left.model_id == right.model_id {
        // The same weights err alike, whoever serves them.
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
        let votes: Vec<Weighed<'_>> = voters
            .iter()
            .zip(groups)
            .map(|(independence, group)| Weighed { group: *group, reliability: 0.8, independence })
            .collect();
        posterior(&votes, 0, answers)
    }

    #[test]
    fn one_vote_is_worth_its_reliability() {
        let voter = [of("a", "m", "x")];
        assert!((sure(&voter, &[0], 2) - 0.8).abs() < 1e-9);
    }

    #[test]
    fn strangers_add_more_than_siblings() {
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
    fn a_voter_below_chance_does_not_count_against_its_word() {
        assert!(log_odds(0.1, 2).abs() < f64::EPSILON);
    }

    #[test]
    fn a_model_behind_two_providers_is_still_one_model() {
        let resold = [of("a", "m", "x"), of("b", "m", "y")];
        let all: Vec<&Independence> = resold.iter().collect();
        assert!((effective_votes(&all) - 4.0 / 3.6).abs() < 1e-9);
    }

    #[test]
    fn a_weak_voice_for_the_winner_takes_nothing_away() {
        let voters: Vec<Independence> =
            (0..5).map(|n| of(&n.to_string(), &n.to_string(), &n.to_string())).collect();
        let vote = |slot: usize, reliability: f64| Weighed {
            group: 0,
            reliability,
            independence: &voters[slot],
        };
        let strong: Vec<Weighed<'_>> = (0..4).map(|slot| vote(slot, 0.85)).collect();
        let mut joined = strong.clone();
        joined.push(vote(4, 0.55));
        assert!(posterior(&strong, 0, 2) <= posterior(&joined, 0, 2));
    }

    #[test]
    fn a_reliability_that_is_no_number_says_nothing() {
        assert!(log_odds(f64::NAN, 3).abs() < 1e-9);
        assert!(log_odds(1.0, 2).is_finite());
    }

    #[test]
    fn five_sure_voters_stop_at_the_ceiling() {
        let voters: Vec<Independence> =
            (0..5).map(|n| of(&n.to_string(), &n.to_string(), &n.to_string())).collect();
        let votes: Vec<Weighed<'_>> = voters
            .iter()
            .map(|independence| Weighed { group: 0, reliability: 1.0, independence })
            .collect();
        assert!((posterior(&votes, 0, 10) - CEILING).abs() < f64::EPSILON);
    }

    #[test]
    fn the_order_of_the_voters_does_not_touch_the_last_bit() {
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
