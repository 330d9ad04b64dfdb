//! The tools for tasks, agent runs and knowledge.

use std::time::Duration;

use jurat_core::account::caller::Scope;
use jurat_engine::{RunWorkerSettings, SoleNode};
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::{answers, gated},
};
use serde_json::{Value, json};

use super::{MODERN, call, verifiers::done};

async fn did(caller: &TestCaller<'_>, tool: &str, arguments: Value) -> Value {
    done(caller, MODERN, tool, &arguments).await["structuredContent"].clone()
}

/// A server that drives tasks and works on runs.
async fn working() -> TestApp {
    let app = TestApp::new().await;
    app.start(SoleNode::Yes).await;
    let poll = Duration::from_millis(20);
    app.engine.spawn_run_worker(RunWorkerSettings { poll, ..RunWorkerSettings::of_a_node(8) });
    app
}

async fn code(caller: &TestCaller<'_>, tool: &str, arguments: Value) -> Value {
    let result = call(caller, MODERN, tool, &arguments).await;
    assert_eq!(result["isError"], true, "{tool}: {result}");
    result["structuredContent"]["code"].clone()
}

#[tokio::test]
async fn a_task_is_managed_through_tools() {
    let app = working().await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" })).task_types(&["swarm"])]).await;
    let ann = app.caller("ann", &Scope::OWN).await;
    let mut contract = did(&ann, "get_task_sample", json!({ "task_id": "t1" })).await;
    contract["task_mode"] = json!("CONTINUOUS");
    contract["budget"]["mode"] = json!("EPOCH_RENEW");
    let order = json!({ "contract": contract, "executors": ["s1"] });
    assert_eq!(did(&ann, "submit_task", order).await["task_id"], "t1");
    let task = did(&ann, "get_task", json!({ "task_id": "t1", "wait": 30 })).await;
    assert_eq!(task["state"], "finalized", "{task}");
    let one = json!({ "task_id": "t1" });
    let decision = did(&ann, "get_task_decision", one.clone()).await;
    assert_eq!(decision["output"], json!({ "answer": "yes" }));
    let listed = did(&ann, "list_tasks", json!({ "state": "finalized", "limit": 1 })).await;
    assert_eq!(listed["items"][0]["task_id"], "t1");
    let events = did(&ann, "list_task_events", json!({ "task_id": "t1", "limit": 2 })).await;
    assert_eq!(events["items"][0]["type"], "TASK_CREATED");
    let more = json!({ "task_id": "t1", "limit": 1, "cursor": events["next_cursor"] });
    assert_eq!(did(&ann, "list_task_events", more).await["items"][0]["seq"], 3);
    let complaint = json!({ "task_id": "t1", "reason": "wrong" });
    let told = did(&ann, "complain_of_task", complaint.clone()).await;
    assert_eq!(told["settling"][0]["complaint"], "wrong");
    assert_eq!(code(&ann, "complain_of_task", complaint).await, "conflict");
    assert_eq!(did(&ann, "begin_task_epoch", one.clone()).await["epoch"], 2);
    did(&ann, "get_task", json!({ "task_id": "t1", "wait": 30 })).await;
    let first = did(&ann, "export_knowledge", json!({ "task_type": "swarm", "limit": 1 })).await;
    assert_eq!(first["items"][0]["epoch"], 2);
    let rest = json!({ "task_type": "swarm", "cursor": first["next_cursor"] });
    let rest = did(&ann, "export_knowledge", rest).await;
    assert_eq!((&rest["items"][0]["epoch"], &rest["next_cursor"]), (&json!(1), &Value::Null));
    let cancelled = json!({ "task_id": "t1", "reason": "enough" });
    assert_eq!(did(&ann, "cancel_task", cancelled).await["reason"], "enough");
    assert_eq!(code(&ann, "begin_task_epoch", one).await, "conflict");
}

#[tokio::test]
async fn a_run_is_managed_through_tools() {
    let app = working().await;
    let says = |answer: &str| answers(json!({ "answer": answer })).task_types(&["swarm"]);
    let _fakes = app.executors([says("no"), says("yes")]).await;
    let ann = app.caller("ann", &Scope::OWN).await;
    let agent =
        |id: &str, executor: &str| json!({ "agent_id": id, "executor": executor, "prompt": "x" });
    let spec = json!({ "run_id": "r1", "agents": [agent("a", "s1"), agent("b", "s2")] });
    let submitted = did(&ann, "submit_run", json!({ "spec": spec })).await;
    assert_eq!(submitted["status"], "CREATED");
    let one = json!({ "run_id": "r1" });
    assert_eq!(did(&ann, "get_run_result", one.clone()).await["result"], Value::Null);
    did(&ann, "kickoff_run", one.clone()).await;
    let run = did(&ann, "get_run", json!({ "run_id": "r1", "wait": 30 })).await;
    assert_eq!(run["status"], "FINALIZED", "{run}");
    assert!(did(&ann, "get_run_result", one.clone()).await["result"].is_object());
    let listed = did(&ann, "list_runs", json!({ "status": "FINALIZED" })).await;
    assert_eq!(listed["items"][0]["run_id"], "r1");
    let events = did(&ann, "list_run_events", json!({ "run_id": "r1", "limit": 1 })).await;
    assert_eq!(events["items"][0]["event_type"], "RUN_FINALIZED");
    let before = json!({ "run_id": "r1", "before": 2 });
    let first = did(&ann, "list_run_events", before).await;
    assert_eq!(first["items"][0]["event_type"], "RUN_CREATED");
    assert_eq!(code(&ann, "retry_run", one.clone()).await, "conflict");
    assert_eq!(code(&ann, "cancel_run", one).await, "conflict");
    app.engine.stop_rounds();
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_wait_is_limited_and_returns_the_task() {
    let app = working().await;
    let slow = gated(answers(json!({ "answer": "yes" })).task_types(&["swarm"]));
    let [slow] = app.executors([slow]).await;
    let ann = app.caller("ann", &Scope::OWN).await;
    let contract = did(&ann, "get_task_sample", json!({ "task_id": "t1" })).await;
    did(&ann, "submit_task", json!({ "contract": contract })).await;
    slow.wait_for_calls(1).await;
    let task = did(&ann, "get_task", json!({ "task_id": "t1", "wait": 0 })).await;
    assert_eq!(task["state"], "claimed");
    for (tool, arguments, field) in [
        ("get_task", json!({ "task_id": "t1", "wait": 61 }), "wait"),
        ("get_run", json!({ "run_id": "r1", "wait": -1 }), "wait"),
        ("get_task", json!({}), "task_id"),
        ("list_tasks", json!({ "state": "open" }), "state"),
        ("list_task_events", json!({ "task_id": "t1", "limit": 0 }), "limit"),
        ("export_knowledge", json!({}), "task_type"),
        ("export_knowledge", json!({ "task_type": "a", "task_id": "b" }), "task_id"),
        ("submit_task", json!({ "contract": {} }), "contract.protocol_version"),
    ] {
        let wrong = call(&ann, MODERN, tool, &arguments).await;
        assert_eq!(wrong["structuredContent"]["field"], field, "{tool}: {wrong}");
    }
    // Objects of another account are not found, and a key needs the scope.
    let bob = app.caller("bob", &[Scope::TasksRead]).await;
    assert_eq!(code(&bob, "get_task", json!({ "task_id": "t1" })).await, "not_found");
    assert_eq!(code(&bob, "cancel_task", json!({ "task_id": "t1" })).await, "forbidden");
    slow.release();
}
