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
