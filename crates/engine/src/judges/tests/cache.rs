//! Cached verdicts are reused for the same question of the same account.

use std::{sync::Arc, time::Duration};

use jurat_core::{
    id::AccountId,
    judge::JudgeVerdict,
    round::replica::{FailureCode, ReplicaFailure},
    time::Timestamp,
};
use jurat_store::{Behalf, CachedVerdict, VerdictPruning};
use jurat_testkit::fake_provider::{FakeProvider, ProviderReply, verdict};
use serde_json::json;

use super::{BOTH, JudgeQuestion, JudgeTestNode, question, task, verdict_of};
use crate::{SoleNode, judges::VerdictLookup};

const HOUR: Duration = Duration::from_hours(1);

async fn court(fake: &FakeProvider) -> JudgeTestNode {
    JudgeTestNode::with(BOTH[0], fake, |judges| judges.cache_for = Some(HOUR)).await
}

#[tokio::test]
async fn the_same_question_is_answered_from_the_cache_for_free() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("not_met"))]).await;
    let court = court(&fake).await;
    let first = court.judge(&task(question("x"))).await;
    let second = court.judge(&task(question("x"))).await;
    assert_eq!(second.outcome, first.outcome);
    assert!(!first.usage.is_cached && second.usage.is_cached);
    assert_eq!((second.usage.calls, second.cost_micros), (0, 0));
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn another_question_judge_or_account_misses_the_cache() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = court(&fake).await;
    let base = task(question("x"));
    let mut sharper = question("x");
    sharper.criterion.push('!');
    let mut fewer = question("x");
    fewer.examples.pop();
    let other = AccountId::parse("acct_other").unwrap();
    court
        .engine
        .inner
        .store
        .accounts()
        .ensure(&Behalf::Platform, &other, &court.engine.clock().now())
        .await
        .unwrap();
    let tasks = [
        base.clone(),
        task(question("y")),
        task(sharper),
        task(fewer),
        JudgeQuestion { model: "fake/n".parse().unwrap(), ..base.clone() },
        JudgeQuestion { effort: Some(jurat_core::verifier::Effort::Low), ..base.clone() },
        JudgeQuestion { account: other, ..base.clone() },
        JudgeQuestion { is_fresh: true, ..base.clone() },
    ];
    for (at, task) in tasks.iter().enumerate() {
        let judged = court.judge(task).await;
        assert_eq!((judged.usage.is_cached, fake.asked().len()), (false, at + 1));
    }
    assert!(court.judge(&base).await.usage.is_cached);
}

#[tokio::test]
async fn a_cached_verdict_expires() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = court(&fake).await;
    let task = task(question("x"));
    court.judge(&task).await;
    court.clock.advance(HOUR);
    assert!(court.judge(&task).await.usage.is_cached);
    court.clock.advance(Duration::from_secs(1));
    assert!(!court.judge(&task).await.usage.is_cached);
    // It was asked again, and is cached again.
    assert!(court.judge(&task).await.usage.is_cached);
}

/// Empties the verdict cache, and returns how many entries it had.
async fn emptied(court: &JudgeTestNode) -> u64 {
    let before = Timestamp::from_micros(i64::MAX);
    let all = VerdictPruning { before, most: 0, limit: u32::MAX };
    court.engine.inner.store.verdicts().prune(&Behalf::Platform, &all).await.unwrap()
}

async fn put(court: &JudgeTestNode, digest: &str) {
    let (store, account) = (&court.engine.inner.store, AccountId::admin());
    let at = court.engine.clock().now();
    let known = CachedVerdict { digest: digest.to_owned(), document: json!({}), at };
    store.verdicts().put(&Behalf::from(&account), &account, "system:test", &known).await.unwrap();
}

#[tokio::test]
async fn an_expired_verdict_is_removed() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = court(&fake).await;
    court.judge(&task(question("old"))).await;
    court.clock.advance(HOUR);
    court.judge(&task(question("new"))).await;
    assert_eq!(court.engine.prune_verdicts().await.unwrap(), 0);
    court.clock.advance(Duration::from_micros(1));
    assert_eq!(court.engine.prune_verdicts().await.unwrap(), 1);
    assert!(court.judge(&task(question("new"))).await.usage.is_cached);
    assert_eq!(emptied(&court).await, 1);
}

#[tokio::test]
async fn the_oldest_verdicts_are_evicted() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = JudgeTestNode::with(BOTH[0], &fake, |judges| {
        judges.cache_for = Some(HOUR);
        judges.cache_most = 2;
    })
    .await;
    for response in ["a", "b", "c"] {
        court.clock.advance(Duration::from_secs(1));
        court.judge(&task(question(response))).await;
    }
    assert_eq!(court.engine.prune_verdicts().await.unwrap(), 1);
    for (response, is_kept) in [("b", true), ("c", true), ("a", false)] {
        let judged = court.judge(&task(question(response))).await;
        assert_eq!(judged.usage.is_cached, is_kept, "{response}");
    }
}

#[tokio::test]
async fn many_expired_verdicts_are_removed_in_batches() {
    let fake = FakeProvider::saying([]).await;
    let court = court(&fake).await;
    for number in 0..2_001 {
        put(&court, &number.to_string()).await;
    }
    court.clock.advance(HOUR * 2);
    assert_eq!(court.engine.prune_verdicts().await.unwrap(), 2_001);
    assert_eq!(emptied(&court).await, 0);
}

#[tokio::test]
async fn a_node_without_a_cache_removes_all_verdicts() {
    let fake = FakeProvider::saying([]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    put(&court, "x").await;
    court.clock.advance(Duration::from_micros(1));
    assert_eq!(court.engine.prune_verdicts().await.unwrap(), 1);
}

#[tokio::test]
async fn a_starting_node_removes_expired_verdicts() {
    let fake = FakeProvider::saying([]).await;
    let court = court(&fake).await;
    put(&court, "x").await;
    court.clock.advance(HOUR * 2);
    court.engine.start(SoleNode::Yes).await.unwrap();
    let (store, ever) = (&court.engine.inner.store, Timestamp::from_micros(0));
    while store
        .verdicts()
        .get(&Behalf::from(&AccountId::admin()), &AccountId::admin(), "x", &ever)
        .await
        .unwrap()
        .is_some()
    {
        tokio::task::yield_now().await;
    }
    court.engine.shutdown().await;
}

#[tokio::test]
async fn a_fresh_verdict_replaces_the_cached_one() {
    let says = [ProviderReply::Answer(verdict("met")), ProviderReply::Answer(verdict("not_met"))];
    let fake = FakeProvider::saying(says).await;
    let court = court(&fake).await;
    let known = task(question("x"));
    court.judge(&known).await;
    court.judge(&JudgeQuestion { is_fresh: true, ..known.clone() }).await;
    let judged = court.judge(&known).await;
    assert_eq!((verdict_of(&judged), judged.usage.is_cached), (JudgeVerdict::NotMet, true));
}

#[tokio::test]
async fn an_undecided_verdict_is_not_cached() {
    for says in [
        ProviderReply::Answer(verdict("cannot_confirm")),
        ProviderReply::Answer(verdict("conflicting")),
        ProviderReply::Text("hm".to_owned()),
    ] {
        let fake = FakeProvider::saying([says, ProviderReply::Text("hm".to_owned())]).await;
        let court = court(&fake).await;
        for _ in 0..2 {
            assert!(!court.judge(&task(question("x"))).await.usage.is_cached);
        }
        assert!(1 < fake.asked().len());
    }
}

#[tokio::test]
async fn without_a_cache_time_nothing_is_cached() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    for _ in 0..2 {
        court.judge(&task(question("x"))).await;
    }
    assert_eq!(fake.asked().len(), 2);
}

#[tokio::test]
async fn a_missing_store_does_not_cost_the_verdict() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = court(&fake).await;
    court.engine.inner.store.close().await;
    let judged = court.judge(&task(question("x"))).await;
    assert_eq!(verdict_of(&judged), JudgeVerdict::Met);
}

#[tokio::test]
async fn a_cached_verdict_needs_no_provider_permit() {
    let fake =
        FakeProvider::saying([ProviderReply::Answer(verdict("met")), ProviderReply::Hangs]).await;
    let court = court(&fake).await;
    let task = Arc::new(task(question("x")));
    court.judge(&task).await;
    assert_eq!(verdict_of(&court.judge(&task).await), JudgeVerdict::Met);
}

#[tokio::test]
async fn equal_concurrent_questions_are_asked_once_even_without_a_cache() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let task = task(question("x"));
    let mut found = court.engine.look_up_verdicts(std::slice::from_ref(&task)).await;
    let Some(VerdictLookup::Nothing(Some(asker))) = found.pop() else { panic!("{found:?}") };
    let mut second = std::pin::pin!(court.engine.look_up_verdicts(std::slice::from_ref(&task)));
    assert!(futures::poll!(second.as_mut()).is_pending());
    // Another account, and a run that wants a fresh verdict, does not wait.
    let other = AccountId::parse("acct_other").unwrap();
    for apart in [
        JudgeQuestion { account: other, ..task.clone() },
        JudgeQuestion { is_fresh: true, ..task.clone() },
    ] {
        let found = court.engine.look_up_verdicts(&[apart]).await;
        assert!(matches!(found.as_slice(), [VerdictLookup::Nothing(_)]), "{found:?}");
    }
    let judged = court.judge(&task).await;
    asker.publish(&judged.outcome);
    let found = second.await;
    let [VerdictLookup::Told(shared)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((&shared.outcome, shared.cost_micros), (&judged.outcome, 0));
    assert!(shared.usage.is_cached);
}

#[tokio::test]
async fn a_waiting_run_asks_itself_if_the_first_gets_no_answer() {
    let fake = FakeProvider::saying([]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let task = task(question("x"));
    let first = court.engine.look_up_verdicts(std::slice::from_ref(&task)).await;
    let mut second = std::pin::pin!(court.engine.look_up_verdicts(std::slice::from_ref(&task)));
    assert!(futures::poll!(second.as_mut()).is_pending());
    let [VerdictLookup::Nothing(Some(asker))] = first.as_slice() else { panic!("{first:?}") };
    // A failure of the first run alone says nothing about the second.
    for code in [
        FailureCode::Timeout,
        FailureCode::Busy,
        FailureCode::Cancelled,
        FailureCode::Unavailable,
        FailureCode::MediaUnavailable,
        FailureCode::Internal,
    ] {
        asker.publish(&Err(ReplicaFailure::new(code, "x")));
        assert!(futures::poll!(second.as_mut()).is_pending(), "{code:?}");
    }
    drop(first);
    assert!(matches!(second.await.as_slice(), [VerdictLookup::Nothing(Some(_))]));
}

#[tokio::test]
async fn a_shared_failure_is_free_and_not_a_verdict() {
    let fake = FakeProvider::saying([]).await;
    let court = JudgeTestNode::new(BOTH[0], &fake).await;
    let task = task(question("x"));
    for code in [FailureCode::JudgeUnavailable, FailureCode::JudgeUnreadable] {
        let first = court.engine.look_up_verdicts(std::slice::from_ref(&task)).await;
        let mut second = std::pin::pin!(court.engine.look_up_verdicts(std::slice::from_ref(&task)));
        assert!(futures::poll!(second.as_mut()).is_pending());
        let [VerdictLookup::Nothing(Some(asker))] = first.as_slice() else { panic!("{first:?}") };
        asker.publish(&Err(ReplicaFailure::new(code, "x")));
        let told = second.await.remove(0);
        assert_eq!((told.is_free(), told.is_verdict()), (true, false), "{told:?}");
    }
}
