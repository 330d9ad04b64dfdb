//! Judge calls are recorded before they leave, and the history predicts the next price.

use futures::future::join_all;
use jurat_core::{
    judge::{Tokens, UsageHistory, UsageSample},
    round::RoundEnding,
};
use jurat_store::{
    Behalf, JudgeCallCosts, JudgeHistoryKey, JudgmentSample, LeaseLost, TakeoverScope, WriteOutcome,
};

use super::ledger::{balance, member};
use crate::{
    backend::Backend,
    samples::{abandoned, account, at, claim, close_round, costing, holding, open_round},
};

pub(crate) async fn judge_calls_are_recorded_before_they_leave(backend: &Backend) {
    let store = &*backend.store;
    let alice = member(store, "alice", 100).await;
    let open = holding(abandoned(&alice, 1), 40, true);
    open_round(store, &open).await;
    let behalf = Behalf::Account(alice.clone());
    let sent = |token, micros: &[u64]| JudgeCallCosts {
        account: alice.clone(),
        round: open.id.clone(),
        lease_token: token,
        micros: micros.to_vec(),
    };
    let judge_calls = store.judge_calls();
    let noted = async |sent: JudgeCallCosts| judge_calls.note(&behalf, &sent, None).await.unwrap();
    let read = async || judge_calls.sent(&behalf, &alice, &open.id).await.unwrap();
    assert_eq!(read().await, [] as [u64; 0]);
    assert_eq!(noted(sent(open.lease_token, &[5])).await, WriteOutcome::Done(()));
    assert_eq!(noted(sent(open.lease_token, &[5, 9])).await, WriteOutcome::Done(()));
    // Whoever takes the round over reads it, and its old node sends nothing more.
    let taken = store
        .rounds()
        .take_over(&Behalf::Platform, &claim("second", TakeoverScope::LeaseOver))
        .await
        .unwrap()
        .remove(0);
    assert_eq!(noted(sent(open.lease_token, &[50])).await, WriteOutcome::Refused(LeaseLost));
    assert_eq!(read().await, [5, 9]);
    close_round(store, &taken, &costing(&taken, RoundEnding::Expired, 14)).await;
    assert_eq!(noted(sent(taken.lease_token, &[50])).await, WriteOutcome::Refused(LeaseLost));
    assert_eq!(balance(store, &alice).await.spent, 14);
    let bob = Behalf::Account(account("bob"));
    let none = judge_calls.sent(&bob, &account("bob"), &open.id).await.unwrap();
    assert_eq!(none, [] as [u64; 0]);
}

pub(crate) async fn a_usage_history_belongs_to_one_account_and_keeps_the_latest(backend: &Backend) {
    let judge_calls = backend.store.judge_calls();
    let of = |name: &str| JudgeHistoryKey {
        account: account(name),
        verifier_id: "system:safety-block".to_owned(),
        model: "p1/m".to_owned(),
    };
    let history = async |name: &str| {
        let behalf = Behalf::Account(account(name));
        judge_calls.history(&behalf, &of(name)).await.unwrap()
    };
    let sample =
        |output| UsageSample { size: 100, tokens: Tokens { input: 30, output }, requests: 1 };
    let learn = async |output| {
        let used = JudgmentSample { of: of("alice"), sample: sample(output), at: at(5) };
        let behalf = Behalf::Account(account("alice"));
        judge_calls.add_sample(&behalf, &used).await.unwrap();
    };
    assert_eq!(history("alice").await, UsageHistory::default());
    learn(1).await;
    assert_eq!(history("alice").await, UsageHistory::new([sample(1)]));
    join_all((0..100).map(|_| learn(7))).await;
    assert_eq!(history("alice").await, UsageHistory::new(vec![sample(7); 100]));
    assert_eq!(history("bob").await, UsageHistory::default());
}
