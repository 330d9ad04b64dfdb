//! What accounts store, what is kept beside decisions, and what goes when it is old.

use jurat_core::{
    id::AccountId,
    round::{Asked, Kept, OpenRound},
    time::Timestamp,
};
use jurat_store::{
    Behalf, NotErased, Once, OnceAnswer, PruneOrder, Pruned, RoundErasing, RoundKey, RoundKeys,
    SavedAnswer, TaskEventsAsked, Written,
};

use super::{
    tasks::{after, append, new_task, submitted},
    workflows::behalf,
};
use crate::{
    backend::Backend,
    samples::{account, at, closing, round},
};

const DAY_MS: i64 = 86_400_000;

fn asked(open: OpenRound, text: &str) -> OpenRound {
    let request = Some(format!("{{\"claim\":\"{text}\"}}"));
    let asked = Asked { line: "what is asked".to_owned(), request };
    OpenRound { kept: Kept { asked: Some(asked), erased_at: None }, ..open }
}

async fn ended(backend: &Backend, open: &OpenRound) {
    backend.store.round_open(open, None).await.unwrap();
    backend.store.round_close(open, &closing(open)).await.unwrap();
}

async fn bytes(backend: &Backend, account: &AccountId) -> u64 {
    backend.store.storage().storage_bytes(&behalf(account), account).await.unwrap().bytes
}

async fn kept(backend: &Backend, of: &OpenRound, by: &AccountId) -> Kept {
    let key = RoundKey { account: of.account.clone(), round: of.id.clone() };
    backend.store.storage().round_kept(&behalf(by), &key).await.unwrap()
}

fn order(account: &AccountId, before: Timestamp) -> PruneOrder {
    PruneOrder {
        account: account.clone(),
        at: at(100 * DAY_MS),
        answers_before: before,
        texts_before: before,
        events_before: before,
        agent_events_before: before,
        limit: 100,
    }
}

async fn prune(backend: &Backend, order: &PruneOrder) -> Pruned {
    let storage = backend.store.storage();
    match storage.prune(&behalf(&order.account), order, None).await.unwrap() {
        Written::Done(pruned) => pruned,
        other => panic!("{other:?}"),
    }
}

async fn erase(backend: &Backend, of: &OpenRound, millis: i64) -> Written<Timestamp, NotErased> {
    let (account, round) = (of.account.clone(), of.id.clone());
    let erasing = RoundErasing { account, round, at: at(millis) };
    backend.store.storage().round_erase(&behalf(&of.account), &erasing, None).await.unwrap()
}

pub(crate) async fn what_was_asked_is_kept_beside_its_round(backend: &Backend) {
    let alice = account("alice");
    let (first, second) = (asked(round(&alice, 1), "é\\u0000"), round(&alice, 2));
    ended(backend, &first).await;
    ended(backend, &second).await;
    assert_eq!(kept(backend, &first, &alice).await, first.kept);
    assert_eq!(kept(backend, &second, &alice).await, Kept::default());
    let rounds = vec![first.id.clone(), second.id.clone()];
    let of = RoundKeys { account: alice.clone(), rounds };
    let lines = backend.store.storage().round_lines(&behalf(&alice), &of).await.unwrap();
    assert_eq!(lines, [(first.id.clone(), "what is asked".to_owned())]);
    // Another account finds nothing, whatever it names.
    let bob = account("bob");
    let of = RoundKeys { account: bob.clone(), rounds: vec![first.id.clone()] };
    assert_eq!(backend.store.storage().round_lines(&behalf(&bob), &of).await.unwrap(), []);
    let stolen = OpenRound { account: bob.clone(), ..first };
    assert_eq!(kept(backend, &stolen, &bob).await, Kept::default());
}

pub(crate) async fn what_was_asked_and_said_is_erased_and_the_decision_stays(backend: &Backend) {
    let alice = account("alice");
    let open = asked(round(&alice, 1), "a secret");
    backend.store.round_open(&open, None).await.unwrap();
    assert_eq!(erase(backend, &open, 5_000).await, Written::Refused(NotErased::Open));
    let end = closing(&open);
    backend.store.round_close(&open, &end).await.unwrap();
    let unknown = round(&alice, 9);
    assert_eq!(erase(backend, &unknown, 5_000).await, Written::Refused(NotErased::Unknown));
    let stolen = OpenRound { account: account("bob"), ..open.clone() };
    assert_eq!(erase(backend, &stolen, 5_000).await, Written::Refused(NotErased::Unknown));

    assert_eq!(erase(backend, &open, 6_000).await, Written::Done(at(6_000)));
    assert_eq!(erase(backend, &open, 7_000).await, Written::Done(at(6_000)), "once is enough");
    assert_eq!(
        kept(backend, &open, &alice).await,
        Kept { asked: None, erased_at: Some(at(6_000)) }
    );
    let read = backend.store.round_get(&alice, &open.id).await.unwrap().unwrap().closing.unwrap();
    assert_eq!((read.entry, read.receipt_id), (end.entry, end.receipt_id));
    assert_eq!(read.consensus.output, None);
    assert_eq!(read.consensus.verdict, end.consensus.verdict);
    for (read, was) in read.replicas.iter().zip(&end.replicas) {
        assert_eq!(read.answer.label(), was.answer.label());
        let said = read.answer.said();
        assert!(said.is_none_or(|said| said.output.is_none() && said.notes.is_empty()));
    }
}

pub(crate) async fn what_an_account_stores_is_counted(backend: &Backend) {
    let (alice, bob) = (account("alice"), account("bob"));
    assert_eq!(bytes(backend, &alice).await, 0);
    let small = asked(round(&alice, 1), "x");
    ended(backend, &small).await;
    let before = bytes(backend, &alice).await;
    assert!(0 < before);
    let large = asked(round(&alice, 2), &"x".repeat(100_000));
    ended(backend, &large).await;
    let after = bytes(backend, &alice).await;
    assert_eq!(after - before, before + 99_999, "as the first, and what it is longer");
    assert_eq!(bytes(backend, &bob).await, 0);
    erase(backend, &large, 9_000).await;
    let erased = bytes(backend, &alice).await;
    assert!(erased < before * 2, "{erased}");
    // Summed up it is as much.
    let summed = backend.store.storage().storage_sum(&behalf(&alice), &alice, None).await.unwrap();
    assert_eq!(summed, Written::Done(()));
    let stored = backend.store.storage().storage_bytes(&behalf(&alice), &alice).await.unwrap();
    assert_eq!((stored.bytes, stored.parts), (erased, 1));
    // Notes of writes count as well.
    note(backend, &alice, "key", 1, "done").await;
    assert!(erased + 1_000 < bytes(backend, &alice).await);
}

async fn note(backend: &Backend, account: &AccountId, key: &str, day: i64, operation: &str) {
    let once = Once {
        account: account.clone(),
        key: key.to_owned(),
        operation: operation.to_owned(),
        request_digest: "d".to_owned(),
        answer: OnceAnswer::Known(SavedAnswer { status: 201, text: "x".repeat(1_000) }),
        at: at(day * DAY_MS),
    };
    let executor = crate::samples::executor(&format!("e-{key}"));
    backend.store.executor_add(&executor, None, Some(&once)).await.unwrap();
}

pub(crate) async fn what_is_old_goes_and_what_is_young_stays(backend: &Backend) {
    let (alice, bob) = (account("alice"), account("bob"));
    let day = |number: u32| number * 86_400;
    let old = asked(round(&alice, day(1)), "old");
    let young = asked(round(&alice, day(50)), "young");
    let his = asked(round(&bob, day(1)), "his");
    for open in [&old, &young, &his] {
        ended(backend, open).await;
    }
    note(backend, &alice, "old", 1, "key_create").await;
    note(backend, &alice, "young", 50, "key_create").await;
    note(backend, &alice, "step", 1, "task_step").await;
    // The note of a round that has not ended keeps it from being begun twice.
    let open = round(&alice, day(2));
    let once = Once {
        account: alice.clone(),
        key: "open".to_owned(),
        operation: "validate".to_owned(),
        request_digest: "d".to_owned(),
        answer: OnceAnswer::Round,
        at: at(DAY_MS),
    };
    backend.store.round_open(&open, Some(&once)).await.unwrap();

    let order = order(&alice, at(30 * DAY_MS));
    let expected = Pruned { answers: 1, rounds: 1, ..Pruned::default() };
    let storage = backend.store.storage();
    assert_eq!(storage.prunable(&behalf(&alice), &order).await.unwrap(), expected);
    assert_eq!(prune(backend, &order).await, expected);
    assert_eq!(prune(backend, &order).await, Pruned::default(), "there is no more");

    assert_eq!(kept(backend, &old, &alice).await.asked, None);
    assert_eq!(kept(backend, &young, &alice).await, young.kept);
    assert_eq!(kept(backend, &his, &bob).await, his.kept);
    assert!(backend.store.round_get(&alice, &old.id).await.unwrap().unwrap().closing.is_some());
    for (key, is_there) in [("old", false), ("young", true), ("step", true), ("open", true)] {
        let found = backend.store.once_get(&alice, key).await.unwrap();
        assert_eq!(found.is_some(), is_there, "{key}");
    }
}

pub(crate) async fn events_go_with_tasks_that_ended_long_ago(backend: &Backend) {
    let alice = account("alice");
    let store = &*backend.store;
    let ended = submitted(store, &new_task(&alice, "ended", 0)).await;
    let failed = jurat_core::task::Event::Cancelled { reason: "x".to_owned() };
    let end = after(&ended, vec![failed], 10);
    assert_eq!(append(store, &end).await, Written::Done(()));
    submitted(store, &new_task(&alice, "open", 0)).await;
    // Nobody removes events otherwise.
    assert!(backend.tamper("delete from task_events").await.is_err());

    let pruned = prune(backend, &order(&alice, at(30 * DAY_MS))).await;
    assert_eq!(pruned, Pruned { tasks: 1, ..Pruned::default() });
    for (id, count) in [("ended", 0), ("open", 1)] {
        let task = super::tasks::key(&alice, id);
        let asked = TaskEventsAsked { task, after: 0, limit: 10 };
        let found = store.tasks().task_events(&behalf(&alice), &asked).await.unwrap();
        assert_eq!(found.len(), count, "{id}");
    }
    assert!(backend.tamper("delete from task_events").await.is_err());
}

pub(crate) async fn accounts_with_something_stored_are_found_one_after_another(backend: &Backend) {
    for name in ["bob", "alice"] {
        ended(backend, &round(&account(name), 1)).await;
    }
    let storage = backend.store.storage();
    let (mut after, mut found) = (String::new(), Vec::new());
    while let Some(account) = storage.storage_account(&Behalf::Platform, &after).await.unwrap() {
        after = account.to_string();
        found.push(account);
    }
    assert_eq!(found, [account("alice"), account("bob")]);
}
