//! `Idempotency-Key`: a repeated request is answered, and nothing is done twice.

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::SoleNode;
use jurat_store::{StoreLocation, TakeoverScope};
use jurat_testkit::{
    app::{TestApp, TestCaller, TestReply},
    fake_executor::{FakeExecutor, gated, says_invalid, says_valid},
};
use serde_json::{Value, json};

async fn keyed(
    caller: &TestCaller<'_>,
    (method, path): (&str, &str),
    body: &Value,
    key: &str,
) -> TestReply {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    caller.send(method, path, body, &[("idempotency-key", key)]).await
}

fn is_replayed(reply: &TestReply) -> bool {
    reply.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
}

#[tokio::test]
async fn the_same_request_gets_the_same_answer_and_nobody_is_asked_again() {
    let app = TestApp::new().await;
    let fakes = app.executors([says_valid(), says_valid(), says_invalid()]).await;
    let body = json!({ "claim": "x", "consensus": { "replicas": 3 } });
    for path in ["/api/v3/validate", "/api/v4/factcheck", "/api/v3/delegate", "/api/v2/validate"] {
        let mut body = body.clone();
        if path.ends_with("delegate") {
            body = json!({ "objective": "x", "consensus": { "replicas": 3 } });
        }
        if path.contains("v2") {
            body = json!({ "session_id": "s1", "claim": "x" });
        }
        let first = keyed(&app.admin(), ("POST", path), &body, path).await;
        assert_eq!(first.status, StatusCode::OK, "{}", first.text());
        assert!(!is_replayed(&first));
        let calls: usize = fakes.iter().map(|fake| fake.calls().len()).sum();
        app.clock.advance_ms(3_600_000);
        let second = keyed(&app.admin(), ("POST", path), &body, path).await;
        assert_eq!(second.status, StatusCode::OK);
        assert!(is_replayed(&second));
        assert_eq!(second.text(), first.text(), "{path}");
        assert_eq!(fakes.iter().map(|fake| fake.calls().len()).sum::<usize>(), calls);
    }
}

#[tokio::test]
async fn a_request_with_members_in_another_order_is_the_same() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let send = async |body: &'static str| {
        let key = [("idempotency-key", "k")];
        app.admin().send("POST", "/api/v3/validate", Body::from(body), &key).await
    };
    let first = send(r#"{"claim": "x", "context": 5000}"#).await;
    let second = send(r#"{ "context":5000,"claim":"x" }"#).await;
    assert!(is_replayed(&second), "{}", second.text());
    assert_eq!(second.text(), first.text());
}

#[tokio::test]
async fn another_request_under_the_same_key_is_refused() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let admin = app.admin();
    let claim = json!({ "claim": "x" });
    keyed(&admin, ("POST", "/api/v3/validate"), &claim, "k").await;
    for (path, body) in [
        ("/api/v3/validate", json!({ "claim": "y" })),
        ("/api/v3/factcheck", claim.clone()),
        ("/api/v4/validate", claim.clone()),
        ("/v1/sessions", json!({ "id": "s9", "executor": "s1" })),
    ] {
        let reply = keyed(&admin, ("POST", path), &body, "k").await;
        assert_eq!(reply.status, StatusCode::CONFLICT, "{path}");
        assert_eq!(reply.json()["code"], "idempotency_mismatch", "{path}");
    }
    assert_eq!(app.admin().get("/v1/sessions/s9").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_request_that_is_still_in_flight_is_waited_for() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let (one, two) = (app.admin(), app.admin());
    let body = json!({ "claim": "x" });
    let both = async {
        tokio::join!(
            keyed(&one, ("POST", "/api/v3/validate"), &body, "k"),
            keyed(&two, ("POST", "/api/v3/validate"), &body, "k")
        )
    };
    let let_go = async {
        fake.wait_for_calls(1).await;
        fake.release();
    };
    let ((left, right), ()) = tokio::join!(both, let_go);
    assert_eq!(left.status, StatusCode::OK);
    assert_eq!(left.text(), right.text());
    assert_ne!(is_replayed(&left), is_replayed(&right));
    assert_eq!(fake.calls().iter().filter(|call| call.endpoint() == "verify").count(), 1);
}

#[tokio::test]
async fn every_write_happens_once() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let admin = app.admin();
    let executor = json!({ "name": "north", "url": fake.url() });
    let session = json!({ "id": "lane", "executor": "north" });
    for (method, path, body, status) in [
        ("POST", "/v1/executors", &executor, StatusCode::CREATED),
        ("POST", "/v1/sessions", &session, StatusCode::CREATED),
        ("DELETE", "/v1/sessions/lane", &Value::Null, StatusCode::OK),
        ("DELETE", "/v1/executors/north", &Value::Null, StatusCode::OK),
    ] {
        let key = format!("{method} {path}");
        let first = keyed(&admin, (method, path), body, &key).await;
        assert_eq!(first.status, status, "{key}: {}", first.text());
        let second = keyed(&admin, (method, path), body, &key).await;
        assert_eq!(second.status, status, "{key}: {}", second.text());
        assert_eq!(second.text(), first.text(), "{key}");
        assert!(is_replayed(&second) && !is_replayed(&first), "{key}");
        let bare = app.admin().send(method, path, Body::from(body.to_string()), &[]).await;
        assert!(bare.status.is_client_error(), "without the key it is refused: {key}");
    }
}

#[tokio::test]
async fn a_failed_request_leaves_its_key_free() {
    let app = TestApp::new().await;
    let admin = app.admin();
    let body = json!({ "claim": "x" });
    let refused = keyed(&admin, ("POST", "/api/v3/validate"), &body, "k").await;
    assert_eq!(refused.json()["code"], "sessions_unavailable");
    let wrong = keyed(&admin, ("POST", "/api/v3/validate"), &json!({}), "k").await;
    assert_eq!(wrong.json()["code"], "request_invalid");
    let _fakes = app.executors([says_valid()]).await;
    let reply = keyed(&admin, ("POST", "/api/v3/validate"), &body, "k").await;
    assert_eq!(reply.json()["verdict"], "VALID");
    assert!(!is_replayed(&reply));
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_one_account() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let scopes = [Scope::RoundsCreate, Scope::RoundsRead];
    let (alice, bob) = (app.caller("alice", &scopes).await, app.caller("bob", &scopes).await);
    let first = keyed(&alice, ("POST", "/api/v3/validate"), &json!({ "claim": "x" }), "k").await;
    let other = keyed(&bob, ("POST", "/api/v3/validate"), &json!({ "claim": "y" }), "k").await;
    assert_eq!(other.status, StatusCode::OK, "{}", other.text());
    assert!(!is_replayed(&other));
    assert_ne!(first.json()["round_id"], other.json()["round_id"]);
}

#[tokio::test]
async fn a_key_must_be_one_short_printable_text() {
    let app = TestApp::new().await;
    let long = "k".repeat(256);
    for key in ["", "  ", "\u{e9}", "a\tb", long.as_str()] {
        let reply = keyed(&app.admin(), ("POST", "/api/v3/validate"), &json!({}), key).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{key:?}");
        assert_eq!(reply.json()["field"], "Idempotency-Key");
    }
    let longest = "k".repeat(255);
    let reply = keyed(&app.admin(), ("POST", "/api/v3/validate"), &json!({}), &longest).await;
    assert_eq!(reply.json()["code"], "request_invalid");
}

#[tokio::test]
async fn a_disagreement_under_fail_hard_is_repeated_unchanged() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_invalid(), says_invalid()]).await;
    let terms = json!({ "replicas": 3, "disagreement_policy": "fail_hard", "min_agreement": 0.9 });
    let body = json!({ "claim": "x", "consensus": terms });
    let first = keyed(&app.admin(), ("POST", "/api/v3/validate"), &body, "k").await;
    assert_eq!(first.json()["code"], "consensus_disagreement", "{}", first.text());
    let second = keyed(&app.admin(), ("POST", "/api/v3/validate"), &body, "k").await;
    assert_eq!(second.status, first.status);
    assert_eq!(second.text(), first.text());
    assert!(is_replayed(&second));
}

/// A request with the key `k` whose node is killed during its round, and the executor that was
/// asked.
async fn left(file: &StoreLocation, body: &Value) -> FakeExecutor {
    let app = TestApp::with_store(file).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let caller = app.admin();
    let mut asked = Box::pin(keyed(&caller, ("POST", "/api/v3/validate"), body, "k"));
    tokio::select! {
        _ = &mut asked => {}
        () = fake.wait_for_calls(1) => {}
    }
    // As after a kill: the store is gone under the running round.
    app.store.close().await;
    fake
}

#[tokio::test]
async fn after_a_crash_the_key_leads_to_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let file = StoreLocation::File(folder.path().join("jurat.db"));
    let body = json!({ "claim": "x" });
    let fake = left(&file, &body).await;
    let app = TestApp::with_store(&file).await;
    app.clock.advance_ms(1);
    app.start(SoleNode::Yes).await;
    fake.release();
    let reply = keyed(&app.admin(), ("POST", "/api/v3/validate"), &body, "k").await;
    assert_eq!(reply.json()["verdict"], "VALID", "{}", reply.text());
    assert!(!is_replayed(&reply), "it was run now");
    let again = keyed(&app.admin(), ("POST", "/api/v3/validate"), &body, "k").await;
    assert!(is_replayed(&again) && again.text() == reply.text(), "{}", again.text());
    let other = json!({ "claim": "y" });
    let other = keyed(&app.admin(), ("POST", "/api/v3/validate"), &other, "k").await;
    assert_eq!(other.json()["code"], "idempotency_mismatch");
    let list = app.admin().get("/v1/rounds").await.json();
    let states: Vec<&Value> =
        list["items"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["closed", "expired"], "the round that was left stays as it ended");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_repeated_request_does_not_wait_for_a_dead_node() {
    let folder = tempfile::tempdir().unwrap();
    let file = StoreLocation::File(folder.path().join("jurat.db"));
    let body = json!({ "claim": "x" });
    let fake = left(&file, &body).await;
    fake.release();
    let app = TestApp::with_store(&file).await;
    app.clock.advance_ms(1);
    let admin = app.admin();
    let streamed = [("accept", "text/event-stream"), ("idempotency-key", "k")];
    let waiting = admin.send("POST", "/api/v3/validate", Body::from(body.to_string()), &streamed);
    let swept = async {
        app.clock.advance_ms(70_001);
        assert_eq!(app.engine.expire_orphans(TakeoverScope::LeaseOver).await.unwrap(), 1);
    };
    let (reply, ()) = tokio::join!(waiting, swept);
    let text = reply.text();
    assert!(text.starts_with("event: replica_started"), "{text}");
    let last = text.rsplit("event: ").next().unwrap();
    assert!(last.starts_with("final") && last.contains("\"verdict\":\"VALID\""), "{text}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_repeated_stream_has_the_final_event() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let headers = [("accept", "text/event-stream"), ("idempotency-key", "k")];
    let body = json!({ "claim": "x" }).to_string();
    let path = "/api/v3/validate";
    let first = app.admin().send("POST", path, Body::from(body.clone()), &headers).await.text();
    let second = app.admin().send("POST", path, Body::from(body), &headers).await;
    assert!(is_replayed(&second));
    assert!(second.text().starts_with("event: final"), "{}", second.text());
    assert!(first.ends_with(&second.text()));
}

#[tokio::test]
async fn keys_are_made_rotated_and_revoked_once_and_their_secrets_are_not_kept() {
    let app = TestApp::new().await;
    let admin = app.admin();
    let create = json!({ "name": "ci" });
    let first = keyed(&admin, ("POST", "/v1/api-keys"), &create, "create").await.json();
    let clear = first["key"].as_str().unwrap().to_owned();
    let again = keyed(&admin, ("POST", "/v1/api-keys"), &create, "create").await;
    assert_eq!(again.status, StatusCode::CREATED);
    assert!(is_replayed(&again));
    assert_eq!((&again.json()["id"], &again.json()["key"]), (&first["id"], &Value::Null));

    let rotate = ("POST", "/v1/api-keys/ci/rotate");
    let rotated = keyed(&admin, rotate, &json!({}), "rotate").await.json();
    let again = keyed(&admin, rotate, &json!({}), "rotate").await;
    let mut expected = rotated.clone();
    expected["key"] = Value::Null;
    assert_eq!(again.json(), expected);
    assert_eq!(expected["replaces"], first["id"]);

    let revoke = ("DELETE", "/v1/api-keys/ci");
    assert_eq!(keyed(&admin, revoke, &Value::Null, "revoke").await.status, StatusCode::NO_CONTENT);
    let again = keyed(&admin, revoke, &Value::Null, "revoke").await;
    assert_eq!((again.status, again.text().as_str()), (StatusCode::NO_CONTENT, ""));
    assert!(is_replayed(&again));
    assert_eq!(app.admin().delete("/v1/api-keys/ci").await.status, StatusCode::NO_CONTENT);
    assert_eq!(app.admin().delete("/v1/api-keys/nobody").await.status, StatusCode::NOT_FOUND);
    let refused = app.with_key(&clear).post("/api/v3/validate", &json!({ "claim": "x" })).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let list = app.admin().get("/v1/api-keys").await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 3, "admin, ci and its successor: {list}");
}
