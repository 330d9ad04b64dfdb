//! Faults of an executor are the outcome of a task call, and never a verdict.

use jurat_core::{id::AccountId, policy::PolicyBinding};
use jurat_engine::{EngineError, TaskCallOutcome, TaskCallResult, TaskCallTarget};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{
        FakeExecutor, FakeHealth, answers, disconnects_before_headers, gated, hangs, html,
        says_valid, status, wrong_hash, wrong_json,
    },
};
use serde_json::json;

use super::{by, candidate, contract, propose, run, under, verify, work};

#[track_caller]
fn failure(done: &TaskCallResult) -> (&'static str, &str) {
    let TaskCallOutcome::Failed { code, detail } = &done.outcome else {
        panic!("it did not fail: {:?}", done.outcome)
    };
    (code.as_str(), detail)
}

#[tokio::test]
async fn an_executor_without_the_task_type_is_not_asked() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid().task_types(&["other"])]).await;
    let done = run(&app, propose(contract(), by("s1"))).await;
    let (code, detail) = failure(&done);
    assert_eq!(code, "sessions_unavailable");
    assert!(detail.contains("does not declare the task type `swarm`"), "{detail}");
    assert_eq!((&done.round_id, &done.receipt_id), (&None, &None));
    assert!(work(&fake).is_empty());
}

#[tokio::test]
async fn an_executor_without_the_profile_is_not_asked() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let session = json!({ "id": "bold", "executor": "s1", "profile": "reckless" });
    app.admin().post("/v1/sessions", &session).await;
    let by = TaskCallTarget::Executor { name: "s1".to_owned(), profile: "reckless".to_owned() };
    let done = run(&app, propose(contract(), by)).await;
    assert!(failure(&done).1.contains("does not declare the profile `reckless`"));
    assert!(work(&fake).is_empty());
}

#[tokio::test]
async fn a_profile_without_a_session_is_not_asked_if_the_executor_has_others() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "x" }))]).await;
    let by = TaskCallTarget::Executor { name: "s1".to_owned(), profile: "careful".to_owned() };
    let done = run(&app, propose(contract(), by)).await;
    let (code, detail) = failure(&done);
    assert_eq!(code, "session_unknown");
    assert!(detail.contains("none of them has the profile `careful`; use `default`"), "{detail}");
    assert!(work(&fake).is_empty());
}

#[tokio::test]
async fn the_operator_reaches_an_executor_without_a_session() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "x" }))]).await;
    app.admin().delete("/v1/sessions/s1").await;
    let by = TaskCallTarget::Executor { name: "s1".to_owned(), profile: "careful".to_owned() };
    let done = run(&app, propose(contract(), by)).await;
    assert!(matches!(done.outcome, TaskCallOutcome::Candidate(_)));
    assert_eq!(work(&fake)[0].body["profile"], "careful");
    let path = format!("/v1/rounds/{}", done.round_id.unwrap());
    let round = app.admin().get(&path).await.json();
    assert_eq!(round["replicas"][0]["session_id"], "executor:s1");
    // Callers of the API cannot name such a session.
    let body = json!({ "claim": "x", "consensus": { "session_pool": ["executor:s1"] } });
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["code"], "session_unknown", "{reply}");
}

#[tokio::test]
async fn a_missing_or_unhealthy_executor_is_an_outcome() {
    let app = TestApp::new().await;
    let done = run(&app, propose(contract(), by("nobody"))).await;
    assert_eq!(failure(&done), ("session_unknown", "there is no executor `nobody`"));
    let sick = FakeExecutor::start(says_valid().health(FakeHealth::Status(503))).await;
    app.register("sick", &sick.url()).await;
    let done = run(&app, propose(contract(), by("sick"))).await;
    assert!(failure(&done).1.contains("is unhealthy"), "{:?}", done.outcome);
}

#[tokio::test]
async fn an_output_that_does_not_match_the_contract_is_not_a_candidate() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(json!({ "answer": 7 }))]).await;
    let done = run(&app, propose(contract(), by("s1"))).await;
    assert_eq!(failure(&done).0, "invalid_output");
    assert!(done.round_id.is_some());
}

#[tokio::test]
async fn inline_evidence_must_respect_the_contract_of_the_task() {
    let app = TestApp::new().await;
    let said = || answers(json!({ "answer": "x" }));
    let _fakes = app
        .executors([
            said().evidence("text/html", "<p>proof</p>"),
            said().evidence("text/plain", &"x".repeat(65_537)),
            said().evidence("text/plain", "trace:attempt-1"),
        ])
        .await;
    let done = run(&app, propose(contract(), by("s1"))).await;
    assert!(failure(&done).1.starts_with("`evidence_inline.0` must have one of the media types"));
    let done = run(&app, propose(contract(), by("s2"))).await;
    let told = "`evidence_inline.0` must have at most 8192 bytes (`evidence_policy.max_snippet_bytes`), and has 65537; refer to longer evidence instead";
    assert_eq!(failure(&done).1, told);
    let done = run(&app, propose(contract(), by("s3"))).await;
    assert!(matches!(done.outcome, TaskCallOutcome::Candidate(_)));
}

#[tokio::test]
async fn no_failure_of_a_call_is_a_verdict() {
    let app = TestApp::new().await;
    let _fakes = app
        .executors([status(500), html(), disconnects_before_headers(), wrong_json(), wrong_hash()])
        .await;
    let expected = [
        ("s1", "http_status"),
        ("s2", "not_json"),
        ("s3", "disconnected"),
        ("s4", "bad_shape"),
        ("s5", "hash_mismatch"),
    ];
    for (name, code) in expected {
        let step = verify(contract(), by(name), candidate(json!({ "answer": "x" })));
        assert_eq!(failure(&run(&app, step).await).0, code, "{name}");
    }
}

#[tokio::test]
async fn a_task_call_times_out() {
    let app = TestApp::new().await;
    let _fakes = app.executors([hangs()]).await;
    let mut step = verify(contract(), by("s1"), candidate(json!({ "answer": "x" })));
    step.timeout_ms = 50;
    assert_eq!(failure(&run(&app, step).await).0, "timeout");
}

#[tokio::test]
async fn a_pass_that_the_policy_does_not_confirm_is_not_a_verdict() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let done = run(&app, verify(contract(), by("s1"), candidate(json!({ "answer": 7 })))).await;
    assert_eq!(failure(&done).0, "policy_contradicted");
}

#[tokio::test]
async fn a_verifier_of_the_registry_is_never_shown_to_an_executor() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let policy = PolicyBinding::new("vp.semantic.v1", json!({ "verifier": "system:x" }));
    let step = verify(under(&policy), by("s1"), candidate(json!({ "answer": "x" })));
    let done = run(&app, step).await;
    assert_eq!(failure(&done).0, "not_supported");
    let step = verify(contract(), by("judge:openai/gpt"), candidate(json!({ "answer": "x" })));
    assert_eq!(failure(&run(&app, step).await).0, "not_supported");
    assert!(work(&fake).is_empty());
}

#[tokio::test]
async fn a_policy_with_a_wrong_hash_is_an_outcome_and_asks_nobody() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let mut policy = PolicyBinding::new("vp.schema_only.v1", json!({}));
    policy.policy_hash = format!("sha256:{}", "0".repeat(64));
    let done = run(&app, verify(under(&policy), by("s1"), candidate(json!({})))).await;
    assert_eq!(failure(&done).0, "policy_invalid");
    assert!(work(&fake).is_empty());
}

#[tokio::test]
async fn an_abandoned_task_call_is_cancelled() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(answers(json!({ "answer": "x" })))]).await;
    let caller = app.engine.caller_without_key(&AccountId::admin()).await.unwrap();
    let mut step = Box::pin(app.engine.task_call(&caller, propose(contract(), by("s1"))));
    tokio::select! {
        _ = &mut step => panic!("it ended before it was answered"),
        () = fake.wait_for_calls(1) => {}
    }
    drop(step);
    fake.abandoned(1).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_stopping_node_starts_no_task_call() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let caller = app.engine.caller_without_key(&AccountId::admin()).await.unwrap();
    app.engine.stop_rounds();
    let refused = app.engine.task_call(&caller, propose(contract(), by("s1"))).await;
    assert!(matches!(refused, Err(EngineError::ShuttingDown)));
}
