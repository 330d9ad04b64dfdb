//! The examples of agent runs.

use std::collections::BTreeSet;

use jurat_testkit::fake_executor::answers;
use serde_json::{Value, json};

use super::{Story, app_of};

/// A run from its submission to its end, cancelled and retried; no worker runs.
pub(super) async fn runs() -> BTreeSet<String> {
    let behaviour = answers(json!({ "answer": "yes" })).task_types(&["swarm"]);
    let (app, _fakes) = app_of([behaviour.clone(), behaviour.clone(), behaviour]).await;
    let mut story = Story::new(app);
    let at = "/v1/runs";
    let request = story.request("POST", at);
    story.play("POST", at, at, &request).await;
    story.play("GET", at, at, &Value::Null).await;
    story.play("GET", "/v1/runs/{id}", "/v1/runs/bridges-1", &Value::Null).await;
    for part in ["result", "events"] {
        let path = format!("/v1/runs/{{id}}/{part}");
        story.play("GET", &path, &format!("/v1/runs/bridges-1/{part}"), &Value::Null).await;
    }
    for (verb, body) in [
        ("kickoff", json!({})),
        ("cancel", json!({ "reason": "asked twice" })),
        ("retry", json!({})),
    ] {
        let path = format!("/v1/runs/{{id}}/{verb}");
        story.play("POST", &path, &format!("/v1/runs/bridges-1/{verb}"), &body).await;
    }
    story.played
}
