//! Cursors: a list continues where it says, and foreign cursors are refused.

use http::StatusCode;
use jurat_testkit::{app::TestApp, fake_executor::says_valid};
use serde_json::json;

use crate::mcp::{LEGACY, call};

#[tokio::test]
async fn an_invented_cursor_is_refused_by_every_list() {
    let app = TestApp::new().await;
    let document = app.anonymous().get("/openapi.json").await.json();
    let mut tried = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let parameters = methods["get"]["parameters"].as_array().into_iter().flatten();
        if !parameters.into_iter().any(|it| it["name"] == "cursor") {
            continue;
        }
        let path = path.replace("/accounts/{id}", "/accounts/acct_a").replace(['{', '}'], "");
        // Knowledge is listed for a type of task.
        let filter = if path.ends_with("/knowledge") { "&task_type=swarm" } else { "" };
        for cursor in ["invented", "s1", "00000000czE", "-"] {
            let address = format!("{path}?cursor={cursor}{filter}");
            let reply = app.admin().get(&address).await;
            assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{address}: {}", reply.text());
            assert_eq!(reply.json()["field"], "cursor", "{address}: {}", reply.text());
        }
        tried += 1;
    }
    assert!(15 <= tried, "only {tried} lists were tried");
}

#[tokio::test]
async fn an_invented_cursor_is_refused_by_every_tool_that_lists() {
    let app = TestApp::new().await;
    let tools = [
        "list_verifiers",
        "list_tasks",
        "list_runs",
        "list_workflows",
        "list_templates",
        "list_invitations",
        "list_api_keys",
    ];
    for tool in tools {
        let answer = call(&app.admin(), LEGACY, tool, &json!({ "cursor": "invented" })).await;
        assert_eq!(answer["structuredContent"]["field"], "cursor", "{tool}: {answer}");
    }
}

#[tokio::test]
async fn a_list_continues_after_its_cursor() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_valid(), says_valid()]).await;
    for (path, name) in [("/v1/executors", "name"), ("/v1/sessions", "id")] {
        let mut seen = Vec::new();
        let mut address = format!("{path}?limit=1");
        loop {
            let page = app.admin().get(&address).await.json();
            seen.extend(page["items"].as_array().unwrap().iter().map(|it| it[name].clone()));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            address = format!("{path}?limit=1&cursor={cursor}");
        }
        assert_eq!(seen, [json!("s1"), json!("s2"), json!("s3")], "{path}");
    }
}

#[tokio::test]
async fn a_second_revocation_is_answered_like_the_first() {
    let app = TestApp::new().await;
    let made = app.admin().post("/v1/api-keys", &json!({ "name": "ci" })).await.json();
    let of_key = format!("/v1/api-keys/{}", made["id"].as_str().unwrap());
    let verifier = json!({
        "name": "short", "description": "d", "input_contract": "text", "input_fields": ["text"],
        "criterion": json!({ "length": { "field": "text", "max": 9 } }).to_string(),
    });
    let made = app.admin().post("/v1/verifiers", &verifier).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    for path in [of_key.as_str(), "/v1/verifiers/short"] {
        let first = app.admin().delete(path).await;
        let second = app.admin().delete(path).await;
        assert!(first.status.is_success(), "{path}: {}", first.text());
        assert_eq!((first.status, first.text()), (second.status, second.text()), "{path}");
    }
    let by_name = app.admin().delete("/v1/api-keys/ci").await;
    assert_eq!(by_name.status, StatusCode::NO_CONTENT, "{}", by_name.text());
    let unknown = app.admin().delete("/v1/api-keys/nobody").await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn names_that_a_url_cannot_hold_are_refused_at_submission() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid().task_types(&["swarm"])]).await;
    let agents = json!([{ "agent_id": "a", "executor": "s1", "prompt": "what is so?" }]);
    for id in [".", "..", "sample"] {
        let mut contract = app.admin().get("/v1/tasks/sample").await.json();
        contract["task_id"] = json!(id);
        let order = json!({ "contract": contract, "executors": ["s1"] });
        for (path, body, field) in [
            ("/v1/tasks", &contract, "task_id"),
            ("/v1/tasks", &order, "contract.task_id"),
            ("/v1/runs", &json!({ "run_id": id, "agents": agents }), "run_id"),
            ("/v1/runs", &json!({ "spec": { "run_id": id, "agents": agents } }), "spec.run_id"),
        ] {
            let reply = app.admin().post(path, body).await;
            assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{path} {id}: {}", reply.text());
            assert_eq!(reply.json()["field"], field, "{path} {id}: {}", reply.text());
        }
    }
}
