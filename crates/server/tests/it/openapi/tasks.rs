//! The examples of tasks.

use std::collections::BTreeSet;

use jurat_engine::SoleNode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{FakeExecutor, answers, says_valid},
};
use serde_json::{Value, json};

use super::Story;

const AT: &str = "/v1/tasks";

async fn told() -> (Story, [FakeExecutor; 2]) {
    let app = TestApp::new().await;
    let output = json!({ "answer": "hello", "confidence": 0.9 });
    let fakes = app.executors([answers(output), says_valid()]).await;
    (Story::new(app), fakes)
}

/// A continuous task.
async fn next_epoch() -> BTreeSet<String> {
    let (mut story, _fakes) = told().await;
    story.app.start(SoleNode::Yes).await;
    let mut order = story.request("POST", AT);
    order["contract"]["task_mode"] = json!("CONTINUOUS");
    order["contract"]["budget"]["mode"] = json!("EPOCH_RENEW");
    story.app.admin().post(AT, &order).await;
    story.app.admin().get("/v1/tasks/task-001?wait=30").await;
    let path = "/v1/tasks/{id}/epochs";
    story.play("POST", path, "/v1/tasks/task-001/epochs", &json!({})).await;
    story.played
}

/// One task that is decided, and one that is cancelled before any work starts.
pub(super) async fn tasks() -> BTreeSet<String> {
    let (mut story, _fakes) = told().await;
    story.app.start(SoleNode::Yes).await;
    let path = "/v1/tasks/sample";
    story.play("GET", path, "/v1/tasks/sample?task_id=task-001", &Value::Null).await;
    let request = story.request("POST", AT);
    story.play("POST", AT, AT, &request).await;
    let ended = story.app.admin().get("/v1/tasks/task-001?wait=30").await.json();
    assert_eq!(ended["state"], "finalized", "{ended}");
    story.play("GET", AT, AT, &Value::Null).await;
    story.play("GET", "/v1/tasks/{id}", "/v1/tasks/task-001", &Value::Null).await;
    let path = "/v1/tasks/{id}/events";
    story.play("GET", path, "/v1/tasks/task-001/events?after=2&limit=1", &Value::Null).await;
    let path = "/v1/tasks/{id}/decision";
    story.play("GET", path, "/v1/tasks/task-001/decision", &Value::Null).await;
    let path = "/v1/knowledge";
    story.play("GET", path, "/v1/knowledge?task_id=task-001", &Value::Null).await;
    let path = "/v1/tasks/{id}/feedback";
    let request = story.request("POST", path);
    story.play("POST", path, "/v1/tasks/task-001/feedback", &request).await;
    let mut played = story.played;
    played.extend(next_epoch().await);
    let (mut story, _fakes) = told().await;
    let request = story.request("POST", AT);
    story.play("POST", AT, AT, &request).await;
    let path = "/v1/tasks/{id}/cancel";
    let request = story.request("POST", path);
    story.play("POST", path, "/v1/tasks/task-001/cancel", &request).await;
    played.extend(story.played);
    played
}
