//! Access to the tools: keys, limits, and accepted host names.

use std::collections::BTreeSet;

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::EngineLimits;
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::{answers, says_valid},
};
use serde_json::{Value, json};

use super::{ERAS, LEGACY, MODERN, ask, call, result};
use crate::inbound::{Served, patient};

fn ping() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })
}

#[tokio::test]
async fn without_a_valid_key_only_authentication_is_explained() {
    let app = TestApp::new().await;
    for caller in [app.anonymous(), app.with_key("jrt_live_nothing"), app.with_key("")] {
        for era in ERAS {
            // A session of another client is not a key, either.
            let headers = [("mcp-session-id", "0b1c"), ("mcp-protocol-version", era)];
            let reply = caller.post_with("/mcp", &ping(), &headers).await;
            assert_eq!(reply.status, StatusCode::UNAUTHORIZED);
            let metadata = "http://localhost/.well-known/oauth-protected-resource/mcp";
            let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
            assert_eq!(reply.headers["www-authenticate"], challenge);
            assert_eq!(reply.json()["code"], "auth_required");
        }
    }
}

#[tokio::test]
async fn the_metadata_tells_a_client_without_a_key_how_to_ask() {
    let app = TestApp::new().await;
    let host = [("host", "127.0.0.1:5872")];
    for (path, resource) in [("", "http://127.0.0.1:5872"), ("/mcp", "http://127.0.0.1:5872/mcp")] {
        let address = format!("/.well-known/oauth-protected-resource{path}");
        let reply = app.anonymous().send("GET", &address, Body::empty(), &host).await;
        assert_eq!(reply.status, StatusCode::OK);
        let metadata = reply.json();
        assert_eq!(metadata["resource"], resource);
        assert_eq!(metadata["bearer_methods_supported"], json!(["header"]));
        let scopes = metadata["scopes_supported"].as_array().unwrap();
        assert!(scopes.contains(&json!("rounds:create")) && !scopes.contains(&json!("admin")));
        assert!(metadata.get("authorization_servers").is_none(), "{metadata}");
    }
    let elsewhere = app.anonymous().get("/v1/rounds").await;
    assert_eq!(elsewhere.headers["www-authenticate"], "Bearer");
}

#[tokio::test]
async fn a_key_without_the_scope_is_told_so_by_the_tool() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let reader = app.caller("reader", &[Scope::RoundsRead]).await;
    for era in ERAS {
        let result = call(&reader, era, "validate", &json!({ "claim": "x" })).await;
        assert_eq!(result["isError"], true);
        assert_eq!(result["structuredContent"]["code"], "forbidden");
    }
}

#[tokio::test]
async fn a_round_asked_by_a_tool_belongs_to_the_account_of_the_key() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let scopes = [Scope::RoundsCreate, Scope::RoundsRead];
    let (alice, bob) = (app.caller("alice", &scopes).await, app.caller("bob", &scopes).await);
    let result = call(&alice, MODERN, "validate", &json!({ "claim": "x" })).await;
    let round = result["structuredContent"]["round_id"].as_str().unwrap();
    assert_eq!(alice.get(&format!("/v1/rounds/{round}")).await.status, StatusCode::OK);
    assert_eq!(bob.get(&format!("/v1/rounds/{round}")).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_limits_of_a_key_apply_to_messages_too() {
    let limits = EngineLimits { requests_per_minute_per_key: Some(2), ..EngineLimits::default() };
    let app = TestApp::with_limits(limits).await;
    for _ in 0..2 {
        assert_eq!(app.admin().post("/mcp", &ping()).await.status, StatusCode::OK);
    }
    let reply = app.admin().post("/mcp", &ping()).await;
    assert_eq!(reply.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(reply.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn a_stopping_node_refuses_tools_and_counts_it() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    app.engine.stop_rounds();
    let result = call(&app.admin(), LEGACY, "validate", &json!({ "claim": "x" })).await;
    assert_eq!(result["structuredContent"]["code"], "shutting_down");
    let figures = app.admin().get("/metrics").await.text();
    let is_it = |line: &&str| line.starts_with("jurat_requests_shed") && line.contains("shutting");
    let line = figures.lines().find(is_it);
    assert!(line.unwrap().ends_with(" 1"), "{line:?}");
}

#[tokio::test]
async fn web_pages_and_foreign_host_names_are_refused() {
    let app = TestApp::new().await;
    for (name, value) in [
        ("host", "evil.example"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost.evil.example"),
    ] {
        let reply = app.admin().post_with("/mcp", &ping(), &[(name, value)]).await;
        assert_eq!(reply.status, StatusCode::FORBIDDEN, "{name}: {value}");
        assert_eq!(reply.json()["code"], "host_refused", "{name}: {value}");
    }
    let local = [("host", "127.0.0.1:5872"), ("origin", "http://localhost:6274")];
    assert_eq!(app.admin().post_with("/mcp", &ping(), &local).await.status, StatusCode::OK);
}

#[tokio::test]
async fn over_a_socket_only_the_address_of_the_server_is_accepted() {
    let served = Served::with(patient()).await;
    let key = jurat_testkit::app::admin_key().reveal();
    let body = ping().to_string();
    for (host, status) in [("127.0.0.1:1", "200"), ("localhost", "200"), ("evil.example", "403")] {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let reply = served.says(&head).await.rest().await;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {reply}");
    }
}

#[tokio::test]
async fn no_executor_ever_sees_the_key_of_the_caller() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "done": true }))]).await;
    let key = jurat_testkit::app::admin_key().reveal();
    for era in ERAS {
        let params = json!({ "name": "delegate", "arguments": { "objective": "x" } });
        let reply = ask(&app.admin(), era, "tools/call", params).await;
        assert_eq!(reply.status, StatusCode::OK);
    }
    let seen = format!("{:?}", fake.calls());
    assert!(seen.contains("execute") && !seen.contains(&key), "{seen}");
    let reply = app.admin().send("POST", "/mcp", Body::from("{}"), &[]).await;
    assert!(!reply.text().contains(&key));
}

/// The tools that a key can see, and the size of the list.
async fn listed(caller: &TestCaller<'_>, era: &str) -> (BTreeSet<String>, usize) {
    let reply = ask(caller, era, "tools/list", json!({})).await;
    let tools = result(&reply)["tools"].as_array().unwrap().clone();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    (names, reply.text().len())
}

#[tokio::test]
async fn a_key_sees_only_its_tools_in_few_bytes() {
    let app = TestApp::new().await;
    let scopes = [
        Scope::RoundsCreate,
        Scope::RoundsRead,
        Scope::VerifiersRead,
        Scope::VerifiersWrite,
        Scope::VerifiersRun,
    ];
    let caller = app.caller("ann", &scopes).await;
    for era in ERAS {
        let (names, bytes) = listed(&caller, era).await;
        for expected in ["delegate", "validate", "factcheck", "run_verifier", "deploy_verifier"] {
            assert!(names.contains(expected), "{names:?}");
        }
        assert!(!names.contains("save_workflow") && !names.contains("submit_task"), "{names:?}");
        assert!(bytes < 40_000, "{bytes} bytes");
    }
    let (all, bytes) = listed(&app.admin(), LEGACY).await;
    assert!(80 <= all.len() && bytes < 130_000, "{} tools in {bytes} bytes", all.len());
}

#[tokio::test]
async fn a_tool_beyond_the_scopes_is_refused_when_it_is_called() {
    let app = TestApp::new().await;
    let (all, _) = listed(&app.admin(), LEGACY).await;
    for scope in Scope::OWN {
        let caller = app.caller("ann", &[scope]).await;
        let (known, _) = listed(&caller, LEGACY).await;
        for tool in &all {
            let answer = call(&caller, LEGACY, tool, &json!({})).await;
            let is_forbidden = answer["structuredContent"]["code"] == "forbidden";
            assert_eq!(is_forbidden, !known.contains(tool), "{tool} with {scope:?}: {answer}");
        }
    }
}
