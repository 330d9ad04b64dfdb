//! Requests that are refused, with the field and advice.

use http::StatusCode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{says_valid, status},
};
use serde_json::{Value, json};

/// Requests with one fault, and the reply to it.
#[tokio::test]
async fn every_wrong_field_is_named() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_valid(), says_valid()]).await;
    let cases =
        include_str!("refusals.jsonl").lines().map(|line| serde_json::from_str(line).unwrap());
    for case in cases {
        let case: Value = case;
        let body = &case["body"];
        let reply = app.admin().post("/api/v3/validate", body).await;
        assert_eq!(reply.headers["content-type"], "application/problem+json", "{body}");
        let problem = reply.json();
        assert_eq!(case["status"], reply.status.as_u16(), "{body} → {problem}");
        assert_eq!(problem["code"], case["code"], "{body} → {problem}");
        assert_eq!(problem["field"].as_str().unwrap_or(""), case["field"], "{body} → {problem}");
        assert_eq!(problem["error"], problem["code"]);
        assert_eq!(problem["message"], problem["detail"]);
        assert!(!problem["hint"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn the_fault_of_each_session_is_reported() {
    let app = TestApp::new().await;
    let [_well, sick, other] = app.executors([says_valid(), says_valid(), says_valid()]).await;
    for (fake, name) in [(sick, "s2"), (other, "s3")] {
        fake.set(status(503).health(jurat_testkit::fake_executor::FakeHealth::Status(503)));
        app.admin().post(&format!("/v1/executors/{name}/check"), &json!({})).await;
    }
    let body = json!({ "claim": "x", "consensus": { "replicas": 3 } });
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(reply.headers.contains_key("retry-after"));
    let problem = reply.json();
    assert_eq!(problem["code"], "sessions_unavailable");
    assert_eq!(problem["sessions"][0]["session_id"], "s2");
    assert!(problem["sessions"][0]["problem"].as_str().unwrap().contains("503"), "{problem}");
}

#[tokio::test]
async fn labels_and_profiles_name_sessions_and_tiers_choose_how_many() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_valid(), says_valid()]).await;
    for (id, executor) in [("h1", "s1"), ("h2", "s2"), ("h3", "s3")] {
        let session =
            json!({ "id": id, "executor": executor, "labels": ["heavy"], "tier": "safe" });
        assert_eq!(app.admin().post("/v1/sessions", &session).await.status, StatusCode::CREATED);
    }
    let body = json!({ "claim": "x", "policy": { "tier": "safe" },
                       "consensus": { "session_pool": ["label:heavy"] } });
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["consensus"]["replicas"], 3);
    let sessions: Vec<&str> = reply["replicas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["session_id"].as_str().unwrap())
        .collect();
    assert_eq!(sessions, ["h1", "h2", "h3"]);
}

#[tokio::test]
async fn an_executor_that_keeps_failing_is_paused() {
    let app = TestApp::new().await;
    let [_fake] = app.executors([status(500)]).await;
    let body = json!({ "claim": "x" });
    for _ in 0..5 {
        let reply = app.admin().post("/api/v3/validate", &body).await;
        assert_eq!(reply.json()["replicas"][0]["error"]["code"], "http_status");
    }
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.json()["code"], "sessions_unavailable");
    let shown = app.admin().get("/v1/executors/s1").await.json();
    assert_eq!(shown["status"], "resting");
    // After the pause it is probed, and then calls are made again.
    app.clock.advance_ms(5_000);
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.status, StatusCode::OK);
}
