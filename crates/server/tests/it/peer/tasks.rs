//! Tasks: rounds of the own account, by a number.

use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, hangs},
};
use serde_json::{Value, json};

use super::got;

#[tokio::test]
async fn a_task_of_another_account_does_not_exist() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(json!({ "answer": "canary" }))]).await;
    let alice = app.caller("alice", &[Scope::RoundsCreate, Scope::RoundsRead]).await;
    let bob = app.caller("bob", &[Scope::RoundsCreate, Scope::RoundsRead]).await;
    let task = alice.post("/api/v1/completions", &json!({ "prompt": "x" })).await.json();
    let ids = ["task_id", "round_id"].map(|name| task[name].as_str().unwrap());
    for (id, session) in ids.into_iter().flat_map(|id| [(id, "0/"), (id, "")]) {
        let path = format!("/api/v1/tasks/{session}{id}");
        let own = alice.get(&path).await;
        assert_eq!(own.json()["results"]["data"], json!(["canary"]), "{path}");
        let hidden = bob.get(&path).await;
        assert_eq!(hidden.status, StatusCode::NOT_FOUND, "{path}");
        assert!(!hidden.text().contains("canary"));
        let body = json!({ "task_id": id, "result_data": "x" });
        assert_eq!(bob.post("/api/v1/validate", &body).await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(bob.get("/api/v1/tasks/0").await.json(), json!([]));
}

#[tokio::test]
async fn tasks_are_listed_by_session_and_found_by_their_largest_number() {
    let app = TestApp::new().await;
    let _fakes =
        app.executors([answers(json!({ "answer": "a" })), answers(json!({ "answer": "b" }))]).await;
    let mut last = json!(null);
    for session in ["s1", "s2", "s1"] {
        app.clock.advance_ms(5);
        let body = json!({ "session_id": session, "prompt": format!("for {session}") });
        last = app.admin().post("/api/v1/completions", &body).await.json()["task_id"].clone();
    }
    let tasks = got(&app, "/api/v1/tasks/s1").await;
    let number = |id: &Value| -> u64 { id.as_str().unwrap().parse().unwrap() };
    let numbers: Vec<u64> =
        tasks.as_array().unwrap().iter().map(|it| number(&it["task_id"])).collect();
    assert_eq!((numbers.len(), numbers.iter().max()), (2, Some(&number(&last))));
    assert_eq!(tasks[0]["id"], tasks[0]["task_id"]);
    assert_eq!(tasks[0]["prompt"], "for s1");
    assert_eq!(got(&app, "/api/v1/tasks/0").await.as_array().unwrap().len(), 3);
    // Some clients name no session.
    let alone = got(&app, &format!("/api/v1/tasks/{}", last.as_str().unwrap())).await;
    assert_eq!((&alone["task_id"], &alone["prompt"]), (&last, &json!("for s1")));
    assert_eq!((&alone["results"]["data"], &alone["session_id"]), (&json!(["a"]), &json!(0)));
    for path in ["/api/v1/tasks/s9", "/api/v1/tasks/12", "/api/v1/tasks/0/12", "/api/v1/tasks/0/x"]
    {
        assert_eq!(app.admin().get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_task_in_progress_has_no_end() {
    let app = TestApp::new().await;
    let _fakes = app.executors([hangs()]).await;
    let body = json!({ "objective": "x" });
    let headers = [("prefer", "respond-async")];
    let round = app.admin().post_with("/api/v3/delegate", &body, &headers).await.json();
    let path = format!("/api/v1/tasks/0/{}", round["round_id"].as_str().unwrap());
    let task = got(&app, &path).await;
    assert_eq!((&task["status"], &task["finished_at"]), (&json!(2), &json!(0)));
    assert_eq!(task["results"]["data"], json!([]));
}
