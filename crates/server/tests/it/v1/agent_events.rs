//! `/v1/agent-events`: the messages to executors, and their answers.

mod decided;
pub(crate) mod sent;

use std::{collections::BTreeSet, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, SigningKey, Verifier as _};
use http::StatusCode;
use jurat_engine::{RunWorkerSettings, SoleNode};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{Behaviour, FakeExecutor, ReceivedCall, answers, says_valid},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn started() -> TestApp {
    let app = TestApp::new().await;
    app.start(SoleNode::Yes).await;
    app
}

/// Starts a fake that subscribes to events.
pub(crate) async fn listening(app: &TestApp, name: &str, behaviour: Behaviour) -> FakeExecutor {
    let behaviour = behaviour.provider_family(name).model_id(name);
    let fake = FakeExecutor::start(behaviour).await;
    let url = fake.url();
    let body = json!({ "name": name, "url": url, "agent_event_callback_base_url": url });
    let reply = app.admin().post("/v1/executors", &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    assert_eq!(reply.json()["agent_events_url"], url);
    fake
}

pub(crate) fn able() -> Behaviour {
    answers(json!({ "answer": "yes" })).task_types(&["swarm"])
}

/// Submits a task for these executors.
pub(crate) async fn task(app: &TestApp, id: &str, executors: &[&str], verifiers: &[&str]) {
    let contract = app.admin().get(&format!("/v1/tasks/sample?task_id={id}")).await.json();
    under(app, &contract, executors, verifiers).await;
}

/// The same under a contract of its own.
pub(crate) async fn under(app: &TestApp, contract: &Value, executors: &[&str], verifiers: &[&str]) {
    let order = json!({ "contract": contract, "executors": executors, "verifiers": verifiers });
    let reply = app.admin().post("/v1/tasks", &order).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
}

pub(crate) async fn ended(app: &TestApp, id: &str) -> Value {
    app.admin().get(&format!("/v1/tasks/{id}?wait=30")).await.json()
}

/// Reads a list of events until it satisfies the condition.
pub(crate) async fn until(
    app: &TestApp,
    query: &str,
    is_done: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let looking = async {
        loop {
            let list = app.admin().get(&format!("/v1/agent-events?limit=200&{query}")).await.json();
            let items = list["items"].as_array().unwrap();
            if is_done(items) {
                return items.clone();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap()
}

pub(crate) async fn settled(app: &TestApp, query: &str, count: usize) -> Vec<Value> {
    until(app, query, |items| {
        items.len() == count && items.iter().all(|it| it["state"] != "pending")
    })
    .await
}

fn kinds(calls: &[ReceivedCall]) -> BTreeSet<String> {
    let kind =
        |it: &ReceivedCall| it.body["event"]["payload"]["event_kind"].as_str().unwrap().to_owned();
    calls.iter().map(kind).collect()
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|it| (*it).to_owned()).collect()
}

/// A task from its lease to its decision, as subscribers see it.
pub(crate) async fn told(app: &TestApp) {
    app.start(SoleNode::Yes).await;
    let author = listening(app, "author", able()).await;
    let voter = listening(app, "voter", says_valid()).await;
    let deaf = FakeExecutor::start(says_valid()).await;
    app.register("deaf", &deaf.url()).await;
    task(app, "task-1", &["author"], &["voter", "deaf"]).await;
    assert_eq!(ended(app, "task-1").await["state"], "finalized");
    let of_author = settled(app, "executor=author", 3).await;
    assert!(of_author.iter().all(|it| it["state"] == "acked" && it["attempts"] == 1));
    assert_eq!(
        kinds(&author.events()),
        set(&["task_claimed", "task_completion_decided", "decision_finalized"])
    );
    // Which of the two votes depends on their names.
    let count = voter.events().len().max(2);
    let of_voter = until(app, "executor=voter", |items| {
        2 <= items.len() && items.iter().all(|it| it["state"] == "acked")
    })
    .await;
    assert!(count <= of_voter.len());
    assert!(
        kinds(&voter.events()).is_superset(&set(&["candidate_proposed", "decision_finalized"]))
    );
    assert_eq!(deaf.events().len(), 0);
    let none = app.admin().get("/v1/agent-events?executor=deaf").await.json();
    assert_eq!(none["items"], json!([]));
    // Each is delivered once, under a key of its own.
    let calls = author.events();
    let keys: BTreeSet<&str> =
        calls.iter().map(|it| it.body["event"]["dedupe_key"].as_str().unwrap()).collect();
    assert_eq!(keys.len(), calls.len());
    for call in &calls {
        check_signature(&author, call);
    }
    let last = app
        .admin()
        .get(&format!("/v1/agent-events/{}", of_author[0]["event_id"].as_str().unwrap()))
        .await
        .json();
    assert_eq!(last["event"]["payload"]["output"], json!({ "answer": "yes" }));
    assert_eq!(last["event"]["correlation_id"], "task-1");
    assert_eq!((&last["direction"], &last["decision"]), (&json!("out"), &json!(null)));
}

#[tokio::test]
async fn executors_are_notified_of_the_progress_of_a_task() {
    let app = TestApp::new().await;
    told(&app).await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn the_steps_of_a_run_are_announced_like_any_task() {
    let app = started().await;
    let poll = Duration::from_millis(20);
    app.engine.spawn_run_worker(RunWorkerSettings { poll, ..RunWorkerSettings::of_a_node(8) });
    let fake = listening(&app, "e", able()).await;
    let agent = json!({ "agent_id": "a", "executor": "e", "prompt": "x" });
    let order = json!({ "kickoff": true, "spec": { "run_id": "r1", "agents": [agent] } });
    let reply = app.admin().post("/v1/runs", &order).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let told = fake.wait_for_events(3).await;
    let all = ["task_claimed", "task_completion_decided", "decision_finalized"];
    assert_eq!(kinds(&told), set(&all));
    app.engine.shutdown().await;
}

#[track_caller]
fn check_signature(fake: &FakeExecutor, call: &ReceivedCall) {
    let header = |name: &str| call.header(name).unwrap().to_owned();
    assert_eq!(header("x-jurat-event"), call.body["event"]["event_id"].as_str().unwrap());
    let digest = STANDARD.encode(Sha256::digest(&call.raw));
    assert_eq!(header("content-digest"), format!("sha-256=:{digest}:"));
    let input = header("signature-input");
    let params = input.strip_prefix("sig1=").unwrap();
    let authority = fake.url().strip_prefix("http://").unwrap().to_owned();
    let base = format!(
        "\"@method\": POST\n\"@authority\": {authority}\n\"@path\": /agent-events\n\"content-digest\": {}\n\"x-jurat-event\": {}\n\"@signature-params\": {params}",
        header("content-digest"),
        header("x-jurat-event"),
    );
    let signature = header("signature");
    let signature =
        signature.strip_prefix("sig1=:").and_then(|rest| rest.strip_suffix(':')).unwrap();
    let signature = Signature::from_slice(&STANDARD.decode(signature).unwrap()).unwrap();
    let node = SigningKey::from_bytes(&[7; 32]).verifying_key();
    node.verify(base.as_bytes(), &signature).unwrap();
    let event = &call.body["event"];
    assert_eq!(event["source_node_id"], hex::encode(node.as_bytes()));
}

#[tokio::test]
async fn nothing_about_a_vote_is_announced_before_the_decision() {
    let app = started().await;
    let author = listening(&app, "author", able()).await;
    let voter = listening(&app, "voter", jurat_testkit::fake_executor::gated(says_valid())).await;
    task(&app, "task-1", &["author"], &["voter"]).await;
    voter.wait_for_calls(1).await;
    // The vote is not cast yet: the author knows its own lease, and the voter a name.
    let told = voter.wait_for_events(2).await;
    for call in told.iter().chain(&author.events()) {
        let payload = &call.body["event"]["payload"];
        for secret in ["output", "output_digest", "digest", "decision", "proposer"] {
            assert!(payload.get(secret).is_none(), "{payload}");
        }
    }
    voter.release();
    assert_eq!(ended(&app, "task-1").await["state"], "finalized");
    app.engine.shutdown().await;
}
