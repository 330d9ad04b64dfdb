//! Health is kept current, and an executor is probed before it is used.

use futures::future::join_all;
use jurat_core::{account::caller::Scope, executor::session::Session};
use jurat_engine::{Clock as _, EngineLimits, SoleNode};
use jurat_store::Behalf;
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::{FakeExecutor, FakeHealth, gated, says_valid, status},
};
use serde_json::json;

#[tokio::test]
async fn an_executor_that_recovers_is_probed_before_it_is_used() {
    let app =
        TestApp::with_limits(EngineLimits { probe_fresh_ms: 1_000, ..EngineLimits::default() })
            .await;
    let fake = FakeExecutor::start(says_valid().health(FakeHealth::Status(503))).await;
    app.register("late", &fake.url()).await;
    let body = json!({ "claim": "x" });
    assert_eq!(
        app.admin().post("/api/v3/validate", &body).await.json()["code"],
        "sessions_unavailable"
    );
    fake.set(says_valid());
    app.clock.advance_ms(1_001);
    assert_eq!(app.admin().post("/api/v3/validate", &body).await.json()["verdict"], "VALID");
}

#[tokio::test]
async fn an_executor_is_probed_again_after_fifteen_seconds() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    fake.set(says_valid().health(FakeHealth::Status(503)));
    let body = json!({ "claim": "x" });
    app.clock.advance_ms(15_000);
    assert_eq!(app.admin().post("/api/v3/validate", &body).await.json()["verdict"], "VALID");
    app.clock.advance_ms(1);
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["code"], "sessions_unavailable", "{reply}");
}

#[tokio::test]
async fn a_fresh_probe_is_not_repeated() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    for _ in 0..3 {
        app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await;
    }
    let probes = fake.calls().iter().filter(|call| call.endpoint() == "health").count();
    assert_eq!(probes, 1);
}

#[tokio::test]
async fn an_undeclared_profile_is_not_dispatched() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid().profiles(&["default"])]).await;
    let session = json!({ "id": "bold", "executor": "s1", "profile": "reckless" });
    app.admin().post("/v1/sessions", &session).await;
    let body = json!({ "objective": "x", "consensus": { "session_pool": ["bold"] } });
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    assert_eq!(reply["code"], "sessions_unavailable");
    assert!(reply["sessions"][0]["problem"].as_str().unwrap().contains("`reckless`"));
    assert!(fake.calls().iter().all(|call| call.endpoint() != "execute"));
}

#[tokio::test]
async fn routing_prefers_sessions_that_differ() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_valid(), says_valid()]).await;
    for n in 0..5 {
        let session = json!({ "id": format!("copy-{n}"), "executor": "s1" });
        app.admin().post("/v1/sessions", &session).await;
    }
    let body = json!({ "claim": "x", "consensus": { "replicas": 3 } });
    for _ in 0..5 {
        let reply = app.admin().post("/api/v3/validate", &body).await.json();
        let mut executors: Vec<&str> = reply["replicas"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["executor"].as_str().unwrap())
            .collect();
        executors.sort_unstable();
        assert_eq!(executors, ["s1", "s2", "s3"]);
    }
}

#[tokio::test]
async fn short_timeouts_do_not_pause_an_executor() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let hasty = json!({ "claim": "x", "execution": { "timeout_ms": 40 } });
    for _ in 0..8 {
        let reply = app.admin().post("/api/v3/validate", &hasty).await.json();
        assert_eq!(reply["replicas"][0]["error"]["code"], "timeout", "{reply}");
    }
    fake.release();
    let reply = app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await.json();
    assert_eq!(reply["verdict"], "VALID", "{reply}");
}

#[tokio::test]
async fn a_hanging_probe_does_not_delay_the_others() {
    let app =
        TestApp::with_limits(EngineLimits { probe_fresh_ms: 1_000, ..EngineLimits::default() })
            .await;
    let [_well, sick] = app.executors([says_valid(), says_valid()]).await;
    sick.set(says_valid().health(FakeHealth::Hangs));
    app.clock.advance_ms(1_001);
    let body = json!({ "claim": "x", "execution": { "timeout_ms": 4_000 },
                       "consensus": { "session_pool": ["s1", "s2"] } });
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["verdict"], "VALID", "{reply}");
}

#[tokio::test]
async fn a_new_executor_of_the_same_name_has_a_clean_record() {
    let app = TestApp::new().await;
    let [_old] = app.executors([status(500)]).await;
    for _ in 0..5 {
        app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await;
    }
    assert_eq!(app.admin().get("/v1/executors/s1").await.json()["status"], "resting");
    app.admin().delete("/v1/executors/s1").await;
    let fresh = FakeExecutor::start(says_valid()).await;
    app.register("s1", &fresh.url()).await;
    let reply = app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await.json();
    assert_eq!(reply["verdict"], "VALID", "{reply}");
}

#[tokio::test]
async fn after_the_pause_a_probe_decides_and_no_call_is_risked() {
    let app = TestApp::new().await;
    let [fake] = app.executors([status(500)]).await;
    let body = json!({ "claim": "x" });
    for _ in 0..5 {
        app.admin().post("/api/v3/validate", &body).await;
    }
    fake.set(status(500).health(FakeHealth::Status(503)));
    app.clock.advance_ms(5_000);
    let refused = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(refused["code"], "sessions_unavailable", "{refused}");
    let calls = fake.calls().into_iter().filter(|call| call.endpoint() == "verify").count();
    assert_eq!(calls, 5, "a call was spent on finding out");
    // The second pause is twice as long.
    fake.set(says_valid());
    app.clock.advance_ms(5_000);
    let refused = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(refused["code"], "sessions_unavailable", "{refused}");
    app.clock.advance_ms(5_000);
    assert_eq!(app.admin().post("/api/v3/validate", &body).await.json()["verdict"], "VALID");
}

/// Five concurrent requests, each of which misses its deadline.
async fn all_time_out(app: &TestApp, caller: &TestCaller<'_>, fake: &FakeExecutor) {
    let body = json!({ "claim": "x", "execution": { "timeout_ms": 1_200 } });
    let requests = join_all((0..5).map(|_| caller.post("/api/v3/validate", &body)));
    let clock = async {
        fake.wait_for_calls(5).await;
        // Whatever the clock of the node says, the executor has had a second.
        app.clock.advance_ms(6_000);
    };
    let (replies, ()) = tokio::join!(requests, clock);
    for reply in replies {
        let reply = reply.json();
        assert_eq!(reply["replicas"][0]["error"]["code"], "timeout", "{reply}");
    }
}

#[tokio::test]
async fn a_hanging_executor_is_paused_under_short_deadlines_too() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let body = json!({ "claim": "x", "execution": { "timeout_ms": 1_200 } });
    let caller = app.admin();
    join_all((0..5).map(|_| caller.post("/api/v3/validate", &body))).await;
    let shown = app.admin().get("/v1/executors/s1").await.json();
    assert_eq!((&shown["status"], &shown["circuit"]["state"]), (&json!("resting"), &json!("open")));
    fake.release();
}

#[tokio::test]
async fn one_account_does_not_pause_an_executor_for_others() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let hasty = app.caller("hasty", &[Scope::RoundsCreate]).await;
    let victim = app.caller("victim", &[Scope::RoundsCreate]).await;
    all_time_out(&app, &hasty, &fake).await;
    fake.set(says_valid());
    fake.release();
    let body = json!({ "claim": "x" });
    let reply = victim.post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["verdict"], "VALID", "{reply}");
    // It is paused for the account for which it failed, and the operator sees that.
    let shown = app.admin().get("/v1/executors/s1").await.json();
    assert_eq!(shown["circuit"]["rests_for"], "some", "{shown}");
    let reply = hasty.post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["code"], "sessions_unavailable", "{reply}");
}

#[tokio::test]
async fn failures_of_several_accounts_pause_an_executor_for_all() {
    let app = TestApp::new().await;
    let [_fake] = app.executors([status(500)]).await;
    let body = json!({ "claim": "x" });
    for name in ["one", "two"] {
        let caller = app.caller(name, &[Scope::RoundsCreate]).await;
        for _ in 0..3 {
            caller.post("/api/v3/validate", &body).await;
        }
    }
    let third = app.caller("three", &[Scope::RoundsCreate]).await;
    let reply = third.post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["code"], "sessions_unavailable", "{reply}");
}

#[tokio::test]
async fn oversized_capabilities_are_refused() {
    let app = TestApp::new().await;
    let fake = FakeExecutor::start(says_valid().model_id(&"m".repeat(201))).await;
    let body = json!({ "name": "long", "url": fake.url() });
    let added = app.admin().post("/v1/executors", &body).await.json();
    assert!(added["probe"]["capabilities"]["error"].as_str().unwrap().contains("model_id"));
}

#[tokio::test]
async fn a_missed_change_is_found_soon_on_a_single_node_too() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let other = jurat_core::executor::Executor {
        name: "late".to_owned(),
        url: fake.url(),
        token_env: None,
        agent_events_url: None,
        remote: None,
        created_at: app.clock.now(),
        probe: None,
    };
    // As if a caller left while the store committed.
    let session = app.store.sessions().get(&Behalf::Platform, "s1").await.unwrap().unwrap();
    let session = Session { id: "late".to_owned(), executor: "late".to_owned(), ..session };
    app.store.executors().add(&Behalf::Platform, &other, Some(&session), None).await.unwrap();
    let body = json!({ "claim": "x", "consensus": { "session_pool": ["late"] } });
    let first = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(first["code"], "session_unknown");
    // Polling starts only here: on a slow machine it could otherwise come before the request.
    app.start(SoleNode::Yes).await;
    loop {
        let reply = app.admin().post("/api/v3/validate", &body).await.json();
        if reply["verdict"] == "VALID" {
            break;
        }
        tokio::task::yield_now().await;
    }
    app.engine.shutdown().await;
}
