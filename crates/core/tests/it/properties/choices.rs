//! Properties of every selection of sessions, whatever the installation.

use std::collections::BTreeSet;

use jurat_core::round::{
    job::PoolEntry,
    select::{EligibleSession, Selection, select},
};
use proptest::{collection::vec, prelude::*, sample::select as one_of};

use super::config;
use crate::select::{Place, capabilities, job, lanes, session, work};

fn place() -> impl Strategy<Value = Place> {
    let standing = prop_oneof![4 => Just(true), 1 => Just(false)];
    (0..6_usize, standing, 0..3_u64, any::<bool>(), any::<bool>()).prop_map(
        |(executor, is_up, price, takes_all, is_labelled)| {
            let name = format!("e{executor}");
            let mut session = session("", &name);
            session.price_micros = price;
            if is_labelled {
                session.labels.insert("heavy".to_owned());
            }
            let mut known =
                capabilities(&format!("p{}", executor % 4), &format!("m{}", executor % 5));
            if !takes_all {
                known.task_types.remove(0);
            }
            Place {
                session,
                host: format!("h{}", executor % 2),
                standing: if is_up { Ok(known) } else { Err("is down".to_owned()) },
                reliability: 0.75,
            }
        },
    )
}

fn installation() -> impl Strategy<Value = Vec<Place>> {
    vec(place(), 0..9).prop_map(|mut places| {
        for (index, place) in places.iter_mut().enumerate() {
            place.session.id = format!("s{index}");
        }
        places
    })
}

fn can_delegate(lane: &EligibleSession<'_>) -> bool {
    lane.standing.as_ref().is_ok_and(|known| known.takes_task_type("delegate"))
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn the_chosen_are_distinct_live_capable_and_spread(
        places in installation(), replicas in one_of(vec![1_u8, 3, 5]), seed in any::<u64>()
    ) {
        let lanes = lanes(&places);
        let job = job(work("delegate", "delegate"), replicas, Vec::new());
        let able = lanes.iter().filter(|lane| can_delegate(lane)).count();
        let chosen = select(&job, &lanes, seed);
        prop_assert_eq!(&chosen, &select(&job, &lanes, seed));
        let replicas = usize::from(replicas);
        prop_assert_eq!(chosen.is_ok(), replicas < 2 * able && replicas <= lanes.len());
        let Ok(Selection { seats, spares }) = chosen else { return Ok(()) };
        prop_assert_eq!(seats.len(), replicas);
        let all: Vec<usize> = seats.iter().map(|seat| seat.lane).chain(spares.clone()).collect();
        prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        prop_assert!(seats.iter().all(|it| can_delegate(&lanes[it.lane]) == it.problem.is_none()));
        prop_assert!(spares.iter().all(|lane| can_delegate(&lanes[*lane])));
        prop_assert_eq!(spares.len(), able.saturating_sub(replicas).min(replicas));
        let asked = seats.iter().filter(|seat| seat.problem.is_none());
        let chosen: Vec<usize> = asked.map(|seat| seat.lane).collect();
        let providers = |indexes: &mut dyn Iterator<Item = usize>| -> usize {
            let families = indexes.map(|index| lanes[index].independence().provider_family);
            families.collect::<BTreeSet<String>>().len()
        };
        let there = providers(&mut (0..lanes.len()).filter(|index| can_delegate(&lanes[*index])));
        // As many providers as exist, or as many as there are replicas.
        prop_assert_eq!(providers(&mut chosen.iter().copied()), there.min(chosen.len()));
    }

    #[test]
    fn the_order_of_the_installation_does_not_matter(
        (places, shuffled, seed) in installation().prop_flat_map(|places| {
            let order: Vec<usize> = (0..places.len()).collect();
            (Just(places), Just(order).prop_shuffle(), any::<u64>())
        })
    ) {
        let lanes = lanes(&places);
        let moved: Vec<EligibleSession<'_>> = shuffled.iter().map(|index| lanes[*index].clone()).collect();
        let job = job(work("validate", ""), 3, Vec::new());
        let ids = |lanes: &[EligibleSession<'_>]| -> Option<Vec<String>> {
            let chosen = select(&job, lanes, seed).ok()?;
            let seats = chosen.seats.iter().map(|seat| seat.lane);
            Some(seats.chain(chosen.spares).map(|lane| lanes[lane].session.id.clone()).collect())
        };
        prop_assert_eq!(ids(&lanes), ids(&moved));
    }

    #[test]
    fn the_order_of_the_pool_is_kept(
        (places, order, seed) in installation().prop_flat_map(|places| {
            let order: Vec<usize> = (0..places.len()).collect();
            (Just(places), Just(order).prop_shuffle(), any::<u64>())
        })
    ) {
        let lanes = lanes(&places);
        let pool = order.iter().map(|index| PoolEntry::Session(format!("s{index}"))).collect();
        // An empty pool would leave the choice to the server.
        if order.is_empty() {
            return Ok(());
        }
        if let Ok(chosen) = select(&job(work("validate", ""), 3, pool), &lanes, seed) {
            let positions: Vec<Option<usize>> = chosen
                .seats
                .iter()
                .map(|seat| order.iter().position(|named| *named == seat.lane))
                .collect();
            prop_assert!(positions.is_sorted() && positions.iter().all(Option::is_some));
        }
    }
}
