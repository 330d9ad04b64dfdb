//! Abandoned rounds.

use std::collections::BTreeSet;

use futures::future::join_all;
use jurat_core::round::{OpenRound, RoundEnding};
use jurat_store::{Behalf, RoundCharge, RoundLost, RoundTakeover, TakeoverScope, WriteOutcome};

use super::rounds::read;
use crate::{
    backend::Backend,
    samples::{
        abandoned, account, claim, close_round, closing, expiry, find_round, node, open_round,
        round,
    },
};

pub(crate) async fn a_round_with_an_expired_lease_is_taken_over_unchanged(backend: &Backend) {
    let left = abandoned(&account("alice"), 1);
    open_round(&backend.store, &left).await;
    let claimed = backend
        .store
        .rounds()
        .take_over(&Behalf::Platform, &claim("second", TakeoverScope::LeaseOver))
        .await
        .unwrap();
    // Where the new lease ends is measured by the clock of the database.
    let lease_until = claimed[0].lease_until;
    let taken = OpenRound { node: node("second"), lease_token: 7, lease_until, ..left };
    assert_eq!(claimed, [taken]);
    // It has a new lease now.
    let again = backend
        .store
        .rounds()
        .take_over(&Behalf::Platform, &claim("third", TakeoverScope::LeaseOver))
        .await
        .unwrap();
    assert_eq!(again, []);
}

pub(crate) async fn a_round_with_a_valid_lease_is_not_taken_over(backend: &Backend) {
    let open = round(&account("alice"), 1);
    open_round(&backend.store, &open).await;
    let claimed = backend
        .store
        .rounds()
        .take_over(&Behalf::Platform, &claim("second", TakeoverScope::LeaseOver))
        .await
        .unwrap();
    assert_eq!(claimed, []);
    let end = closing(&open);
    assert_eq!(
        close_round(&backend.store, &open, &end).await,
        WriteOutcome::Done(RoundCharge::Own)
    );
}

pub(crate) async fn an_ended_round_is_never_taken_over(backend: &Backend) {
    let open = abandoned(&account("alice"), 1);
    open_round(&backend.store, &open).await;
    close_round(&backend.store, &open, &closing(&open)).await;
    for orphans in [TakeoverScope::LeaseOver, TakeoverScope::All] {
        let claimed = backend
            .store
            .rounds()
            .take_over(&Behalf::Platform, &claim("second", orphans))
            .await
            .unwrap();
        assert_eq!(claimed, []);
    }
}

pub(crate) async fn a_late_close_after_a_takeover_is_lost_and_changes_nothing(backend: &Backend) {
    let store = &backend.store;
    let late = abandoned(&account("alice"), 1);
    open_round(store, &late).await;
    let taken = store
        .rounds()
        .take_over(&Behalf::Platform, &claim("second", TakeoverScope::LeaseOver))
        .await
        .unwrap()
        .remove(0);
    let end = closing(&late);
    assert_eq!(close_round(store, &late, &end).await, WriteOutcome::Refused(RoundLost));
    assert_eq!(read(backend, &taken).await.open, taken);
    assert_eq!(read(backend, &taken).await.closing, None);
    assert_eq!(
        store
            .rounds()
            .entry(&Behalf::from(&late.account), &late.account, &end.receipt_id)
            .await
            .unwrap(),
        None
    );

    let expired = expiry(&taken);
    assert_eq!(close_round(store, &taken, &expired).await, WriteOutcome::Done(RoundCharge::Own));
    assert_eq!(close_round(store, &late, &end).await, WriteOutcome::Refused(RoundLost));
    let kept = read(backend, &taken).await.closing.unwrap();
    assert_eq!(kept.ending, RoundEnding::Expired);
    assert_eq!(kept, expired);
}

pub(crate) async fn a_takeover_takes_no_more_than_requested(backend: &Backend) {
    let alice = account("alice");
    for number in 0..5 {
        backend
            .store
            .rounds()
            .open(
                &Behalf::from(&abandoned(&alice, number).account),
                &abandoned(&alice, number),
                None,
            )
            .await
            .unwrap();
    }
    let two = RoundTakeover { limit: 2, ..claim("second", TakeoverScope::LeaseOver) };
    let mut sizes = Vec::new();
    for _ in 0..4 {
        sizes.push(backend.store.rounds().take_over(&Behalf::Platform, &two).await.unwrap().len());
    }
    assert_eq!(sizes, [2, 2, 1, 0]);
}

pub(crate) async fn an_unreadable_round_blocks_no_other(backend: &Backend) {
    let alice = account("alice");
    for number in 0..4 {
        backend
            .store
            .rounds()
            .open(
                &Behalf::from(&abandoned(&alice, number).account),
                &abandoned(&alice, number),
                None,
            )
            .await
            .unwrap();
    }
    let broken = [0, 1, 2].map(|number| abandoned(&alice, number).id);
    for id in &broken {
        let sql = format!("update rounds set seats = '{{' where id = '{id}'");
        backend.tamper(&sql).await.unwrap();
    }
    // More unreadable rounds than the takeover asks for, before the readable one.
    let two = RoundTakeover { limit: 2, ..claim("second", TakeoverScope::LeaseOver) };
    let claimed = backend.store.rounds().take_over(&Behalf::Platform, &two).await.unwrap();
    let ids: Vec<_> = claimed.into_iter().map(|round| round.id).collect();
    assert_eq!(ids, [abandoned(&alice, 3).id]);
    assert_eq!(backend.store.rounds().take_over(&Behalf::Platform, &two).await.unwrap(), []);
    // They stay open for whoever repairs them.
    backend.tamper("update rounds set seats = '[]'").await.unwrap();
    for id in &broken {
        let round = find_round(&backend.store, &alice, id).await.unwrap();
        assert_eq!(round.closing, None);
    }
}

pub(crate) async fn two_nodes_never_take_over_the_same_round(backend: &Backend) {
    const ROUNDS: u32 = 40;
    let second = backend.second().await;
    let alice = account("alice");
    for number in 0..ROUNDS {
        backend
            .store
            .rounds()
            .open(
                &Behalf::from(&abandoned(&alice, number).account),
                &abandoned(&alice, number),
                None,
            )
            .await
            .unwrap();
    }
    let claims = (0..10).map(async |turn| {
        let (store, name) =
            if turn % 2 == 0 { (&backend.store, "second") } else { (&second, "third") };
        let few = RoundTakeover { limit: 5, ..claim(name, TakeoverScope::LeaseOver) };
        store.rounds().take_over(&Behalf::Platform, &few).await.unwrap()
    });
    let mut claimed: Vec<OpenRound> = join_all(claims).await.into_iter().flatten().collect();
    // A claim passes over rounds that another one holds at that moment, so some may be left.
    claimed.extend(
        second
            .rounds()
            .take_over(&Behalf::Platform, &claim("third", TakeoverScope::LeaseOver))
            .await
            .unwrap(),
    );
    let distinct: BTreeSet<_> = claimed.iter().map(|round| &round.id).collect();
    assert_eq!(claimed.len(), distinct.len());
    assert_eq!(claimed.len(), usize::try_from(ROUNDS).unwrap());
    second.close().await;
}
