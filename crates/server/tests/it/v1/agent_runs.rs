//! `/v1/runs`.

use std::time::Duration;

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::{RunWorkerSettings, SoleNode};
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{Behaviour, answers},
};
use serde_json::{Value, json};

fn says(answer: &str) -> Behaviour {
    answers(json!({ "answer": answer })).task_types(&["swarm"])
}

/// A server that works on runs.
async fn working() -> TestApp {
    let app = TestApp::new().await;
    app.start(SoleNode::Yes).await;
    let poll = Duration::from_millis(20);
    app.engine.spawn_run_worker(RunWorkerSettings { poll, ..RunWorkerSettings::of_a_node(8) });
    app
}

fn spec(id: &str) -> Value {
    json!({
        "run_id": id,
        "agents": [
            { "agent_id": "a", "executor": "s1", "prompt": "x" },
            { "agent_id": "b", "executor": "s2", "prompt": "x", "weight": 2 },
        ],
    })
}

#[track_caller]
fn assert_problem(reply: &TestReply, status: u16, code: &str, field: Option<&str>) {
    let body = reply.json();
    assert_eq!(
        (reply.status.as_u16(), body["code"].as_str(), body["field"].as_str()),
        (status, Some(code), field),
        "{}",
        reply.text()
    );
}

#[tokio::test]
async fn a_run_is_submitted_followed_and_read() {
    let app = working().await;
    let _fakes = app.executors([says("no"), says("yes")]).await;
    let admin = app.admin();
    let body = json!({ "kickoff": true, "run_spec": spec("r1") });
    let reply = admin.post("/v1/runs", &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    assert_eq!(
        reply.json(),
        json!({ "ok": true, "run_id": "r1", "kicked_off": true, "status": "QUEUED" })
    );
    let events = [("accept", "text/event-stream")];
    let stream = admin.send("GET", "/v1/runs/r1/events", Body::empty(), &events).await.text();
    let names: Vec<&str> = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| data.split("\"event_type\":\"").nth(1)?.split('"').next())
        .collect();
    assert_eq!(names.first(), Some(&"RUN_CREATED"), "{stream}");
    assert_eq!(names.last(), Some(&"RUN_FINALIZED"), "{stream}");
    assert!(stream.contains("event: run\n"), "the run itself is the last");
    let run = admin.get("/v1/runs/r1?wait=5").await.json();
    assert_eq!((&run["status"], &run["counts"]["succeeded"]), (&json!("FINALIZED"), &json!(2)));
    assert_eq!(run["steps"][0]["task_id"], "run-r1:a:0:1");
    let result = admin.get("/v1/runs/r1/result").await.json();
    let aggregation = &result["result"]["aggregation"];
    assert_eq!(aggregation["final_answer"], "yes", "it weighs more");
    assert_eq!(aggregation["steps"][0]["candidate_output"], json!({ "answer": "no" }));
    let events = admin.get("/v1/runs/r1/events?limit=2").await.json();
    assert_eq!(events["items"][0]["event_type"], "RUN_FINALIZED", "the newest first");
    let cursor = events["next_cursor"].as_str().unwrap();
    let before = admin.get(&format!("/v1/runs/r1/events?limit=1&cursor={cursor}")).await.json();
    let number = |event: &Value| event["id"].as_u64().unwrap();
    let (newer, older) = (number(&events["items"][1]), number(&before["items"][0]));
    assert!(older < newer);
    let same = admin.get(&format!("/v1/runs/r1/events?limit=1&before={newer}")).await.json();
    assert_eq!(same["items"], before["items"]);
    // The task of a step is a task like any other.
    let task = admin.get("/v1/tasks/run-r1:a:0:1").await;
    assert!(task.status == StatusCode::OK || task.status == StatusCode::NOT_FOUND);
    let again = admin.post("/v1/runs", &body).await;
    assert_eq!((again.status, &again.json()["status"]), (StatusCode::OK, &json!("FINALIZED")));
    app.engine.stop_rounds();
    app.engine.shutdown().await;
}

#[tokio::test]
async fn an_invalid_run_is_refused_with_its_fields() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says("no"), says("yes")]).await;
    let admin = app.admin();
    let mut wrong = spec("r1");
    wrong["agents"][1]["executor"] = json!("s3");
    let reply = admin.post("/v1/runs", &wrong).await;
    assert_problem(&reply, 400, "validation_error", Some("agents.1.executor"));
    let mut wrong = spec("a/b");
    wrong["agents"][0]["prompt"] = json!(" ");
    let reply = admin.post("/v1/runs", &json!({ "spec": wrong })).await;
    assert_problem(&reply, 400, "validation_error", Some("spec.agents.0.prompt"));
    let mut wrong = spec("r1");
    wrong["round_policy"] = json!({});
    let reply = admin.post("/v1/runs", &wrong).await;
    assert_eq!(reply.json()["field"], "round_policy");
    assert!(!reply.text().contains("internal"), "{}", reply.text());
}

#[tokio::test]
async fn a_command_at_the_wrong_time_is_a_conflict() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says("no"), says("yes")]).await;
    let admin = app.admin();
    admin.post("/v1/runs", &spec("r1")).await;
    let mut other = spec("r1");
    other["task_type"] = json!("other");
    assert_problem(&admin.post("/v1/runs", &other).await, 409, "conflict", None);
    let retry = admin.post("/v1/runs/r1/retry", &json!({})).await;
    assert_problem(&retry, 409, "conflict", None);
    assert_eq!(admin.post("/v1/runs/r1/kickoff", &json!({})).await.json()["status"], "QUEUED");
    let twice = admin.post("/v1/runs/r1/kickoff", &json!({})).await;
    assert_problem(&twice, 409, "conflict", None);
    let cancelled = admin.send("POST", "/v1/runs/r1/cancel", Body::empty(), &[]).await;
    assert_eq!(cancelled.json()["status"], "CANCELLED");
    let cancelled = admin.post("/v1/runs/r1/cancel", &json!({})).await;
    assert_problem(&cancelled, 409, "conflict", None);
    assert_problem(&admin.get("/v1/runs/none").await, 404, "not_found", None);
    let list = admin.get("/v1/runs?status=CANCELLED").await.json();
    assert_eq!(list["items"][0]["run_id"], "r1");
    assert_problem(&admin.get("/v1/runs?status=x").await, 400, "validation_error", Some("status"));
}

#[tokio::test]
async fn a_repeated_submission_gets_the_same_reply() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says("no"), says("yes")]).await;
    let admin = app.admin();
    let key = [("idempotency-key", "k1")];
    let first = admin.post_with("/v1/runs", &spec("r1"), &key).await;
    admin.post("/v1/runs/r1/kickoff", &json!({})).await;
    let again = admin.post_with("/v1/runs", &spec("r1"), &key).await;
    assert_eq!((first.status, first.json()), (again.status, again.json()));
    assert_eq!(again.headers["idempotent-replayed"], "true");
}

#[tokio::test]
async fn a_repeated_change_is_made_once_and_gets_the_same_reply() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says("no"), says("yes")]).await;
    let admin = app.admin();
    admin.post("/v1/runs", &spec("r1")).await;
    for (verb, status) in [("kickoff", "QUEUED"), ("cancel", "CANCELLED"), ("retry", "QUEUED")] {
        let path = format!("/v1/runs/r1/{verb}");
        let key = [("idempotency-key", verb)];
        let first = admin.post_with(&path, &json!({}), &key).await;
        assert_eq!((first.status, &first.json()["status"]), (StatusCode::OK, &json!(status)));
        let again = admin.post_with(&path, &json!({}), &key).await;
        assert_eq!((again.status, again.json()), (first.status, first.json()), "{verb}");
        assert_eq!(again.headers["idempotent-replayed"], "true", "{verb}");
    }
    let key = [("idempotency-key", "retry")];
    let other = admin.post_with("/v1/runs/r1/kickoff", &json!({}), &key).await;
    assert_eq!(other.json()["code"], "idempotency_mismatch");
}

#[tokio::test]
async fn runs_need_scopes_and_are_seen_by_their_account_alone() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says("no"), says("yes")]).await;
    let ann = app.caller("ann", &[Scope::TasksRead, Scope::TasksWrite, Scope::RoundsCreate]).await;
    let bob = app.caller("bob", &[Scope::TasksRead]).await;
    assert_eq!(ann.post("/v1/runs", &spec("r1")).await.status, StatusCode::CREATED);
    for path in ["/v1/runs/r1", "/v1/runs/r1/result", "/v1/runs/r1/events"] {
        assert_eq!(ann.get(path).await.status, StatusCode::OK);
        assert_problem(&bob.get(path).await, 404, "not_found", None);
    }
    assert_eq!(bob.get("/v1/runs").await.json()["items"], json!([]));
    assert_problem(&bob.post("/v1/runs", &spec("r1")).await, 403, "forbidden", None);
    assert_eq!(app.anonymous().get("/v1/runs").await.status, StatusCode::UNAUTHORIZED);
}
