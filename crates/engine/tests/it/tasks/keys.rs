//! A task keeps the limits and the scopes of the key that submitted it, and ends with it.

use http::StatusCode;
use jurat_core::{
    account::caller::Scope,
    task::{LeaseRelease, TaskEnd, TaskEvent},
};
use jurat_engine::{EngineLimits, SoleNode};
use jurat_store::StoreLocation;
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::{gated, says_valid},
    postgres::TestSchema,
};
use serde_json::{Value, json};

use super::{able, asked, contract, ended, events, node, wait_until};

const ENDED: &str = "the key that submitted it was revoked or has expired";

/// A key of the operator's account with limits of its own: its identifier and its text.
async fn key(app: &TestApp, limits: Value) -> (String, String) {
    let scopes = ["tasks:write", "tasks:read", "rounds:create"];
    let mut body = json!({ "name": "limited", "scopes": scopes });
    body.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
    let made = app.admin().post("/v1/api-keys", &body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let made = made.json();
    (made["id"].as_str().unwrap().to_owned(), made["key"].as_str().unwrap().to_owned())
}

async fn submit(app: &TestApp, caller: &TestCaller<'_>, id: &str) {
    let order = json!({ "contract": contract(app, id), "executors": ["s1"] });
    let reply = caller.post("/v1/tasks", &order).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
}

async fn revoke(app: &TestApp, id: &str) {
    let reply = app.admin().delete(&format!("/v1/api-keys/{id}")).await;
    assert!(reply.status.is_success(), "{}", reply.text());
}

/// The codes for which this node could not make a call.
async fn refusals(app: &TestApp, id: &str) -> Vec<String> {
    let refusal = |event: TaskEvent| {
        let TaskEvent::Released { reason: LeaseRelease::NodeFailed { code, .. }, .. } = event
        else {
            return None;
        };
        Some(code)
    };
    events(app, id).await.into_iter().filter_map(refusal).collect()
}

#[tokio::test]
async fn the_rounds_of_tasks_count_for_the_limit_of_their_key() {
    let app = node().await;
    let [fake] = app.executors([gated(able())]).await;
    let (_, text) = key(&app, json!({ "concurrent_rounds": 1 })).await;
    let caller = app.with_key(&text);
    submit(&app, &caller, "one").await;
    fake.wait_for_calls(1).await;
    submit(&app, &caller, "two").await;
    let is_released = |record: &jurat_core::task::TaskRecord| 0 < record.state.node_failures;
    wait_until(&app, "two", is_released).await;
    assert_eq!(refusals(&app, "two").await.first().map(String::as_str), Some("rate_limited"));
    assert_eq!(asked(&fake, "execute"), 1, "the key may have one round under way");
    // Requests of a key count together with its tasks.
    let reply = caller.post("/api/v3/validate", &json!({ "claim": "x" })).await;
    assert_eq!(reply.status, StatusCode::TOO_MANY_REQUESTS, "{}", reply.text());
    fake.release();
    let record = ended(&app, "one").await;
    assert!(matches!(record.state.end, Some(TaskEnd::Finalized { .. })), "{:?}", record.state.end);
    // The other is tried again later.
    app.clock.advance_ms(30_000);
    let record = ended(&app, "two").await;
    assert!(matches!(record.state.end, Some(TaskEnd::Finalized { .. })), "{:?}", record.state.end);
}

#[tokio::test]
async fn a_task_call_counts_as_a_request_of_its_key() {
    let app = node().await;
    let [fake] = app.executors([able()]).await;
    let (_, text) = key(&app, json!({ "rate_per_minute": 2 })).await;
    submit(&app, &app.with_key(&text), "one").await;
    wait_until(&app, "one", |record| 0 < record.state.node_failures).await;
    assert_eq!(refusals(&app, "one").await.first().map(String::as_str), Some("rate_limited"));
    assert_eq!(asked(&fake, "execute"), 1, "the submission and one step are two requests");
}

#[tokio::test]
async fn a_task_is_cancelled_with_the_key_that_submitted_it() {
    let app = node().await;
    let [fake] = app.executors([gated(able())]).await;
    let (id, text) = key(&app, json!({})).await;
    submit(&app, &app.with_key(&text), "one").await;
    fake.wait_for_calls(1).await;
    revoke(&app, &id).await;
    let record = ended(&app, "one").await;
    assert_eq!(record.state.end, Some(TaskEnd::Cancelled { reason: ENDED.to_owned() }));
    assert_eq!(asked(&fake, "execute"), 1);
    assert_eq!(asked(&fake, "verify"), 0);
    // The other tasks of the account continue.
    fake.set(able());
    submit(&app, &app.admin(), "two").await;
    assert!(matches!(ended(&app, "two").await.state.end, Some(TaskEnd::Finalized { .. })));
}

/// A task that was submitted while no node drove tasks, and whose key ended before one did.
async fn ends_after_a_restart(location: &StoreLocation) {
    let before = TestApp::with_store(location).await;
    let [fake] = before.executors([able()]).await;
    let (id, text) = key(&before, json!({})).await;
    submit(&before, &before.with_key(&text), "one").await;
    revoke(&before, &id).await;
    before.store.close().await;
    let store = jurat_store::open(location).await.unwrap();
    let after = TestApp::on(store, EngineLimits::default()).await;
    after.start(SoleNode::Yes).await;
    let record = ended(&after, "one").await;
    assert_eq!(record.state.end, Some(TaskEnd::Cancelled { reason: ENDED.to_owned() }));
    assert_eq!(asked(&fake, "execute"), 0);
    after.store.close().await;
}

#[tokio::test]
async fn a_revoked_key_stays_revoked_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    ends_after_a_restart(&StoreLocation::File(folder.path().join("jurat.db"))).await;
}

pub(crate) async fn a_revoked_key_is_not_forgotten_over_a_restart_of_postgres() {
    let schema = TestSchema::new().await;
    ends_after_a_restart(&schema.location()).await;
    schema.drop().await;
}

#[tokio::test]
async fn a_task_ends_with_its_expired_key() {
    let app = TestApp::new().await;
    let [fake] = app.executors([able()]).await;
    let (_, text) = key(&app, json!({ "expires_at": "2026-09-21T14:14:00Z" })).await;
    submit(&app, &app.with_key(&text), "one").await;
    app.clock.advance_ms(60_000);
    app.start(SoleNode::Yes).await;
    let record = ended(&app, "one").await;
    assert_eq!(record.state.end, Some(TaskEnd::Cancelled { reason: ENDED.to_owned() }));
    assert_eq!(asked(&fake, "execute"), 0);
}

#[tokio::test]
async fn a_key_can_submit_only_within_its_scopes() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid().task_types(&["swarm"])]).await;
    let order = json!({ "contract": contract(&app, "one"), "executors": ["s1"] });
    let spec = json!({
        "run_id": "one",
        "agents": [{ "agent_id": "a", "executor": "s1", "prompt": "what is so?" }],
    });
    let narrow = app.caller("narrow", &[Scope::TasksWrite, Scope::TasksRead]).await;
    for (path, body) in [("/v1/tasks", &order), ("/v1/runs", &spec)] {
        let reply = narrow.post(path, body).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{path}: {}", reply.text());
        assert!(reply.json()["detail"].as_str().unwrap().contains("rounds:create"));
    }
    let mut semantic = contract(&app, "two");
    super::under(&mut semantic, "vp.semantic.v1", json!({ "verifier": "system:safety-block" }));
    let scopes = [Scope::TasksWrite, Scope::RoundsCreate];
    let reply = app.caller("rounds", &scopes).await.post("/v1/tasks", &json!(semantic)).await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN, "{}", reply.text());
    assert!(reply.json()["detail"].as_str().unwrap().contains("verifiers:run"));
}
