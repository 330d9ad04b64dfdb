//! `/api/v1` and completions: the requests that prompt-oriented clients send, and what they read.

mod clients;
mod factcheck;
mod loopback;
mod registration;
mod tasks;
mod tools;

use jurat_testkit::app::TestApp;
use serde_json::{Value, json};

/// The reply to a request of the admin, which must succeed.
async fn sent(app: &TestApp, path: &str, body: &Value) -> Value {
    let reply = app.admin().post(path, body).await;
    assert!(reply.status.is_success(), "{path}: {}", reply.text());
    reply.json()
}

async fn got(app: &TestApp, path: &str) -> Value {
    let reply = app.admin().get(path).await;
    assert!(reply.status.is_success(), "{path}: {}", reply.text());
    reply.json()
}

/// Gives a session of its own to an executor, with a label.
async fn labelled(app: &TestApp, id: &str, executor: &str, label: &str) {
    let body = json!({ "id": id, "executor": executor, "labels": [label] });
    let reply = app.admin().post("/v1/sessions", &body).await;
    assert!(reply.status.is_success(), "{}", reply.text());
}
