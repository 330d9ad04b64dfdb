//! More than a node can do at once is refused, not queued for ever.

use http::StatusCode;
use jurat_engine::Limits;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{gated, says_valid},
};
use serde_json::json;

#[tokio::test]
async fn a_round_too_many_is_told_to_come_back() {
    let app = TestApp::with_limits(Limits { rounds: 1, ..Limits::default() }).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let caller = app.admin();
    let body = json!({ "claim": "x" });
    let first = caller.post("/api/v3/validate", &body);
    let second = async {
        fake.called(1).await;
        let reply = app.admin().post("/api/v3/validate", &body).await;
        fake.release();
        reply
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.status, StatusCode::OK);
    assert_eq!(second.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(second.json()["code"], "overloaded");
    assert!(second.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn calls_to_one_executor_wait_for_their_turn_within_the_deadline() {
    let app = TestApp::with_limits(Limits { calls_per_executor: 1, ..Limits::default() }).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let caller = app.admin();
    let patient = json!({ "claim": "x", "execution": { "timeout_ms": 60_000 } });
    let first = caller.post("/api/v3/validate", &patient);
    let second = async {
        fake.called(1).await;
        let hasty = json!({ "claim": "x", "execution": { "timeout_ms": 200 } });
        let reply = app.admin().post("/api/v3/validate", &hasty).await;
        fake.release();
        reply
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.json()["verdict"], "VALID");
    assert_eq!(second.json()["replicas"][0]["error"]["code"], "busy");
    let asked = fake.calls().iter().filter(|call| call.endpoint() == "verify").count();
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn a_store_that_is_gone_is_said_plainly() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    app.store.close().await;
    let reply = app.admin().get("/ready").await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(reply.json()["code"], "store_unavailable");
}
