//! Tools with the names of the Cortensor router.

use axum::body::Body;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, fact},
};
use serde_json::{Value, json};

use crate::mcp::{LEGACY, ask, ask_at, messages, result};
use jurat_testkit::app::TestCaller;

/// The address that selects these tools.
const ADDRESS: &str = "/mcp?tools=cortensor";

async fn call(caller: &TestCaller<'_>, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    result(&ask_at(caller, ADDRESS, LEGACY, ("tools/call", params)).await)
}

const TOOLS: [&str; 15] = [
    "cortensor_about",
    "cortensor_completions",
    "cortensor_create_session",
    "cortensor_delegate",
    "cortensor_delegate_v1",
    "cortensor_delegate_v3",
    "cortensor_factcheck",
    "cortensor_factcheck_v3",
    "cortensor_info",
    "cortensor_miners",
    "cortensor_ping",
    "cortensor_status",
    "cortensor_tasks",
    "cortensor_validate",
    "cortensor_validate_v1",
];

async fn names(app: &TestApp, address: &str) -> Vec<String> {
    let request = ("tools/list", json!({}));
    let listed = result(&ask_at(&app.admin(), address, LEGACY, request).await);
    let tools = listed["tools"].as_array().unwrap().iter();
    let mut names: Vec<String> = tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .filter(|name| name.starts_with("cortensor_"))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn only_a_client_that_names_their_set_sees_them() {
    let app = TestApp::new().await;
    assert_eq!(names(&app, "/mcp").await, [] as [String; 0]);
    let params = json!({ "name": "cortensor_ping", "arguments": {} });
    let reply = ask(&app.admin(), LEGACY, "tools/call", params).await;
    let refusal = messages(&reply)[0]["error"]["message"].to_string();
    assert!(refusal.contains("the set `cortensor`, which is not selected"), "{refusal}");
    let mut all: Vec<&str> = TOOLS.to_vec();
    all.push("cortensor_validate_v3");
    assert_eq!(names(&app, ADDRESS).await, all);
}

#[tokio::test]
async fn their_results_are_json_and_their_clients_get_a_session_id() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {},
        "clientInfo": { "name": "agent", "version": "1" },
    }});
    let reply = app.admin().send("POST", ADDRESS, Body::from(hello.to_string()), &[]).await;
    assert!(!reply.headers["mcp-session-id"].is_empty());
    assert_eq!(reply.headers["content-type"], "application/json");

    let text = |result: Value| -> Value {
        let content = result["content"].as_array().unwrap();
        assert_eq!(content.len(), 1, "{result}");
        serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap()
    };
    let admin = app.admin();
    let body = json!({ "prompt": "x", "session_id": 0, "max_tokens": 9, "unknown": true });
    let completed = text(call(&admin, "cortensor_completions", &body).await);
    assert_eq!(completed["choices"][0]["text"], "yes");
    assert_eq!((&completed["text"], &completed["miner_id"]), (&json!("yes"), &json!("s1")));
    let body = json!({ "session_id": 0, "task_id": completed["task_id"] });
    let task = text(call(&admin, "cortensor_tasks", &body).await);
    assert_eq!(task["results"]["data"], json!(["yes"]));
    let body = json!({ "objective": "x", "consensus": { "replicas": 1 } });
    let delegated = text(call(&admin, "cortensor_delegate_v3", &body).await);
    assert_eq!(delegated["output"], json!({ "answer": "yes" }));
    let body = json!({ "objective": "x", "session_id": "s1" });
    let delegated = text(call(&admin, "cortensor_delegate", &body).await);
    assert_eq!(delegated["status"], "OK");
    let pinged = text(call(&admin, "cortensor_ping", &json!({})).await);
    assert_eq!(pinged["message"], "pong");
    let refused = call(&admin, "cortensor_delegate_v1", &json!({})).await;
    assert_eq!(refused["isError"], true);
    assert!(text(refused)["error"].as_str().unwrap().contains("`prompt`"));
}

#[tokio::test]
async fn a_claim_is_checked_by_its_tool() {
    let app = TestApp::new().await;
    let _fakes = app.executors([fact("TRUE"), fact("TRUE"), fact("TRUE")]).await;
    for tool in ["cortensor_factcheck", "cortensor_factcheck_v3"] {
        let body = json!({ "claim": "x" });
        let result = call(&app.admin(), tool, &body).await;
        assert_eq!(result["structuredContent"]["verdict"], "TRUE", "{tool}: {result}");
    }
}
