//! Two nodes on one PostgreSQL database.

use jurat_core::{
    account::ledger::Movement,
    task::{TaskEvent, TaskPhase},
};
use jurat_engine::{EngineLimits, SoleNode};
use jurat_store::{Behalf, StoreLocation, TakeoverScope};
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{answers, gated, says_valid},
    postgres::TestSchema,
    stalling_proxy::StallingProxy,
};
use serde_json::json;

use crate::{
    task_calls::{
        by, contract,
        credit::{PRICE, priced, team},
        propose,
    },
    tasks::{able, restart},
};

async fn node(schema: &TestSchema) -> TestApp {
    let store = jurat_store::open(&schema.location()).await.unwrap();
    TestApp::on(store, EngineLimits::default()).await
}

#[tokio::test]
async fn a_round_that_one_node_ran_is_read_on_the_other() {
    let schema = TestSchema::new().await;
    let (one, two) = (node(&schema).await, node(&schema).await);
    let _fakes = one.executors([says_valid(), says_valid(), says_valid()]).await;
    let body = json!({ "claim": "x", "consensus": { "replicas": 3 } });
    let reply = two.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["verdict"], "VALID", "{reply}");
    let path = format!("/v1/rounds/{}", reply["round_id"].as_str().unwrap());
    let shown = one.admin().get(&path).await.json();
    assert_eq!(shown["consensus"], reply["consensus"]);
    assert_eq!(shown["replicas"], reply["replicas"]);
    one.store.close().await;
    two.store.close().await;
    schema.drop().await;
}

#[tokio::test]
async fn a_node_does_not_take_a_round_with_a_valid_lease() {
    let schema = TestSchema::new().await;
    let (one, two) = (node(&schema).await, node(&schema).await);
    let [fake] = one.executors([gated(says_valid())]).await;
    let caller = one.admin();
    let body = json!({ "claim": "x", "execution": { "timeout_ms": 60_000 } });
    let asked = caller.post("/api/v3/validate", &body);
    let meanwhile = async {
        fake.wait_for_calls(1).await;
        assert_eq!(two.engine.expire_orphans(TakeoverScope::All).await.unwrap(), 0);
        fake.release();
    };
    let (reply, ()) = tokio::join!(asked, meanwhile);
    assert_eq!(reply.json()["verdict"], "VALID");
    one.store.close().await;
    two.store.close().await;
    schema.drop().await;
}

/// Two nodes make one execution, because the first node's link to the database stalls after its
/// executor has answered. `then` says how the stall ends.
async fn stalled(then: fn(&StallingProxy)) {
    let schema = TestSchema::served().await;
    let proxy = StallingProxy::to(&schema.url()).await;
    let url = proxy.url(&schema.serving_url());
    let store =
        jurat_store::open(&StoreLocation::Postgres { url, migrate_url: None }).await.unwrap();
    let (one, two) = (TestApp::on(store, EngineLimits::default()).await, node(&schema).await);
    two.clock.advance_ms(1);
    let [fake] = one.executors([gated(answers(json!({ "answer": "x" })))]).await;
    priced(&one, "1.00").await;
    let order = propose(contract(), by("s1"));
    let caller = one.engine.caller_without_key(&team()).await.unwrap();
    let first = one.engine.task_call(&caller, order.clone());
    let second = async {
        fake.wait_for_calls(1).await;
        proxy.stall();
        fake.release();
        proxy.holds_something().await;
        // The lease of the first is over by now, so the second continues the work.
        let caller = two.engine.caller_without_key(&team()).await.unwrap();
        let done = two.engine.task_call(&caller, order.clone()).await.unwrap();
        then(&proxy);
        done
    };
    let (first, second) = tokio::join!(first, second);
    let first = first.unwrap();
    assert_eq!(first.outcome, second.outcome, "the executor answers an execution once");
    let costs = [first.cost_micros, second.cost_micros];
    assert_eq!(costs, [0, u64::try_from(PRICE).unwrap()], "each shows what was paid for it");
    let balance =
        two.store.accounts().get(&Behalf::Platform, &team()).await.unwrap().unwrap().balance;
    assert_eq!((balance.held, balance.spent), (0, PRICE));
    let lines =
        two.store.ledger().transfers(&Behalf::from(&team()), &team(), None, 100).await.unwrap();
    assert_eq!(lines.iter().filter(|it| it.movement == Movement::Capture).count(), 1);
    assert_eq!(two.store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
    // A further request gets the recorded answer, and pays nothing.
    let caller = one.engine.caller_without_key(&team()).await.unwrap();
    one.engine.task_call(&caller, order).await.unwrap();
    assert_eq!(crate::task_calls::work(&fake).len(), 2);
    one.store.close().await;
    two.store.close().await;
    schema.drop().await;
}

#[tokio::test]
async fn a_task_call_is_paid_once_if_a_stalled_node_closes_it_late() {
    Box::pin(stalled(StallingProxy::go_on)).await;
}

#[tokio::test]
async fn a_task_call_is_paid_once_if_a_stalled_node_retries() {
    Box::pin(stalled(StallingProxy::cut)).await;
}

async fn post(node: &TestApp, key: &str) -> TestReply {
    let headers = [("idempotency-key", key)];
    node.admin().post_with("/api/v3/validate", &json!({ "claim": "x" }), &headers).await
}

#[tokio::test]
async fn one_key_on_two_nodes_concurrently_is_one_round() {
    let schema = TestSchema::new().await;
    let (one, two) = (node(&schema).await, node(&schema).await);
    let [fake] = one.executors([gated(says_valid())]).await;
    let let_go = async {
        fake.wait_for_calls(1).await;
        fake.release();
    };
    let (left, right, ()) = tokio::join!(post(&one, "k"), post(&two, "k"), let_go);
    assert_eq!(left.json()["verdict"], "VALID", "{}", left.text());
    assert_eq!(left.text(), right.text());
    let replayed = [&left, &right].map(|reply| reply.headers.contains_key("idempotent-replayed"));
    assert_ne!(replayed[0], replayed[1]);
    assert_eq!(fake.calls().iter().filter(|call| call.endpoint() == "verify").count(), 1);
    one.store.close().await;
    two.store.close().await;
    schema.drop().await;
}

#[tokio::test]
async fn a_round_is_cancelled_through_another_node() {
    let schema = TestSchema::new().await;
    let (one, two) = (node(&schema).await, node(&schema).await);
    one.start(SoleNode::No).await;
    let [fake] = one.executors([gated(says_valid())]).await;
    let body = json!({ "claim": "x", "execution": { "timeout_ms": 60_000 } });
    let caller = one.admin();
    let asked = caller.post("/api/v3/validate", &body);
    let calling_off = async {
        fake.wait_for_calls(1).await;
        let list = two.admin().get("/v1/rounds").await.json();
        let path = format!("/v1/rounds/{}/cancel", list["items"][0]["round_id"].as_str().unwrap());
        two.admin().post(&path, &json!({})).await
    };
    let (reply, ended) = tokio::join!(asked, calling_off);
    assert_eq!(ended.json()["state"], "cancelled", "{}", ended.text());
    assert_eq!(reply.json()["verdict"], json!(null));
    one.engine.shutdown().await;
    two.store.close().await;
    schema.drop().await;
}

#[tokio::test]
async fn the_connections_are_among_the_metrics() {
    let schema = TestSchema::new().await;
    let app = node(&schema).await;
    let text = app.admin().get("/metrics").await.text();
    for state in ["used", "idle"] {
        assert!(text.contains(&format!("jurat_store_connections{{state=\"{state}\"}}")), "{text}");
    }
    app.engine.shutdown().await;
    schema.drop().await;
}

/// A task with a quorum of two, on a roster of three.
async fn submit_panel(node: &TestApp, id: &str) {
    let task = crate::tasks::with_quorum(crate::tasks::contract(node, id), 2);
    crate::tasks::submit(node, crate::tasks::order(task, &["s1", "s2", "s3"])).await.unwrap();
}

#[tokio::test]
async fn a_task_that_one_node_accepted_is_driven_by_the_other() {
    let schema = TestSchema::new().await;
    let (one, two) = (node(&schema).await, node(&schema).await);
    two.start(SoleNode::No).await;
    let _fakes = one.executors([able(), able(), able()]).await;
    submit_panel(&one, "t1").await;
    let record = crate::tasks::ended(&one, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", record.state);
    two.engine.shutdown().await;
    one.store.close().await;
    schema.drop().await;
}

#[tokio::test]
async fn abandoned_work_is_taken_over_when_its_lease_expires() {
    let schema = TestSchema::new().await;
    let (one, two) = (node(&schema).await, node(&schema).await);
    one.start(SoleNode::No).await;
    let [slow, _, _] = one.executors([gated(able()), gated(able()), gated(able())]).await;
    let task = crate::tasks::contract(&one, "t1");
    crate::tasks::submit(&one, crate::tasks::order(task, &["s1"])).await.unwrap();
    slow.wait_for_calls(1).await;
    // The clock of the first stands still: for the others its lease expires.
    two.clock.advance_ms(5_000);
    two.start(SoleNode::No).await;
    slow.wait_for_calls(2).await;
    slow.release();
    let record = crate::tasks::ended(&two, "t1").await;
    assert_eq!(record.state.phase, TaskPhase::Finalized, "{:?}", record.state);
    let executions: std::collections::BTreeSet<String> = slow
        .calls()
        .iter()
        .filter_map(|it| it.body["execution_id"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(executions.len(), 1, "the same work was asked for under one name");
    // The late writer wrote nothing: one candidate, one final decision.
    let story = crate::tasks::events(&two, "t1").await;
    let finals = story.iter().filter(|it| matches!(it, TaskEvent::Finalized { .. })).count();
    assert_eq!((finals, record.state.proposals.len()), (1, 1));
    one.engine.shutdown().await;
    two.engine.shutdown().await;
    schema.drop().await;
}

#[tokio::test]
async fn work_due_while_no_node_ran_is_done_by_the_next_one() {
    let schema = TestSchema::new().await;
    restart::expired(&schema.location()).await;
    schema.drop().await;
    let schema = TestSchema::new().await;
    restart::retried(&schema.location()).await;
    schema.drop().await;
}

#[tokio::test]
async fn votes_due_for_reveal_while_no_node_ran_are_handled_by_the_next_one() {
    let schema = TestSchema::new().await;
    restart::revealed(&schema.location()).await;
    schema.drop().await;
    let schema = TestSchema::new().await;
    restart::forfeited(&schema.location()).await;
    schema.drop().await;
    let schema = TestSchema::new().await;
    restart::expired_in_secret(&schema.location()).await;
    schema.drop().await;
}

#[tokio::test]
async fn a_revoked_key_ends_its_tasks_after_a_restart() {
    crate::tasks::keys::a_revoked_key_is_not_forgotten_over_a_restart_of_postgres().await;
}
