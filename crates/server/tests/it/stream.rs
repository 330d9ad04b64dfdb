//! Replies as an event stream.

use std::{pin::pin, time::Duration};

use axum::body::Body;
use http::StatusCode;
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{answers, gated, says_invalid, says_valid},
};
use serde_json::{Value, json};

use crate::{
    a2a::{self, BINDINGS},
    mcp::{self, ERAS},
};

fn events(reply: &TestReply) -> Vec<(String, Value)> {
    reply
        .text()
        .split("\n\n")
        .filter(|block| !block.trim().is_empty())
        .map(|block| {
            let field =
                |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
            (field("event:").to_owned(), serde_json::from_str(field("data:")).unwrap())
        })
        .collect()
}

async fn streamed(app: &TestApp, body: Value) -> TestReply {
    let body = Body::from(body.to_string());
    app.admin().send("POST", "/api/v3/validate", body, &[("accept", "text/event-stream")]).await
}

#[tokio::test]
async fn the_stream_reports_each_replica_the_decision_and_the_result() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_valid(), says_invalid()]).await;
    let reply = streamed(&app, json!({ "claim": "x", "consensus": { "replicas": 3 } })).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    let events = events(&reply);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "replica_started",
            "replica_started",
            "replica_started",
            "replica_done",
            "replica_done",
            "replica_done",
            "decided",
            "final",
        ]
    );
    let done = &events[3].1;
    assert!(
        done["session_id"].is_string()
            && done["verdict"].is_string()
            && done["round_id"].is_string()
    );
    assert_eq!(events[6].1["verdict"], "VALID");
    let last = &events[7].1;
    assert_eq!(last["consensus"]["agreement"], 0.6667);
    // The final event is the reply itself.
    let stored =
        app.admin().get(&format!("/v1/rounds/{}", last["round_id"].as_str().unwrap())).await;
    assert_eq!(stored.json()["consensus"], last["consensus"]);
}

#[tokio::test]
async fn a_failure_after_the_start_is_an_error_event_with_the_problem() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_invalid(), says_invalid()]).await;
    let body = json!({ "claim": "x", "consensus": {
        "replicas": 3, "disagreement_policy": "fail_hard", "min_agreement": 1.0 } });
    let reply = streamed(&app, body).await;
    assert_eq!(reply.status, StatusCode::OK);
    let events = events(&reply);
    let (name, problem) = events.last().unwrap();
    assert_eq!(name, "error");
    assert_eq!(problem["code"], "consensus_disagreement");
}

#[tokio::test]
async fn an_early_failure_is_an_ordinary_problem() {
    let app = TestApp::new().await;
    let reply = streamed(&app, json!({})).await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    let reply = streamed(&app, json!({ "claim": "x" })).await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(reply.json()["code"], "sessions_unavailable");
}

#[tokio::test]
async fn a_client_that_accepts_json_gets_json() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let accept = [("accept", "application/json, text/event-stream")];
    let body = Body::from(json!({ "claim": "x" }).to_string());
    let reply = app.admin().send("POST", "/api/v3/validate", body, &accept).await;
    assert_eq!(reply.headers["content-type"], "application/json");
}

/// Fails unless the stream that is being sent fills four seconds of silence, and unless proxies are
/// told to pass it on at once.
async fn fills_silence(app: &TestApp, surface: &str, sending: impl Future<Output = TestReply>) {
    let [fake] = app.executors([gated(answers(json!({ "answer": "yes" })))]).await;
    let mut sending = pin!(sending);
    tokio::select! {
        reply = &mut sending => panic!("{surface}: {}", reply.text()),
        () = fake.wait_for_calls(1) => {}
    }
    tokio::time::pause();
    let ended = tokio::time::timeout(Duration::from_secs(4), &mut sending).await;
    tokio::time::resume();
    assert!(ended.is_err(), "{surface}: the stream ended before its round");
    fake.release();
    let reply = sending.await;
    assert_eq!(reply.headers["content-type"], "text/event-stream", "{surface}: {}", reply.text());
    assert_eq!(reply.headers["x-accel-buffering"], "no", "{surface}");
    let comments = reply.text().lines().filter(|line| line.starts_with(':')).count();
    assert_eq!(comments, 1, "{surface}: {}", reply.text());
}

#[tokio::test]
async fn no_stream_is_silent_for_long() {
    let accept = [("accept", "text/event-stream")];
    let claim = json!({ "claim": "x" });
    let prompt = json!({ "prompt": "x", "stream": true });
    let chat = json!({
        "model": "jurat/fast", "stream": true, "messages": [{ "role": "user", "content": "x" }],
    });
    for (path, body) in [
        ("/api/v3/factcheck", &claim),
        ("/api/v1/completions", &prompt),
        ("/v1/chat/completions", &chat),
    ] {
        let app = TestApp::new().await;
        let admin = app.admin();
        fills_silence(&app, path, admin.post_with(path, body, &accept)).await;
    }
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let sent = a2a::message("m1", &json!({ "text": "x" }));
        let admin = app.admin();
        let sending = a2a::send(&admin, binding, "SendStreamingMessage", &sent);
        fills_silence(&app, "a2a", sending).await;
    }
    // The library of `/mcp` has a timer of its own, which a test cannot move.
    for era in ERAS {
        let app = TestApp::new().await;
        let _fakes = app.executors([says_valid()]).await;
        let params = json!({
            "name": "validate", "arguments": claim, "_meta": { "progressToken": "p" },
        });
        let reply = mcp::ask(&app.admin(), era, "tools/call", params).await;
        assert_eq!(reply.headers["content-type"], "text/event-stream");
        assert_eq!(reply.headers["x-accel-buffering"], "no");
    }
}
