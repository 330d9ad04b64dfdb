//! Tools with the names of the Cortensor router.

use axum::body::Body;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, fact, says_valid, status},
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

async fn listed(app: &TestApp, address: &str) -> Vec<Value> {
    let request = ("tools/list", json!({}));
    let listed = result(&ask_at(&app.admin(), address, LEGACY, request).await);
    listed["tools"].as_array().unwrap().clone()
}

async fn names(app: &TestApp, address: &str) -> Vec<String> {
    let tools = listed(app, address).await;
    let mut names: Vec<String> = tools
        .iter()
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
async fn the_arguments_of_version_1_are_taken_under_the_names_without_a_version() {
    let app = TestApp::new().await;
    let fakes = app.executors([says_valid(), says_valid(), says_valid()]).await;
    let tools = listed(&app, ADDRESS).await;
    let called = async |tool: &str, arguments: Value| {
        let described = tools.iter().find(|it| it["name"] == tool).unwrap();
        jsonschema::validate(&described["inputSchema"], &arguments).unwrap();
        call(&app.admin(), tool, &arguments).await
    };
    let body = json!({ "session_id": "s1", "prompt": "x", "objective": null });
    let refused = call(&app.admin(), "cortensor_validate", &body).await;
    assert_eq!(refused["structuredContent"]["field"], "claim", "{refused}");
    for body in [json!({ "prompt": "x", "max_tokens": 9 }), json!({ "task_request_input": "x" })] {
        let delegated = called("cortensor_delegate", body).await["structuredContent"].clone();
        assert_eq!(
            (&delegated["status"], &delegated["k_miners"]),
            (&json!("completed"), &json!(3))
        );
        let body = json!({ "task_id": delegated["task_id"], "miner_address": "s1",
                           "result_data": "y" });
        let judged = called("cortensor_validate", body).await["structuredContent"].clone();
        assert_eq!((&judged["is_valid"], &judged["k_miners"]), (&json!(true), &json!(3)));
    }
    let calls = fakes[0].calls();
    let judged = calls.iter().find(|call| call.endpoint() == "verify").unwrap();
    assert_eq!(judged.body["candidate"]["output"], "y");
    // With its own argument, a tool is what it was.
    let body = json!({ "claim": "y", "result_data": "z" });
    let judged = called("cortensor_validate", body).await;
    assert_eq!(judged["structuredContent"]["verdict"], "VALID");
    assert!(judged["structuredContent"].get("is_valid").is_none(), "{judged}");
}

#[tokio::test]
async fn a_tool_answers_whole_even_if_a_stream_is_asked_for() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let body = json!({ "prompt": "x", "stream": true });
    let completed = call(&app.admin(), "cortensor_completions", &body).await;
    assert_eq!(completed["isError"], false, "{completed}");
    assert_eq!(completed["structuredContent"]["text"], "yes");
    fake.set(status(500));
    let refused = call(&app.admin(), "cortensor_completions", &body).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(refused["structuredContent"]["code"], "consensus_disagreement");
}

#[tokio::test]
async fn the_tasks_of_a_session_are_a_list_in_an_object() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let admin = app.admin();
    let body = json!({ "prompt": "x" });
    let completed = call(&admin, "cortensor_completions", &body).await["structuredContent"].clone();
    for arguments in [
        json!({ "session_id": "s1" }),
        json!({ "session_id": 0 }),
        json!({ "session_id": "s1", "task_id": null }),
    ] {
        let listed = call(&admin, "cortensor_tasks", &arguments).await;
        let tasks = &listed["structuredContent"]["tasks"];
        assert_eq!(tasks.as_array().map(Vec::len), Some(1), "{arguments}: {listed}");
        assert_eq!(tasks[0]["task_id"], completed["task_id"]);
    }
    let shown =
        call(&admin, "cortensor_tasks", &json!({ "session_id": completed["task_id"] })).await;
    assert_eq!(shown["structuredContent"]["results"]["data"], json!(["yes"]));
    let refused = call(&admin, "cortensor_tasks", &json!({ "task_id": 1 })).await;
    assert_eq!(refused["structuredContent"]["field"], "session_id", "{refused}");
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
