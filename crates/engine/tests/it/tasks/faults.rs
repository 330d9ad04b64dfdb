//! Faults of a node, a roster or a budget, and how the task ends all the same.

use std::{sync::Arc, time::Duration};

use jurat_core::{
    policy::PolicyBinding,
    task::{LeaseRelease, TaskEvent, TaskPhase, TaskRole},
};
use jurat_engine::{EngineError, EngineLimits, Failpoints, SoleNode};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{
        Behaviour, FakeHealth, FakeVerdict, gated, hangs, says_inconclusive, says_valid,
    },
    unreliable_store::{UnreliableStore, WriteFault},
};
use parking_lot::{Condvar, Mutex};
use serde_json::json;

use super::{able, asked, contract, ended, events, node, order, submit, wait_until, with_quorum};

#[tokio::test]
async fn a_failure_of_the_node_costs_neither_the_executor_nor_the_budget() {
    // Each opening of a round is tried twice.
    let store = UnreliableStore::at_open(WriteFault::Refused, 4);
    let app = TestApp::on(store.store(), EngineLimits::default()).await;
    app.start(SoleNode::Yes).await;
    let [fake] = app.executors([able()]).await;
    let mut task = contract(&app, "t1");
    task.budget.max_steps = 2;
    task.budget.explore_cost_units = 1;
    task.budget.verify_cost_units = 1;
    task.assignment.explore.max_retries = Some(0);
    submit(&app, order(task, &["s1"])).await.unwrap();
    // Time moves only when the test moves it.
    for failures in 1..=2 {
        wait_until(&app, "t1", |it| it.state.node_failures == failures).await;
        app.clock.advance_ms(100);
    }
    let record = ended(&app, "t1").await;
    let story = events(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{story:?}");
    assert_eq!(asked(&fake, "execute"), 1);
    assert_eq!(record.state.spent.steps, 2);
    let is_ours = |it: &&TaskEvent| {
        matches!(it, TaskEvent::Released { reason: LeaseRelease::NodeFailed { .. }, .. })
    };
    assert_eq!(story.iter().filter(is_ours).count(), 2, "{story:?}");
    app.engine.shutdown().await;
}

/// Two threads that wait for each other.
#[derive(Default)]
pub(super) struct Meeting {
    count: Mutex<u32>,
    news: Condvar,
}

impl Meeting {
    /// Whether the other one came.
    pub(super) fn meets(&self) -> bool {
        let mut count = self.count.lock();
        *count += 1;
        self.news.notify_all();
        let limit = Duration::from_secs(10);
        !self.news.wait_while_for(&mut count, |it| *it < 2, limit).timed_out()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_task_that_blocks_a_thread_delays_no_other() {
    let meeting = Meeting::default();
    let app = TestApp::with_points(Failpoints::new(Arc::new(move |name| {
        let is_met = name != "task_ask_before" || meeting.meets();
        assert!(is_met, "only one task goes on at a time");
    })))
    .await;
    app.start(SoleNode::Yes).await;
    let _fakes = app.executors([able()]).await;
    let ids = ["t1", "t2", "t3", "t4"];
    for id in ids {
        let mut task = contract(&app, id);
        task.inputs = json!({ "prompt": id });
        submit(&app, order(task, &["s1"])).await.unwrap();
    }
    for id in ids {
        assert_eq!(ended(&app, id).await.state.phase, TaskPhase::Finalized);
    }
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_silent_executor_does_not_block_a_task_for_ever() {
    let app = node().await;
    let silent = hangs().task_types(&["swarm"]);
    let [silent] = app.executors([silent]).await;
    let mut task = contract(&app, "t1");
    task.budget.time_ms = 5_000;
    task.budget.reuse_verify_time_ms = 1_000;
    submit(&app, order(task, &["s1"])).await.unwrap();
    silent.wait_for_calls(1).await;
    app.clock.advance_ms(6_000);
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Expired);
    assert_eq!(record.reason.as_deref(), Some("its time budget is used up"));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn executors_that_are_never_healthy_end_the_task_with_the_reason() {
    let app = TestApp::new().await;
    let [fake] = app.executors([able()]).await;
    let mut task = contract(&app, "t1");
    task.assignment.explore.max_retries = Some(1);
    submit(&app, order(task, &["s1"])).await.unwrap();
    // It was healthy when the task was accepted, but is not when work starts.
    fake.set(able().health(FakeHealth::Status(503)));
    app.clock.advance_ms(100_000);
    app.start(SoleNode::Yes).await;
    wait_until(&app, "t1", |it| it.state.retry_at.is_some()).await;
    app.clock.advance_ms(10);
    let record = ended(&app, "t1").await;
    assert_eq!(record.reason.as_deref(), Some("no executor proposed a candidate"));
    assert_eq!(asked(&fake, "execute"), 0);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_budget_exhausted_during_a_vote_ends_the_task() {
    let app = node().await;
    let unsure = || says_inconclusive().task_types(&["other"]);
    let _fakes = app.executors([able(), unsure(), unsure()]).await;
    let mut task = order(with_quorum(contract(&app, "t1"), 2), &["s1"]);
    task.verifiers = vec!["s2".to_owned(), "s3".to_owned()];
    task.contract.budget.max_steps = 3;
    task.contract.assignment.verify.max_repeats = Some(64);
    submit(&app, task).await.unwrap();
    let record = ended(&app, "t1").await;
    let reason = "the voters reached no decision, and the budget cannot pay for another verdict";
    assert_eq!(record.reason.as_deref(), Some(reason));
    assert_eq!(record.state.spent.steps, 3);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_contract_that_expires_during_a_vote_ends_the_task() {
    let app = node().await;
    let slow = gated(able().task_types(&["other"]));
    let [_first, slow] = app.executors([able(), slow]).await;
    let mut task = order(contract(&app, "t1"), &["s1"]);
    task.verifiers = vec!["s2".to_owned()];
    submit(&app, task).await.unwrap();
    slow.wait_for_calls(1).await;
    app.clock.advance_ms(700_000);
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Expired);
    assert!(record.state.claims.values().all(|it| it.role != TaskRole::Verify));
    slow.abandoned(1).await;
    app.engine.shutdown().await;
}

/// The reply of a WattSwarm runtime to a policy with our hash.
fn refuses_the_binding() -> Behaviour {
    let body = json!({ "message": "policy binding invalid: policy hash mismatch" });
    able().verdict(FakeVerdict { refusal: Some((400, body)), ..FakeVerdict::invalid() })
}

#[tokio::test]
async fn an_executor_that_refuses_the_binding_leaves_the_vote_to_the_node() {
    let app = node().await;
    let fakes = app.executors([refuses_the_binding(), refuses_the_binding()]).await;
    submit(&app, order(contract(&app, "t1"), &["s1", "s2"])).await.unwrap();
    let record = ended(&app, "t1").await;
    let story = events(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{story:?}");
    let why = story.iter().find_map(|it| {
        let TaskEvent::Released { reason: LeaseRelease::Failed { code, detail }, .. } = it else {
            return None;
        };
        Some((code, detail))
    });
    let (code, detail) = why.unwrap();
    assert_eq!(code, "policy_unsupported");
    assert!(detail.contains("refuses the policy binding"), "{detail}");
    assert!(detail.contains("policy hash mismatch"), "{detail}");
    let asked: usize = fakes.iter().map(|it| asked(it, "verify")).sum();
    assert_eq!(asked, 1, "one proposed, and the other was asked once");
    let decision = app.admin().get("/v1/tasks/t1/decision").await.json();
    assert_eq!(decision["votes"][0]["voter"], "builtin:policies", "{decision}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_voter_that_refuses_the_binding_is_replaced() {
    let app = node().await;
    let able_to_verify = says_valid().task_types(&["other"]);
    let _fakes = app.executors([able(), refuses_the_binding(), able_to_verify]).await;
    let mut task = order(contract(&app, "t1"), &["s1"]);
    task.verifiers = vec!["s2".to_owned(), "s3".to_owned()];
    submit(&app, task).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    let decision = app.admin().get("/v1/tasks/t1/decision").await.json();
    assert_eq!(decision["votes"][0]["voter"], "s3", "{decision}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_contract_under_a_fixed_hash_may_use_wattswarm_schemas() {
    let app = node().await;
    let _fakes = app.executors([able(), able()]).await;
    let schema = json!({
        "type": "object",
        "required": true,
        "$ref": "#/definitions/nowhere",
        "properties": { "answer": { "type": "string", "pattern": "^(?=4)" } },
    });
    let mut task = contract(&app, "t1");
    task.output_schema = schema;
    let own = submit(&app, order(task.clone(), &["s1", "s2"])).await.unwrap_err();
    assert!(matches!(own, EngineError::Schema(_)), "{own:?}");
    let binding = PolicyBinding::of_wattswarm("vp.schema_only.v1", json!({})).unwrap();
    task.acceptance.verifier_policy.policy_hash = binding.policy_hash;
    submit(&app, order(task, &["s1", "s2"])).await.unwrap();
    let record = ended(&app, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", events(&app, "t1").await);
    app.engine.shutdown().await;
}
