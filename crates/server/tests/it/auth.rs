//! Keys: who is admitted, and who is not.

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_store::Behalf;
use jurat_testkit::{app::TestApp, fake_executor::says_valid};
use serde_json::json;

#[tokio::test]
async fn a_wrong_key_reads_like_no_key() {
    let app = TestApp::new().await;
    let forged = jurat_core::account::key::ApiKey::new(1, [9, 9]).reveal();
    for key in ["", "jrt_live_x", "default-dev-token", forged.as_str()] {
        let reply = app.with_key(key).get("/v1/rounds").await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{key}");
        assert_eq!(reply.headers["www-authenticate"], "Bearer");
        assert_eq!(reply.json()["error"], "auth_required");
    }
}

#[tokio::test]
async fn the_key_may_come_in_x_api_key() {
    let app = TestApp::new().await;
    let key = jurat_core::account::key::ApiKey::new(1, [2, 3]).reveal();
    let reply =
        app.anonymous().send("GET", "/v1/rounds", Body::empty(), &[("x-api-key", &key)]).await;
    assert_eq!(reply.status, StatusCode::OK);
}

#[tokio::test]
async fn a_key_without_the_scope_is_told_which_one() {
    let app = TestApp::new().await;
    let reader = app.caller("reader", &[Scope::RoundsRead]).await;
    assert_eq!(reader.get("/v1/rounds").await.status, StatusCode::OK);
    let reply = reader.post("/api/v3/validate", &json!({ "claim": "x" })).await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN);
    assert!(reply.json()["detail"].as_str().unwrap().contains("rounds:create"));
    let reply = reader.get("/v1/executors").await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_round_of_another_account_does_not_exist() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let alice = app.caller("alice", &[Scope::RoundsCreate, Scope::RoundsRead]).await;
    let bob = app.caller("bob", &[Scope::RoundsCreate, Scope::RoundsRead]).await;
    let round = alice.post("/api/v3/validate", &json!({ "claim": "x" })).await.json();
    let path = format!("/v1/rounds/{}", round["round_id"].as_str().unwrap());
    assert_eq!(alice.get(&path).await.status, StatusCode::OK);
    let hidden = bob.get(&path).await;
    let absent = bob.get("/v1/rounds/rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV").await;
    assert_eq!((hidden.status, absent.status), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND));
    assert_eq!(bob.get("/v1/rounds").await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_revoked_key_is_refused() {
    let app = TestApp::new().await;
    let key = jurat_core::account::key::ApiKey::new(11, [12, 13]);
    let account = jurat_core::id::AccountId::admin();
    let now = app.engine.clock().now();
    let mut record = jurat_testkit::app::key_record(&key, account, &[Scope::Admin], now);
    record.key.revoked_at = Some(now);
    app.store.keys().put(&Behalf::Platform, &record).await.unwrap();
    let reply = app.with_key(&key.reveal()).get("/v1/rounds").await;
    assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
    // The same key without the revocation is valid, so the revocation is the reason.
    let other = jurat_core::account::key::ApiKey::new(14, [12, 13]);
    record.key.id = other.id().to_owned();
    record.key.revoked_at = None;
    app.store.keys().put(&Behalf::Platform, &record).await.unwrap();
    assert_eq!(app.with_key(&other.reveal()).get("/v1/rounds").await.status, StatusCode::OK);
}
