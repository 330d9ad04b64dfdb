//! Long work: a call ends in time with a handle, which other tools take from there.

use std::{pin::pin, time::Duration};

use jurat_core::account::caller::Scope;
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::{gated, hangs, says_valid},
};
use serde_json::{Value, json};

use super::{ERAS, LEGACY, MODERN, ask, call, result};

const SCOPES: [Scope; 2] = [Scope::RoundsCreate, Scope::RoundsRead];

/// The result of a call that ends only because its time is up.
async fn handle(caller: &TestCaller<'_>, era: &str, called: impl Future<Output = ()>) -> Value {
    let arguments = json!({ "claim": "x", "execution": { "timeout_ms": 300_000 } });
    let params = json!({ "name": "validate", "arguments": arguments });
    let mut asking = pin!(ask(caller, era, "tools/call", params));
    tokio::select! {
        reply = &mut asking => panic!("{}", reply.text()),
        () = called => {}
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(46)).await;
    tokio::time::resume();
    result(&asking.await)
}

#[tokio::test]
async fn a_long_round_returns_a_handle_and_goes_on() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let alice = app.caller("alice", &SCOPES).await;
    let result = handle(&alice, MODERN, fake.wait_for_calls(1)).await;
    assert_eq!(result["isError"], false, "{result}");
    let body = &result["structuredContent"];
    assert_eq!((&body["state"], &body["verdict"]), (&json!("open"), &Value::Null));
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("No result yet") && text.contains("`wait_round`"), "{text}");
    let listed = super::result(&ask(&alice, LEGACY, "tools/list", json!({})).await);
    let tools = listed["tools"].as_array().unwrap();
    let described = tools.iter().find(|it| it["name"] == "validate").unwrap();
    jsonschema::validate(&described["outputSchema"], body).unwrap();

    let which = json!({ "round_id": body["round_id"], "wait": 0 });
    let open = call(&alice, MODERN, "wait_round", &which).await;
    assert_eq!(open["structuredContent"]["state"], "open");
    fake.release();
    let which = json!({ "round_id": body["round_id"] });
    let ended = call(&alice, LEGACY, "wait_round", &which).await;
    assert_eq!(ended["structuredContent"]["verdict"], "VALID", "{ended}");
    let shown = call(&alice, LEGACY, "get_round", &which).await;
    assert_eq!(shown["structuredContent"], ended["structuredContent"]);
}

#[tokio::test]
async fn a_handle_is_no_credential() {
    let app = TestApp::new().await;
    let [fake] = app.executors([hangs()]).await;
    let alice = app.caller("alice", &SCOPES).await;
    let result = handle(&alice, LEGACY, fake.wait_for_calls(1)).await;
    let which = json!({ "round_id": result["structuredContent"]["round_id"] });
    let (bob, reader) =
        (app.caller("bob", &SCOPES).await, app.caller("alice", &[Scope::UsageRead]).await);
    for era in ERAS {
        for tool in ["get_round", "wait_round", "cancel_round"] {
            let refused = call(&bob, era, tool, &which).await;
            assert_eq!(refused["structuredContent"]["code"], "not_found", "{tool}: {refused}");
            let refused = call(&reader, era, tool, &which).await;
            assert_eq!(refused["structuredContent"]["code"], "forbidden", "{tool}: {refused}");
        }
        let uri = format!("jurat://rounds/{}", which["round_id"].as_str().unwrap());
        let reply = ask(&bob, era, "resources/read", json!({ "uri": uri })).await;
        assert!(reply.json()["error"]["code"].is_i64(), "{}", reply.text());
    }
    let cancelled = call(&alice, MODERN, "cancel_round", &which).await;
    assert_eq!(cancelled["structuredContent"]["state"], "cancelled", "{cancelled}");
}

#[tokio::test]
async fn a_key_that_cannot_follow_a_round_waits_for_its_end() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let writer = app.caller("writer", &[Scope::RoundsCreate]).await;
    let arguments = json!({ "claim": "x", "execution": { "timeout_ms": 50_000 } });
    let params = json!({ "name": "validate", "arguments": arguments });
    let mut asking = pin!(ask(&writer, MODERN, "tools/call", params));
    tokio::select! {
        reply = &mut asking => panic!("{}", reply.text()),
        () = fake.wait_for_calls(1) => {}
    }
    // Nothing else is waited for, so the clock moves on to the end of the round.
    tokio::time::pause();
    let reply = asking.await;
    tokio::time::resume();
    let body = result(&reply)["structuredContent"].clone();
    assert_eq!(body["consensus"]["outcome"], "failed", "the deadline of the round: {body}");
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_cut_and_nonsense_is_refused() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let done = call(&app.admin(), MODERN, "validate", &json!({ "claim": "x" })).await;
    let id = &done["structuredContent"]["round_id"];
    let taken = json!({ "round_id": id, "wait": 60 });
    assert_eq!(call(&app.admin(), MODERN, "wait_round", &taken).await["isError"], false);
    for wait in [json!(61), json!(-1), json!("5")] {
        let refused = json!({ "round_id": id, "wait": wait });
        let result = call(&app.admin(), LEGACY, "wait_round", &refused).await;
        assert_eq!(result["structuredContent"]["field"], "wait", "{result}");
    }
}
