//! The examples of agent events.

use std::collections::BTreeSet;

use jurat_testkit::{
    app::TestApp,
    fake_executor::{FakeExecutor, says_valid},
};
use serde_json::{Value, json};

use super::Story;

/// An event that is sent and read; it is not delivered.
pub(super) async fn agent_events() -> BTreeSet<String> {
    let app = TestApp::new().await;
    let fake = FakeExecutor::start(says_valid()).await;
    let body = json!({ "name": "delta", "url": fake.url(), "agent_events_url": fake.url() });
    app.admin().post("/v1/executors", &body).await;
    let mut story = Story::new(app);
    let at = "/v1/agent-events";
    let request = story.request("POST", at);
    let sent = story.play("POST", at, at, &request).await.json();
    story.play("GET", at, at, &Value::Null).await;
    let shown = format!("{at}/{}", sent["event_id"].as_str().unwrap());
    story.play("GET", "/v1/agent-events/{id}", &shown, &Value::Null).await;
    story.played
}
