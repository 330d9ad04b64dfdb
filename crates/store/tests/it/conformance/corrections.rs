//! Corrections of the cost of rounds, which are made once.

use jurat_core::{
    account::ledger::Balance,
    idempotency::SavedAnswer,
    round::{OpenRound, RoundEnding},
};
use jurat_store::{
    Behalf, CostCorrection, IdempotencyAnswer, IdempotencyRecord, RoundOpening, Spending, Store,
    WriteOutcome,
};

use super::ledger::{balance, judged, lines, member, sound, spending};
use crate::{
    backend::Backend,
    samples::{at, close_round, costing, holding, open_round, round},
};

pub(crate) async fn a_correction_under_one_key_is_made_once(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 100).await;
    let open = holding(round(&alice, 1), 40, true);
    open_round(store, &open).await;
    close_round(store, &open, &costing(&open, RoundEnding::Closed, 30)).await;
    let moved = |moved: &i64| SavedAnswer { tag: 200, text: moved.to_string() };
    let once = IdempotencyRecord {
        account: alice.clone(),
        key: "\u{b7}correction".to_owned(),
        operation: "correction".to_owned(),
        request_digest: String::new(),
        answer: IdempotencyAnswer::of(moved),
        at: at(9_000),
    };
    let behalf = Behalf::Account(alice.clone());
    let correct = async |micros| {
        let correction = correction(&open, micros);
        store.judge_calls().correct_cost(&behalf, &correction, Some(&once)).await.unwrap()
    };
    assert_eq!(correct(-12).await, WriteOutcome::Done(-12));
    assert_eq!(correct(-12).await, WriteOutcome::Repeated);
    assert_eq!(correct(7).await, WriteOutcome::Repeated);
    assert_eq!(balance(store, &alice).await.spent, 18);
    let before =
        store.idempotency().get(&Behalf::from(&alice), &alice, &once.key).await.unwrap().unwrap();
    assert_eq!(before.answer.unwrap().text, "-12");
    sound(store).await;
}

fn correction(open: &OpenRound, micros: i64) -> CostCorrection {
    CostCorrection {
        account: open.account.clone(),
        round: open.id.clone(),
        run: None,
        micros,
        is_limited: true,
        day_cap_micros: open.hold.and_then(|hold| hold.day_cap_micros),
        opened_at: open.opened_at,
        at: at(9_000),
    }
}

async fn corrected(store: &Store, open: &OpenRound, micros: i64) -> i64 {
    let behalf = Behalf::Account(open.account.clone());
    let done = store.judge_calls().correct_cost(&behalf, &correction(open, micros), None).await;
    let WriteOutcome::Done(moved) = done.unwrap() else { panic!("it was done before") };
    moved
}

pub(crate) async fn a_late_report_of_a_provider_corrects_the_cost(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 100).await;
    let open = judged(round(&alice, 1), 10, 90, 4);
    open_round(store, &open).await;
    close_round(store, &open, &costing(&open, RoundEnding::Closed, 30)).await;
    assert_eq!(corrected(store, &open, -12).await, -12);
    let after = Balance { granted: 100, available: 82, held: 0, spent: 18 };
    assert_eq!(balance(store, &alice).await, after);
    let spent = spending(store, &alice, at(0)).await;
    assert_eq!(spent, Spending { micros: 18, rounds: 1 });
    sound(store).await;
    assert_eq!(corrected(store, &open, 7).await, 7);
    assert_eq!(balance(store, &alice).await.spent, 25);
    // Neither more than is left is taken, nor what a call in progress may still cost.
    let next = judged(round(&alice, 2), 10, 70, 4);
    assert_eq!(open_round(store, &next).await, WriteOutcome::Done(RoundOpening::Whole));
    assert_eq!(balance(store, &alice).await.available, 65);
    assert_eq!(corrected(store, &open, 50).await, 5);
    assert_eq!(corrected(store, &open, 50).await, 0);
    sound(store).await;
    close_round(store, &next, &costing(&next, RoundEnding::Closed, 70)).await;
    let after = Balance { granted: 100, available: 0, held: 0, spent: 100 };
    assert_eq!(balance(store, &alice).await, after);
    let line = &lines(store, &alice).await[3];
    assert_eq!(line.round.as_ref(), Some(&open.id));
    assert_eq!(line.note.as_deref(), Some("what the provider reported afterwards"));
    sound(store).await;
}
