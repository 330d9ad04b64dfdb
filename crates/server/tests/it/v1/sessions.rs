//! `/v1/sessions`.

use http::StatusCode;
use insta::assert_json_snapshot;
use jurat_testkit::{app::TestApp, fake_executor::says_valid};
use serde_json::json;

#[tokio::test]
async fn a_session_keeps_its_members() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let body = json!({ "session_id": 201, "executor": "s1", "profile": "careful", "tier": "oracle",
                       "labels": ["heavy", "eu"], "task_types": { "delegate": "swarm" },
                       "reliability": 0.93, "price_micros": 1500 });
    let added = app.admin().post("/v1/sessions", &body).await;
    assert_eq!(added.status, StatusCode::CREATED);
    let shown = app.admin().get("/v1/sessions/201").await.json();
    assert_eq!(shown, added.json());
    assert_json_snapshot!(shown);
}

#[tokio::test]
async fn bad_sessions_name_the_field() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let cases = [
        (json!({ "executor": "s1" }), "id"),
        (json!({ "id": "x" }), "executor"),
        (json!({ "id": "x", "executor": "nobody" }), "executor"),
        (json!({ "id": "x y", "executor": "s1" }), "id"),
        (json!({ "id": "x", "session_id": "y", "executor": "s1" }), "session_id"),
        (json!({ "id": "x", "executor": "s1", "price_micros": -1 }), "price_micros"),
        (json!({ "id": "x", "executor": "s1", "reliability": 1 }), "reliability"),
        (json!({ "id": "x", "executor": "s1", "labels": "heavy" }), "labels"),
        (json!({ "id": "x", "executor": "s1", "task_types": ["a"] }), "task_types"),
        (json!({ "id": "x", "executor": "s1", "price": 1 }), "price"),
    ];
    for (body, field) in cases {
        let reply = app.admin().post("/v1/sessions", &body).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(reply.json()["field"], field, "{body}");
    }
    let taken = app.admin().post("/v1/sessions", &json!({ "id": "s1", "executor": "s1" })).await;
    assert_eq!(taken.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_removed_session_is_no_longer_asked() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    assert_eq!(app.admin().delete("/v1/sessions/s1").await.json(), json!({ "removed": "s1" }));
    let body = json!({ "claim": "x", "consensus": { "session_pool": ["s1"] } });
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.json()["code"], "session_unknown");
}
