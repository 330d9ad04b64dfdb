//! How a call is given up: each revision has its own way.

use std::pin::pin;

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::{FakeExecutor, gated, hangs, says_valid},
    fake_provider::ProviderReply,
};
use serde_json::{Value, json};

use super::{
    LEGACY, MODERN, ask, call,
    handles::{judged, owner, run_of},
    result,
};

const SCOPES: [Scope; 2] = [Scope::RoundsCreate, Scope::RoundsRead];

/// Begins a call and leaves once its executor was asked `n` times.
async fn leave(caller: &TestCaller<'_>, era: &str, fake: &FakeExecutor, n: usize) {
    let params = json!({ "name": "validate", "arguments": { "claim": "x" } });
    let mut asking = pin!(ask(caller, era, "tools/call", params));
    tokio::select! {
        reply = &mut asking => panic!("{}", reply.text()),
        () = fake.wait_for_calls(n) => {}
    }
}

/// The newest round of the caller, when it has ended.
async fn ended(caller: &TestCaller<'_>) -> Value {
    let listed = caller.get("/v1/rounds?limit=1").await.json();
    let id = listed["items"][0]["round_id"].as_str().unwrap();
    caller.get(&format!("/v1/rounds/{id}?wait=20")).await.json()
}

/// Says that the request with an id is cancelled.
async fn cancel(caller: &TestCaller<'_>, id: &Value, headers: &[(&str, &str)]) {
    let message = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
    });
    let headers = [&[("mcp-protocol-version", LEGACY)], headers].concat();
    let reply = caller.send("POST", "/mcp", Body::from(message.to_string()), &headers).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text());
}

#[tokio::test]
async fn a_client_of_the_newest_revision_cancels_by_leaving() {
    let app = TestApp::new().await;
    let [fake] = app.executors([hangs()]).await;
    leave(&app.admin(), MODERN, &fake, 1).await;
    assert_eq!(ended(&app.admin()).await["state"], "cancelled");
}

#[tokio::test]
async fn a_round_of_an_older_revision_survives_a_lost_connection() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    leave(&app.admin(), LEGACY, &fake, 1).await;
    // Another message is answered first, so the end of the connection has been seen.
    call(&app.admin(), LEGACY, "list_rounds", &json!({})).await;
    fake.release();
    let round = ended(&app.admin()).await;
    assert_eq!((&round["state"], &round["verdict"]), (&json!("closed"), &json!("VALID")));
}

#[tokio::test]
async fn a_notification_cancels_the_call_of_an_older_revision() {
    let app = TestApp::new().await;
    let [fake] = app.executors([hangs()]).await;
    let (alice, bob) = (app.caller("alice", &SCOPES).await, app.caller("bob", &SCOPES).await);
    let params = json!({ "name": "validate", "arguments": { "claim": "x" } });
    let mut asking = pin!(ask(&alice, LEGACY, "tools/call", params));
    let told = async {
        fake.wait_for_calls(1).await;
        // Another key, another id and another session name no call.
        cancel(&bob, &json!(1), &[]).await;
        cancel(&alice, &json!(2), &[]).await;
        cancel(&alice, &json!("1"), &[]).await;
        cancel(&alice, &json!(1), &[("mcp-session-id", "other")]).await;
        let listed = call(&alice, MODERN, "list_rounds", &json!({})).await;
        assert_eq!(listed["structuredContent"]["items"][0]["state"], "open", "{listed}");
        cancel(&alice, &json!(1), &[]).await;
    };
    let (reply, ()) = tokio::join!(&mut asking, told);
    assert_eq!(result(&reply)["structuredContent"]["code"], "conflict");
    assert_eq!(ended(&alice).await["state"], "cancelled");
}

#[tokio::test]
async fn a_notification_that_names_two_calls_cancels_neither() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let caller = app.admin();
    let arguments = json!({ "claim": "x" });
    let both = async {
        tokio::join!(
            call(&caller, LEGACY, "validate", &arguments),
            call(&caller, LEGACY, "validate", &arguments),
        )
    };
    let told = async {
        fake.wait_for_calls(2).await;
        cancel(&caller, &json!(1), &[]).await;
        fake.release();
    };
    let ((first, second), ()) = tokio::join!(both, told);
    for ended in [first, second] {
        assert_eq!(ended["structuredContent"]["verdict"], "VALID", "{ended}");
    }
}

#[tokio::test]
async fn a_key_that_runs_verifiers_cancels_its_calls() {
    let (fake, app) = judged(ProviderReply::Hangs).await;
    let alice = owner(&app, "1").await;
    let runner = app.caller("alice", &[Scope::VerifiersRun]).await;
    let mut asking = pin!(ask(&runner, LEGACY, "tools/call", run_of("x")));
    let told = async {
        fake.was_asked(1).await;
        cancel(&runner, &json!(1), &[]).await;
    };
    let (reply, ()) = tokio::join!(&mut asking, told);
    assert_eq!(result(&reply)["structuredContent"]["code"], "conflict");
    assert_eq!(ended(&alice).await["state"], "cancelled");
}

#[tokio::test]
async fn a_key_that_runs_verifiers_cancels_the_rounds_of_runs_and_no_others() {
    let (fake, app) = judged(ProviderReply::Hangs).await;
    let [job] = app.executors([hangs()]).await;
    let alice = owner(&app, "1").await;
    let runner = app.caller("alice", &[Scope::VerifiersRun]).await;
    leave(&alice, LEGACY, &job, 1).await;
    let newest = async || {
        let listed = alice.get("/v1/rounds?limit=1").await.json();
        listed["items"][0]["round_id"].clone()
    };
    let path = |round: &Value| format!("/v1/rounds/{}/cancel", round.as_str().unwrap());
    let of_job = newest().await;
    let refused = runner.post(&path(&of_job), &json!({})).await;
    assert_eq!(refused.json()["code"], "forbidden", "{}", refused.text());
    let refused = call(&runner, MODERN, "cancel_round", &json!({ "round_id": of_job })).await;
    assert_eq!(refused["structuredContent"]["code"], "forbidden", "{refused}");

    for nth in 0..2 {
        app.clock.advance_ms(1);
        let run = json!({ "inputs": { "answer": nth.to_string() } });
        let mut running = pin!(alice.post("/v1/verifiers/cites/runs", &run));
        tokio::select! {
            reply = &mut running => panic!("{}", reply.text()),
            () = fake.was_asked(nth + 1) => {}
        }
        let round = newest().await;
        let cancelled = if nth == 0 {
            runner.post(&path(&round), &json!({})).await.json()
        } else {
            let which = json!({ "round_id": round });
            call(&runner, MODERN, "cancel_round", &which).await["structuredContent"].clone()
        };
        assert_eq!(cancelled["state"], "cancelled", "{cancelled}");
        assert!(cancelled.get("replicas").is_none(), "it may not read rounds: {cancelled}");
    }
}
