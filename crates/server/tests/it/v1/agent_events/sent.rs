//! Events from outside: accepted, delivered, retried and dropped.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ed25519_dalek::SigningKey;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::{AgentEventTerms, EngineLimits, SoleNode};
use jurat_store::StoreLocation;
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{Behaviour, ExecutorFault, FakeExecutor, ReceivedCall, says_valid},
};
use serde_json::{Value, json};

use super::{able, ended, listening, settled, started, task, until};

fn message(text: &str) -> Value {
    json!({
        "event_type": "dm_received", "target_executor": "e", "payload": { "content": text },
        "dedupe_key": text,
    })
}

async fn send(app: &TestApp, body: &Value) -> TestReply {
    app.admin().post("/v1/agent-events", body).await
}

/// The outcome of one event to an executor that answers this way.
async fn outcome(behaviour: Behaviour) -> (Value, usize) {
    let app = started().await;
    let fake = listening(&app, "e", behaviour).await;
    assert_eq!(send(&app, &message("hello")).await.status, StatusCode::CREATED);
    let event = settled(&app, "", 1).await.remove(0);
    app.engine.shutdown().await;
    (event, fake.events().len())
}

#[tokio::test]
async fn an_event_is_delivered_as_it_was_sent() {
    let app = started().await;
    let fake = listening(&app, "e", says_valid()).await;
    let mut body = message("hello");
    body["agent_envelope"] = json!({ "protocol": "a2a", "message_json": "{}" });
    body["source_node_id"] = json!("node-b");
    let reply = send(&app, &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let told = &fake.wait_for_events(1).await[0].body["event"];
    assert_eq!(*told, reply.json()["event"]);
    assert_eq!(told["source_kind"], "peer_direct_message");
    assert_eq!(told["agent_envelope"], body["agent_envelope"]);
    assert_eq!((&told["source_node_id"], &told["payload"]), (&json!("node-b"), &body["payload"]));
    let event = settled(&app, "state=acked", 1).await.remove(0);
    assert_eq!((&event["direction"], &event["last_error"]), (&json!("in"), &Value::Null));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn the_same_key_is_the_same_event() {
    let app = TestApp::new().await;
    let _fake = listening(&app, "e", says_valid()).await;
    let first = send(&app, &message("hello")).await.json();
    let mut again = message("hello");
    again["payload"] = json!("something else");
    let reply = send(&app, &again).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.json(), first);
    // Another account has keys of its own.
    let other = app.caller("other", &[Scope::TasksWrite, Scope::TasksRead]).await;
    let reply = other.post("/v1/agent-events", &message("hello")).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    let id = first["event_id"].as_str().unwrap();
    assert_ne!(reply.json()["event_id"], *id);
    // And does not see the events of others.
    let listed = other.get("/v1/agent-events").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    let hidden = other.get(&format!("/v1/agent-events/{id}")).await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND);
    // A repeated request under an idempotency key gets the same reply.
    let key = [("idempotency-key", "k")];
    let once = app.admin().post_with("/v1/agent-events", &message("two"), &key).await.json();
    let twice = app.admin().post_with("/v1/agent-events", &message("two"), &key).await;
    assert_eq!(twice.headers["idempotent-replayed"], "true");
    assert_eq!(twice.json(), once);
}

/// The keys of the events that an executor received, with their contents.
fn wire_keys(fake: &FakeExecutor) -> Vec<String> {
    let key = |it: &ReceivedCall| it.body["event"]["dedupe_key"].as_str().unwrap().to_owned();
    fake.events().iter().map(key).collect()
}

#[tokio::test]
async fn the_key_of_an_event_belongs_to_one_account() {
    let app = started().await;
    let fake = listening(&app, "e", able()).await;
    task(&app, "task-1", &["e"], &[]).await;
    assert_eq!(ended(&app, "task-1").await["state"], "finalized");
    let of_task = settled(&app, "", 3).await;
    // All of these keys can be guessed, and sent by anybody who knows them.
    let guessed: Vec<String> =
        of_task.iter().map(|it| it["dedupe_key"].as_str().unwrap().to_owned()).collect();
    assert!(guessed.iter().any(|it| it.starts_with("task:task-1:")), "{guessed:?}");
    let other = app.caller("other", &[Scope::TasksWrite, Scope::TasksRead]).await;
    for key in &guessed {
        let reply = other.post("/v1/agent-events", &message(key)).await;
        assert_eq!(reply.status, StatusCode::CREATED);
        // The owner of a key sees it as it was sent.
        assert_eq!(reply.json()["dedupe_key"], **key);
        assert_eq!(send(&app, &message(key)).await.status, StatusCode::CREATED);
    }
    fake.wait_for_events(9).await;
    let told = wire_keys(&fake);
    let distinct: BTreeSet<&String> = told.iter().collect();
    assert_eq!((told.len(), distinct.len()), (9, 9), "{told:?}");
    for key in &told {
        assert!(key.len() == 64 && !guessed.contains(key), "{key}");
    }
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_server_that_starts_again_keeps_the_keys_of_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::File(folder.path().join("jurat.db"));
    let first = TestApp::with_store(&location).await;
    first.start(SoleNode::Yes).await;
    let fake = listening(&first, "e", says_valid().told("*", 503, json!({}))).await;
    send(&first, &message("hello")).await;
    until(&first, "", |it| !it[0]["last_error"].is_null()).await;
    first.engine.shutdown().await;
    fake.set(says_valid());
    let second = TestApp::with_store(&location).await;
    second.clock.advance_ms(1_000);
    second.start(SoleNode::Yes).await;
    settled(&second, "state=acked", 1).await;
    let keys = wire_keys(&fake);
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    second.engine.shutdown().await;
}

#[tokio::test]
async fn a_caller_cannot_speak_as_a_node() {
    let app = TestApp::new().await;
    let _fake = listening(&app, "e", says_valid()).await;
    // The node itself, and one that shares its store.
    for seed in [7, 8] {
        let node = hex::encode(SigningKey::from_bytes(&[seed; 32]).verifying_key().as_bytes());
        refused_as(&app, &node).await;
    }
}

async fn refused_as(app: &TestApp, node: &str) {
    let card = json!({ "agent_id": "a", "node_id": node, "card_hash": "h", "issued_at": 1 });
    for (body, field) in [
        (json!({ "source_node_id": node }), "source_node_id"),
        (json!({ "source_node_id": format!(" {}", node.to_uppercase()) }), "source_node_id"),
        (
            json!({ "agent_envelope": { "protocol": "a2a", "source_node_id": node } }),
            "agent_envelope",
        ),
        (
            json!({ "agent_envelope": { "protocol": "a2a", "source_agent_card": card } }),
            "agent_envelope",
        ),
    ] {
        let mut event = message("hello");
        event.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let reply = send(app, &event).await;
        let problem = reply.json();
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{event} {problem}");
        assert_eq!(problem["field"], field, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("a node's public key"), "{problem}");
    }
}

#[tokio::test]
async fn an_invalid_event_is_refused_by_its_field() {
    let app = TestApp::new().await;
    let _fake = listening(&app, "e", says_valid()).await;
    let deaf = FakeExecutor::start(says_valid()).await;
    app.register("deaf", &deaf.url()).await;
    let with = |name: &str, value: Value| {
        let mut body = message("x");
        body[name] = value;
        body
    };
    for (body, field) in [
        (with("event_type", json!("task_result_received")), "event_type"),
        (with("event_type", json!("gossip")), "event_type"),
        (with("target_executor", json!("nobody")), "target_executor"),
        (with("target_executor", json!("deaf")), "target_executor"),
        (with("target_executor", json!("http://10.0.0.1")), "target_executor"),
        (with("payload", Value::Null), "payload"),
        (with("payload", json!("x".repeat(70_000))), "payload"),
        (with("agent_envelope", json!({})), "agent_envelope.protocol"),
        (with("requires_commit", json!("yes")), "requires_commit"),
        (with("dedupe_key", json!("k".repeat(300))), "dedupe_key"),
        (with("url", json!("http://10.0.0.1")), "url"),
    ] {
        let reply = send(&app, &body).await;
        let problem = reply.json();
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{body} {problem}");
        assert_eq!(problem["field"], field, "{problem}");
        let said = problem["detail"].as_str().unwrap();
        assert!(!said.contains('['), "{said}");
    }
    let reader = app.caller("reader", &[Scope::TasksRead]).await;
    let reply = reader.post("/v1/agent-events", &message("x")).await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN);
    let unknown = app.admin().get("/v1/agent-events?state=lost").await.json();
    assert_eq!(unknown["field"], "state");
    let unclear = app.admin().get("/v1/agent-events?needs_review=perhaps").await.json();
    assert_eq!(unclear["field"], "needs_review");
}

#[tokio::test]
async fn delivery_to_a_busy_executor_is_retried() {
    let app = started().await;
    let fake = listening(&app, "e", says_valid().told("*", 503, json!({}))).await;
    send(&app, &message("hello")).await;
    let event = until(&app, "", |it| it[0]["attempts"] == 1 && !it[0]["last_error"].is_null());
    let event = event.await.remove(0);
    assert_eq!(event["state"], "pending");
    assert!(event["last_error"].as_str().unwrap().contains("503"), "{event}");
    assert_eq!(event["next_attempt_at"], "2026-09-21T14:13:21Z");
    fake.set(says_valid());
    app.clock.advance_ms(1_000);
    let told = fake.wait_for_events(2).await;
    // The same event under the same key, with a new signature.
    assert_eq!(told[0].raw, told[1].raw);
    assert_ne!(told[0].header("signature"), told[1].header("signature"));
    let event = settled(&app, "", 1).await.remove(0);
    assert_eq!((&event["state"], &event["attempts"]), (&json!("acked"), &json!(2)));
    assert_eq!(event["last_error"], Value::Null);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn delivery_to_a_missing_executor_ends() {
    let app = started().await;
    let fake = listening(&app, "e", says_valid().events_fault(ExecutorFault::HangsUp)).await;
    send(&app, &message("hello")).await;
    // Twice as long each time; the result of an attempt is recorded before the next one is due.
    let times = ["2026-09-21T14:13:21Z", "2026-09-21T14:13:23Z"];
    for (attempt, next) in (1..).zip(times) {
        until(&app, "", |it| it[0]["next_attempt_at"] == next).await;
        fake.wait_for_events(attempt).await;
        app.clock.advance_ms(1_000 << (attempt - 1));
    }
    let event = settled(&app, "state=failed", 1).await.remove(0);
    assert_eq!((&event["attempts"], &event["next_attempt_at"]), (&json!(3), &Value::Null));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_refused_event_is_not_delivered_again() {
    let body = json!({ "ok": false, "detail": "not mine" });
    let (event, count) = outcome(says_valid().told("*", 200, body)).await;
    assert_eq!((&event["state"], count), (&json!("failed"), 1));
    let said = "the executor refused the event: not mine";
    assert_eq!(event["last_error"], said);
    let (event, count) = outcome(says_valid().told("*", 404, json!({}))).await;
    assert_eq!((&event["state"], count), (&json!("failed"), 1));
}

#[tokio::test]
async fn an_unreadable_answer_counts_as_delivered() {
    let (event, count) = outcome(says_valid().told("*", 200, json!("fine"))).await;
    assert_eq!((&event["state"], count), (&json!("delivered"), 1));
    assert!(event["last_error"].as_str().unwrap().contains("cannot be read"), "{event}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = FakeExecutor::start(says_valid()).await;
    let url = format!("{}/agent-events", elsewhere.url());
    let fault = ExecutorFault::RedirectsTo { status: 307, url };
    let (event, count) = outcome(says_valid().events_fault(fault)).await;
    assert_eq!((&event["state"], count), (&json!("failed"), 1));
    assert_eq!(elsewhere.calls().len(), 0);
}

#[tokio::test]
async fn an_expired_event_is_not_delivered() {
    let app = TestApp::new().await;
    let fake = listening(&app, "e", says_valid()).await;
    send(&app, &message("hello")).await;
    app.clock.advance_ms(86_400_000);
    app.start(SoleNode::Yes).await;
    let event = settled(&app, "state=expired", 1).await.remove(0);
    assert_eq!(event["last_error"], "it expired before delivery");
    assert_eq!(fake.events().len(), 0);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_restarted_server_delivers_the_waiting_events() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::File(folder.path().join("jurat.db"));
    let first = TestApp::with_store(&location).await;
    let fake = listening(&first, "e", says_valid()).await;
    send(&first, &message("hello")).await;
    first.engine.shutdown().await;
    assert_eq!(fake.events().len(), 0);
    let second = TestApp::with_store(&location).await;
    second.start(SoleNode::Yes).await;
    fake.wait_for_events(1).await;
    settled(&second, "state=acked", 1).await;
    second.engine.shutdown().await;
}

#[tokio::test]
async fn a_hanging_executor_does_not_delay_others() {
    let app = started().await;
    let stuck = listening(&app, "e", says_valid().events_fault(ExecutorFault::Hangs)).await;
    let well = listening(&app, "well", says_valid()).await;
    for number in 0..40 {
        send(&app, &message(&format!("m{number}"))).await;
    }
    stuck.wait_for_events(8).await;
    let mut other = message("hello");
    other["target_executor"] = json!("well");
    send(&app, &other).await;
    well.wait_for_events(1).await;
    assert!(stuck.events().len() < 17, "{}", stuck.events().len());
    app.engine.shutdown().await;
}

#[tokio::test]
async fn hanging_executors_do_not_let_one_account_delay_another() {
    let mut limits = EngineLimits::default();
    // A delivery ends only when its executor answers.
    limits.agent_events.timeout = Duration::from_hours(1);
    let app = TestApp::with_limits(limits).await;
    let other = app.caller("other", &[Scope::TasksWrite]).await;
    let mut stuck = Vec::new();
    for name in ["e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8"] {
        let behaviour = says_valid().events_fault(ExecutorFault::Hangs);
        stuck.push(listening(&app, name, behaviour).await);
        for number in 0..8 {
            let mut event = message(&format!("m{number}"));
            event["target_executor"] = json!(name);
            let reply = other.post("/v1/agent-events", &event).await;
            assert_eq!(reply.status, StatusCode::CREATED);
        }
    }
    // Those are due before this one.
    app.clock.advance_ms(1);
    let well = listening(&app, "e", says_valid()).await;
    send(&app, &message("hello")).await;
    app.start(SoleNode::Yes).await;
    well.wait_for_events(1).await;
    let told: usize = stuck.iter().map(|it| it.events().len()).sum();
    assert!(told < 40, "{told}");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn the_token_of_an_executor_is_sent_only_to_it() {
    let app = started().await;
    let (own, other) = (says_valid(), FakeExecutor::start(says_valid()).await);
    let own = FakeExecutor::start(own).await;
    for (name, events) in [("own", own.url()), ("other", other.url())] {
        let body = json!({
            "name": name, "url": own.url(), "agent_events_url": events,
            "token_env": "JURAT_TEST_TOKEN",
        });
        assert_eq!(app.admin().post("/v1/executors", &body).await.status.as_u16(), 201);
        let mut event = message(name);
        event["target_executor"] = json!(name);
        send(&app, &event).await;
    }
    let told = own.wait_for_events(1).await;
    assert_eq!(told[0].header("authorization"), Some("Bearer a-token-for-tests"));
    assert_eq!(other.wait_for_events(1).await[0].header("authorization"), None);
    app.engine.shutdown().await;
}

/// An application with a small limit of waiting events.
async fn crowded(pending: u32) -> TestApp {
    let agent_events = AgentEventTerms { pending, ..AgentEventTerms::default() };
    TestApp::with_limits(EngineLimits { agent_events, ..EngineLimits::default() }).await
}

async fn figure(app: &TestApp, series: &str) -> Option<String> {
    let text = app.admin().get("/metrics").await.text();
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.map(|value| value.trim().to_owned())
}

#[tokio::test]
async fn a_flood_of_events_is_refused() {
    let app = crowded(2).await;
    let _fake = listening(&app, "e", says_valid()).await;
    for text in ["one", "two"] {
        assert_eq!(send(&app, &message(text)).await.status, StatusCode::CREATED);
    }
    let refused = send(&app, &message("three")).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.text());
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("its limit of 2"), "{detail}");
    // A known event is answered all the same, and others have slots of their own.
    assert_eq!(send(&app, &message("two")).await.status, StatusCode::OK);
    let other = app.caller("other", &[Scope::TasksWrite, Scope::TasksRead]).await;
    let reply = other.post("/v1/agent-events", &message("three")).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    let counted = figure(&app, "jurat_agent_events_total{outcome=\"refused\"}").await;
    assert_eq!(counted.as_deref(), Some("1"));
    app.start(SoleNode::Yes).await;
    settled(&app, "", 2).await;
    assert_eq!(send(&app, &message("three")).await.status, StatusCode::CREATED);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_task_continues_if_its_executor_has_too_many_events() {
    let app = crowded(1).await;
    app.start(SoleNode::Yes).await;
    // No delivery is ever answered, so one event waits to the end.
    let _fake = listening(&app, "e", able().told("*", 503, json!({}))).await;
    send(&app, &message("first")).await;
    task(&app, "task-1", &["e"], &[]).await;
    assert_eq!(ended(&app, "task-1").await["state"], "finalized");
    let given_up = until(&app, "state=failed", |items| items.len() == 3).await;
    for event in &given_up {
        let why = event["last_error"].as_str().unwrap();
        assert!(why.contains("1 events are already waiting for the executor"), "{event}");
        assert_eq!((&event["attempts"], &event["next_attempt_at"]), (&json!(0), &Value::Null));
    }
    let counted = figure(&app, "jurat_agent_events_total{outcome=\"crowded\"}").await;
    assert_eq!(counted.as_deref(), Some("3"));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn old_events_are_removed() {
    let app = started().await;
    let _fake = listening(&app, "e", says_valid()).await;
    send(&app, &message("old")).await;
    settled(&app, "", 1).await;
    let later = TestApp::on(Arc::clone(&app.store), EngineLimits::default()).await;
    later.clock.advance_ms(31 * 24 * 3_600_000);
    send(&later, &message("new")).await;
    later.start(SoleNode::No).await;
    let left = until(&later, "", |items| items.len() == 1).await;
    assert_eq!(left[0]["dedupe_key"], "new");
    later.engine.shutdown().await;
}

#[tokio::test]
async fn a_removed_executor_receives_nothing() {
    let app = TestApp::new().await;
    let fake = listening(&app, "e", says_valid()).await;
    send(&app, &message("hello")).await;
    app.admin().delete("/v1/executors/e").await;
    app.start(SoleNode::Yes).await;
    let event = settled(&app, "", 1).await.remove(0);
    assert_eq!(event["state"], "failed");
    assert_eq!(event["last_error"], "the executor `e` is no longer registered");
    assert_eq!(fake.events().len(), 0);
    app.engine.shutdown().await;
}

/// Forty events for one executor, on nodes that share a store.
pub(crate) async fn shared(nodes: &[&TestApp]) {
    let fake = listening(nodes[0], "e", says_valid()).await;
    for number in 0..40 {
        let node = nodes[number % nodes.len()];
        assert_eq!(send(node, &message(&format!("m{number}"))).await.status.as_u16(), 201);
    }
    for node in nodes {
        node.start(SoleNode::No).await;
    }
    settled(nodes[0], "state=acked", 40).await;
    assert_eq!(fake.events().len(), 40);
}
