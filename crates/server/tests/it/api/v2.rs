//! `/api/v2`: one session, one answer.

use http::StatusCode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, says_inconclusive, says_valid},
};
use serde_json::json;

#[tokio::test]
async fn validate_takes_an_integer_session_and_answers_with_a_verdict() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    app.admin().post("/v1/sessions", &json!({ "id": 19, "executor": "s1" })).await;
    let body = json!({ "session_id": 19, "claim": {"text": "x"}, "policy": {"tier": "safe"},
                       "context": {}, "consensus": {"replicas": 5} });
    let reply = app.admin().post("/api/v2/validate", &body).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    let reply = reply.json();
    assert_eq!(reply["verdict"], "VALID");
    assert_eq!(reply["session_id"], "19");
    assert_eq!(reply.get("consensus"), None);
    assert!(reply["evidence"].is_object() && reply["reasons"].is_array());
}

#[tokio::test]
async fn an_abstention_is_reported_as_the_replica_gave_it() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_inconclusive()]).await;
    let reply = app.admin().post("/api/v2/validate", &json!({ "claim": "x" })).await.json();
    assert_eq!(reply["verdict"], "RETRY");
    assert_eq!(reply["confidence"], 0.0);
}

#[tokio::test]
async fn delegate_returns_the_output() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(json!({ "total": 12.5 }))]).await;
    let body = json!({ "session_id": "s1", "objective": "Extract", "input": {},
                       "execution": { "max_steps": 4, "timeout": 120 }, "policy": { "tier": "fast" },
                       "tools": ["web_search"], "workflow": {}, "metadata": {} });
    let reply = app.admin().post("/api/v2/delegate", &body).await.json();
    assert_eq!(reply["status"], "OK");
    assert_eq!(reply["output"], json!({ "total": 12.5 }));
}
