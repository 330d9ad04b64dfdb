//! Sets of tools: a client reads and calls only those that it selects, within what is offered.

use std::collections::BTreeSet;

use http::StatusCode;
use jurat_server::ServerOptions;
use jurat_testkit::app::{TestApp, TestCaller};
use serde_json::{Value, json};

use super::{ERAS, LEGACY, ask_at, result};
use crate::inbound::{Served, patient};

async fn listed(caller: &TestCaller<'_>, address: &str, era: &str) -> BTreeSet<String> {
    let reply = ask_at(caller, address, era, ("tools/list", json!({}))).await;
    let tools = result(&reply)["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_client_reads_only_the_sets_that_it_selects() {
    let app = TestApp::new().await;
    for era in ERAS {
        let consensus = listed(&app.admin(), "/mcp?tools=consensus", era).await;
        let expected = [
            "cancel_round",
            "delegate",
            "erase_round",
            "factcheck",
            "get_round",
            "list_rounds",
            "validate",
            "wait_round",
        ];
        assert_eq!(consensus, expected.map(str::to_owned).into());
        let two = listed(&app.admin(), "/mcp?tools=consensus,templates", era).await;
        assert!(two.is_superset(&consensus) && two.contains("get_template"), "{two:?}");
        assert!(!two.contains("run_verifier"), "{two:?}");
        let of_peers = listed(&app.admin(), "/mcp?tools=cortensor", era).await;
        let usual = listed(&app.admin(), "/mcp", era).await;
        let also: Vec<&String> = of_peers.intersection(&usual).collect();
        assert_eq!(also, ["cancel_round", "get_round", "wait_round"]);
        let mut own = of_peers.difference(&usual);
        assert!(own.all(|name| name.starts_with("cortensor_")), "{of_peers:?}");
        let account = listed(&app.admin(), "/mcp?tools=account", era).await;
        for tool in ["list_webhooks", "list_webhook_deliveries", "replay_webhook_delivery"] {
            assert!(account.contains(tool), "{account:?}");
        }
    }
}

#[tokio::test]
async fn second_names_are_listed_only_for_who_asks_and_work_for_everybody() {
    let app = TestApp::new().await;
    for era in ERAS {
        let usual = listed(&app.admin(), "/mcp?tools=workflows", era).await;
        let all = listed(&app.admin(), "/mcp?tools=workflows,aliases", era).await;
        assert!(usual.contains("save_skill") && !usual.contains("save_workflow"), "{usual:?}");
        assert!(all.is_superset(&usual) && all.contains("save_workflow"), "{all:?}");
        let call = json!({ "name": "list_workflows", "arguments": {} });
        let reply = ask_at(&app.admin(), "/mcp", era, ("tools/call", call)).await;
        assert_eq!(result(&reply)["isError"], false);
    }
}

#[tokio::test]
async fn a_tool_outside_the_selection_does_not_exist_and_its_set_is_named() {
    let app = TestApp::new().await;
    let call = json!({ "name": "delete_verifier", "arguments": { "verifier_id": "x" } });
    for era in ERAS {
        let asked = ("tools/call", call.clone());
        let reply = ask_at(&app.admin(), "/mcp?tools=consensus", era, asked).await;
        let error: Value = reply.json()["error"].clone();
        assert_eq!(error["code"], -32602, "{error}");
        let said = error["message"].as_str().unwrap();
        assert!(said.contains("`verifiers`") && said.contains("`tools`"), "{said}");
    }
}

#[tokio::test]
async fn a_set_that_is_not_there_is_refused_by_name() {
    let app = TestApp::new().await;
    let reply = ask_at(&app.admin(), "/mcp?tools=consensus,all", LEGACY, ("ping", json!({}))).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST);
    let problem = reply.json();
    assert_eq!(
        (&problem["code"], &problem["field"]),
        (&json!("validation_error"), &json!("tools"))
    );
    assert!(problem["detail"].as_str().unwrap().contains("`all`"), "{problem}");
}

#[tokio::test]
async fn the_setting_limits_what_a_client_can_select() {
    let tools = vec!["consensus".to_owned()];
    let front = ServerOptions { inbound: patient(), tools, ..ServerOptions::default() };
    let served = Served::behind(TestApp::new().await, front).await;
    let key = jurat_testkit::app::admin_key().reveal();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    for (query, status, has) in [("", "200", "wait_round"), ("?tools=tasks", "400", "`tasks`")] {
        let head = format!(
            "POST /mcp{query} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let reply = served.says(&head).await.rest().await;
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}")), "{query}: {reply}");
        assert!(reply.contains(has) && !reply.contains("submit_task"), "{query}: {reply}");
    }
}
