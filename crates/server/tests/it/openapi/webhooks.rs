//! The examples of webhooks.

use std::collections::BTreeSet;

use jurat_testkit::app::TestApp;
use serde_json::Value;

use super::Story;

/// A webhook from its creation to its removal; nothing is delivered.
pub(super) async fn webhooks() -> BTreeSet<String> {
    let mut story = Story::new(TestApp::new().await);
    let (at, one) = ("/v1/webhooks", "/v1/webhooks/{id}");
    let request = story.request("POST", at);
    let added = story.play("POST", at, at, &request).await.json();
    let path = format!("{at}/{}", added["id"].as_str().unwrap());
    story.play("GET", at, at, &Value::Null).await;
    story.play("GET", one, &path, &Value::Null).await;
    let tested = "/v1/webhooks/{id}/test";
    let sent = story.play("POST", tested, &format!("{path}/test"), &Value::Null).await.json();
    let list = "/v1/webhooks/{id}/deliveries";
    story.play("GET", list, &format!("{path}/deliveries"), &Value::Null).await;
    let delivery = format!("{at}/deliveries/{}", sent["id"].as_str().unwrap());
    story.play("GET", "/v1/webhooks/deliveries/{id}", &delivery, &Value::Null).await;
    // Disabling ends the delivery, so that it can be replayed.
    let switch = |is_enabled: bool| serde_json::json!({ "is_enabled": is_enabled });
    let body = switch(false).to_string();
    story.app.admin().send("PATCH", &path, body.into(), &[]).await;
    let request = story.request("PATCH", one);
    story.play("PATCH", one, &path, &request).await;
    let replayed = "/v1/webhooks/deliveries/{id}/replay";
    story.play("POST", replayed, &format!("{delivery}/replay"), &Value::Null).await;
    let rotated = "/v1/webhooks/{id}/rotate";
    let request = story.request("POST", rotated);
    story.play("POST", rotated, &format!("{path}/rotate"), &request).await;
    assert_eq!(story.app.admin().delete(&path).await.status, http::StatusCode::NO_CONTENT);
    story.played
}
