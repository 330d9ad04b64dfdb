//! `/v1/knowledge`.

use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::SoleNode;
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::answers,
};
use serde_json::{Value, json};

/// Has a task decided.
async fn decided(caller: &TestCaller<'_>, id: &str, prompt: &str) -> Value {
    let mut contract = caller.get(&format!("/v1/tasks/sample?task_id={id}")).await.json();
    contract["inputs"] = json!({ "prompt": prompt });
    let reply = caller.post("/v1/tasks", &contract).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    caller.get(&format!("/v1/tasks/{id}?wait=30")).await.json()
}

#[tokio::test]
async fn knowledge_is_listed_by_type_and_by_task() {
    let app = TestApp::new().await;
    app.start(SoleNode::Yes).await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let ann = app.caller("ann", &[Scope::TasksRead, Scope::TasksWrite, Scope::RoundsCreate]).await;
    for (id, prompt) in [("t1", "one"), ("t2", "two"), ("t3", "three")] {
        decided(&ann, id, prompt).await;
        app.clock.advance_ms(1_000);
    }
    let of = async |query: &str| ann.get(&format!("/v1/knowledge?{query}")).await.json();
    let page = of("task_type=swarm&limit=2").await;
    let names = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|it| it["task_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&page), ["t3", "t2"], "the newest first");
    let cursor = page["next_cursor"].as_str().unwrap();
    let rest = of(&format!("task_type=swarm&limit=2&cursor={cursor}")).await;
    assert_eq!((names(&rest), &rest["next_cursor"]), (vec!["t1".to_owned()], &Value::Null));
    let one = of("task_id=t2").await;
    let decision = ann.get("/v1/tasks/t2/decision").await.json();
    let item = &one["items"][0];
    assert_eq!(item["output"], json!({ "answer": "yes" }));
    assert_eq!(item["final_hash"], decision["final_hash"]);
    assert_eq!(item["decision_ref"]["final_commit_hash"], decision["final_hash"]);
    assert_eq!(item["confidence"], decision["confidence"]);
    assert_eq!(item["quorum"], json!({ "threshold": 1, "approvals": 1, "rejections": 0 }));
    assert_eq!(of("task_type=other").await["items"], json!([]));
    let complained = ann.post("/v1/tasks/t2/feedback", &json!({ "reason": "no" })).await;
    assert_eq!(complained.status, StatusCode::OK, "{}", complained.text());
    assert!(of("task_id=t2").await["items"][0]["deprecated_at"].is_string());
}

#[tokio::test]
async fn knowledge_of_others_is_hidden_and_a_filter_is_required() {
    let app = TestApp::new().await;
    app.start(SoleNode::Yes).await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let ann = app.caller("ann", &[Scope::TasksRead, Scope::TasksWrite, Scope::RoundsCreate]).await;
    let bob = app.caller("bob", &[Scope::TasksRead]).await;
    let carl = app.caller("carl", &[Scope::TasksWrite]).await;
    decided(&ann, "t1", "one").await;
    let mine = ann.get("/v1/knowledge?task_type=swarm").await.json();
    assert_eq!(mine["items"].as_array().unwrap().len(), 1);
    let theirs = bob.get("/v1/knowledge?task_type=swarm").await.json();
    assert_eq!(theirs["items"], json!([]));
    assert_eq!(bob.get("/v1/knowledge?task_id=t1").await.status, StatusCode::NOT_FOUND);
    assert_eq!(carl.get("/v1/knowledge?task_type=swarm").await.status, StatusCode::FORBIDDEN);
    for (query, field) in [
        ("", "task_type"),
        ("?task_type=a&task_id=b", "task_id"),
        ("?task_type=a&cursor=x", "cursor"),
        ("?task_type=a&limit=0", "limit"),
        ("?task=a", "task"),
    ] {
        let reply = ann.get(&format!("/v1/knowledge{query}")).await;
        assert_eq!(reply.json()["field"], field, "{}", reply.text());
    }
}
