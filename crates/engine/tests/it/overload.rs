//! A full node refuses work instead of queuing it for ever.

use futures::future::join_all;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::EngineLimits;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{gated, says_valid},
};
use serde_json::json;

#[tokio::test]
async fn a_round_beyond_the_limit_is_told_to_retry() {
    let app = TestApp::with_limits(EngineLimits { rounds: 1, ..EngineLimits::default() }).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let caller = app.admin();
    let body = json!({ "claim": "x" });
    let first = caller.post("/api/v3/validate", &body);
    let second = async {
        fake.wait_for_calls(1).await;
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
async fn calls_to_one_executor_wait_for_a_permit_within_the_deadline() {
    let app =
        TestApp::with_limits(EngineLimits { calls_per_executor: 1, ..EngineLimits::default() })
            .await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let caller = app.admin();
    let patient = json!({ "claim": "x", "execution": { "timeout_ms": 60_000 } });
    let first = caller.post("/api/v3/validate", &patient);
    let second = async {
        fake.wait_for_calls(1).await;
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
async fn one_account_does_not_get_all_calls_to_an_executor() {
    let app =
        TestApp::with_limits(EngineLimits { calls_per_executor: 8, ..EngineLimits::default() })
            .await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let (alice, bob) = (
        app.caller("alice", &[Scope::RoundsCreate]).await,
        app.caller("bob", &[Scope::RoundsCreate]).await,
    );
    let body = |claim: &str| json!({ "claim": claim, "execution": { "timeout_ms": 60_000 } });
    let of_alice = body("of alice");
    let many = join_all((0..12).map(|_| alice.post("/api/v3/validate", &of_alice)));
    let asked = || fake.calls().into_iter().filter(|call| call.endpoint() == "verify");
    let other = async {
        fake.wait_for_calls(7).await;
        let of_bob = body("of bob");
        let (reply, ()) = tokio::join!(bob.post("/api/v3/validate", &of_bob), async {
            fake.wait_for_calls(8).await;
            fake.release();
        });
        reply
    };
    let (many, other) = tokio::join!(many, other);
    for reply in many.iter().chain([&other]) {
        assert_eq!(reply.json()["verdict"], "VALID", "{}", reply.text());
    }
    let order: Vec<bool> = asked().map(|call| call.body.to_string().contains("of bob")).collect();
    assert_eq!((order.len(), order.iter().position(|is_bob| *is_bob)), (13, Some(7)));
}

#[tokio::test]
async fn a_missing_store_is_reported_plainly() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    app.store.close().await;
    let reply = app.admin().get("/ready").await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(reply.json()["code"], "store_unavailable");
}
