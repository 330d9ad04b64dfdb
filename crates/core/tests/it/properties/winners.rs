//! Properties of the winners' outputs, whatever the answers and the terms.

use jurat_core::round::{
    consensus::{Consensus, OutputOrigin, nearest_output, output_by, spread},
    job::{JobKind, OutputMerge, ScoreAggregation},
};
use proptest::prelude::*;
use serde_json::Value;

use super::{
    config,
    rounds::{Round, round_of, winners},
};

/// The outputs of the winners.
fn words(round: &Round, consensus: &Consensus) -> Vec<Value> {
    let won = winners(round, consensus);
    let spoken = round.replicas.iter().filter(|replica| won.contains(&replica.session_id));
    spoken.filter_map(|replica| replica.answer.content()?.output.clone()).collect()
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn the_output_of_a_round_comes_from_its_winners(round in round_of(&[JobKind::Delegate])) {
        let found = round.agree();
        let words = words(&round, &found);
        let nearest = nearest_output(&round.replicas, &found);
        prop_assert_eq!(nearest.is_some(), !words.is_empty());
        prop_assert!(nearest.iter().all(|nearest| words.contains(nearest)));
        let is_chosen =
            (round.terms.aggregation, round.terms.merge) == (ScoreAggregation::Majority, OutputMerge::Medoid);
        prop_assert!(!is_chosen || nearest == found.output);
        let given = found.output.as_ref().map(|output| {
            if words.contains(output) { OutputOrigin::Replica } else { OutputOrigin::Merge }
        });
        prop_assert_eq!(output_by(&round.replicas, &found), given);
    }

    #[test]
    fn there_is_a_spread_only_if_the_winners_differ(round in round_of(&[JobKind::Delegate])) {
        let found = round.agree();
        let words = words(&round, &found);
        for (at, spread) in spread(&round.replicas, &found) {
            let numbers: Vec<f64> =
                words.iter().filter_map(|it| it.pointer(&at)?.as_f64()).collect();
            prop_assert!(spread.min < spread.max, "{at}");
            prop_assert!(numbers.contains(&spread.min) && numbers.contains(&spread.max), "{at}");
            prop_assert!(numbers.iter().all(|it| spread.min <= *it && *it <= spread.max), "{at}");
        }
    }
}
