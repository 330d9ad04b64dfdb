//! What is announced: the end of verifier runs and tasks, publications, and credit that runs low.

use axum::body::Body;
use jurat_engine::EngineLimits;
use jurat_store::{Store, StoreLocation};
use jurat_testkit::{
    fake_executor::{answers, gated, says_valid},
    fake_provider::FakeProvider,
    fake_receiver::ReceiverAnswer,
    postgres::TestSchema,
};

use super::*;
use crate::v1::templates;

/// Part of everything that is written, and of no event.
const MARK: &str = "canary";

async fn node(store: Arc<Store>, fake: &FakeProvider) -> TestApp {
    let limits = EngineLimits { lag: None, ..EngineLimits::default() };
    let app = TestApp::announcing(store, limits, templates::judges(fake), near()).await;
    app.start(SoleNode::Yes).await;
    app
}

async fn told(story: impl AsyncFnOnce(&TestApp)) {
    let fake = FakeProvider::start(templates::judge).await;
    let app = node(jurat_store::open(&StoreLocation::Memory).await.unwrap(), &fake).await;
    story(&app).await;
    app.engine.shutdown().await;
}

pub(crate) async fn told_on_postgres(story: impl AsyncFnOnce(&TestApp)) {
    let schema = TestSchema::new().await;
    let fake = FakeProvider::start(templates::judge).await;
    let app = node(jurat_store::open(&schema.location()).await.unwrap(), &fake).await;
    story(&app).await;
    app.engine.shutdown().await;
    schema.drop().await;
}

async fn grant(app: &TestApp, account: &str, amount: &str) {
    let path = format!("/v1/accounts/{account}/grants");
    let reply = app.admin().post(&path, &json!({ "amount_usd": amount })).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
}

async fn made(caller: &TestCaller<'_>, path: &str, body: &Value) -> Value {
    let reply = caller.post(path, body).await;
    assert!(reply.status.is_success(), "{path}: {}", reply.text());
    reply.json()
}

/// The next event of a receiver, with its data.
async fn event(receiver: &FakeReceiver, number: usize) -> (String, Value) {
    let event = receiver.until(number).await[number - 1].json();
    assert!(!event.to_string().contains(MARK), "{event}");
    (event["type"].as_str().unwrap().to_owned(), event["data"].clone())
}

pub(crate) async fn runs_and_templates(app: &TestApp) {
    let owner = owner(app).await;
    grant(app, "acct_owner", "1.00").await;
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    hook(&owner, &receiver, &["verifier_run.completed"]).await;
    let verifier = json!({
        "name": "sourced", "description": format!("{MARK} names its source."),
        "criterion": json!({ "contains": { "field": "answer", "text": MARK } }).to_string(),
        "input_contract": "text", "input_fields": ["answer"],
        "model_settings": { "model": "builtin/rules" },
    });
    let verifier = made(&owner, "/v1/verifiers", &verifier).await;
    let inputs = json!({ "inputs": { "answer": MARK } });
    let run = made(&owner, "/v1/verifiers/sourced/runs", &inputs).await;
    let (kind, data) = event(&receiver, 1).await;
    assert_eq!(kind, "verifier_run.completed");
    assert_eq!(data["verifier_run_id"], run["verifier_run_id"]);
    assert_eq!(data["verifier_id"], verifier["verifier_id"]);
    assert_eq!((&data["version"], &data["verdict"]), (&json!(1), &json!("passed")));

    let handle = Body::from(json!({ "handle": "owner" }).to_string());
    assert_eq!(owner.send("PATCH", "/v1/me", handle, &[]).await.status, StatusCode::OK);
    let workflow = json!({
        "name": "Report", "description": MARK, "body": format!("# {MARK}"), "outcome": MARK,
    });
    let saved = made(&owner, "/v1/workflows", &workflow).await;
    // The judges that screen a publication carry out verifier runs, too.
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    hook(&owner, &receiver, &["template.published"]).await;
    let order = json!({ "workflow_id": saved["workflow_id"] });
    let published = made(&owner, "/v1/templates", &order).await;
    let (kind, data) = event(&receiver, 1).await;
    assert_eq!(kind, "template.published");
    assert_eq!(data["template_id"], published["template_id"]);
    assert_eq!(data["workflow_id"], saved["workflow_id"]);
    assert_eq!((&data["handle"], &data["version"]), (&json!("owner"), &json!(1)));
}

pub(crate) async fn credit(app: &TestApp) {
    let owner = owner(app).await;
    let [fake] = app.executors([says_valid()]).await;
    let session = json!({ "id": "priced", "price_micros": 950 });
    let executor = json!({ "name": "priced", "url": fake.url(), "session": session });
    made(&app.admin(), "/v1/executors", &executor).await;
    grant(app, "acct_owner", "0.001").await;
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    hook(&owner, &receiver, &["credit.low", "credit.exhausted"]).await;
    let terms = json!({ "replicas": 1, "session_pool": ["priced"] });
    made(&owner, "/api/v3/validate", &json!({ "claim": MARK, "consensus": terms })).await;
    let (kind, data) = event(&receiver, 1).await;
    assert_eq!((kind.as_str(), &data["left_micros"]), ("credit.low", &json!(50)));
}

pub(crate) async fn tasks(app: &TestApp) {
    let owner = owner(app).await;
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    hook(&owner, &receiver, &["task.failed", "task.finalized"]).await;
    let [slow] = app.executors([gated(answers(json!({ "answer": MARK })))]).await;
    for (number, id) in ["called-off", "too-late"].into_iter().enumerate() {
        let mut contract = owner.get(&format!("/v1/tasks/sample?task_id={id}")).await.json();
        contract["inputs"] = json!({ "prompt": MARK });
        made(&owner, "/v1/tasks", &contract).await;
        slow.wait_for_calls(number + 1).await;
        let state = if id == "called-off" {
            let reason = json!({ "reason": MARK });
            made(&owner, &format!("/v1/tasks/{id}/cancel"), &reason).await;
            "cancelled"
        } else {
            app.clock.advance_ms(700_000);
            "expired"
        };
        let (kind, data) = event(&receiver, number + 1).await;
        assert_eq!(kind, "task.failed");
        assert_eq!(data, json!({ "task_id": id, "state": state }));
    }
}

#[tokio::test]
async fn a_verifier_run_and_a_publication_are_announced() {
    told(runs_and_templates).await;
}

#[tokio::test]
async fn credit_that_runs_low_is_announced() {
    told(credit).await;
}

#[tokio::test]
async fn a_task_that_is_cancelled_or_expires_is_announced_as_failed() {
    told(tasks).await;
}
