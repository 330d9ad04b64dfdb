//! Webhooks as their owners manage them.

use super::*;
use jurat_testkit::fake_receiver::ReceiverAnswer;

#[tokio::test]
async fn a_webhook_is_added_changed_and_removed() {
    let app = TestApp::new().await;
    let owner = owner(&app).await;
    let webhook = added(&owner, "https://example.com/hook", &["task.failed"]).await;
    assert!(webhook["secret"].as_str().unwrap().starts_with("whsec_"));
    let path = format!("/v1/webhooks/{}", id(&webhook));
    let shown = owner.get(&path).await.json();
    assert_eq!(shown["secret"], Value::Null, "it is shown once");
    assert_eq!((&shown["state"], &shown["events"]), (&json!("enabled"), &json!(["task.failed"])));
    let list = owner.get("/v1/webhooks").await.json();
    assert_eq!(list["items"], json!([shown]));
    let change = json!({ "is_enabled": false, "description": "paused" }).to_string();
    let changed = owner.send("PATCH", &path, change.into(), &[]).await.json();
    assert_eq!(
        (&changed["state"], &changed["description"]),
        (&json!("disabled"), &json!("paused"))
    );
    assert_eq!(changed["disabled_reason"], "its owner disabled it");
    let refused = owner.post(&format!("{path}/test"), &json!({})).await;
    assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.text());
    assert_eq!(owner.delete(&path).await.status, StatusCode::NO_CONTENT);
    assert_eq!(owner.get(&path).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn another_account_cannot_see_change_or_replay_a_webhook() {
    let app = started().await;
    let (owner, other) = (owner(&app).await, app.caller("other", &Scope::OWN).await);
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    let webhook = hook(&owner, &receiver, &[]).await;
    let sent = tested(&owner, &webhook).await;
    delivery(&owner, &sent, "delivered").await;
    let path = format!("/v1/webhooks/{webhook}");
    for reply in [
        other.get(&path).await,
        other.get(&format!("{path}/deliveries")).await,
        other.get(&format!("/v1/webhooks/deliveries/{sent}")).await,
        other.post(&format!("/v1/webhooks/deliveries/{sent}/replay"), &json!({})).await,
        other.post(&format!("{path}/test"), &json!({})).await,
        other.post(&format!("{path}/rotate"), &json!({})).await,
        other.send("PATCH", &path, r#"{"is_enabled":false}"#.into(), &[]).await,
        other.delete(&path).await,
    ] {
        assert_eq!(reply.status, StatusCode::NOT_FOUND, "{}", reply.text());
    }
    assert_eq!(other.get("/v1/webhooks").await.json()["items"], json!([]));
    assert_eq!(owner.get(&path).await.json()["state"], "enabled");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_private_address_is_refused_when_it_is_added() {
    let app = TestApp::new().await;
    let owner = owner(&app).await;
    for (url, reason) in [
        ("http://example.com/", "must begin with `https://`"),
        ("https://127.0.0.1/", "must name a public host"),
        ("https://[::ffff:10.0.0.1]/", "must name a public host"),
        ("https://169.254.169.254/latest", "must name a public host"),
        ("https://localhost/", "must name a public host"),
        ("https://a.localhost./", "must name a public host"),
        ("https://me:secret@example.com/", "must not contain a user name or password"),
        ("somewhere", "must be a URL"),
    ] {
        let reply = owner.post("/v1/webhooks", &json!({ "url": url })).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{url}: {}", reply.text());
        assert!(reply.text().contains(reason), "{url}: {}", reply.text());
        assert!(reply.text().contains("url"), "{}", reply.text());
    }
}

#[tokio::test]
async fn a_webhook_tells_no_more_than_its_key_may_read() {
    let app = TestApp::new().await;
    let scopes = [Scope::AccountWrite, Scope::TasksRead];
    let narrow = app.caller("narrow", &scopes).await;
    let url = "https://example.com/hook";
    added(&narrow, url, &["task.failed", "task.finalized"]).await;
    for body in [json!({ "url": url }), json!({ "url": url, "events": ["round.decided"] })] {
        let reply = narrow.post("/v1/webhooks", &body).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{}", reply.text());
        assert!(reply.text().contains("rounds:read"), "{}", reply.text());
    }
}

#[tokio::test]
async fn an_account_has_a_limited_number_of_webhooks() {
    let settings = under(|it| it.per_account = 2);
    let app = TestApp::with_webhooks(settings).await;
    let owner = owner(&app).await;
    for path in ["a", "b"] {
        added(&owner, &format!("https://example.com/{path}"), &[]).await;
    }
    let reply = owner.post("/v1/webhooks", &json!({ "url": "https://example.com/c" })).await;
    assert_eq!(reply.status, StatusCode::CONFLICT);
    assert!(reply.text().contains("2 webhooks, which is the limit"), "{}", reply.text());
}

#[tokio::test]
async fn an_unknown_event_type_is_named_with_the_known_ones() {
    let app = TestApp::new().await;
    let body = json!({ "url": "https://example.com/", "events": ["round.done"] });
    let reply = owner(&app).await.post("/v1/webhooks", &body).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    let text = reply.text();
    assert!(text.contains("round.done") && text.contains("round.decided"), "{text}");
}
