//! A node that cannot keep up refuses new rounds early, and answers everything else.

use http::StatusCode;
use jurat_engine::{EngineLimits, SoleNode};
use jurat_testkit::{
    app::TestApp,
    fake_executor::says_valid,
    unreliable_store::{UnreliableStore, WriteFault},
};
use serde_json::json;

use crate::mcp::{MODERN, call};

/// Asks for an impossible round until this answer comes. A busy machine may be late as well, so the
/// text gives the reason.
async fn until(app: &TestApp, status: StatusCode, because: &str) -> jurat_testkit::app::TestReply {
    loop {
        let reply = app.admin().post("/api/v3/validate", &json!({})).await;
        if reply.status == status && reply.text().contains(because) {
            return reply;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_slow_store_stops_new_rounds_until_it_recovers() {
    // Tries again for a second and a half before the close goes through.
    let store = UnreliableStore::new(WriteFault::Refused, 5);
    let app = TestApp::on(store.store(), EngineLimits::default()).await;
    app.start(SoleNode::Yes).await;
    let _fakes = app.executors([says_valid()]).await;
    let caller = app.admin();
    let claim = json!({ "claim": "x" });
    let slow = caller.post("/api/v3/validate", &claim);
    let meanwhile = async {
        let refused =
            until(&app, StatusCode::SERVICE_UNAVAILABLE, "the store cannot keep up").await;
        assert_eq!(refused.json()["code"], "overloaded");
        let seconds: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((2..=8).contains(&seconds));
        // A verifier run is a round, too.
        let run = app.admin().post("/v1/verifiers/nothing/runs", &json!({})).await;
        assert_eq!(run.json()["code"], "overloaded", "{}", run.text());
        // So are a task and an agent run, on every surface.
        for (path, tool) in [("/v1/tasks", "submit_task"), ("/v1/runs", "submit_run")] {
            let order = app.admin().post(path, &json!({})).await;
            assert_eq!(order.json()["code"], "overloaded", "{path}: {}", order.text());
            let order = call(&app.admin(), MODERN, tool, &json!({})).await;
            assert_eq!(order["structuredContent"]["code"], "overloaded", "{tool}: {order}");
        }
        for path in ["/health", "/ready", "/metrics", "/v1/rounds", "/v1/executors"] {
            assert_eq!(app.admin().get(path).await.status, StatusCode::OK, "{path}");
        }
    };
    let (slow, ()) = tokio::join!(slow, meanwhile);
    assert_eq!(slow.json()["verdict"], "VALID", "{}", slow.text());
    until(&app, StatusCode::UNPROCESSABLE_ENTITY, "request_invalid").await;
    app.engine.shutdown().await;
}
