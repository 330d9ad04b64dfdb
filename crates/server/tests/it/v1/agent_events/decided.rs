//! Decisions of executors about events, and their effects.

use jurat_testkit::{
    app::TestApp,
    fake_executor::{Behaviour, gated, says_valid},
};
use serde_json::{Value, json};

use super::{able, ended, listening, started, task, under, until};

fn decision(action: &str, route: &str, payload: &Value) -> Value {
    json!({
        "ok": true,
        "decision": {
            "decision_id": "d1", "action": action, "route": route, "reason": "so it is",
            "payload": payload,
        },
    })
}

fn declines(behaviour: Behaviour) -> Behaviour {
    let no = decision("decide_claim", "wattswarm_direct", &json!({ "accept": false }));
    behaviour.told("task_claim_received", 200, no)
}

/// The one event of a type, once it is no longer pending.
async fn of_type(app: &TestApp, executor: &str, event_type: &str) -> Value {
    let is_it = |it: &&Value| it["event_type"] == event_type && it["state"] != "pending";
    let query = format!("executor={executor}");
    let found = until(app, &query, |all| all.iter().any(|it| is_it(&it))).await;
    found.iter().find(is_it).unwrap().clone()
}

async fn names(app: &TestApp, id: &str) -> Vec<String> {
    let events = app.admin().get(&format!("/v1/tasks/{id}/events?limit=200")).await.json();
    let items = events["items"].as_array().unwrap().iter();
    items.map(|it| it["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_declined_claim_goes_to_another_executor() {
    let app = started().await;
    // It would answer, but not before it has declined.
    let first = listening(&app, "a-first", gated(declines(able()))).await;
    let _second = listening(&app, "b-second", able()).await;
    task(&app, "task-1", &["a-first", "b-second"], &[]).await;
    let task = ended(&app, "task-1").await;
    assert_eq!(task["state"], "finalized", "{task}");
    assert_eq!(task["candidates"][0]["proposers"], json!(["b-second"]));
    let event = of_type(&app, "a-first", "task_claim_received").await;
    assert_eq!((&event["state"], &event["last_error"]), (&json!("completed"), &Value::Null));
    assert_eq!(event["decision"]["payload"], json!({ "accept": false }));
    let released = of_type(&app, "a-first", "task_claim_decision_received").await;
    let at = format!("/v1/agent-events/{}", released["event_id"].as_str().unwrap());
    let payload = &app.admin().get(&at).await.json()["event"]["payload"];
    assert_eq!((&payload["why"], &payload["code"]), (&json!("failed"), &json!("declined")));
    assert_eq!(payload["detail"], "the executor declined: so it is");
    let proposals = first.calls().iter().filter(|it| it.endpoint() == "execute").count();
    assert_eq!(proposals, 1);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_voter_that_declines_is_replaced() {
    let app = started().await;
    let _author = listening(&app, "author", able()).await;
    let _first = listening(&app, "a-voter", gated(declines(says_valid()))).await;
    let _second = listening(&app, "b-voter", says_valid()).await;
    task(&app, "task-1", &["author"], &["a-voter", "b-voter"]).await;
    let task = ended(&app, "task-1").await;
    assert_eq!(task["state"], "finalized", "{task}");
    let votes = task["candidates"][0]["votes"].as_array().unwrap();
    assert_eq!(votes.len(), 1);
    assert_eq!(votes[0]["voter"], "b-voter");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn declining_finished_work_is_too_late() {
    let app = started().await;
    let busy = able().told("task_claim_received", 503, json!({}));
    let fake = listening(&app, "e", busy).await;
    task(&app, "task-1", &["e"], &[]).await;
    assert_eq!(ended(&app, "task-1").await["state"], "finalized");
    until(&app, "state=pending", |it| {
        it.iter().any(|it| it["attempts"] == 1 && !it["last_error"].is_null())
    })
    .await;
    fake.set(declines(able()));
    app.clock.advance_ms(1_000);
    let event = of_type(&app, "e", "task_claim_received").await;
    assert_eq!(event["state"], "acked");
    let why = event["last_error"].as_str().unwrap();
    assert!(why.contains("too late to decline"), "{why}");
    assert_eq!(event["decision"]["action"], "decide_claim");
    assert_eq!(ended(&app, "task-1").await["state"], "finalized");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn an_action_that_is_not_allowed_does_nothing() {
    let app = started().await;
    let accept = decision("accept_result", "wattswarm_direct", &Value::Null);
    let _fake = listening(&app, "e", able().told("task_claim_received", 200, accept)).await;
    task(&app, "task-1", &["e"], &[]).await;
    let event = of_type(&app, "e", "task_claim_received").await;
    assert_eq!(event["state"], "acked");
    assert_eq!(
        event["last_error"],
        "the action `accept_result` is not allowed for this event; allowed: decide_claim, human_review"
    );
    app.engine.shutdown().await;
}

/// A task whose one executor decides this about the final decision: the event, and what happened.
async fn about_the_end(action: &str, route: &str) -> (Value, Vec<String>) {
    let app = started().await;
    let said = decision(action, route, &Value::Null);
    let _fake = listening(&app, "e", able().told("task_result_received", 200, said)).await;
    task(&app, "task-1", &["e"], &[]).await;
    assert_eq!(ended(&app, "task-1").await["state"], "finalized");
    let event = of_type(&app, "e", "task_result_received").await;
    let for_people = app.admin().get("/v1/agent-events?needs_review=true").await.json();
    assert_eq!(
        for_people["items"].as_array().unwrap().contains(&event),
        event["needs_review"] == true
    );
    let names = names(&app, "task-1").await;
    app.engine.shutdown().await;
    (event, names)
}

const COMPLAINT: &str = "TASK_FEEDBACK_REPORTED";

#[tokio::test]
async fn rejecting_a_final_result_disputes_it_and_it_stays_final() {
    for action in ["reject_result", "request_retry"] {
        let (event, names) = about_the_end(action, "wattswarm_direct").await;
        assert_eq!(event["state"], "completed", "{event}");
        assert_eq!(names.iter().filter(|it| *it == COMPLAINT).count(), 1);
        assert_eq!(names.iter().filter(|it| *it == "DECISION_FINALIZED").count(), 1);
    }
}

#[tokio::test]
async fn an_executor_cannot_dispute_if_the_contract_names_an_authority() {
    let app = started().await;
    let said = decision("reject_result", "wattswarm_direct", &Value::Null);
    let _fake = listening(&app, "e", able().told("task_result_received", 200, said)).await;
    let mut contract = app.admin().get("/v1/tasks/sample?task_id=task-1").await.json();
    let key = format!("ed25519:{}", "ab".repeat(32));
    contract["acceptance"]["settlement"]["feedback"]["authority_pubkey"] = json!(key);
    under(&app, &contract, &["e"], &[]).await;
    assert_eq!(ended(&app, "task-1").await["state"], "finalized");
    let event = of_type(&app, "e", "task_result_received").await;
    assert_eq!(event["state"], "acked", "{event}");
    let why = event["last_error"].as_str().unwrap();
    assert!(why.starts_with("nothing was done: ") && why.contains("dispute"), "{why}");
    assert!(!names(&app, "task-1").await.iter().any(|it| it == COMPLAINT));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn accepting_a_result_changes_nothing() {
    let (event, names) = about_the_end("accept_result", "wattswarm_direct").await;
    assert_eq!((&event["state"], &event["needs_review"]), (&json!("completed"), &json!(false)));
    assert!(!names.iter().any(|it| it == COMPLAINT));
}

#[tokio::test]
async fn a_request_for_human_review_is_visible() {
    let (event, names) = about_the_end("human_review", "wattswarm_direct").await;
    assert_eq!((&event["state"], &event["needs_review"]), (&json!("completed"), &json!(true)));
    assert!(!names.iter().any(|it| it == COMPLAINT));
}

#[tokio::test]
async fn decisions_for_other_systems_are_recorded_and_not_applied() {
    for route in ["noop", "wattetheria_commit"] {
        let (event, names) = about_the_end("reject_result", route).await;
        assert_eq!((&event["state"], &event["last_error"]), (&json!("acked"), &Value::Null));
        assert_eq!(event["decision"]["route"], route);
        assert!(!names.iter().any(|it| it == COMPLAINT));
    }
    let (event, _) = about_the_end("reject_result", "elsewhere").await;
    assert_eq!(event["state"], "acked");
    assert_eq!(event["last_error"], "a decision cannot have the route `elsewhere`");
}

#[tokio::test]
async fn a_topic_is_answered_for_its_sender() {
    let app = started().await;
    let reply = decision("reply", "wattswarm_direct", &json!({ "content": "the long one" }));
    let fake = listening(&app, "e", says_valid().told("*", 200, reply)).await;
    let body = json!({
        "event_type": "topic_message_requires_reply", "target_executor": "e",
        "payload": { "content": "which one?" }, "requires_commit": true,
    });
    app.admin().post("/v1/agent-events", &body).await;
    let event = of_type(&app, "e", "topic_message_requires_reply").await;
    assert_eq!(event["state"], "completed");
    assert_eq!(event["decision"]["payload"]["content"], "the long one");
    let empty = decision("reply", "wattswarm_direct", &json!({}));
    fake.set(says_valid().told("*", 200, empty));
    app.admin().post("/v1/agent-events", &body).await;
    let events = super::settled(&app, "state=acked", 1).await;
    assert_eq!(events[0]["last_error"], "a reply needs `payload.content`");
    app.engine.shutdown().await;
}
