//! The examples of nodes.

use std::collections::BTreeSet;

use http::StatusCode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{FakeExecutor, says_valid},
};
use serde_json::{Value, json};

use super::Story;

/// Two nodes from an invitation to a block: the examples are those of the node that joins.
pub(super) async fn nodes() -> BTreeSet<String> {
    let other = TestApp::node(32).await;
    let fake = FakeExecutor::start(says_valid()).await;
    other.register("own", &fake.url()).await;
    let mut story = Story::new(TestApp::node(31).await);
    story.play("GET", "/v1/node", "/v1/node", &Value::Null).await;
    let at = "/v1/node/invitations";
    let request = story.request("POST", at);
    story.play("POST", at, at, &request).await;

    let invited = other.admin().post(at, &json!({})).await.json();
    let mut request = story.request("POST", "/v1/node/join");
    request["ticket"] = invited["ticket"].clone();
    let joined = story.play("POST", "/v1/node/join", "/v1/node/join", &request).await.json();
    let id = joined["id"].as_str().unwrap().to_owned();
    let (one, path) = ("/v1/peers/{id}", format!("/v1/peers/{id}"));
    story.play("GET", "/v1/peers", "/v1/peers", &Value::Null).await;
    story.play("GET", one, &path, &Value::Null).await;
    let mut request = story.request("PUT", one);
    request["addresses"] = joined["addresses"].clone();
    story.play("PUT", one, &path, &request).await;

    story.play("GET", "/v1/peers/{id}/offers", &format!("{path}/offers"), &Value::Null).await;
    let far = json!({ "name": "far", "url": fake.url(), "remote": true, "target_node": id });
    let added = story.app.admin().post("/v1/executors", &far).await;
    assert_eq!(added.status, StatusCode::CREATED, "{}", added.text());
    let asked = json!({ "claim": "x", "consensus": { "session_pool": ["far"] } });
    story.app.admin().post("/api/v3/validate", &asked).await;
    for books in ["bookings", "statement"] {
        let template = format!("{one}/{books}");
        story.play("GET", &template, &format!("{path}/{books}"), &Value::Null).await;
    }
    let template = "/v1/peers/{id}/block";
    story.play("POST", template, &format!("{path}/block"), &Value::Null).await;
    assert_eq!(story.app.admin().delete(&path).await.status, StatusCode::NO_CONTENT);
    story.played
}
