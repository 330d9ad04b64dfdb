//! The weight of a vote, and policies that need more than the schema.

use jurat_core::task::{TaskPhase, VoteAggregation};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{Behaviour, says_invalid, says_valid},
};
use jurat_wire::executor::TaskSubmission;
use serde_json::json;

use super::{able, asked, contract, ended, events, node, order, submit, under, with_quorum};

const PROFILE: &str = "weighed";

fn known(behaviour: Behaviour) -> Behaviour {
    behaviour.profiles(&["default", PROFILE])
}

/// Two votes for it and one against: a plain majority approves.
fn two_to_one(app: &TestApp, id: &str, aggregation: VoteAggregation) -> TaskSubmission {
    let mut task = with_quorum(contract(app, id), 2);
    task.inputs = json!({ "prompt": id });
    task.assignment.verify.max_verifiers = 3;
    task.assignment.verify.max_repeats = Some(0);
    task.acceptance.aggregation = Some(aggregation);
    let mut order = order(task, &["s1"]);
    order.verifiers = ["s2", "s3", "s4"].map(str::to_owned).to_vec();
    order.profile = Some(PROFILE.to_owned());
    order
}

/// A session of an executor in the profile of these tasks.
async fn lane(app: &TestApp, executor: &str, reliability: f64) {
    let session = json!({
        "session_id": format!("{executor}-weighed"), "executor": executor, "profile": PROFILE,
        "reliability": reliability,
    });
    let reply = app.admin().post("/v1/sessions", &session).await;
    assert!(reply.status.is_success(), "{}", reply.text());
}

async fn phase(app: &TestApp, order: TaskSubmission) -> TaskPhase {
    let id = order.contract.task_id.clone();
    submit(app, order).await.unwrap();
    ended(app, &id).await.state.phase
}

#[tokio::test]
async fn the_score_of_a_voter_is_the_weight_of_its_vote() {
    let app = node().await;
    let unsure = || known(says_valid().score(0.2));
    let sure = known(says_invalid().score(0.9));
    let _fakes = app.executors([known(able()), unsure(), sure, unsure()]).await;
    for executor in ["s1", "s2", "s3", "s4"] {
        lane(&app, executor, 0.8).await;
    }
    let heads = two_to_one(&app, "t1", VoteAggregation::Quorum);
    assert_eq!(phase(&app, heads).await, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    let weighed = two_to_one(&app, "t2", VoteAggregation::ConfidenceWeighted);
    assert_eq!(phase(&app, weighed).await, TaskPhase::Failed, "{:?}", events(&app, "t2").await);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn the_reliability_of_a_session_is_the_weight_of_its_vote() {
    let app = node().await;
    let fakes = [known(able()), known(says_valid()), known(says_invalid()), known(says_valid())];
    let _fakes = app.executors(fakes).await;
    for (executor, reliability) in [("s1", 0.8), ("s2", 0.2), ("s3", 0.95), ("s4", 0.2)] {
        lane(&app, executor, reliability).await;
    }
    let heads = two_to_one(&app, "t1", VoteAggregation::Quorum);
    assert_eq!(phase(&app, heads).await, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    let weighed = two_to_one(&app, "t2", VoteAggregation::ReputationWeighted);
    assert_eq!(phase(&app, weighed).await, TaskPhase::Failed, "{:?}", events(&app, "t2").await);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_candidate_below_a_threshold_is_refused() {
    let app = node().await;
    let _fakes = app.executors([able()]).await;
    for (id, least, expected) in
        [("t1", 0.8, TaskPhase::Finalized), ("t2", 0.95, TaskPhase::Failed)]
    {
        let mut task = contract(&app, id);
        let thresholds = json!([{ "path": "/confidence", "op": ">=", "value": least }]);
        under(&mut task, "vp.schema_thresholds.v1", json!({ "thresholds": thresholds }));
        let found = phase(&app, order(task, &["s1"])).await;
        assert_eq!(found, expected, "{:?}", events(&app, id).await);
    }
    app.engine.shutdown().await;
}

#[tokio::test]
async fn executors_decide_by_a_policy_that_only_they_know() {
    let app = node().await;
    let own = "their.own.policy";
    let [_first, knows] = app.executors([able(), says_valid().policies(&[own])]).await;
    let mut task = contract(&app, "t1");
    under(&mut task, own, json!({ "strictness": 3 }));
    let mut order = order(task, &["s1"]);
    order.verifiers = vec!["s2".to_owned()];
    assert_eq!(phase(&app, order).await, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    assert_eq!(asked(&knows, "verify"), 1);
    let calls = knows.calls();
    let verify = calls.iter().find(|call| call.endpoint() == "verify").unwrap();
    assert!(verify.body.to_string().contains(own), "{}", verify.body);
    app.engine.shutdown().await;
}
