//! `/v1/tasks`.

use std::time::Duration;

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::SoleNode;
use jurat_testkit::{
    app::{TestApp, TestCaller, TestReply, admin_caller},
    fake_executor::{answers, gated, says_invalid, says_valid},
};
use serde_json::{Value, json};

async fn started() -> TestApp {
    let app = TestApp::new().await;
    app.start(SoleNode::Yes).await;
    app
}

/// The sample contract under this name, with this quorum.
async fn contract(caller: &TestCaller<'_>, id: &str, quorum: u32) -> Value {
    let reply = caller.get(&format!("/v1/tasks/sample?task_id={id}")).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    let mut contract = reply.json();
    contract["acceptance"]["quorum_threshold"] = json!(quorum);
    contract["assignment"]["verify"]["max_verifiers"] = json!(quorum);
    contract["assignment"]["claim"]["max_concurrency"]["verify"] = json!(quorum);
    contract
}

async fn submitted(app: &TestApp, body: &Value) -> TestReply {
    app.admin().post("/v1/tasks", body).await
}

async fn ended(app: &TestApp, id: &str) -> Value {
    let reply = app.admin().get(&format!("/v1/tasks/{id}?wait=30")).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// A task from its submission to its decision, and its readable parts.
pub(crate) async fn life(app: &TestApp) {
    app.start(SoleNode::Yes).await;
    let behaviours = [answers(json!({ "answer": "yes" })), says_valid(), says_valid()];
    let _fakes = app.executors(behaviours).await;
    let contract = contract(&app.admin(), "task-1", 2).await;
    let order = json!({ "contract": contract, "executors": ["s1"], "verifiers": ["s2", "s3"] });
    let reply = submitted(app, &order).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    assert_eq!(reply.json()["panel"]["verifiers"], json!(["s2", "s3"]));
    let task = ended(app, "task-1").await;
    assert_eq!(task["state"], "finalized", "{task}");
    assert_eq!(task["candidates"][0]["proposers"], json!(["s1"]));
    assert_eq!(task["candidates"][0]["votes"].as_array().unwrap().len(), 2);
    assert_eq!(task["spent"]["steps"], json!({ "limit": 10, "spent": 3, "left": 7 }));
    assert_eq!(task["contract"]["task_id"], "task-1");
    decided(app, &task).await;
    happened(app).await;
    let list = app.admin().get("/v1/tasks?state=finalized&task_type=swarm").await.json();
    assert_eq!(list["items"][0]["task_id"], "task-1");
    let none = app.admin().get("/v1/tasks?state=failed").await.json();
    assert_eq!(none["items"], json!([]));
}

async fn decided(app: &TestApp, task: &Value) {
    let decision = app.admin().get("/v1/tasks/task-1/decision").await.json();
    assert_eq!(decision["output"], json!({ "answer": "yes" }));
    assert_eq!(decision["approvals"], 2);
    assert_eq!(decision["agreement"], 1.0);
    // The members that a client of `run-real` reads.
    for (name, value) in [
        ("candidate_id", &task["finalized_candidate_id"]),
        ("committed_candidate_id", &task["finalized_candidate_id"]),
        ("finalized_candidate_id", &task["finalized_candidate_id"]),
        ("candidate_output", &json!({ "answer": "yes" })),
        ("evidence_digests", &json!([])),
        ("executor", &json!("s1")),
        ("final_answer", &json!("yes")),
        ("final_decision", &Value::Null),
        ("model_id", &json!("model-1")),
        ("profile", &json!("default")),
        ("provider_family", &json!("family-1")),
        ("task_id", &json!("task-1")),
        ("terminal_state", &json!("finalized")),
    ] {
        assert_eq!(decision[name], *value, "{name}");
    }
    let round = text(&decision["rounds"]["verify"]["s2"]);
    let round = app.admin().get(&format!("/v1/rounds/{round}")).await.json();
    assert_eq!(round["verdict"], "VALID");
}

async fn happened(app: &TestApp) {
    let page = app.admin().get("/v1/tasks/task-1/events?limit=2").await.json();
    assert_eq!(page["items"][0]["type"], "TASK_CREATED");
    assert_eq!(page["items"][1]["seq"], 2);
    let next = format!("/v1/tasks/task-1/events?limit=1&cursor={}", text(&page["next_cursor"]));
    assert_eq!(app.admin().get(&next).await.json()["items"][0]["seq"], 3);
    let rest = app.admin().get("/v1/tasks/task-1/events?after=2&limit=200").await.json();
    let names: Vec<&str> =
        rest["items"].as_array().unwrap().iter().map(|it| text(&it["type"])).collect();
    let last_commit = names.iter().rposition(|it| *it == "VOTE_COMMIT").unwrap();
    let first_reveal = names.iter().position(|it| *it == "VOTE_REVEAL").unwrap();
    assert!(last_commit < first_reveal, "{names:?}");
    assert_eq!(names.last(), Some(&"DECISION_FINALIZED"));
}

#[tokio::test]
async fn a_task_is_proposed_verified_voted_on_and_decided() {
    life(&TestApp::new().await).await;
}

#[tokio::test]
async fn a_task_is_followed_to_its_end() {
    let app = started().await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" })), says_valid()]).await;
    let contract = contract(&app.admin(), "task-1", 1).await;
    submitted(&app, &contract).await;
    let accept = [("accept", "text/event-stream"), ("last-event-id", "1")];
    let path = "/v1/tasks/task-1/events";
    let reply = app.admin().send("GET", path, Body::empty(), &accept).await;
    let events = reply.text();
    assert!(!events.contains("TASK_CREATED"), "{events}");
    assert!(
        events.contains("event: task_event\nid: 2\n") || events.contains("id: 2\n"),
        "{events}"
    );
    let last = events.trim().rsplit("\n\n").next().unwrap();
    assert!(last.contains("event: final"), "{last}");
    let data: Value = serde_json::from_str(last.split("data: ").nth(1).unwrap()).unwrap();
    assert_eq!(data["state"], "finalized");
}

#[tokio::test]
async fn a_caller_that_waits_gets_the_ended_task() {
    let app = started().await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" })), says_valid()]).await;
    let contract = contract(&app.admin(), "task-1", 1).await;
    let prefer = [("prefer", "wait=30")];
    let reply = app.admin().post_with("/v1/tasks", &contract, &prefer).await;
    assert_eq!((reply.status, &reply.json()["state"]), (StatusCode::CREATED, &json!("finalized")));
    let again = app.admin().post_with("/v1/tasks", &contract, &prefer).await;
    assert_eq!((again.status, &again.json()["state"]), (StatusCode::OK, &json!("finalized")));
}

#[tokio::test]
async fn votes_are_visible_only_once_all_are_in() {
    let app = started().await;
    let behaviours = [answers(json!({ "answer": "yes" })), says_invalid(), gated(says_valid())];
    let [_proposer, quick, slow] = app.executors(behaviours).await;
    let contract = contract(&app.admin(), "task-1", 2).await;
    let order = json!({ "contract": contract, "executors": ["s1"], "verifiers": ["s2", "s3"] });
    submitted(&app, &order).await;
    quick.wait_for_calls(1).await;
    slow.wait_for_calls(1).await;
    let (caller, mut seen) = (admin_caller(), 0);
    let votes = loop {
        let waiting = app.engine.task_wait(&caller, "task-1", seen, Duration::from_secs(30));
        seen = waiting.await.unwrap().seq;
        let task = app.admin().get("/v1/tasks/task-1").await.json();
        let votes = task["candidates"][0]["votes"].as_array().filter(|it| !it.is_empty());
        if let Some(votes) = votes {
            break votes.clone();
        }
    };
    assert_eq!(votes[0]["voter"], "s2");
    assert_eq!(votes[0]["verdict"], Value::Null);
    assert_eq!(votes[0]["verdict_digest"], Value::Null);
    slow.release();
    let task = ended(&app, "task-1").await;
    assert_eq!(task["state"], "failed", "{task}");
    assert_eq!(task["candidates"][0]["votes"][0]["verdict"], "failed");
}

#[tokio::test]
async fn the_same_task_twice_is_one_task_and_another_contract_is_a_conflict() {
    let app = started().await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" })), says_valid()]).await;
    let mut contract = contract(&app.admin(), "task-1", 1).await;
    let key = [("idempotency-key", "one")];
    let first = app.admin().post_with("/v1/tasks", &contract, &key).await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text());
    let again = app.admin().post_with("/v1/tasks", &contract, &key).await;
    assert_eq!(again.status, StatusCode::CREATED);
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.json(), first.json());
    let plain = submitted(&app, &contract).await;
    assert_eq!(plain.status, StatusCode::OK, "{}", plain.text());
    contract["inputs"] = json!({ "prompt": "other" });
    let other = submitted(&app, &contract).await;
    assert_eq!(other.status, StatusCode::CONFLICT);
    assert_eq!(other.json()["code"], "conflict");
}

#[tokio::test]
async fn an_impossible_contract_is_refused_with_its_field() {
    let app = started().await;
    let _fakes = app.executors([says_valid().task_types(&["swarm"])]).await;
    let whole = contract(&app.admin(), "task-1", 1).await;
    for (pointer, value, field) in [
        ("/task_type", json!("dance"), "task_type"),
        ("/output_schema", json!({ "type": 7 }), "output_schema"),
        (
            "/acceptance/verifier_policy/policy_id",
            json!("vp.none.v1"),
            "acceptance.verifier_policy.policy_id",
        ),
        (
            "/acceptance/verifier_policy/policy_hash",
            json!(format!("sha256:{}", "0".repeat(64))),
            "acceptance.verifier_policy.policy_hash",
        ),
        ("/expiry_ms", json!(1), "expiry_ms"),
        ("/budget/verify_cost_units", json!(0), "budget.verify_cost_units"),
        ("/surplus", json!(1), "surplus"),
    ] {
        let mut contract = whole.clone();
        match contract.pointer_mut(pointer) {
            Some(place) => *place = value,
            None => contract["surplus"] = value,
        }
        let reply = submitted(&app, &contract).await;
        assert!(reply.status.is_client_error(), "{pointer}: {}", reply.text());
        assert_eq!(reply.json()["field"], field, "{}", reply.text());
        assert!(!reply.text().contains("[["), "{}", reply.text());
    }
    for order in [
        json!({ "contract": whole, "executors": ["nobody"] }),
        json!({ "contract": whole, "executors": ["s1"], "profile": "wild" }),
    ] {
        let reply = submitted(&app, &order).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{}", reply.text());
    }
    assert_eq!(app.admin().get("/v1/tasks").await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_task_is_cancelled_once() {
    let app = started().await;
    let [slow] = app.executors([gated(answers(json!({ "answer": "yes" })))]).await;
    let contract = contract(&app.admin(), "task-1", 1).await;
    submitted(&app, &contract).await;
    slow.wait_for_calls(1).await;
    let cancel = "/v1/tasks/task-1/cancel";
    let reply = app.admin().post(cancel, &json!({ "reason": "asked twice" })).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    assert_eq!(reply.json()["state"], "cancelled");
    assert_eq!(reply.json()["reason"], "asked twice");
    let again = app.admin().post(cancel, &json!({})).await;
    assert_eq!(again.json()["reason"], "asked twice");
    let other = json!({ "reason": "for another reason" });
    let key = [("idempotency-key", "one")];
    let again = app.admin().post_with(cancel, &other, &key).await;
    assert_eq!(again.json(), reply.json());
    slow.abandoned(1).await;
    let wrong = app.admin().post(cancel, &json!({ "why": "x" })).await;
    assert_eq!(wrong.json()["field"], "why");
    let decision = app.admin().get("/v1/tasks/task-1/decision").await.json();
    assert_eq!(decision["candidate_id"], Value::Null);
    assert_eq!(decision["terminal_state"], "cancelled");
}

#[tokio::test]
async fn tasks_need_their_scopes_and_stay_within_their_account() {
    let app = started().await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" }))]).await;
    let contract = contract(&app.admin(), "task-1", 1).await;
    submitted(&app, &contract).await;
    let reader = app.caller("reader", &[Scope::TasksRead]).await;
    assert_eq!(reader.post("/v1/tasks", &contract).await.status, StatusCode::FORBIDDEN);
    for path in ["/v1/tasks/task-1", "/v1/tasks/task-1/events", "/v1/tasks/task-1/decision"] {
        assert_eq!(reader.get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(reader.get("/v1/tasks").await.json()["items"], json!([]));
    let writer = app.caller("writer", &[Scope::TasksWrite]).await;
    assert_eq!(writer.get("/v1/tasks").await.status, StatusCode::FORBIDDEN);
    let cancel = writer.post("/v1/tasks/task-1/cancel", &json!({})).await;
    assert_eq!(cancel.status, StatusCode::NOT_FOUND);
    for wrong in [
        "/v1/tasks?state=x",
        "/v1/tasks?cursor=x",
        "/v1/tasks/task-1/events?after=x",
        "/v1/tasks/sample?task_id=a%20b",
    ] {
        let reply = app.admin().get(wrong).await;
        assert_eq!(reply.json()["code"], "validation_error", "{wrong}");
    }
}
