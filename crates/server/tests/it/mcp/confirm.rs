//! A person is asked before a tool destroys something, if the client can ask.

use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::says_valid,
};
use serde_json::{Value, json};

use super::{CAPABILITIES, LEGACY, MODERN, ask, call, result};

/// Erases a round as a client with the given capabilities, with the answer of its user.
async fn erase(caller: &TestCaller<'_>, era: &str, round: &str, says: (Value, Value)) -> Value {
    let (capabilities, answer) = says;
    let mut params = json!({ "name": "erase_round", "arguments": { "round_id": round } });
    params["_meta"][CAPABILITIES] = capabilities;
    if !answer.is_null() {
        params["inputResponses"] = json!({ "confirm": answer });
    }
    result(&ask(caller, era, "tools/call", params).await)
}

async fn round(app: &TestApp) -> String {
    let done = call(&app.admin(), MODERN, "validate", &json!({ "claim": "x" })).await;
    done["structuredContent"]["round_id"].as_str().unwrap().to_owned()
}

async fn is_erased(app: &TestApp, id: &str) -> bool {
    app.admin().get(&format!("/v1/rounds/{id}")).await.json()["asked"].is_null()
}

#[tokio::test]
async fn a_person_is_asked_and_only_a_yes_destroys() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let (admin, id) = (app.admin(), round(&app).await);
    let can_ask = || json!({ "elicitation": {} });
    let asked = erase(&admin, MODERN, &id, (can_ask(), Value::Null)).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["confirm"];
    assert_eq!(question["method"], "elicitation/create");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains(&id) && message.contains("Permanently"), "{message}");
    let schema = &question["params"]["requestedSchema"];
    assert_eq!(schema["properties"]["confirm"]["type"], "boolean");
    for answer in [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "accept", "content": { "confirm": false } }),
        json!({ "action": "accept" }),
    ] {
        let refused = erase(&admin, MODERN, &id, (can_ask(), answer)).await;
        assert_eq!(refused["isError"], true, "{refused}");
        assert_eq!(refused["structuredContent"]["code"], "conflict");
    }
    assert!(!is_erased(&app, &id).await);
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    let done = erase(&admin, MODERN, &id, (can_ask(), yes)).await;
    assert_eq!(done["isError"], false, "{done}");
    assert!(is_erased(&app, &id).await);
}

#[tokio::test]
async fn a_client_that_cannot_ask_gets_what_its_key_allows() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    for (era, capabilities) in [
        (MODERN, json!({})),
        (MODERN, json!({ "elicitation": { "url": {} } })),
        (LEGACY, json!({ "elicitation": {} })),
    ] {
        app.clock.advance_ms(1_000);
        let id = round(&app).await;
        let done = erase(&app.admin(), era, &id, (capabilities, Value::Null)).await;
        assert_eq!(done["isError"], false, "{era}: {done}");
        assert!(is_erased(&app, &id).await);
    }
}

#[tokio::test]
async fn nobody_is_asked_about_what_the_key_may_not_do() {
    let app = TestApp::new().await;
    let reader = app.caller("reader", &[jurat_core::account::caller::Scope::RoundsRead]).await;
    let can_ask = json!({ "elicitation": {} });
    let refused = erase(&reader, MODERN, "rnd_x", (can_ask, Value::Null)).await;
    assert_eq!(refused["structuredContent"]["code"], "forbidden", "{refused}");
}

/// The destructive tools, and why a person is asked about some of them only.
const DESTRUCTIVE: &[(&str, &str)] = &[
    ("block_share", "the owner of the share can be unblocked by sharing again"),
    ("cancel_invitation", "an invitation can be sent again"),
    ("cancel_round", "a round can be begun again"),
    ("cancel_run", "a run can be begun again"),
    ("cancel_task", "a task can be begun again"),
    ("complain_of_task", "a complaint destroys nothing that exists"),
    ("decline_invitation", "an invitation can be sent again"),
    ("decline_share", "a share can be made again"),
    ("delete_skill", ASKED),
    ("delete_skill_version", ASKED),
    ("delete_team", ASKED),
    ("delete_template", ASKED),
    ("delete_template_version", ASKED),
    ("delete_verifier", ASKED),
    ("erase_round", ASKED),
    ("remove_team_member", "a member can be invited again"),
    ("revoke_api_key", ASKED),
    ("revoke_verifier", ASKED),
    ("unpublish_template_version", "the version can be published again"),
];
const ASKED: &str = "";

/// Arguments of the forms that the schema of a tool asks for, which name nothing that exists.
fn arguments(tool: &Value) -> Value {
    let properties = &tool["inputSchema"]["properties"];
    let required = tool["inputSchema"]["required"].as_array().into_iter().flatten();
    let value = |name: &str| match (name, properties[name]["type"].as_str()) {
        ("version", _) | (_, Some("integer")) => json!(1),
        (_, Some("boolean")) => json!(true),
        ("round_id", _) => json!("rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        _ => json!("0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70"),
    };
    // One of two names of the object is required, which a schema for models does not say.
    let either = properties.get("skill_id").map(|_| "skill_id");
    let names = required.filter_map(Value::as_str).chain(either);
    names.map(|name| (name.to_owned(), value(name))).collect()
}

#[tokio::test]
async fn each_destructive_tool_is_confirmed_or_says_why_not() {
    let app = TestApp::new().await;
    let listed = result(&ask(&app.admin(), MODERN, "tools/list", json!({})).await);
    let mut tools: Vec<Value> = listed["tools"].as_array().unwrap().clone();
    tools.retain(|tool| tool["annotations"]["destructiveHint"] == true);
    tools.sort_by_key(|tool| tool["name"].to_string());
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, DESTRUCTIVE.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    let no = json!({ "action": "decline" });
    for (tool, (name, reason)) in tools.iter().zip(DESTRUCTIVE) {
        let called = async |answer: &Value| {
            let mut params = json!({ "name": name, "arguments": arguments(tool) });
            params["_meta"][CAPABILITIES] = json!({ "elicitation": {} });
            if !answer.is_null() {
                params["inputResponses"] = json!({ "confirm": answer });
            }
            result(&ask(&app.admin(), MODERN, "tools/call", params).await)
        };
        let is_question = |result: &Value| result["resultType"] == "input_required";
        let is_stopped = |result: &Value| {
            let detail = result["structuredContent"]["detail"].as_str().unwrap_or_default();
            detail.starts_with("the person who was asked did not confirm it")
        };
        let (first, declined, confirmed) =
            (called(&Value::Null).await, called(&no).await, called(&yes).await);
        let is_asked = *reason == ASKED;
        assert_eq!(is_question(&first), is_asked, "{name}: {first}");
        assert_eq!(is_stopped(&declined), is_asked, "{name}: {declined}");
        // What it names does not exist, so the call got as far as the operation.
        assert_eq!(confirmed["structuredContent"]["code"], "not_found", "{name}: {confirmed}");
        if !is_asked {
            assert_eq!(first["structuredContent"]["code"], "not_found", "{name}: {first}");
        }
    }
}
