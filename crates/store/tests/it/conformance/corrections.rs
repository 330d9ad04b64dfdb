//! Corrections of the cost of rounds happen once.

use std::sync::Arc;

use jurat_core::{idempotency::SavedAnswer, round::RoundEnding};
use jurat_store::{Behalf, IdempotencyAnswer, IdempotencyRecord, WriteOutcome};

use super::ledger::{balance, correction, member, sound};
use crate::{
    backend::Backend,
    samples::{at, costing, holding, round},
};

pub(crate) async fn a_correction_under_one_key_is_made_once(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 100).await;
    let open = holding(round(&alice, 1), 40, true);
    store.round_open(&open, None).await.unwrap();
    store.round_close(&open, &costing(&open, RoundEnding::Closed, 30)).await.unwrap();
    let moved = |moved: &i64| SavedAnswer { status: 200, text: moved.to_string() };
    let once = IdempotencyRecord {
        account: alice.clone(),
        key: "\u{b7}correction".to_owned(),
        operation: "correction".to_owned(),
        request_digest: String::new(),
        answer: IdempotencyAnswer::OfResult(Arc::new(move |it| it.downcast_ref().map(moved))),
        at: at(9_000),
    };
    let behalf = Behalf::Account(alice.clone());
    let correct = async |micros| {
        let correction = correction(&open, micros);
        store.sharing().credit_correct(&behalf, &correction, Some(&once)).await.unwrap()
    };
    assert_eq!(correct(-12).await, WriteOutcome::Done(-12));
    assert_eq!(correct(-12).await, WriteOutcome::Repeated);
    assert_eq!(correct(7).await, WriteOutcome::Repeated);
    assert_eq!(balance(store, &alice).await.spent, 18);
    let before = store.idempotency_get(&alice, &once.key).await.unwrap().unwrap();
    assert_eq!(before.answer.unwrap().text, "-12");
    sound(store).await;
}
