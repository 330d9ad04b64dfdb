//! Abandoned rounds.

use std::collections::BTreeSet;

use futures::future::join_all;
use jurat_core::round::{OpenRound, RoundEnding};
use jurat_store::{RoundCloseOutcome, RoundTakeover, TakeoverScope};

use super::rounds::read;
use crate::{
    backend::Backend,
    samples::{abandoned, account, claim, closing, expiry, node, round},
};

pub(crate) async fn a_round_with_an_expired_lease_is_taken_over_unchanged(backend: &Backend) {
    let left = abandoned(&account("alice"), 1);
    backend.store.round_open(&left, None).await.unwrap();
    let claimed =
        backend.store.round_take_over(&claim("second", TakeoverScope::LeaseOver)).await.unwrap();
    // The new lease is measured by the clock of the database.
    let lease_until = claimed[0].lease_until;
    let taken = OpenRound { node: node("second"), lease_token: 7, lease_until, ..left };
    assert_eq!(claimed, [taken]);
    // It has a new lease now.
    let again =
        backend.store.round_take_over(&claim("third", TakeoverScope::LeaseOver)).await.unwrap();
    assert_eq!(again, []);
}

pub(crate) async fn a_round_with_a_valid_lease_is_not_taken_over(backend: &Backend) {
    let open = round(&account("alice"), 1);
    backend.store.round_open(&open, None).await.unwrap();
    let claimed =
        backend.store.round_take_over(&claim("second", TakeoverScope::LeaseOver)).await.unwrap();
    assert_eq!(claimed, []);
    let end = closing(&open);
    assert_eq!(backend.store.round_close(&open, &end).await.unwrap(), RoundCloseOutcome::Closed);
}

pub(crate) async fn an_ended_round_is_never_taken_over(backend: &Backend) {
    let open = abandoned(&account("alice"), 1);
    backend.store.round_open(&open, None).await.unwrap();
    backend.store.round_close(&open, &closing(&open)).await.unwrap();
    for orphans in [TakeoverScope::LeaseOver, TakeoverScope::All] {
        let claimed = backend.store.round_take_over(&claim("second", orphans)).await.unwrap();
        assert_eq!(claimed, []);
    }
}

pub(crate) async fn a_late_close_after_a_takeover_is_lost_and_changes_nothing(backend: &Backend) {
    let store = &backend.store;
    let late = abandoned(&account("alice"), 1);
    store.round_open(&late, None).await.unwrap();
    let taken =
        store.round_take_over(&claim("second", TakeoverScope::LeaseOver)).await.unwrap().remove(0);
    let end = closing(&late);
    assert_eq!(store.round_close(&late, &end).await.unwrap(), RoundCloseOutcome::Lost);
    assert_eq!(read(backend, &taken).await.open, taken);
    assert_eq!(read(backend, &taken).await.closing, None);
    assert_eq!(store.entry_get(&late.account, &end.receipt_id).await.unwrap(), None);

    let expired = expiry(&taken);
    assert_eq!(store.round_close(&taken, &expired).await.unwrap(), RoundCloseOutcome::Closed);
    assert_eq!(store.round_close(&late, &end).await.unwrap(), RoundCloseOutcome::Lost);
    let kept = read(backend, &taken).await.closing.unwrap();
    assert_eq!(kept.ending, RoundEnding::Expired);
    assert_eq!(kept, expired);
}

pub(crate) async fn a_takeover_takes_no_more_than_requested(backend: &Backend) {
    let alice = account("alice");
    for number in 0..5 {
        backend.store.round_open(&abandoned(&alice, number), None).await.unwrap();
    }
    let two = RoundTakeover { limit: 2, ..claim("second", TakeoverScope::LeaseOver) };
    let mut sizes = Vec::new();
    for _ in 0..4 {
        sizes.push(backend.store.round_take_over(&two).await.unwrap().len());
    }
    assert_eq!(sizes, [2, 2, 1, 0]);
}

pub(crate) async fn an_unreadable_round_blocks_no_other(backend: &Backend) {
    let alice = account("alice");
    for number in 0..4 {
        backend.store.round_open(&abandoned(&alice, number), None).await.unwrap();
    }
    let broken = [0, 1, 2].map(|number| abandoned(&alice, number).id);
    for id in &broken {
        let sql = format!("update rounds set seats = '{{' where id = '{id}'");
        backend.tamper(&sql).await.unwrap();
    }
    // More unreadable rounds than the takeover asks for, before the readable one.
    let two = RoundTakeover { limit: 2, ..claim("second", TakeoverScope::LeaseOver) };
    let claimed = backend.store.round_take_over(&two).await.unwrap();
    let ids: Vec<_> = claimed.into_iter().map(|round| round.id).collect();
    assert_eq!(ids, [abandoned(&alice, 3).id]);
    assert_eq!(backend.store.round_take_over(&two).await.unwrap(), []);
    // They stay open, to be repaired.
    backend.tamper("update rounds set seats = '[]'").await.unwrap();
    for id in &broken {
        let round = backend.store.round_get(&alice, id).await.unwrap().unwrap();
        assert_eq!(round.closing, None);
    }
}

pub(crate) async fn two_nodes_never_take_over_the_same_round(backend: &Backend) {
    const ROUNDS: u32 = 40;
    let second = backend.second().await;
    let alice = account("alice");
    for number in 0..ROUNDS {
        backend.store.round_open(&abandoned(&alice, number), None).await.unwrap();
    }
    let claims = (0..10).map(async |turn| {
        let (store, name) =
            if turn % 2 == 0 { (&backend.store, "second") } else { (&second, "third") };
        let few = RoundTakeover { limit: 5, ..claim(name, TakeoverScope::LeaseOver) };
        store.round_take_over(&few).await.unwrap()
    });
    let mut claimed: Vec<OpenRound> = join_all(claims).await.into_iter().flatten().collect();
    // A takeover skips rounds that another transaction holds, so some may be left.
    claimed
        .extend(second.round_take_over(&claim("third", TakeoverScope::LeaseOver)).await.unwrap());
    let distinct: BTreeSet<_> = claimed.iter().map(|round| &round.id).collect();
    assert_eq!(claimed.len(), distinct.len());
    assert_eq!(claimed.len(), usize::try_from(ROUNDS).unwrap());
    second.close().await;
}
