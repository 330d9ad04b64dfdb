//! Long work: a call ends in time with a handle, which other tools take from there.

use std::{convert::Infallible, pin::pin, time::Duration};

use axum::body::Body;
use futures::{channel::oneshot, poll, stream};
use http::StatusCode;
use jurat_core::{account::caller::Scope, id::RoundId, judge::Price};
use jurat_engine::{Clock as _, JudgesConfig, ProviderKind, ProviderSettings};
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::{Gate, gated, hangs, says_valid},
    fake_provider::{FakeProvider, ProviderReply, verdict},
};
use serde_json::{Value, json};

use super::{ERAS, LEGACY, MODERN, ask, ask_at, call, result};

const SCOPES: [Scope; 2] = [Scope::RoundsCreate, Scope::RoundsRead];

/// Moves the time on by this many seconds.
async fn advance(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

/// A call of `validate` that takes long.
fn long_call() -> Value {
    json!({
        "name": "validate",
        "arguments": { "claim": "x", "execution": { "timeout_ms": 300_000 } },
    })
}

/// The result of a call that ends only because its time is up.
async fn handle(caller: &TestCaller<'_>, era: &str, called: impl Future<Output = ()>) -> Value {
    handle_at(caller, "/mcp", era, (long_call(), called)).await
}

async fn handle_at(
    caller: &TestCaller<'_>,
    address: &str,
    era: &str,
    (params, called): (Value, impl Future<Output = ()>),
) -> Value {
    let mut asking = pin!(ask_at(caller, address, era, ("tools/call", params)));
    tokio::select! {
        reply = &mut asking => panic!("{}", reply.text()),
        () = called => {}
    }
    advance(46).await;
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

/// A provider with a price, and an application whose judge it is.
pub(super) async fn judged(says: ProviderReply) -> (FakeProvider, TestApp) {
    let fake = FakeProvider::saying([says]).await;
    let mut settings = ProviderSettings::new(ProviderKind::OpenAi, fake.url());
    let price =
        Price { input_micros_per_million: 3_000_000, output_micros_per_million: 15_000_000 };
    settings.prices.insert("*".to_owned(), price);
    settings.timeout = Duration::from_mins(10);
    let mut judges = JudgesConfig::default();
    judges.providers.insert("p1".to_owned(), settings);
    let app = TestApp::with_judges(judges).await;
    (fake, app)
}

/// The owner of a verifier, with this much credit.
pub(super) async fn owner<'a>(app: &'a TestApp, credit: &str) -> TestCaller<'a> {
    let scopes = [
        Scope::RoundsCreate,
        Scope::RoundsRead,
        Scope::VerifiersRead,
        Scope::VerifiersRun,
        Scope::VerifiersWrite,
    ];
    let alice = app.caller("alice", &scopes).await;
    let verifier = json!({
        "name": "cites", "description": "It cites.", "criterion": "Passes if it cites.",
        "input_contract": "text", "input_fields": ["answer"], "model_settings": { "model": "p1/m" },
    });
    let reply = alice.post("/v1/verifiers", &verifier).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let grant = json!({ "amount_usd": credit });
    let reply = app.admin().post("/v1/accounts/acct_alice/grants", &grant).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    alice
}

pub(super) fn run_of(answer: &str) -> Value {
    let arguments = json!({
        "verifier_id": "cites", "inputs": { "answer": answer }, "timeout_ms": 120_000,
    });
    json!({ "name": "run_verifier", "arguments": arguments })
}

#[tokio::test]
async fn a_long_run_of_a_verifier_returns_a_handle_that_its_own_set_can_follow() {
    let gate = Gate::new();
    let answer = ProviderReply::Answer(verdict("met"));
    let (fake, app) = judged(ProviderReply::After(gate.clone(), Box::new(answer))).await;
    let alice = owner(&app, "1").await;
    let address = "/mcp?tools=verifiers";
    let handle = handle_at(&alice, address, MODERN, (run_of("x"), fake.was_asked(1))).await;
    let body = &handle["structuredContent"];
    assert_eq!((&handle["isError"], &body["state"]), (&json!(false), &json!("open")), "{handle}");
    let text = handle["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`wait_round`") && text.contains("`get_verifier_run`"), "{text}");
    gate.release();
    for (tool, arguments, member) in [
        ("wait_round", json!({ "round_id": body["round_id"] }), "state"),
        ("get_verifier_run", json!({ "verifier_run_id": body["verifier_run_id"] }), "passed"),
    ] {
        let params = json!({ "name": tool, "arguments": arguments });
        let reply = ask_at(&alice, address, LEGACY, ("tools/call", params)).await;
        let ended = result(&reply)["structuredContent"][member].clone();
        assert!(ended == "closed" || ended == true, "{tool}: {ended}");
    }
}

#[tokio::test]
async fn a_tool_of_the_other_router_returns_a_handle_that_its_own_set_can_follow() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let alice = app.caller("alice", &SCOPES).await;
    let mut params = long_call();
    params["name"] = json!("cortensor_validate_v3");
    let address = "/mcp?tools=cortensor";
    let handle = handle_at(&alice, address, LEGACY, (params, fake.wait_for_calls(1))).await;
    let body = handle["structuredContent"].clone();
    assert_eq!(body["state"], "open", "{handle}");
    fake.release();
    let params = json!({ "name": "wait_round", "arguments": { "round_id": body["round_id"] } });
    let reply = ask_at(&alice, address, LEGACY, ("tools/call", params)).await;
    assert_eq!(result(&reply)["structuredContent"]["verdict"], "VALID", "{}", reply.text());
}

#[tokio::test]
async fn every_set_with_a_tool_that_returns_a_handle_can_follow_it() {
    let app = TestApp::new().await;
    for set in jurat_server::TOOL_SETS {
        let address = format!("/mcp?tools={set}");
        let reply = ask_at(&app.admin(), &address, LEGACY, ("tools/list", json!({}))).await;
        let tools = result(&reply)["tools"].as_array().unwrap().clone();
        let has = |name: &str| tools.iter().any(|tool| tool["name"] == name);
        let is_handing = ["validate", "run_verifier", "cortensor_validate_v3"].into_iter().any(has);
        for follower in ["get_round", "wait_round", "cancel_round"] {
            assert_eq!(has(follower), is_handing, "{set}: {follower}");
        }
    }
}

#[tokio::test]
async fn the_time_of_a_call_begins_when_its_message_arrives() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let alice = app.caller("alice", &SCOPES).await;
    let (send, sent) = oneshot::channel::<()>();
    let (want, wanted) = oneshot::channel::<()>();
    let message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": long_call() });
    let late = stream::once(async move {
        want.send(()).unwrap();
        sent.await.unwrap();
        Ok::<_, Infallible>(message.to_string())
    });
    let body = Body::from_stream(late);
    let mut asking = pin!(alice.send("POST", "/mcp", body, &[("mcp-protocol-version", LEGACY)]));
    // The request has arrived when its body is waited for.
    tokio::select! {
        reply = &mut asking => panic!("{}", reply.text()),
        wanted = wanted => wanted.unwrap(),
    }
    advance(44).await;
    send.send(()).unwrap();
    tokio::select! {
        reply = &mut asking => panic!("{}", reply.text()),
        () = fake.wait_for_calls(1) => {}
    }
    advance(2).await;
    let reply = tokio::time::timeout(Duration::from_secs(20), asking).await.unwrap();
    assert_eq!(result(&reply)["structuredContent"]["state"], "open");
    fake.release();
}

#[tokio::test]
async fn a_round_that_cannot_begin_in_time_is_given_up() {
    let (fake, app) = judged(ProviderReply::Hangs).await;
    // Enough for one call at a time.
    let alice = owner(&app, "0.04").await;
    let first = json!({ "inputs": { "answer": "one" }, "timeout_ms": 120_000 });
    let mut first = pin!(alice.post("/v1/verifiers/cites/runs", &first));
    tokio::select! {
        reply = &mut first => panic!("{}", reply.text()),
        () = fake.was_asked(1) => {}
    }
    let mut second = pin!(ask(&alice, LEGACY, "tools/call", run_of("two")));
    assert!(poll!(&mut second).is_pending());
    advance(46).await;
    let reply = tokio::time::timeout(Duration::from_secs(20), second).await.unwrap();
    let refused = result(&reply);
    assert_eq!(refused["structuredContent"]["code"], "overloaded", "{refused}");
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn a_thousand_guessed_handles_find_nothing() {
    let app = TestApp::new().await;
    let [fake] = app.executors([hangs()]).await;
    let (alice, bob) = (app.caller("alice", &SCOPES).await, app.caller("bob", &SCOPES).await);
    let open = handle(&alice, LEGACY, fake.wait_for_calls(1)).await;
    let tools = ["get_round", "wait_round", "cancel_round"];
    for (nth, tool) in (0..1_000).zip(tools.into_iter().cycle()) {
        // At the time of the round that is open, so only the random part is unknown.
        let guess = RoundId::new(app.clock.now(), app.clock.bits());
        let era = ERAS[nth % 2];
        let refused = call(&bob, era, tool, &json!({ "round_id": guess.as_str() })).await;
        assert_eq!(refused["structuredContent"]["code"], "not_found", "{tool}: {refused}");
    }
    let which = json!({ "round_id": open["structuredContent"]["round_id"] });
    let shown = call(&alice, LEGACY, "get_round", &which).await;
    assert_eq!(shown["structuredContent"]["state"], "open", "{shown}");
}
