//! Tasks that are driven to their end.

use std::collections::BTreeSet;

use jurat_core::task::{TaskEnd, TaskEvent, TaskPhase, TaskRole, VoteAggregation};
use jurat_engine::{Clock as _, EngineError, EngineLimits, SoleNode};
use jurat_store::StoreLocation;
use jurat_testkit::{
    app::{TestApp, admin_caller},
    fake_executor::{FakeHealth, disconnects_before_headers, gated, says_invalid},
};
use serde_json::json;

use super::{able, asked, contract, ended, events, node, order, submit, wait_until, with_quorum};

#[tokio::test]
async fn one_executor_is_enough_because_the_node_votes() {
    let app = node().await;
    let [fake] = app.executors([able()]).await;
    let submitted = submit(&app, order(contract(&app, "t1"), &["s1"])).await.unwrap();
    assert!(submitted.is_new);
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    assert_eq!(asked(&fake, "execute"), 1);
    // A proposer has no vote on its own candidate.
    assert_eq!(asked(&fake, "verify"), 0);
    let voters: Vec<&String> = record.state.proposals[0].votes.keys().collect();
    assert_eq!(voters, ["builtin:policies"]);
    let decision = app.engine.task_decision(&admin_caller(), "t1").await.unwrap();
    let candidate = decision.candidate.unwrap();
    assert_eq!(candidate.output, json!({ "answer": "42", "confidence": 0.9 }));
    assert!(decision.final_hash.is_some());
    assert!((0.5..1.0).contains(&decision.confidence.unwrap()));
    // The same contract again is the same task.
    let again = submit(&app, order(contract(&app, "t1"), &["s1"])).await.unwrap();
    assert!(!again.is_new);
    assert_eq!(asked(&fake, "execute"), 1);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn three_of_four_executors_vote_on_the_proposal_of_the_fourth() {
    let app = node().await;
    let fakes = app.executors([able(), able(), able(), able()]).await;
    let task = with_quorum(contract(&app, "t1"), 3);
    submit(&app, order(task, &["s1", "s2", "s3", "s4"])).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    let proposal = &record.state.proposals[0];
    let voters: BTreeSet<&String> = proposal.votes.keys().collect();
    assert_eq!(voters.len(), 3);
    assert!(proposal.proposers.iter().all(|it| !voters.contains(it)));
    let calls = |endpoint| fakes.iter().map(|it| asked(it, endpoint)).sum::<usize>();
    assert_eq!((calls("execute"), calls("verify")), (1, 3));
    // Every vote was committed before the first was revealed.
    let story = events(&app, "t1").await;
    let is_commit = |it: &TaskEvent| matches!(it, TaskEvent::VoteCommitted { .. });
    let is_reveal = |it: &TaskEvent| matches!(it, TaskEvent::VoteRevealed { .. });
    let last_commit = story.iter().rposition(is_commit).unwrap();
    assert!(last_commit < story.iter().position(is_reveal).unwrap());
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_rejected_candidate_is_not_final() {
    let app = node().await;
    let refuses = || says_invalid().task_types(&["other"]);
    let _fakes = app.executors([able(), refuses(), refuses()]).await;
    let mut task = order(with_quorum(contract(&app, "t1"), 2), &["s1"]);
    task.verifiers = vec!["s2".to_owned(), "s3".to_owned()];
    submit(&app, task).await.unwrap();
    let record = ended(&app, "t1").await;
    let reason = "the voters rejected every candidate".to_owned();
    assert_eq!(record.state.end, Some(TaskEnd::Failed { reason }));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn an_executor_that_dies_before_voting_costs_a_try_and_not_the_task() {
    let app = node().await;
    let dying = disconnects_before_headers().task_types(&["other"]);
    let [_first, dying, _third] = app.executors([able(), dying, able()]).await;
    let mut task = order(contract(&app, "t1"), &["s1"]);
    // The first of them in the order of names is asked first.
    task.verifiers = vec!["s2".to_owned(), "s3".to_owned()];
    submit(&app, task).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    assert_eq!(asked(&dying, "verify"), 1);
    let proposal = &record.state.proposals[0];
    assert_eq!(proposal.votes.keys().collect::<Vec<_>>(), ["s3"]);
    // The failed call was paid for, and says nothing about the candidate.
    assert_eq!(record.state.spent.verify, 2);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_cancelled_task_ends_immediately() {
    let app = node().await;
    let [fake] = app.executors([gated(able())]).await;
    submit(&app, order(contract(&app, "t1"), &["s1"])).await.unwrap();
    fake.wait_for_calls(1).await;
    let record =
        app.engine.task_cancel_unkeyed(&admin_caller(), "t1", Some("enough")).await.unwrap();
    assert_eq!(record.state.end, Some(TaskEnd::Cancelled { reason: "enough".to_owned() }));
    // Nobody waits for its executor any more.
    fake.abandoned(1).await;
    let again = app.engine.task_cancel_unkeyed(&admin_caller(), "t1", None).await.unwrap();
    assert_eq!(again.seq, record.seq);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_task_is_cancelled_without_probing_its_executors() {
    let app = TestApp::new().await;
    let [fake] = app.executors([able()]).await;
    for (id, aggregation) in
        [("t1", VoteAggregation::ConfidenceWeighted), ("t2", VoteAggregation::ReputationWeighted)]
    {
        let mut task = contract(&app, id);
        task.acceptance.aggregation = Some(aggregation);
        submit(&app, order(task, &["s1"])).await.unwrap();
        app.clock.advance_ms(100_000);
        fake.set(able().health(FakeHealth::Hangs));
        let before = asked(&fake, "health");
        let record = app.engine.task_cancel_unkeyed(&admin_caller(), id, None).await.unwrap();
        assert_eq!(record.state.phase, TaskPhase::Cancelled);
        assert_eq!(asked(&fake, "health"), before);
        fake.set(able());
    }
    app.store.close().await;
}

#[tokio::test]
async fn an_ended_task_cannot_be_cancelled() {
    let app = node().await;
    let _fakes = app.executors([able()]).await;
    submit(&app, order(contract(&app, "t1"), &["s1"])).await.unwrap();
    ended(&app, "t1").await;
    let refused = app.engine.task_cancel_unkeyed(&admin_caller(), "t1", None).await.unwrap_err();
    assert!(matches!(refused, EngineError::Conflict(_)), "{refused}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_task_whose_time_is_up_expires() {
    let app = node().await;
    let [fake] = app.executors([gated(able())]).await;
    submit(&app, order(contract(&app, "t1"), &["s1"])).await.unwrap();
    fake.wait_for_calls(1).await;
    app.clock.advance_ms(700_000);
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Expired);
    assert_eq!(record.reason.as_deref(), Some("its contract expired"));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_restarted_node_continues_where_the_last_one_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::File(folder.path().join("jurat.db"));
    let first = TestApp::with_store(&location).await;
    first.start(SoleNode::Yes).await;
    let [fake] = first.executors([gated(able())]).await;
    submit(&first, order(contract(&first, "t1"), &["s1"])).await.unwrap();
    fake.wait_for_calls(1).await;
    first.engine.shutdown().await;
    fake.set(able());
    let second = TestApp::with_store(&location).await;
    let known = second.engine.task_show(&admin_caller(), "t1").await.unwrap();
    assert!(known.state.claims.is_empty(), "the claim was given up: {:?}", known.state.claims);
    second.start(SoleNode::Yes).await;
    let record = ended(&second, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&second, "t1").await);
    // It was asked again for the same work, under the same execution id.
    let executions: BTreeSet<String> = fake
        .calls()
        .iter()
        .filter(|call| call.endpoint() == "execute")
        .map(|call| call.body["execution_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(executions.len(), 1);
    second.engine.shutdown().await;
}

#[tokio::test]
async fn tasks_beyond_the_limit_wait() {
    let app = TestApp::with_limits(EngineLimits { tasks: 1, ..EngineLimits::default() }).await;
    app.start(SoleNode::Yes).await;
    let _fakes = app.executors([able()]).await;
    for id in ["t1", "t2", "t3"] {
        submit(&app, order(contract(&app, id), &["s1"])).await.unwrap();
    }
    for id in ["t1", "t2", "t3"] {
        assert_eq!(ended(&app, id).await.state.phase, TaskPhase::Finalized);
    }
    app.engine.shutdown().await;
}

#[tokio::test]
async fn an_earlier_decision_is_voted_on_again_before_it_is_reused() {
    let app = node().await;
    let [fake] = app.executors([able()]).await;
    submit(&app, order(contract(&app, "t1"), &["s1"])).await.unwrap();
    ended(&app, "t1").await;
    submit(&app, order(contract(&app, "t2"), &["s1"])).await.unwrap();
    let record = ended(&app, "t2").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t2").await);
    // Nobody proposed again, and one voted.
    assert_eq!(asked(&fake, "execute"), 1);
    assert_eq!((record.state.spent.explore, record.state.spent.verify), (0, 1));
    assert_eq!(record.state.proposals[0].source.as_deref(), Some("knowledge:t1#1"));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn no_proposer_votes_on_its_own_candidate_however_often_it_is_reused() {
    let app = node().await;
    let [first, second] = app.executors([able(), able()]).await;
    submit(&app, order(contract(&app, "t1"), &["s1"])).await.unwrap();
    ended(&app, "t1").await;
    for id in ["t2", "t3", "t4"] {
        submit(&app, order(contract(&app, id), &["s1", "s2"])).await.unwrap();
        let record = ended(&app, id).await;
        let proposal = &record.state.proposals[0];
        assert!(proposal.source.is_some(), "{:?}", events(&app, id).await);
        assert_eq!(proposal.proposers.iter().collect::<Vec<_>>(), ["s1"], "{id}");
        assert_eq!(proposal.votes.keys().collect::<Vec<_>>(), ["s2"], "{id}");
        let decision = app.engine.task_decision(&admin_caller(), id).await.unwrap();
        assert_eq!(decision.executor.as_deref(), Some("s1"));
    }
    assert_eq!((asked(&first, "verify"), asked(&second, "verify")), (0, 3));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn knowledge_is_tried_again_in_every_epoch() {
    let app = node().await;
    let _fakes = app.executors([able()]).await;
    submit(&app, order(contract(&app, "t1"), &["s1"])).await.unwrap();
    ended(&app, "t1").await;
    let mut task = contract(&app, "t2");
    "CONTINUOUS".clone_into(&mut task.task_mode);
    "EPOCH_RENEW".clone_into(&mut task.budget.mode);
    submit(&app, order(task, &["s1"])).await.unwrap();
    let mut candidates = BTreeSet::new();
    for epoch in 1..=3 {
        let is_decided =
            |it: &jurat_core::task::TaskRecord| it.state.epoch == epoch && it.state.is_waiting();
        let record = wait_until(&app, "t2", is_decided).await;
        let proposal = &record.state.proposals[0];
        assert!(proposal.source.is_some(), "{:?}", events(&app, "t2").await);
        candidates.insert(proposal.id.clone());
        app.engine.task_next_epoch(&admin_caller(), "t2", None).await.unwrap();
    }
    assert_eq!(candidates.len(), 3, "{candidates:?}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn executors_receive_decisions_on_similar_tasks() {
    let app = node().await;
    let [fake] = app.executors([able()]).await;
    let about = |id: &str, prompt: &str| {
        let mut task = contract(&app, id);
        task.inputs = json!({ "prompt": prompt });
        order(task, &["s1"])
    };
    submit(&app, about("t1", "the risks of the plan")).await.unwrap();
    ended(&app, "t1").await;
    submit(&app, about("t2", "the risks of the merger")).await.unwrap();
    ended(&app, "t2").await;
    let calls = fake.calls();
    let bundles: Vec<_> = calls
        .iter()
        .filter(|call| call.endpoint() == "execute")
        .map(|call| call.body["seed_bundle"].clone())
        .collect();
    assert_eq!(bundles[0], json!(null));
    let hit = &bundles[1]["hits"][0];
    assert_eq!(hit["hit_type"], "Similar");
    assert_eq!(hit["decision_ref"]["task_id"], "t1");
    let hint = hit["confidence_hint"].as_f64().unwrap();
    assert!((0.3..0.99).contains(&hint), "{hint}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_lease_is_renewed_while_its_executor_works() {
    let app = node().await;
    let [fake] = app.executors([gated(able())]).await;
    submit(&app, order(contract(&app, "t1"), &["s1"])).await.unwrap();
    fake.wait_for_calls(1).await;
    for _ in 0..3 {
        app.clock.advance_ms(150);
        let now = app.clock.now();
        wait_until(&app, "t1", |record| {
            let mut claims = record.state.claims.values();
            claims.any(|it| it.role == TaskRole::Propose && now.plus_millis(290) <= it.until)
        })
        .await;
    }
    fake.release();
    assert_eq!(ended(&app, "t1").await.state.phase, TaskPhase::Finalized);
    assert_eq!(asked(&fake, "execute"), 1);
    app.engine.shutdown().await;
}
