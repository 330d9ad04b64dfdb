//! The examples of the Agent2Agent protocol.

use std::collections::BTreeSet;

use jurat_testkit::fake_executor::{hangs, says_valid};
use serde_json::{Value, json};

use super::{Story, app_of};

const PUSHES: &str = "/a2a/v1/tasks/{id}/pushNotificationConfigs";
const VERSION: &[(&str, &str)] = &[("a2a-version", "1.0")];

/// A message, its task, and a task that is cancelled.
pub(super) async fn a2a() -> BTreeSet<String> {
    let (app, _fakes) = app_of([says_valid(), says_valid(), says_valid()]).await;
    let mut story = Story::new(app);
    story.headers = VERSION;
    let cards = [
        "/.well-known/agent-card.json",
        "/.well-known/agent.json",
        "/api/v1/a2a/agent.json",
        "/a2a/v1/extendedAgentCard",
    ];
    for path in cards {
        story.play("GET", path, path, &Value::Null).await;
    }
    let request = story.request("POST", "/a2a");
    story.play("POST", "/a2a", "/a2a", &request).await;
    let path = "/a2a/v1/message:send";
    let request = story.request("POST", path);
    let sent = story.play("POST", path, path, &request).await.json();
    story.play("GET", "/a2a/v1/tasks", "/a2a/v1/tasks", &Value::Null).await;
    let at = format!("/a2a/v1/tasks/{}", sent["task"]["id"].as_str().unwrap());
    story.play("GET", "/a2a/v1/tasks/{id}", &at, &Value::Null).await;
    let (configs, config) = (PUSHES, format!("{PUSHES}/{{config}}"));
    let at = format!("{at}/pushNotificationConfigs");
    let request = story.request("POST", configs);
    story.play("POST", configs, &at, &request).await;
    story.play("GET", configs, &at, &Value::Null).await;
    for method in ["GET", "DELETE"] {
        story.play(method, &config, &format!("{at}/mine"), &Value::Null).await;
    }
    let mut played = story.played;

    let (app, _fakes) = app_of([hangs(), hangs(), hangs()]).await;
    let mut story = Story::new(app);
    story.headers = VERSION;
    let mut request = story.request("POST", path);
    request["configuration"] = json!({ "returnImmediately": true });
    let body = axum::body::Body::from(request.to_string());
    let sent = story.app.admin().send("POST", path, body, VERSION).await.json();
    let at = format!("/a2a/v1/tasks/{}:cancel", sent["task"]["id"].as_str().unwrap());
    story.play("POST", "/a2a/v1/tasks/{id}:cancel", &at, &Value::Null).await;
    played.extend(story.played);
    played
}
