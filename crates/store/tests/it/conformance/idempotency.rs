//! Writes under idempotency keys, and cancelled rounds.

use std::sync::Arc;

use jurat_core::{id::AccountId, idempotency::SavedAnswer};
use jurat_store::{
    ExecutorAddOutcome, IdempotencyAnswer, IdempotencyRecord, RemoveOutcome, RoundOpenOutcome,
    SessionAddOutcome,
};

use super::rounds::read;
use crate::{
    backend::Backend,
    samples::{account, at, closing, executor, newest, node, round, session},
};

fn saved(text: &str) -> SavedAnswer {
    SavedAnswer { status: 201, text: text.to_owned() }
}

fn once(account: &AccountId, key: &str, answer: Option<&str>) -> IdempotencyRecord {
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
    let added = store.executor_add(&executor("e1"), Some(&lane), Some(&add)).await.unwrap();
    assert_eq!(added, ExecutorAddOutcome::Added);
    let again = store.executor_add(&executor("e1"), Some(&lane), Some(&add)).await.unwrap();
    assert_eq!(again, ExecutorAddOutcome::Repeated, "not `ExecutorExists`");

    let lane = once(&alice, "lane", Some("lane"));
    let second = session("s2", "e1");
    assert_eq!(store.session_add(&second, Some(&lane)).await.unwrap(), SessionAddOutcome::Added);
    assert_eq!(store.session_add(&second, Some(&lane)).await.unwrap(), SessionAddOutcome::Repeated);

    let gone = once(&alice, "gone", Some("gone"));
    let removed = store.session_remove("s2", Some(&gone)).await.unwrap();
    assert_eq!(removed, RemoveOutcome::Removed(vec!["s2".to_owned()]));
    assert_eq!(store.session_remove("s2", Some(&gone)).await.unwrap(), RemoveOutcome::Repeated);

    let all_gone = once(&alice, "all gone", Some("all gone"));
    let removed = store.executor_remove("e1", Some(&all_gone)).await.unwrap();
    assert_eq!(removed, RemoveOutcome::Removed(vec!["s1".to_owned()]));
    assert_eq!(
        store.executor_remove("e1", Some(&all_gone)).await.unwrap(),
        RemoveOutcome::Repeated
    );

    let found = store.idempotency_get(&alice, "add").await.unwrap().unwrap();
    assert_eq!((found.operation, found.request_digest), (add.operation, add.request_digest));
    assert_eq!((found.answer, found.round, found.at), (Some(saved("added")), None, at(5)));
}

pub(crate) async fn a_write_that_did_not_happen_leaves_its_key_free(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    let key = once(&alice, "key", Some("done"));
    let lane = session("s1", "e1");
    assert_eq!(
        store.session_add(&lane, Some(&key)).await.unwrap(),
        SessionAddOutcome::ExecutorUnknown
    );
    assert_eq!(store.session_remove("s1", Some(&key)).await.unwrap(), RemoveOutcome::Unknown);
    assert_eq!(store.executor_remove("e1", Some(&key)).await.unwrap(), RemoveOutcome::Unknown);
    assert_eq!(store.idempotency_get(&alice, "key").await.unwrap(), None);
    store.executor_add(&executor("e1"), None, None).await.unwrap();
    let taken = store.executor_add(&executor("e1"), None, Some(&key)).await.unwrap();
    assert_eq!(taken, ExecutorAddOutcome::ExecutorExists);
    assert_eq!(store.session_add(&lane, Some(&key)).await.unwrap(), SessionAddOutcome::Added);
    assert!(store.idempotency_get(&alice, "key").await.unwrap().is_some());
}

pub(crate) async fn an_abandoned_round_leaves_its_key_to_another(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    let (left, next, late) = (round(&alice, 1), round(&alice, 2), round(&alice, 3));
    let first = once(&alice, "key", None);
    assert_eq!(store.round_open(&left, Some(&first)).await.unwrap(), RoundOpenOutcome::Opened);
    let instead = IdempotencyRecord {
        answer: IdempotencyAnswer::RoundInsteadOf(left.id.clone()),
        ..first.clone()
    };
    assert_eq!(store.round_open(&next, Some(&instead)).await.unwrap(), RoundOpenOutcome::Opened);
    let noted = async || store.idempotency_get(&alice, "key").await.unwrap().unwrap();
    assert_eq!(noted().await.round, Some(next.id.clone()));
    // A later request finds the replacement.
    assert_eq!(store.round_open(&late, Some(&instead)).await.unwrap(), RoundOpenOutcome::Repeated);
    assert_eq!(store.round_open(&late, Some(&first)).await.unwrap(), RoundOpenOutcome::Repeated);
    assert_eq!(noted().await.round, Some(next.id));
    assert_eq!(store.round_get(&alice, &late.id).await.unwrap(), None);
    let unknown = IdempotencyRecord { key: "other".to_owned(), ..instead };
    assert_eq!(store.round_open(&late, Some(&unknown)).await.unwrap(), RoundOpenOutcome::Repeated);
}

pub(crate) async fn a_stored_reply_can_be_completed(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    let key = once(&alice, "key", Some("not probed yet"));
    store.executor_add(&executor("e1"), None, Some(&key)).await.unwrap();
    let answer = SavedAnswer { status: 200, text: "probed, {\"odd\": \"text\"}".to_owned() };
    store.idempotency_answer(&account("bob"), "key", &answer).await.unwrap();
    assert_eq!(
        store.idempotency_get(&alice, "key").await.unwrap().unwrap().answer,
        Some(saved("not probed yet"))
    );
    store.idempotency_answer(&alice, "key", &answer).await.unwrap();
    assert_eq!(store.idempotency_get(&alice, "key").await.unwrap().unwrap().answer, Some(answer));
}

pub(crate) async fn a_later_reply_is_stored_with_the_write(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    store.executor_add(&executor("e1"), Some(&session("s1", "e1")), None).await.unwrap();
    let of_sessions = |sessions: &[String]| saved(&sessions.join(" "));
    let answer = IdempotencyAnswer::OfRemoval(Arc::new(of_sessions));
    let remove = IdempotencyRecord { answer, ..once(&alice, "remove", None) };
    store.executor_remove("e1", Some(&remove)).await.unwrap();
    let found = store.idempotency_get(&alice, "remove").await.unwrap().unwrap();
    assert_eq!(found.answer, Some(saved("s1")));
}

pub(crate) async fn a_round_under_a_key_is_opened_once(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    let (first, second) = (round(&alice, 1), round(&alice, 2));
    let key = once(&alice, "key", None);
    assert_eq!(store.round_open(&first, Some(&key)).await.unwrap(), RoundOpenOutcome::Opened);
    assert_eq!(store.round_open(&second, Some(&key)).await.unwrap(), RoundOpenOutcome::Repeated);
    assert_eq!(store.round_get(&alice, &second.id).await.unwrap(), None);
    let found = store.idempotency_get(&alice, "key").await.unwrap().unwrap();
    assert_eq!((found.round, found.answer), (Some(first.id.clone()), None));
    assert_eq!(read(backend, &first).await.open, first);
}

pub(crate) async fn two_concurrent_rounds_under_one_key_open_once(backend: &Backend) {
    let alice = account("alice");
    let other = backend.second().await;
    for turn in 0..20 {
        let (left, right) = (round(&alice, 2 * turn + 1), round(&alice, 2 * turn + 2));
        let key = once(&alice, &format!("key {turn}"), None);
        let (left, right) = tokio::join!(
            backend.store.round_open(&left, Some(&key)),
            other.round_open(&right, Some(&key))
        );
        let mut opened = [left.unwrap(), right.unwrap()];
        opened.sort_by_key(|opened| *opened == RoundOpenOutcome::Repeated);
        assert_eq!(opened, [RoundOpenOutcome::Opened, RoundOpenOutcome::Repeated]);
    }
    assert_eq!(backend.store.round_list(&alice, &newest(100)).await.unwrap().len(), 20);
    other.close().await;
}

pub(crate) async fn a_key_belongs_to_one_account(backend: &Backend) {
    let store = &backend.store;
    for name in ["alice", "bob"] {
        let account = account(name);
        let (open, key) = (round(&account, 1), once(&account, "key", None));
        assert_eq!(store.round_open(&open, Some(&key)).await.unwrap(), RoundOpenOutcome::Opened);
    }
    assert_eq!(store.idempotency_get(&account("carol"), "key").await.unwrap(), None);
}

pub(crate) async fn a_cancelled_round_is_found_by_its_node(backend: &Backend) {
    let (store, alice) = (&backend.store, account("alice"));
    let (open, ended) = (round(&alice, 1), round(&alice, 2));
    for round in [&open, &ended] {
        store.round_open(round, None).await.unwrap();
    }
    store.round_close(&ended, &closing(&ended)).await.unwrap();
    assert_eq!(store.rounds_cancelled(&open.node).await.unwrap(), []);
    assert!(store.round_cancel(&alice, &open.id, at(9)).await.unwrap());
    assert!(!store.round_cancel(&alice, &ended.id, at(9)).await.unwrap());
    assert!(!store.round_cancel(&account("bob"), &open.id, at(9)).await.unwrap());
    let found = store.rounds_cancelled(&open.node).await.unwrap();
    assert_eq!(found, [(alice, open.id.clone())]);
    assert_eq!(store.rounds_cancelled(&node("another")).await.unwrap(), []);
    store.round_close(&open, &closing(&open)).await.unwrap();
    assert_eq!(store.rounds_cancelled(&open.node).await.unwrap(), []);
}
