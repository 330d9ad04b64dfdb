//! Two nodes on one store: one takes over the work of the other, and late writes are refused.

use jurat_core::task::{LeaseRelease, TaskEvent, TaskPhase, TaskRole};
use jurat_engine::{Clock as _, SoleNode};
use jurat_store::StoreLocation;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{Gate, gated, late, says_invalid, says_valid},
};
use tempfile::TempDir;

use super::{able, contract, ended, events, order, submit, wait_until};

/// Two nodes on one file; each has a manual clock of its own.
async fn nodes(folder: &TempDir) -> (TestApp, TestApp) {
    let location = StoreLocation::File(folder.path().join("jurat.db"));
    let one = TestApp::with_store(&location).await;
    one.start(SoleNode::No).await;
    (one, TestApp::with_store(&location).await)
}

#[tokio::test]
async fn the_work_of_a_paused_node_is_taken_over_and_its_late_writes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (paused, other) = nodes(&folder).await;
    let [fake] = paused.executors([gated(able())]).await;
    submit(&paused, order(contract(&paused, "t1"), &["s1"])).await.unwrap();
    fake.wait_for_calls(1).await;
    fake.set(able());
    // For the other node the lease has expired; the first does not know how late it is.
    other.clock.advance_ms(1_000);
    other.start(SoleNode::No).await;
    let record = ended(&other, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&other, "t1").await);
    // It writes its results before it stops.
    fake.release();
    paused.engine.shutdown().await;
    let story = events(&other, "t1").await;
    assert_eq!(u64::try_from(story.len()).unwrap(), record.seq, "{story:?}");
    let proposing = |event: &TaskEvent| {
        let TaskEvent::Claimed { token, claim } = event else { return None };
        (claim.role == TaskRole::Propose).then(|| (*token, claim.execution_id.clone()))
    };
    let claims: Vec<(u64, String)> = story.iter().filter_map(proposing).collect();
    // The same work, under a higher token.
    assert_eq!(claims, [(1, claims[0].1.clone()), (2, claims[0].1.clone())]);
    let ran_out = |it: &TaskEvent| {
        matches!(it, TaskEvent::Released { token: 1, reason: LeaseRelease::LeaseRanOut })
    };
    assert!(story.iter().any(ran_out), "{story:?}");
    let proposals = story.iter().filter(|it| matches!(it, TaskEvent::Proposed { .. })).count();
    assert_eq!(proposals, 1);
    other.engine.shutdown().await;
}

#[tokio::test]
async fn a_renewed_lease_is_not_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = nodes(&folder).await;
    two.start(SoleNode::No).await;
    let [fake] = one.executors([gated(able())]).await;
    submit(&one, order(contract(&one, "t1"), &["s1"])).await.unwrap();
    fake.wait_for_calls(1).await;
    for _ in 0..4 {
        one.clock.advance_ms(150);
        let now = one.clock.now();
        wait_until(&one, "t1", |record| {
            let mut claims = record.state.claims.values();
            claims.any(|it| now.plus_millis(290) <= it.until)
        })
        .await;
        two.clock.advance_ms(150);
    }
    fake.release();
    let record = ended(&one, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&one, "t1").await);
    let story = events(&one, "t1").await;
    assert!(!story.iter().any(|it| matches!(it, TaskEvent::Released { .. })), "{story:?}");
    one.engine.shutdown().await;
    two.engine.shutdown().await;
}

#[tokio::test]
async fn a_voter_that_answers_two_nodes_differently_is_an_equivocator() {
    let folder = tempfile::tempdir().unwrap();
    let (paused, other) = nodes(&folder).await;
    let early = Gate::new();
    let slow = late(&early, says_invalid().task_types(&["other"]));
    let [_first, slow] = paused.executors([able(), slow]).await;
    let mut task = order(contract(&paused, "t1"), &["s1"]);
    task.verifiers = vec!["s2".to_owned()];
    submit(&paused, task).await.unwrap();
    slow.wait_for_calls(1).await;
    slow.set(says_valid().task_types(&["other"]));
    other.clock.advance_ms(1_000);
    other.start(SoleNode::No).await;
    // The decision stays when the other verdict comes, and the proof is recorded all the same.
    let decided = ended(&other, "t1").await;
    assert_eq!(decided.state.phase, TaskPhase::Finalized, "{:?}", events(&other, "t1").await);
    early.release();
    let is_proven =
        |record: &jurat_core::task::TaskRecord| record.state.equivocators.contains("s2");
    let record = wait_until(&other, "t1", is_proven).await;
    assert!(record.state.proposals[0].votes["s2"].equivocated);
    paused.engine.shutdown().await;
    other.engine.shutdown().await;
}
