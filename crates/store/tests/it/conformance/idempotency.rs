//! Writes under idempotency keys, and cancelled rounds.

use jurat_core::{id::AccountId, idempotency::SavedAnswer};
use jurat_store::{
    Behalf, ExecutorAddRefusal, IdempotencyAnswer, IdempotencyRecord, KeyRange, NotFound,
    RoundOpening, SessionAddRefusal, WriteOutcome,
};

use super::rounds::read;
use crate::{
    backend::Backend,
    samples::{
        account, at, close_round, closing, executor, find_round, newest, node, open_round, round,
        session,
    },
};

fn saved(text: &str) -> SavedAnswer {
    SavedAnswer { tag: 201, text: text.to_owned() }
}

fn once<T>(account: &AccountId, key: &str, answer: Option<&str>) -> IdempotencyRecord<T> {
    IdempotencyRecord {
        account: account.clone(),
        key: key.to_owned(),
        operation: "operation".to_owned(),
        request_digest: format!("digest of {key}"),
        answer: answer
            .map_or(IdempotencyAnswer::Round, |text| IdempotencyAnswer::Known(saved(text))),
        at: at(5),
    }
}

pub(crate) async fn a_write_under_a_key_happens_once(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    let add = once(&alice, "add", Some("added"));
    let lane = session("s1", "e1");
    let added = store
        .executors()
        .add(&Behalf::Platform, &executor("e1"), Some(&lane), Some(&add))
        .await
        .unwrap();
    assert_eq!(added, WriteOutcome::Done(()));
    let again = store
        .executors()
        .add(&Behalf::Platform, &executor("e1"), Some(&lane), Some(&add))
        .await
        .unwrap();
    assert_eq!(again, WriteOutcome::Repeated, "not `ExecutorExists`");

    let lane = once(&alice, "lane", Some("lane"));
    let second = session("s2", "e1");
    assert_eq!(
        store.sessions().add(&Behalf::Platform, &second, Some(&lane)).await.unwrap(),
        WriteOutcome::Done(())
    );
    assert_eq!(
        store.sessions().add(&Behalf::Platform, &second, Some(&lane)).await.unwrap(),
        WriteOutcome::Repeated
    );

    let gone = once(&alice, "gone", Some("gone"));
    let removed = store.sessions().remove(&Behalf::Platform, "s2", Some(&gone)).await.unwrap();
    assert_eq!(removed, WriteOutcome::Done(()));
    assert_eq!(
        store.sessions().remove(&Behalf::Platform, "s2", Some(&gone)).await.unwrap(),
        WriteOutcome::Repeated
    );

    let all_gone = once(&alice, "all gone", Some("all gone"));
    let removed = store.executors().remove(&Behalf::Platform, "e1", Some(&all_gone)).await.unwrap();
    assert_eq!(removed, WriteOutcome::Done(vec!["s1".to_owned()]));
    assert_eq!(
        store.executors().remove(&Behalf::Platform, "e1", Some(&all_gone)).await.unwrap(),
        WriteOutcome::Repeated
    );

    let found =
        store.idempotency().get(&Behalf::from(&alice), &alice, "add").await.unwrap().unwrap();
    assert_eq!((found.operation, found.request_digest), (add.operation, add.request_digest));
    assert_eq!((found.answer, found.round, found.at), (Some(saved("added")), None, at(5)));
}

pub(crate) async fn a_write_that_did_not_happen_leaves_its_key_free(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    let key = once(&alice, "key", Some("done"));
    let lane = session("s1", "e1");
    assert_eq!(
        store.sessions().add(&Behalf::Platform, &lane, Some(&key)).await.unwrap(),
        WriteOutcome::Refused(SessionAddRefusal::ExecutorUnknown)
    );
    assert_eq!(
        store.sessions().remove(&Behalf::Platform, "s1", Some(&key)).await.unwrap(),
        WriteOutcome::Refused(NotFound)
    );
    assert_eq!(
        store
            .executors()
            .remove(&Behalf::Platform, "e1", Some(&once(&alice, "key", Some("done"))))
            .await
            .unwrap(),
        WriteOutcome::Refused(NotFound)
    );
    assert_eq!(store.idempotency().get(&Behalf::from(&alice), &alice, "key").await.unwrap(), None);
    store.executors().add(&Behalf::Platform, &executor("e1"), None, None).await.unwrap();
    let taken =
        store.executors().add(&Behalf::Platform, &executor("e1"), None, Some(&key)).await.unwrap();
    assert_eq!(taken, WriteOutcome::Refused(ExecutorAddRefusal::ExecutorExists));
    assert_eq!(
        store.sessions().add(&Behalf::Platform, &lane, Some(&key)).await.unwrap(),
        WriteOutcome::Done(())
    );
    assert!(store.idempotency().get(&Behalf::from(&alice), &alice, "key").await.unwrap().is_some());
}

pub(crate) async fn an_abandoned_round_leaves_its_key_to_another(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    let (left, next, late) = (round(&alice, 1), round(&alice, 2), round(&alice, 3));
    let first = once(&alice, "key", None);
    assert_eq!(
        store.rounds().open(&Behalf::from(&left.account), &left, Some(&first)).await.unwrap(),
        WriteOutcome::Done(RoundOpening::Whole)
    );
    let instead = IdempotencyRecord {
        answer: IdempotencyAnswer::RoundInsteadOf(left.id.clone()),
        ..first.clone()
    };
    assert_eq!(
        store.rounds().open(&Behalf::from(&next.account), &next, Some(&instead)).await.unwrap(),
        WriteOutcome::Done(RoundOpening::Whole)
    );
    let noted = async || {
        store.idempotency().get(&Behalf::from(&alice), &alice, "key").await.unwrap().unwrap()
    };
    assert_eq!(noted().await.round, Some(next.id.clone()));
    // Whoever wanted the same and came later finds the one that took the place.
    assert_eq!(
        store.rounds().open(&Behalf::from(&late.account), &late, Some(&instead)).await.unwrap(),
        WriteOutcome::Repeated
    );
    assert_eq!(
        store.rounds().open(&Behalf::from(&late.account), &late, Some(&first)).await.unwrap(),
        WriteOutcome::Repeated
    );
    assert_eq!(noted().await.round, Some(next.id));
    assert_eq!(find_round(store, &alice, &late.id).await, None);
    let unknown = IdempotencyRecord { key: "other".to_owned(), ..instead };
    assert_eq!(
        store.rounds().open(&Behalf::from(&late.account), &late, Some(&unknown)).await.unwrap(),
        WriteOutcome::Repeated
    );
}

pub(crate) async fn a_stored_reply_can_be_completed(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    let key = once(&alice, "key", Some("not probed yet"));
    store.executors().add(&Behalf::Platform, &executor("e1"), None, Some(&key)).await.unwrap();
    let answer = SavedAnswer { tag: 200, text: "probed, {\"odd\": \"text\"}".to_owned() };
    store
        .idempotency()
        .set_answer(&Behalf::from(&account("bob")), &account("bob"), "key", &answer)
        .await
        .unwrap();
    assert_eq!(
        store
            .idempotency()
            .get(&Behalf::from(&alice), &alice, "key")
            .await
            .unwrap()
            .unwrap()
            .answer,
        Some(saved("not probed yet"))
    );
    store.idempotency().set_answer(&Behalf::from(&alice), &alice, "key", &answer).await.unwrap();
    assert_eq!(
        store
            .idempotency()
            .get(&Behalf::from(&alice), &alice, "key")
            .await
            .unwrap()
            .unwrap()
            .answer,
        Some(answer)
    );
}

pub(crate) async fn a_later_reply_is_stored_with_the_write(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    store
        .executors()
        .add(&Behalf::Platform, &executor("e1"), Some(&session("s1", "e1")), None)
        .await
        .unwrap();
    let of_sessions = |sessions: &Vec<String>| saved(&sessions.join(" "));
    let answer = IdempotencyAnswer::of(of_sessions);
    let remove = IdempotencyRecord { answer, ..once(&alice, "remove", None) };
    store.executors().remove(&Behalf::Platform, "e1", Some(&remove)).await.unwrap();
    let found =
        store.idempotency().get(&Behalf::from(&alice), &alice, "remove").await.unwrap().unwrap();
    assert_eq!(found.answer, Some(saved("s1")));
}

pub(crate) async fn a_round_under_a_key_is_opened_once(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    let (first, second) = (round(&alice, 1), round(&alice, 2));
    let key = once(&alice, "key", None);
    assert_eq!(
        store.rounds().open(&Behalf::from(&first.account), &first, Some(&key)).await.unwrap(),
        WriteOutcome::Done(RoundOpening::Whole)
    );
    assert_eq!(
        store.rounds().open(&Behalf::from(&second.account), &second, Some(&key)).await.unwrap(),
        WriteOutcome::Repeated
    );
    assert_eq!(find_round(store, &alice, &second.id).await, None);
    let found =
        store.idempotency().get(&Behalf::from(&alice), &alice, "key").await.unwrap().unwrap();
    assert_eq!((found.round, found.answer), (Some(first.id.clone()), None));
    assert_eq!(read(backend, &first).await.open, first);
}

pub(crate) async fn two_concurrent_rounds_under_one_key_open_once(backend: &Backend) {
    let alice = account("alice");
    let behalf = Behalf::from(&alice);
    let other = backend.second().await;
    for turn in 0..20 {
        let (left, right) = (round(&alice, 2 * turn + 1), round(&alice, 2 * turn + 2));
        let key = once(&alice, &format!("key {turn}"), None);
        let (left, right) = tokio::join!(
            backend.store.rounds().open(&behalf, &left, Some(&key)),
            other.rounds().open(&behalf, &right, Some(&key))
        );
        let mut opened = [left.unwrap(), right.unwrap()];
        opened.sort_by_key(|opened| *opened == WriteOutcome::Repeated);
        assert_eq!(opened, [WriteOutcome::Done(RoundOpening::Whole), WriteOutcome::Repeated]);
    }
    assert_eq!(
        backend
            .store
            .rounds()
            .list(&Behalf::from(&alice), &alice, &newest(100))
            .await
            .unwrap()
            .len(),
        20
    );
    other.close().await;
}

pub(crate) async fn a_key_belongs_to_one_account(backend: &Backend) {
    let store = &backend.store;
    for name in ["alice", "bob"] {
        let account = account(name);
        let (open, key) = (round(&account, 1), once(&account, "key", None));
        assert_eq!(
            store.rounds().open(&Behalf::from(&open.account), &open, Some(&key)).await.unwrap(),
            WriteOutcome::Done(RoundOpening::Whole)
        );
    }
    assert_eq!(
        store
            .idempotency()
            .get(&Behalf::from(&account("carol")), &account("carol"), "key")
            .await
            .unwrap(),
        None
    );
}

pub(crate) async fn rounds_are_found_by_a_range_of_keys(backend: &Backend) {
    let (alice, bob) = (account("alice"), account("bob"));
    for (of, number, key) in
        [(&alice, 1, "a:1:x"), (&alice, 2, "a:2:x"), (&alice, 3, "a:1:y"), (&bob, 4, "a:1:z")]
    {
        let (open, key) = (round(of, number), once(of, key, None));
        let rounds = backend.store.rounds();
        rounds.open(&Behalf::from(of), &open, Some(&key)).await.unwrap();
    }
    let found = async |of: &AccountId, limit: u32| {
        let keys = KeyRange { from: "a:1:".to_owned(), until: "a:1;".to_owned(), limit };
        backend.store.idempotency().rounds(&Behalf::from(of), of, &keys).await.unwrap()
    };
    let (first, third) = (round(&alice, 1).id, round(&alice, 3).id);
    assert_eq!(found(&alice, 10).await, [third.clone(), first]);
    assert_eq!(found(&alice, 1).await, [third]);
    assert_eq!(found(&bob, 10).await, [round(&bob, 4).id]);
}

pub(crate) async fn a_cancelled_round_is_found_by_its_node(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    let (open, ended) = (round(&alice, 1), round(&alice, 2));
    for round in [&open, &ended] {
        open_round(store, round).await;
    }
    close_round(store, &ended, &closing(&ended)).await;
    assert_eq!(store.rounds().cancelled(&Behalf::Platform, &open.node).await.unwrap(), []);
    assert!(store.rounds().cancel(&Behalf::from(&alice), &alice, &open.id, &at(9)).await.unwrap());
    assert!(
        !store.rounds().cancel(&Behalf::from(&alice), &alice, &ended.id, &at(9)).await.unwrap()
    );
    assert!(
        !store
            .rounds()
            .cancel(&Behalf::from(&account("bob")), &account("bob"), &open.id, &at(9))
            .await
            .unwrap()
    );
    let found = store.rounds().cancelled(&Behalf::Platform, &open.node).await.unwrap();
    assert_eq!(found, [(alice, open.id.clone())]);
    assert_eq!(store.rounds().cancelled(&Behalf::Platform, &node("another")).await.unwrap(), []);
    close_round(store, &open, &closing(&open)).await;
    assert_eq!(store.rounds().cancelled(&Behalf::Platform, &open.node).await.unwrap(), []);
}
