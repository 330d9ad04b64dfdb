//! Rounds that nobody waits for: `Prefer: respond-async`, long polls, and calling off.

use axum::body::Body;
use futures::FutureExt as _;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{gated, says_invalid, says_valid},
};
use serde_json::{Value, json};

use crate::inbound::{Served, patient, post};

async fn preferring(app: &TestApp, prefer: &str, body: &Value) -> TestReply {
    let body = Body::from(body.to_string());
    app.admin().send("POST", "/api/v3/validate", body, &[("prefer", prefer)]).await
}

fn location(reply: &TestReply) -> String {
    reply.headers["location"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_caller_that_does_not_wait_gets_the_address_of_the_round() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let reply = preferring(&app, "respond-async", &json!({ "claim": "x" })).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED, "{}", reply.text());
    assert_eq!(reply.headers["preference-applied"], "respond-async");
    assert_eq!(reply.json()["state"], "open");
    let path = location(&reply);
    assert_eq!(path, format!("/v1/rounds/{}", reply.json()["round_id"].as_str().unwrap()));
    assert_eq!(app.admin().get(&format!("{path}?wait=0")).await.json()["state"], "open");

    let (waiter, path) = (app.admin(), format!("{path}?wait=60"));
    let waiting = waiter.get(&path);
    let ((), ended) = tokio::join!(
        async {
            fake.wait_for_calls(1).await;
            fake.release();
        },
        waiting
    );
    assert_eq!(ended.json()["state"], "closed");
    assert_eq!(ended.json()["verdict"], "VALID");
}

#[tokio::test]
async fn a_caller_may_wait_a_little() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let reply = preferring(&app, "respond-async, wait=60", &json!({ "claim": "x" })).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.json()["verdict"], "VALID");

    fake.set(gated(says_valid()));
    let reply = preferring(&app, "respond-async, wait=0", &json!({ "claim": "x" })).await;
    assert_eq!(reply.status, StatusCode::ACCEPTED);
    assert_eq!(reply.json()["state"], "open");
    fake.release();
    app.engine.drain().await;
}

#[tokio::test]
async fn a_fault_of_a_request_is_reported_immediately() {
    let app = TestApp::new().await;
    let reply = preferring(&app, "respond-async", &json!({ "claim": "x" })).await;
    assert_eq!(reply.json()["code"], "sessions_unavailable");
    let reply = preferring(&app, "respond-async", &json!({})).await;
    assert_eq!(reply.json()["code"], "request_invalid");
    let _fakes = app.executors([says_valid()]).await;
    let reply = app.admin().get("/v1/rounds/rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV?wait=5").await;
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    for query in ["wait=61", "wait=-1", "wait=soon", "hold=1"] {
        let path = format!("/v1/rounds/rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV?{query}");
        let reply = app.admin().get(&path).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn a_repeated_request_leads_to_the_same_round() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let headers = [("prefer", "respond-async"), ("idempotency-key", "k")];
    let send = async || {
        let body = Body::from(json!({ "claim": "x" }).to_string());
        app.admin().send("POST", "/api/v3/validate", body, &headers).await
    };
    let (first, second) = (send().await, send().await);
    assert_eq!((first.status, second.status), (StatusCode::ACCEPTED, StatusCode::ACCEPTED));
    assert_eq!(location(&first), location(&second));
    fake.release();
    app.engine.drain().await;
    let third = send().await;
    assert_eq!(third.headers["idempotent-replayed"], "true");
    assert_eq!(location(&third), location(&first));
    assert_eq!(third.json()["state"], "closed");
}

async fn call_off(app: &TestApp, round_id: &str) -> TestReply {
    let path = format!("/v1/rounds/{round_id}/cancel");
    app.admin().send("POST", &path, Body::empty(), &[]).await
}

/// What each session is on record with, in the order of their names.
fn labels_by_session(round: &Value) -> Vec<(&str, &str)> {
    let replicas = round["replicas"].as_array().unwrap().iter();
    let mut labels: Vec<_> = replicas
        .map(|replica| {
            (replica["session_id"].as_str().unwrap(), replica["verdict"].as_str().unwrap())
        })
        .collect();
    labels.sort_unstable();
    labels
}

#[tokio::test]
async fn a_cancelled_round_ends_without_a_verdict_and_keeps_its_answers() {
    let app = TestApp::new().await;
    let fakes = app.executors([says_valid(), gated(says_valid()), gated(says_invalid())]).await;
    let served = Served::on(app, patient()).await;
    let body = json!({ "claim": "x", "consensus": { "replicas": 3 } }).to_string();
    let head = post(&format!("accept: text/event-stream\r\ncontent-length: {}\r\n", body.len()));
    let mut caller = served.says(&(head + &body)).await;
    // The first answer is counted, and the two others are being worked on.
    caller.until("event: replica_done").await;
    for fake in &fakes {
        fake.wait_for_calls(1).await;
    }
    let list = served.app.admin().get("/v1/rounds").await.json();
    let round_id = list["items"][0]["round_id"].as_str().unwrap();
    let ended = call_off(&served.app, round_id).await;
    assert_eq!(ended.status, StatusCode::OK, "{}", ended.text());
    let again = call_off(&served.app, round_id).await;
    assert_eq!(again.text(), ended.text(), "calling off twice is calling off");
    let round = ended.json();
    assert_eq!(round["state"], "cancelled");
    assert_eq!(round["verdict"], json!(null));
    assert_eq!(round["consensus"]["outcome"], "failed");
    assert_eq!(round["consensus"]["strategy"], "none");
    assert_eq!(
        labels_by_session(&round),
        [("s1", "VALID"), ("s2", "CANCELLED"), ("s3", "CANCELLED")]
    );
    caller.until("event: final").await;
    // The executors see their connections close, but for the one that had answered.
    fakes[1].abandoned(1).await;
    fakes[2].abandoned(1).await;
    assert!(fakes[0].abandoned(1).now_or_never().is_none());
}

#[tokio::test]
async fn the_waiting_caller_learns_that_the_round_was_cancelled() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let (caller, body) = (app.admin(), json!({ "claim": "x" }));
    let calling_off = async {
        fake.wait_for_calls(1).await;
        let list = app.admin().get("/v1/rounds").await.json();
        call_off(&app, list["items"][0]["round_id"].as_str().unwrap()).await
    };
    let (reply, ended) = tokio::join!(caller.post("/api/v3/validate", &body), calling_off);
    assert_eq!(ended.json()["state"], "cancelled");
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.json()["verdict"], json!(null));
    assert_eq!(reply.json()["receipt_id"], ended.json()["receipt_id"]);
}

#[tokio::test]
async fn an_ended_round_cannot_be_cancelled() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let round = app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await.json();
    let path = format!("/v1/rounds/{}/cancel", round["round_id"].as_str().unwrap());
    let reply = app.admin().send("POST", &path, Body::empty(), &[]).await;
    assert_eq!(reply.json()["code"], "conflict");
}

#[tokio::test]
async fn a_key_that_may_not_read_rounds_cancels_one_and_is_shown_its_state() {
    let app = TestApp::new().await;
    let behaviours = [says_valid(), gated(says_valid()), gated(says_valid())];
    let [fast, _slow, _other] = app.executors(behaviours).await;
    let alice = app.caller("alice", &[Scope::RoundsCreate, Scope::RoundsRead]).await;
    let claim = json!({ "claim": "the moon is made of stone", "consensus": { "replicas": 3 } });
    let asked = [("prefer", "respond-async")];
    let reply = alice.post_with("/api/v3/validate", &claim, &asked).await;
    fast.wait_for_calls(1).await;
    let blind = app.caller("alice", &[Scope::RoundsCreate]).await;
    let (shown, cancel) = (location(&reply), format!("{}/cancel", location(&reply)));
    assert_eq!(blind.get(&shown).await.json()["code"], "forbidden");
    for _ in 0..2 {
        let reply = blind.send("POST", &cancel, Body::empty(), &[]).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
        let round = reply.json();
        assert_eq!((&round["state"], &round["asked"]), (&json!("cancelled"), &Value::Null));
        for member in ["request", "replicas", "consensus", "reasons"] {
            assert_eq!(round.get(member), None, "{round}");
        }
    }
    let whole = alice.send("POST", &cancel, Body::empty(), &[]).await.json();
    assert_eq!(whole["request"]["claim"], claim["claim"]);
    assert_eq!(whole, alice.get(&shown).await.json());
}

#[tokio::test]
async fn only_its_own_account_cancels_a_round() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let reply = preferring(&app, "respond-async", &json!({ "claim": "x" })).await;
    let path = format!("{}/cancel", location(&reply));
    let bob = app.caller("bob", &[Scope::RoundsCreate, Scope::RoundsRead]).await;
    let other = bob.send("POST", &path, Body::empty(), &[]).await;
    assert_eq!(other.status, StatusCode::NOT_FOUND);
    let reader = app.caller("carol", &[Scope::RoundsRead]).await;
    assert_eq!(reader.send("POST", &path, Body::empty(), &[]).await.json()["code"], "forbidden");
    fake.wait_for_calls(1).await;
    fake.release();
    app.engine.drain().await;
    let ended = app.admin().get(&location(&reply)).await.json();
    assert_eq!(ended["verdict"], "VALID");
}

#[tokio::test]
async fn a_stopping_node_refuses_rounds_and_releases_those_in_progress() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let reply = preferring(&app, "respond-async", &json!({ "claim": "x" })).await;
    fake.wait_for_calls(1).await;
    app.engine.stop_rounds();
    let refused = app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.json()["code"], "shutting_down");
    assert_eq!(app.anonymous().get("/ready").await.json()["code"], "shutting_down");
    assert_eq!(app.anonymous().get("/health").await.status, StatusCode::OK);
    app.engine.release().await;
    let round = app.admin().get(&location(&reply)).await.json();
    assert_eq!(round["state"], "expired");
    assert_eq!(round["replicas"][0]["error"]["code"], "node_stopped");
}
