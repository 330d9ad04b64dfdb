//! The tools for verifiers: the registry of the API, under the names of its tools.

use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::app::{TestApp, TestCaller};
use serde_json::{Value, json};

use super::{ERAS, MODERN, ask, ask_at, call, messages, result};

const OWNER: &[Scope] =
    &[Scope::VerifiersRead, Scope::VerifiersWrite, Scope::VerifiersRun, Scope::WorkflowsWrite];
const SIX: [&str; 6] = [
    "deploy_verifier",
    "list_verifiers",
    "get_verifier",
    "run_verifier",
    "revoke_verifier",
    "delete_verifier",
];

/// A verifier whose judge needs no model.
fn sourced(name: &str) -> Value {
    json!({
        "name": name,
        "description": "The answer names its source.",
        "criterion": r#"{"contains": {"field": "answer", "text": "Source:"}}"#,
        "input_contract": "text",
        "input_fields": ["answer"],
        "model_settings": { "model": "builtin/rules" },
    })
}

/// Calls a tool successfully, and checks its result against its schema.
pub(super) async fn done(
    caller: &TestCaller<'_>,
    era: &str,
    tool: &str,
    arguments: &Value,
) -> Value {
    let asked = ("tools/list", json!({}));
    let listed = result(&ask_at(caller, "/mcp?tools=aliases", era, asked).await);
    let tools = listed["tools"].as_array().unwrap();
    let described = tools.iter().find(|it| it["name"] == tool).unwrap();
    jsonschema::validate(&described["inputSchema"], arguments).unwrap();
    let result = call(caller, era, tool, arguments).await;
    assert_eq!(result["isError"], false, "{tool}: {result}");
    jsonschema::validate(&described["outputSchema"], &result["structuredContent"]).unwrap();
    let text = result["content"][1]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
    result
}

/// The problem of a tool that fails.
async fn refused(caller: &TestCaller<'_>, tool: &str, arguments: &Value) -> Value {
    let result = call(caller, MODERN, tool, arguments).await;
    assert_eq!(result["isError"], true, "{tool}: {result}");
    result["structuredContent"].clone()
}

#[tokio::test]
async fn a_verifier_is_managed_through_tools_as_through_the_api() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    for era in ERAS {
        let name = format!("names-a-source-{era}");
        let payload = sourced(&name);
        let made = done(&alice, era, "deploy_verifier", &json!({ "payload": payload })).await;
        let made = &made["structuredContent"];
        assert_eq!((&made["version"], &made["status"]), (&json!(1), &json!("active")));
        let id = made["verifier_id"].as_str().unwrap();

        let listed = done(&alice, era, "list_verifiers", &json!({})).await;
        let told = alice.get("/v1/verifiers").await.json();
        assert_eq!(listed["structuredContent"], told);
        for reference in [id, &name, &format!("{id}@1")] {
            let arguments = json!({ "verifier_id": reference });
            let shown = done(&alice, era, "get_verifier", &arguments).await;
            let told = alice.get(&format!("/v1/verifiers/{reference}")).await.json();
            assert_eq!(shown["structuredContent"], told);
        }
        run(&alice, era, &name).await;

        let revoked = done(&alice, era, "revoke_verifier", &json!({ "verifier_id": name })).await;
        let gone = json!({ "verifier_id": id, "name": name, "revoked": true });
        assert_eq!(revoked["structuredContent"], gone);
        let deleted = done(&alice, era, "delete_verifier", &json!({ "verifier_id": id })).await;
        let gone = json!({ "verifier_id": id, "name": name, "deleted": true });
        assert_eq!(deleted["structuredContent"], gone);
        let problem = refused(&alice, "get_verifier", &json!({ "verifier_id": id })).await;
        assert_eq!(problem["code"], "not_found");
    }
}

async fn run(alice: &TestCaller<'_>, era: &str, name: &str) {
    let body = json!({ "name": format!("weather {name} {era}"), "description": "d", "body": "b" });
    let saved = done(alice, era, "save_skill", &body).await;
    let skill = saved["structuredContent"]["skill_id"].clone();
    for (answer, passed, word) in
        [("It rains. Source: the window.", true, "PASS"), ("It rains.", false, "FAIL")]
    {
        let arguments = json!({
            "verifier_id": name, "inputs": { "answer": answer }, "version": 1,
            "skill_id": skill, "run_id": "monday", "replicas": 1, "fresh": true,
            "judges": ["builtin/rules"],
        });
        let ran = done(alice, era, "run_verifier", &arguments).await;
        let text = ran["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(word) && text.contains("untrusted"), "{text}");
        let ran = &ran["structuredContent"];
        assert_eq!((&ran["status"], &ran["passed"]), (&json!("success"), &json!(passed)));
        assert_eq!((&ran["skill_id"], &ran["run_id"]), (&skill, &json!("monday")));
        let id = ran["verifier_run_id"].as_str().unwrap();
        let mut told = alice.get(&format!("/v1/verifier-runs/{id}")).await.json();
        // Runs through tools always have an owner.
        assert_eq!(
            told.as_object_mut().unwrap().remove("anonymous_verifier_run_id"),
            Some(json!(null))
        );
        assert_eq!(*ran, told);
    }
}

#[tokio::test]
async fn the_six_tools_are_annotated_for_what_they_do() {
    let app = TestApp::new().await;
    let listed = result(&ask(&app.admin(), MODERN, "tools/list", json!({})).await);
    let tools = listed["tools"].as_array().unwrap();
    for name in SIX {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let hints = &tool["annotations"];
        let is_read = name.starts_with("list") || name.starts_with("get");
        assert_eq!(hints["readOnlyHint"], is_read, "{name}");
        let ends = name.starts_with("revoke") || name.starts_with("delete");
        assert_eq!(hints["idempotentHint"] == true, ends, "{name}");
        assert_eq!(hints["destructiveHint"] == true, ends, "{name}");
        let required = &tool["inputSchema"]["required"];
        let expected = match name {
            "deploy_verifier" => json!(["payload"]),
            "list_verifiers" => Value::Null,
            _ => json!(["verifier_id"]),
        };
        assert_eq!(*required, expected, "{name}");
        for (field, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
            let told = ["description", "$ref"].iter().any(|key| schema.get(key).is_some());
            assert!(told, "{name}: nothing is said of `{field}`");
        }
    }
    let run = tools.iter().find(|tool| tool["name"] == "run_verifier").unwrap();
    let text = run["outputSchema"].to_string();
    assert!(text.contains("\"verifier_run_id\""), "{text}");
    assert!(!text.contains("anonymous_verifier_run_id"), "{text}");
}

#[tokio::test]
async fn objects_of_another_account_do_not_exist() {
    let app = TestApp::new().await;
    let (alice, bob) = (app.caller("alice", OWNER).await, app.caller("bob", OWNER).await);
    let payload = json!({ "payload": sourced("hers") });
    let made = done(&alice, MODERN, "deploy_verifier", &payload).await;
    let id = made["structuredContent"]["verifier_id"].as_str().unwrap();
    let unknown = "0198c0de-0000-7000-8000-000000000000";
    let inputs = json!({ "answer": "x" });
    for tool in ["get_verifier", "run_verifier", "revoke_verifier", "delete_verifier"] {
        let arguments = |id: &str| match tool {
            "run_verifier" => json!({ "verifier_id": id, "inputs": inputs }),
            _ => json!({ "verifier_id": id }),
        };
        let hers = refused(&bob, tool, &arguments(id)).await;
        let none = refused(&bob, tool, &arguments(unknown)).await;
        assert_eq!(hers["code"], "not_found", "{tool}");
        assert_eq!(hers.to_string().replace(id, unknown), none.to_string(), "{tool}");
    }
    let listed = done(&bob, MODERN, "list_verifiers", &json!({})).await;
    assert_eq!(listed["structuredContent"], json!({ "items": [], "next_cursor": null }));
    let still = done(&alice, MODERN, "get_verifier", &json!({ "verifier_id": id })).await;
    assert_eq!(still["structuredContent"]["status"], "active");
}

#[tokio::test]
async fn lists_are_cut_into_pages() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    for name in ["a", "b", "c"] {
        done(&alice, MODERN, "deploy_verifier", &json!({ "payload": sourced(name) })).await;
    }
    let mut cursor = Value::Null;
    let mut seen = Vec::new();
    loop {
        let mut arguments = json!({ "limit": 2 });
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        let page = done(&alice, MODERN, "list_verifiers", &arguments).await;
        let items = page["structuredContent"]["items"].as_array().unwrap().clone();
        seen.extend(items.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
        cursor = page["structuredContent"]["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_failure_is_the_problem_of_the_api() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    let made = alice.post("/v1/verifiers", &sourced("mine")).await;
    assert_eq!(made.status, StatusCode::CREATED);
    let token = made.json()["version_token"].as_str().unwrap().to_owned();
    let stale = refused(&alice, "deploy_verifier", &json!({ "payload": sourced("mine") })).await;
    assert_eq!(stale, alice.post("/v1/verifiers", &sourced("mine")).await.json());
    assert_eq!(stale["code"], "conflict");
    assert!(stale.to_string().contains(&token), "{stale}");
    for (tool, arguments, field) in [
        ("deploy_verifier", json!({}), "payload"),
        ("deploy_verifier", json!({ "payload": { "name": "x" } }), "description"),
        ("list_verifiers", json!({ "limit": 201 }), "limit"),
        ("get_verifier", json!({ "verifier_id": "mine", "version": 0 }), "version"),
        ("get_verifier", json!({ "id": "mine" }), "verifier_id"),
        ("run_verifier", json!({ "inputs": { "answer": "x" } }), "verifier_id"),
        ("run_verifier", json!({ "verifier_id": "mine", "inputs": {} }), "inputs"),
        ("delete_verifier", json!({ "verifier_id": "mine" }), "verifier_id"),
    ] {
        let problem = refused(&alice, tool, &arguments).await;
        assert_eq!(problem["code"], "validation_error", "{tool} {arguments}: {problem}");
        assert_eq!(problem["field"], field, "{tool} {arguments}");
    }
    let reader = app.caller("alice", &[Scope::VerifiersRead]).await;
    let problem = refused(&reader, "revoke_verifier", &json!({ "verifier_id": "mine" })).await;
    assert_eq!(problem["code"], "forbidden");
}

#[tokio::test]
async fn a_run_reports_its_judges_while_they_judge() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    done(&alice, MODERN, "deploy_verifier", &json!({ "payload": sourced("mine") })).await;
    let arguments = json!({ "verifier_id": "mine", "inputs": { "answer": "Source: x" } });
    let params = json!({
        "name": "run_verifier", "arguments": arguments, "_meta": { "progressToken": "p" },
    });
    let reply = ask(&alice, MODERN, "tools/call", params).await;
    assert_eq!(result(&reply)["structuredContent"]["passed"], true);
    let messages = messages(&reply);
    let said: Vec<&str> =
        messages.iter().filter_map(|it| it["params"]["message"].as_str()).collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains("judge:builtin/rules"), "{said:?}");
}
