//! `/v1/tasks/{id}/epochs` and `/v1/tasks/{id}/feedback`: what follows a decision.

use std::time::Duration;

use ed25519_dalek::{Signer as _, SigningKey};
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::{Clock as _, SoleNode};
use jurat_testkit::{
    app::{TestApp, TestReply, admin_caller},
    fake_executor::{FakeExecutor, answers, gated},
};
use serde_json::{Value, json};

const WINDOW_MS: i64 = 60_000;

async fn started() -> TestApp {
    let app = TestApp::new().await;
    app.start(SoleNode::Yes).await;
    app
}

/// A contract whose decisions can be disputed for a minute.
async fn contract(app: &TestApp, id: &str) -> Value {
    let mut contract = app.admin().get(&format!("/v1/tasks/sample?task_id={id}")).await.json();
    contract["acceptance"]["settlement"]["window_ms"] = json!(WINDOW_MS);
    contract
}

/// A continuous one.
async fn continuous(app: &TestApp, id: &str) -> Value {
    let mut contract = contract(app, id).await;
    contract["task_mode"] = json!("CONTINUOUS");
    contract["budget"]["mode"] = json!("EPOCH_RENEW");
    contract
}

async fn submit(app: &TestApp, contract: &Value) {
    let reply = app.admin().post("/v1/tasks", contract).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
}

/// The task once nothing more happens by itself.
async fn at_rest(app: &TestApp, id: &str) -> Value {
    let reply = app.admin().get(&format!("/v1/tasks/{id}?wait=30")).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()
}

async fn decided(app: &TestApp, contract: &Value) -> Value {
    submit(app, contract).await;
    let task = at_rest(app, contract["task_id"].as_str().unwrap()).await;
    assert_eq!(task["state"], "finalized", "{task}");
    task
}

async fn complain(app: &TestApp, id: &str, body: &Value) -> TestReply {
    app.admin().post(&format!("/v1/tasks/{id}/feedback"), body).await
}

#[track_caller]
fn assert_conflict(reply: &TestReply, why: &str) {
    let body = reply.json();
    assert_eq!((reply.status, &body["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{body}");
    assert!(body["detail"].as_str().unwrap().contains(why), "{body}");
}

async fn events(app: &TestApp, id: &str) -> Vec<Value> {
    let page = app.admin().get(&format!("/v1/tasks/{id}/events?limit=200")).await.json();
    page["items"].as_array().unwrap().clone()
}

/// Waits for an event that happens by itself.
async fn event(app: &TestApp, id: &str, name: &str) -> Value {
    let waiting = async {
        loop {
            if let Some(found) = events(app, id).await.into_iter().find(|it| it["type"] == name) {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap()
}

fn asked(fake: &FakeExecutor) -> usize {
    fake.calls().iter().filter(|call| call.endpoint() == "execute").count()
}

#[tokio::test]
async fn a_continuous_task_decides_in_each_epoch() {
    let app = started().await;
    let [fake] = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let task = decided(&app, &continuous(&app, "task-1").await).await;
    assert_eq!((&task["epoch"], &task["ended_at"]), (&json!(1), &Value::Null));
    let epochs = "/v1/tasks/task-1/epochs";
    let key = [("idempotency-key", "second")];
    let begun = app.admin().post_with(epochs, &json!({}), &key).await;
    assert_eq!(begun.status, StatusCode::OK, "{}", begun.text());
    assert_eq!((&begun.json()["epoch"], &begun.json()["state"]), (&json!(2), &json!("created")));
    let again = app.admin().post_with(epochs, &json!({}), &key).await;
    assert_eq!(
        (again.json(), &again.headers["idempotent-replayed"]),
        (begun.json(), &"true".parse().unwrap())
    );
    let task = at_rest(&app, "task-1").await;
    assert_eq!((&task["epoch"], &task["state"]), (&json!(2), &json!("finalized")), "{task}");
    // Its earlier decision is not reused for the next one.
    assert_eq!(asked(&fake), 2);
    assert_eq!(task["spent"]["steps"]["spent"], 2);
    let settling: Vec<&Value> =
        task["settling"].as_array().unwrap().iter().map(|it| &it["epoch"]).collect();
    assert_eq!(settling, [&json!(1), &json!(2)]);
}

#[tokio::test]
async fn an_epoch_that_cannot_begin_says_why() {
    let app = started().await;
    let [fake] = app.executors([gated(answers(json!({ "answer": "yes" })))]).await;
    submit(&app, &continuous(&app, "task-1").await).await;
    fake.wait_for_calls(1).await;
    let begin =
        async |id: &str| app.admin().post(&format!("/v1/tasks/{id}/epochs"), &json!({})).await;
    assert_conflict(&begin("task-1").await, "the current epoch is not decided");
    fake.release();
    at_rest(&app, "task-1").await;
    submit(&app, &contract(&app, "task-2").await).await;
    at_rest(&app, "task-2").await;
    assert_conflict(&begin("task-2").await, "ONE_SHOT");
    app.admin().post("/v1/tasks/task-1/cancel", &json!({})).await;
    assert_conflict(&begin("task-1").await, "the task is cancelled");
    assert_eq!(begin("task-3").await.status, StatusCode::NOT_FOUND);
    let wrong = app.admin().post("/v1/tasks/task-1/epochs", &json!({ "epoch": 2 })).await;
    assert_eq!(wrong.json()["field"], "body");
    let reader = app.caller("reader", &[Scope::TasksRead]).await;
    for path in ["/v1/tasks/task-1/epochs", "/v1/tasks/task-1/feedback"] {
        let reply = reader.post(path, &json!({ "reason": "x" })).await;
        assert!(matches!(reply.status, StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST));
    }
}

#[tokio::test]
async fn a_complaint_in_time_makes_a_decision_bad_and_keeps_it_from_being_reused() {
    let app = started().await;
    let [fake] = app.executors([answers(json!({ "answer": "yes" }))]).await;
    decided(&app, &contract(&app, "task-1").await).await;
    let said = json!({ "reason": "it is wrong" });
    let key = [("idempotency-key", "one")];
    let path = "/v1/tasks/task-1/feedback";
    let first = app.admin().post_with(path, &said, &key).await;
    assert_eq!(first.status, StatusCode::OK, "{}", first.text());
    assert_eq!(first.json()["settling"][0]["complaint"], "it is wrong");
    assert_eq!(first.json()["state"], "finalized");
    let again = app.admin().post_with(path, &said, &key).await;
    assert_eq!((again.status, again.json()), (first.status, first.json()));
    assert_conflict(&complain(&app, "task-1", &said).await, "it was already disputed");
    // The same question is asked again.
    decided(&app, &contract(&app, "task-2").await).await;
    assert_eq!(asked(&fake), 2);
    app.clock.advance_ms(WINDOW_MS);
    let settled = event(&app, "task-1", "TASK_SETTLED").await;
    assert_eq!((&settled["data"]["epoch"], &settled["data"]["is_bad"]), (&json!(1), &json!(true)));
    let task = at_rest(&app, "task-1").await;
    assert_eq!((&task["settling"], &task["state"]), (&json!([]), &json!("finalized")));
}

#[tokio::test]
async fn an_undisputed_decision_settles_by_the_clock() {
    let app = started().await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let task = decided(&app, &contract(&app, "task-1").await).await;
    let ended = task["ended_at"].clone();
    app.clock.advance_ms(WINDOW_MS);
    // It is too late even before a node has looked at the clock.
    let late = complain(&app, "task-1", &json!({ "reason": "x" })).await;
    assert_conflict(&late, "the time to dispute it is over");
    let settled = event(&app, "task-1", "TASK_SETTLED").await;
    assert_eq!(settled["data"]["is_bad"], false);
    assert_eq!(at_rest(&app, "task-1").await["ended_at"], ended);
}

#[tokio::test]
async fn a_complaint_that_cannot_be_made_says_why() {
    let app = started().await;
    let [fake] = app.executors([gated(answers(json!({ "answer": "yes" })))]).await;
    submit(&app, &contract(&app, "task-1").await).await;
    fake.wait_for_calls(1).await;
    let said = json!({ "reason": "x" });
    assert_conflict(&complain(&app, "task-1", &said).await, "there is no decision yet");
    fake.release();
    at_rest(&app, "task-1").await;
    let other = json!({ "reason": "x", "epoch": 2 });
    assert_conflict(&complain(&app, "task-1", &other).await, "epoch 2");
    assert_eq!(complain(&app, "task-9", &said).await.status, StatusCode::NOT_FOUND);
    for (body, field) in [
        (json!({}), "reason"),
        (json!({ "reason": " " }), "reason"),
        (json!({ "reason": "x".repeat(501) }), "reason"),
        (json!({ "reason": "x", "epoch": 0 }), "epoch"),
        (json!({ "reason": "x", "outcome": "GOOD" }), "outcome"),
        (json!({ "reason": "x", "signature": "abc" }), "signature"),
        (json!({ "reason": "x", "timestamp": 1 }), "timestamp"),
        (json!({ "reason": "x", "signature": "0".repeat(128), "timestamp": 1 }), "signature"),
        (json!({ "reason": "x", "why": "y" }), "why"),
    ] {
        let reply = complain(&app, "task-1", &body).await;
        assert_eq!(reply.json()["code"], "validation_error", "{}", reply.text());
        assert_eq!(reply.json()["field"], field, "{}", reply.text());
    }
}

#[tokio::test]
async fn only_the_authority_that_the_contract_names_can_complain() {
    let app = started().await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let (authority, other) = (SigningKey::from_bytes(&[7; 32]), SigningKey::from_bytes(&[8; 32]));
    let mut task = contract(&app, "task-1").await;
    let named = format!("ed25519:{}", hex::encode(authority.verifying_key().as_bytes()));
    task["acceptance"]["settlement"]["feedback"]["authority_pubkey"] = json!(named);
    decided(&app, &task).await;
    let now = u64::try_from(app.clock.now().millis()).unwrap();
    let signed = |key: &SigningKey, text: String, timestamp: u64| {
        let signature = hex::encode(key.sign(text.as_bytes()).to_bytes());
        json!({ "reason": "it is wrong", "timestamp": timestamp, "signature": signature })
    };
    let account = admin_caller().account().to_string();
    let text =
        |id: &str, epoch: u64, at: u64| format!("{account}|{id}|{epoch}|BAD|it is wrong|{at}");
    let without_account = format!("task-1|1|BAD|it is wrong|{now}");
    let day = 86_400_000;
    for (body, field) in [
        (json!({ "reason": "it is wrong" }), "signature"),
        (signed(&other, text("task-1", 1, now), now), "signature"),
        (signed(&authority, without_account, now), "signature"),
        (signed(&authority, text("task-2", 1, now), now), "signature"),
        (signed(&authority, text("task-1", 2, now), now), "signature"),
        (signed(&authority, text("task-1", 1, now), now + 1), "signature"),
        (signed(&authority, text("task-1", 1, now + day), now + day), "timestamp"),
        (signed(&authority, text("task-1", 1, now - day), now - day), "timestamp"),
    ] {
        let reply = complain(&app, "task-1", &body).await;
        assert_eq!(reply.json()["field"], field, "{}", reply.text());
    }
    let right = signed(&authority, text("task-1", 1, now), now);
    let reply = complain(&app, "task-1", &right).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    // Readers of the events can check who it was.
    let told = event(&app, "task-1", "TASK_FEEDBACK_REPORTED").await;
    assert_eq!(told["data"]["signed"]["signature"], right["signature"]);
    let known = app.engine.task_show(&admin_caller(), "task-1").await.unwrap();
    assert_eq!(known.state.windows[0].complaint.as_deref(), Some("it is wrong"));
}

#[tokio::test]
async fn a_complaint_counts_in_the_account_for_which_it_was_signed() {
    let app = started().await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let authority = SigningKey::from_bytes(&[7; 32]);
    let mut task = contract(&app, "task-1").await;
    let named = format!("ed25519:{}", hex::encode(authority.verifying_key().as_bytes()));
    task["acceptance"]["settlement"]["feedback"]["authority_pubkey"] = json!(named);
    decided(&app, &task).await;
    // Another account has a task of the same name under the same authority.
    let other =
        app.caller("other", &[Scope::TasksWrite, Scope::TasksRead, Scope::RoundsCreate]).await;
    assert_eq!(other.post("/v1/tasks", &task).await.status, StatusCode::CREATED);
    let decided = other.get("/v1/tasks/task-1?wait=30").await.json();
    assert_eq!(decided["state"], "finalized", "{decided}");
    // The refusal names the text to sign.
    let reason = "it is wrong";
    let refused = complain(&app, "task-1", &json!({ "reason": reason })).await.json();
    let detail = refused["detail"].as_str().unwrap();
    let text = detail.split('`').find(|it| it.contains("|BAD|")).unwrap();
    let now = u64::try_from(app.clock.now().millis()).unwrap();
    let text = text.replace("<reason>", reason).replace("<timestamp>", &now.to_string());
    let signature = hex::encode(authority.sign(text.as_bytes()).to_bytes());
    let body = json!({ "reason": reason, "timestamp": now, "signature": signature });
    let repeated = other.post("/v1/tasks/task-1/feedback", &body).await;
    assert_eq!(repeated.status, StatusCode::BAD_REQUEST, "{}", repeated.text());
    assert_eq!(repeated.json()["field"], "signature");
    let reply = complain(&app, "task-1", &body).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
}
