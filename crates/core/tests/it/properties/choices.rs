//! Properties of every selection of sessions, whatever the installation.

use std::collections::BTreeSet;

use jurat_core::round::{
    job::PoolEntry,
    select::{EligibleSession, Selection, select},
};
use proptest::{collection::vec, prelude::*, sample::select as one_of};

use super::config;
use crate::select::{Listed, capabilities, eligible, job, session, work};

fn listing() -> impl Strategy<Value = Listed> {
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
            Listed {
                session,
                host: format!("h{}", executor % 2),
                standing: if is_up { Ok(known) } else { Err("is down".to_owned()) },
                reliability: 0.75,
            }
        },
    )
}

fn installation() -> impl Strategy<Value = Vec<Listed>> {
    vec(listing(), 0..9).prop_map(|mut listed| {
        for (index, listing) in listed.iter_mut().enumerate() {
            listing.session.id = format!("s{index}");
        }
        listed
    })
}

fn can_delegate(entry: &EligibleSession<'_>) -> bool {
    entry.standing.as_ref().is_ok_and(|known| known.takes_task_type("delegate"))
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn the_chosen_are_distinct_live_capable_and_spread(
        listed in installation(), replicas in one_of(vec![1_u8, 3, 5]), seed in any::<u64>()
    ) {
        let eligible = eligible(&listed);
        let job = job(work("delegate", "delegate"), replicas, Vec::new());
        let able = eligible.iter().filter(|entry| can_delegate(entry)).count();
        let chosen = select(&job, &eligible, seed);
        prop_assert_eq!(&chosen, &select(&job, &eligible, seed));
        let replicas = usize::from(replicas);
        prop_assert_eq!(chosen.is_ok(), replicas < 2 * able && replicas <= eligible.len());
        let Ok(Selection { seats, spares }) = chosen else { return Ok(()) };
        prop_assert_eq!(seats.len(), replicas);
        let all: Vec<usize> = seats.iter().map(|seat| seat.index).chain(spares.clone()).collect();
        prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        prop_assert!(seats.iter().all(|it| can_delegate(&eligible[it.index]) == it.problem.is_none()));
        prop_assert!(spares.iter().all(|index| can_delegate(&eligible[*index])));
        prop_assert_eq!(spares.len(), able.saturating_sub(replicas).min(replicas));
        let asked = seats.iter().filter(|seat| seat.problem.is_none());
        let chosen: Vec<usize> = asked.map(|seat| seat.index).collect();
        let providers = |indexes: &mut dyn Iterator<Item = usize>| -> usize {
            let families = indexes.map(|index| eligible[index].independence().provider_family);
            families.collect::<BTreeSet<String>>().len()
        };
        let there = providers(&mut (0..eligible.len()).filter(|index| can_delegate(&eligible[*index])));
        // As many providers as exist, or as many as there are replicas.
        prop_assert_eq!(providers(&mut chosen.iter().copied()), there.min(chosen.len()));
    }

    #[test]
    fn the_order_of_the_installation_does_not_matter(
        (listed, shuffled, seed) in installation().prop_flat_map(|listed| {
            let order: Vec<usize> = (0..listed.len()).collect();
            (Just(listed), Just(order).prop_shuffle(), any::<u64>())
        })
    ) {
        let eligible = eligible(&listed);
        let moved: Vec<EligibleSession<'_>> = shuffled.iter().map(|index| eligible[*index].clone()).collect();
        let job = job(work("validate", ""), 3, Vec::new());
        let ids = |eligible: &[EligibleSession<'_>]| -> Option<Vec<String>> {
            let chosen = select(&job, eligible, seed).ok()?;
            let seats = chosen.seats.iter().map(|seat| seat.index);
            Some(seats.chain(chosen.spares).map(|index| eligible[index].session.id.clone()).collect())
        };
        prop_assert_eq!(ids(&eligible), ids(&moved));
    }

    #[test]
    fn the_order_of_the_pool_is_kept(
        (listed, order, seed) in installation().prop_flat_map(|listed| {
            let order: Vec<usize> = (0..listed.len()).collect();
            (Just(listed), Just(order).prop_shuffle(), any::<u64>())
        })
    ) {
        let eligible = eligible(&listed);
        let pool = order.iter().map(|index| PoolEntry::Session(format!("s{index}"))).collect();
        // An empty pool would leave the choice to the server.
        if order.is_empty() {
            return Ok(());
        }
        if let Ok(chosen) = select(&job(work("validate", ""), 3, pool), &eligible, seed) {
            let positions: Vec<Option<usize>> = chosen
                .seats
                .iter()
                .map(|seat| order.iter().position(|named| *named == seat.index))
                .collect();
            prop_assert!(positions.is_sorted() && positions.iter().all(Option::is_some));
        }
    }
}
