//! The OpenAI shape: chat completions and models.

mod errors;
mod stream;

use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{Behaviour, answers, hangs, status},
};
use jurat_wire::api::openai::profile;
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";

/// A chat with the model `jurat/safe`.
fn ask(more: Value) -> Value {
    let mut body = json!({
        "model": "jurat/safe",
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [{ "type": "text", "text": "What is 2 + 2?" }] },
        ],
    });
    if let Value::Object(more) = more {
        body.as_object_mut().unwrap().extend(more);
    }
    body
}

fn says(text: &str) -> Behaviour {
    answers(json!({ "answer": text }))
}

/// Answers, and reports how many tokens that took.
fn counts(input: u64, output: u64) -> Behaviour {
    let trace = json!({
        "kind": "trace", "usage": { "input_tokens": input, "output_tokens": output },
    });
    says("four").evidence("application/json", &trace.to_string())
}

async fn app() -> TestApp {
    TestApp::new().await
}

fn message(reply: &TestReply) -> Value {
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()["choices"][0]["message"].clone()
}

#[tokio::test]
async fn the_answer_is_that_of_the_consensus() {
    let app = app().await;
    let fakes = app.executors([says("four"), says("four"), says("five")]).await;
    let reply = app.admin().post(CHAT, &ask(json!({ "temperature": 0.5, "user": "me" }))).await;
    let said = message(&reply);
    assert_eq!(said, json!({ "role": "assistant", "content": "four", "refusal": null }));
    let body = reply.json();
    let round = body["jurat"]["round_id"].as_str().unwrap();
    assert_eq!(reply.headers["x-jurat-round"], round);
    assert_eq!(body["id"], format!("chatcmpl-{round}"));
    assert_eq!(
        (&body["object"], &body["model"]),
        (&json!("chat.completion"), &json!("jurat/safe"))
    );
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["created"], 1_790_000_000);
    assert_eq!(body["jurat"]["consensus"]["agreement"], 0.6667);
    assert_eq!(body["jurat"]["replicas"].as_array().unwrap().len(), 3);
    // The round is a delegate round like any other.
    let stored = app.admin().get(&format!("/v1/rounds/{round}")).await.json();
    assert_eq!(stored["kind"], "delegate");
    assert_eq!(stored["receipt_id"], body["jurat"]["receipt_id"]);
    assert_eq!(stored["consensus"], body["jurat"]["consensus"]);
    // Executors get the conversation, a prompt for those that read no messages, and the hints.
    let sent = fakes[0].calls().into_iter().find(|call| call.path == "/execute").unwrap().body;
    assert_eq!(sent["inputs"]["prompt"], "Be brief.\n\nWhat is 2 + 2?");
    assert_eq!(
        sent["inputs"]["messages"],
        json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "What is 2 + 2?" },
        ])
    );
    assert_eq!(sent["inputs"]["sampling"], json!({ "temperature": 0.5 }));
}

#[tokio::test]
async fn a_response_format_is_the_schema_of_every_answer() {
    let app = app().await;
    let _fakes = app
        .executors([
            answers(json!({ "n": 4 })),
            answers(json!({ "n": 4 })),
            answers(json!({ "n": "four" })),
        ])
        .await;
    let schema = json!({
        "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } },
    });
    let format = json!({
        "type": "json_schema",
        "json_schema": { "name": "sum", "strict": true, "schema": schema },
    });
    let reply = app.admin().post(CHAT, &ask(json!({ "response_format": format }))).await;
    assert_eq!(message(&reply)["content"], r#"{"n":4}"#);
    let verdicts = reply.json()["jurat"]["consensus"]["verdicts"].clone();
    let invalid = verdicts.as_array().unwrap().iter().filter(|it| **it == "INVALID_OUTPUT");
    assert_eq!(invalid.count(), 1);
    for (format, content) in [("json_object", r#"{"n":4}"#), ("text", r#"{"n":4}"#)] {
        let format = json!({ "response_format": { "type": format } });
        assert_eq!(message(&app.admin().post(CHAT, &ask(format)).await)["content"], content);
    }
}

#[tokio::test]
async fn no_agreement_is_a_refusal_and_never_an_invention() {
    let app = app().await;
    let _fakes = app.executors([says("four"), says("five"), says("six")]).await;
    let reply = app.admin().post(CHAT, &ask(json!({}))).await;
    let said = message(&reply);
    assert_eq!(said["content"], Value::Null);
    let refusal = said["refusal"].as_str().unwrap();
    assert!(refusal.contains("do not agree: outcome split"), "{refusal}");
    assert_eq!(reply.json()["choices"][0]["finish_reason"], "stop");
    assert_eq!(reply.json()["jurat"]["status"], "NO_CONSENSUS");
    // On request, the leading answer comes with its confidence.
    let best = json!({ "jurat": { "disagreement_policy": "best_effort" } });
    let reply = app.admin().post(CHAT, &ask(best)).await;
    assert!(message(&reply)["content"].is_string());
    assert!(reply.json()["jurat"]["confidence"].as_f64().unwrap() <= 0.5);
    let hard = json!({ "jurat": { "disagreement_policy": "fail_hard" } });
    let reply = app.admin().post(CHAT, &ask(hard)).await;
    assert_eq!(reply.status, StatusCode::CONFLICT);
    let error = reply.json()["error"].clone();
    assert_eq!(error["code"], "consensus_disagreement");
    assert_eq!(error["jurat"]["consensus"]["outcome"], "split");
    assert_eq!(reply.headers["x-jurat-round"], error["jurat"]["round_id"].as_str().unwrap());
    // OpenAI's clients would otherwise ask again.
    assert_eq!(reply.headers["x-should-retry"], "false");
}

/// A chat whose round is ended before it is decided.
async fn undecided(body: &Value, end: impl AsyncFnOnce(&TestApp, &str)) -> TestReply {
    let app = app().await;
    let [one, _two, _three] = app.executors([hangs(), hangs(), hangs()]).await;
    let caller = app.admin();
    let asking = caller.post(CHAT, body);
    let ending = async {
        one.wait_for_calls(1).await;
        let listed = app.admin().get("/v1/rounds").await.json();
        end(&app, listed["items"][0]["round_id"].as_str().unwrap()).await;
    };
    tokio::join!(asking, ending).0
}

async fn cancelled(body: &Value) -> TestReply {
    let end = async |app: &TestApp, round: &str| {
        let path = format!("/v1/rounds/{round}/cancel");
        assert_eq!(app.admin().post(&path, &json!({})).await.status, StatusCode::OK);
    };
    undecided(body, end).await
}

async fn left(body: &Value) -> TestReply {
    let end = async |app: &TestApp, _: &str| app.engine.release().await;
    undecided(body, end).await
}

const CANCELLED: &str =
    "There is no answer, because the round was cancelled before it was decided.";
const LEFT: &str = "the node stopped before the round was decided";

#[tokio::test]
async fn a_round_that_was_not_decided_says_why_and_is_no_disagreement() {
    let reply = cancelled(&ask(json!({}))).await;
    let said = json!({ "role": "assistant", "content": null, "refusal": CANCELLED });
    assert_eq!(message(&reply), said);
    assert_eq!(reply.json()["choices"][0]["finish_reason"], "stop");
    let reply = left(&ask(json!({}))).await;
    assert_eq!(reply.status, StatusCode::CONFLICT, "{}", reply.text());
    assert_eq!(reply.json()["error"]["message"], LEFT);
}

#[tokio::test]
async fn failed_executors_leave_no_answer_even_at_best_effort() {
    let app = app().await;
    let _fakes = app.executors([status(500), status(500), status(500)]).await;
    let best = json!({ "jurat": { "disagreement_policy": "best_effort" } });
    let said = message(&app.admin().post(CHAT, &ask(best)).await);
    assert_eq!(said["content"], Value::Null);
    assert!(said["refusal"].as_str().unwrap().contains("outcome failed"), "{said}");
}

#[tokio::test]
async fn the_model_selects_the_terms() {
    let section = json!({
        "about": "The first two.", "replicas": 1, "session_pool": ["s1", "s2"], "timeout_ms": 9_000,
        "disagreement_policy": "best_effort",
    });
    let own = profile::read("pair", &section).unwrap();
    let app = TestApp::with_profiles(profile::built_in().with([own])).await;
    let fakes =
        app.executors([says("four"), says("four"), says("no"), says("no"), says("no")]).await;
    for (model, replicas) in
        [("jurat/fast", 1), ("jurat/safe", 3), ("jurat/oracle", 5), ("jurat/pair", 1)]
    {
        let reply = app.admin().post(CHAT, &ask(json!({ "model": model }))).await.json();
        assert_eq!(reply["jurat"]["consensus"]["replicas"], replicas, "{reply}");
        assert_eq!(reply["model"], model);
    }
    let asked = |fake: usize| {
        let calls = fakes[fake].calls().into_iter().filter(|call| call.path == "/execute");
        calls.last().map(|call| call.body["task_contract"]["budget"]["time_ms"].clone())
    };
    assert!([asked(0), asked(1)].contains(&Some(json!(9_000))));
    assert!(![asked(2), asked(3), asked(4)].contains(&Some(json!(9_000))));
    let list = app.admin().get("/v1/models").await.json();
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["jurat/fast", "jurat/oracle", "jurat/pair", "jurat/safe"]);
    for path in ["/v1/models/jurat%2Fpair", "/v1/models/jurat/pair"] {
        let model = app.admin().get(path).await.json();
        assert_eq!((&model["object"], &model["owned_by"]), (&json!("model"), &json!("operator")));
        assert_eq!(model["jurat"]["about"], "The first two.");
        assert_eq!(model["jurat"]["request"]["consensus"]["session_pool"], json!(["s1", "s2"]));
    }
    let checks = app.admin().get("/v1/doctor").await.json()["checks"].clone();
    let shown = checks.as_array().unwrap().iter().find(|it| it["check"] == "profiles").unwrap();
    assert_eq!(shown["status"], "ok");
    assert!(shown["detail"].as_str().unwrap().starts_with("`jurat/pair`: 1 replica"), "{shown}");
}

#[tokio::test]
async fn a_profile_with_unknown_sessions_is_a_problem_of_the_doctor() {
    let own = profile::read("lost", &json!({ "session_pool": ["nobody"] })).unwrap();
    let app = TestApp::with_profiles(profile::built_in().with([own])).await;
    let checks = app.admin().get("/v1/doctor").await.json()["checks"].clone();
    let shown = checks.as_array().unwrap().iter().find(|it| it["check"] == "profiles").unwrap();
    assert_eq!(shown["status"], "problem");
    assert!(shown["detail"].as_str().unwrap().contains("`nobody`"), "{shown}");
    let reply = app.admin().post(CHAT, &ask(json!({ "model": "jurat/lost" }))).await;
    assert_eq!(reply.json()["error"]["code"], "session_unknown");
}

#[tokio::test]
async fn a_repeated_chat_gets_the_same_answer_and_nobody_is_asked_again() {
    let app = app().await;
    let fakes = app.executors([says("four"), says("four"), says("five")]).await;
    let calls = || fakes.iter().map(|fake| fake.calls().len()).sum::<usize>();
    let key = [("idempotency-key", "k")];
    let first = app.admin().post_with(CHAT, &ask(json!({})), &key).await;
    let asked = calls();
    app.clock.advance_ms(60_000);
    let second = app.admin().post_with(CHAT, &ask(json!({})), &key).await;
    assert_eq!(second.text(), first.text());
    assert_eq!(second.headers["idempotent-replayed"], "true");
    assert_eq!(calls(), asked);
    let other = app.admin().post_with(CHAT, &ask(json!({ "seed": 1 })), &key).await;
    assert_eq!(other.json()["error"]["code"], "idempotency_mismatch");
    // The key belongs to the account.
    let ann = app.caller("ann", &[Scope::RoundsCreate, Scope::RoundsRead]).await;
    let hers = ann.post_with(CHAT, &ask(json!({})), &key).await;
    assert_ne!(hers.json()["jurat"]["round_id"], first.json()["jurat"]["round_id"]);
    let round = format!("/v1/rounds/{}", first.headers["x-jurat-round"].to_str().unwrap());
    assert_eq!(ann.get(&round).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn usage_is_what_executors_report() {
    let app = app().await;
    let _fakes = app.executors([says("four"), says("four"), says("four")]).await;
    let usage = app.admin().post(CHAT, &ask(json!({}))).await.json()["usage"].clone();
    let none = json!({ "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0 });
    assert_eq!(usage, none);
}

#[tokio::test]
async fn usage_adds_up_the_tokens_that_executors_report() {
    let app = app().await;
    // One of them reports nothing.
    let _fakes = app.executors([counts(5, 1), counts(7, 2), says("four")]).await;
    let reply = app.admin().post(CHAT, &ask(json!({}))).await;
    let usage = json!({ "prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15 });
    assert_eq!(reply.json()["usage"], usage, "{}", reply.text());
    let none = TestApp::new().await;
    let _fakes = none.executors([says("four"), says("four"), says("four")]).await;
    let reply = none.admin().post(CHAT, &ask(json!({}))).await;
    let usage = json!({ "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0 });
    assert_eq!(reply.json()["usage"], usage, "{}", reply.text());
}
