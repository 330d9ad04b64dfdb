//! How sure we may be: a posterior probability that discounts votes which are not independent.
//!
//! Every voter is taken to name the right answer with its reliability `r`, and each of the other
//! answers with an equal share of `1 - r`. With no preference between answers beforehand, the
//! posterior of an answer is the soft-max of its summed log-likelihood ratios.
//! Voters that share a model or a provider err together, so the ratios are scaled by
//! `effective votes / votes` (Kish) before they are summed.

use crate::{executor::Independence, session::Tier};

/// No confidence ever reaches one: there is always a way in which all are wrong.
pub(super) const CEILING: f64 = 0.999;

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
    let mut total = 0.0;
    for (index, left) in voters.iter().enumerate() {
        for (other, right) in voters.iter().enumerate() {
            total += if index == other { 1.0 } else { correlation(left, right) };
        }
    }
    let count = voters.len() as f64;
    count * count / total
}

/// The posterior of each group. `answers` is how many answers are possible at all.
#[expect(clippy::cast_precision_loss, reason = "a round has at most five votes")]
pub(super) fn posterior(votes: &[Weighed<'_>], groups: usize, answers: usize) -> Vec<f64> {
    let voters: Vec<&Independence> = votes.iter().map(|vote| vote.independence).collect();
    let scale = effective_votes(&voters) / votes.len().max(1) as f64;
    let answers = answers.max(groups).max(2);
    let mut evidence = vec![0.0; groups];
    for vote in votes {
        evidence[vote.group] += scale * log_odds(vote.reliability, answers);
    }
    // An answer that nobody gave has no evidence, which is a weight of one.
    let unnamed = (answers - groups) as f64;
    let total: f64 = unnamed + evidence.iter().map(|value| value.exp()).sum::<f64>();
    evidence.iter().map(|value| (value.exp() / total).min(CEILING)).collect()
}

/// The log-likelihood ratio of a vote. Reliability is kept off its ends, where it would be infinite,
/// and off chance, below which a vote would count against what it says.
#[expect(clippy::cast_precision_loss, reason = "a handful of answers")]
pub(super) fn log_odds(reliability: f64, answers: usize) -> f64 {
    let chance = 1.0 / answers as f64;
    let right = reliability.clamp(chance, 0.99);
    (right * (answers - 1) as f64 / (1.0 - right)).ln()
}

fn correlation(left: &Independence, right: &Independence) -> f64 {
    if left.executor == right.executor {
        SAME_EXECUTOR
    } else if left.provider_family != right.provider_family {
        UNRELATED
    } else if left.model_id == right.model_id {
        SAME_MODEL
    } else {
        SAME_PROVIDER
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
        let count = groups.iter().max().map_or(0, |group| group + 1);
        posterior(&votes, count, answers)[0]
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
            (0..5).map(|n| of(&n.to_string(), "m", &n.to_string())).collect();
        let agreed = sure(&many, &[0; 5], 10);
        let dissent = sure(&many, &[0, 0, 0, 0, 1], 10);
        assert!(dissent < agreed && agreed <= CEILING);
    }

    #[test]
    fn a_voter_below_chance_does_not_count_against_its_word() {
        assert!(log_odds(0.1, 2).abs() < f64::EPSILON);
    }
}
