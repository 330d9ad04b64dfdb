//! Messages become rounds, and rounds are tasks.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::EngineLimits;
use jurat_store::{StoreLocation, TakeoverScope};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, fact, gated, hangs, says_invalid, says_valid},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{BINDINGS, Binding, call, data, message, part};

#[tokio::test]
async fn a_message_is_answered_with_the_round_as_a_task() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([says_valid(), says_valid(), says_invalid()]).await;
        let request = json!({ "skill": "validate", "claim": "12 * 12 = 144", "consensus": { "replicas": 3 } });
        let sent = data("m1", &request);
        let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
        assert!(
            task["status"]["message"]["parts"][0]["text"].as_str().unwrap().starts_with("VALID: ")
        );
        assert_eq!(part(&task, "answer", "text"), "VALID");
        assert_eq!(task["metadata"]["skill"], "validate");
        assert_eq!(task["history"][0]["messageId"], "m1");
        assert_eq!(task["history"][0]["parts"][0]["data"]["claim"], "12 * 12 = 144");

        // The round has the same id, and its reply is the answer.
        let round = app.admin().get(task["metadata"]["round"].as_str().unwrap()).await.json();
        let answer = part(&task, "answer", "data");
        assert_eq!(round["round_id"], task["id"]);
        for member in ["verdict", "consensus", "replicas", "receipt_id", "confidence"] {
            assert_eq!(answer[member], round[member], "{member}");
        }
        // The receipt is the digest of the decision entry.
        let entry = BASE64.decode(part(&task, "decision", "raw").as_str().unwrap()).unwrap();
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(&entry)));
        assert_eq!(answer["receipt_id"], digest);
        assert_eq!(serde_json::from_slice::<Value>(&entry).unwrap()["round_id"], task["id"]);
        assert_eq!(part(&task, "decision", "filename"), "decision.json");
        assert_eq!(part(&task, "decision", "mediaType"), "application/json");

        let shown = call(&app.admin(), binding, "GetTask", &json!({ "id": task["id"] })).await;
        assert_eq!(shown.unwrap(), task, "{binding:?}");
    }
}

#[tokio::test]
async fn a_text_is_delegated_and_each_skill_is_its_operation() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let [fake] = app.executors([answers(json!("Good morning"))]).await;
        let sent = message("m1", &json!({ "text": "Say good morning." }));
        let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        assert_eq!(task["metadata"]["skill"], "delegate");
        assert_eq!(part(&task, "answer", "text"), "Good morning");
        assert_eq!(part(&task, "answer", "data")["status"], "OK");
        assert_eq!(task["history"][0]["parts"][0]["text"], "Say good morning.");
        let round = app.admin().get(task["metadata"]["round"].as_str().unwrap()).await.json();
        assert_eq!(round["request"]["objective"], "Say good morning.");
        // Nothing of the protocol reaches an executor.
        assert!(!format!("{:?}", fake.calls()).contains("x_a2a"));

        fake.set(fact("TRUE"));
        let mut sent = message("m2", &json!({ "text": "12 * 12 = 144" }));
        sent["message"]["metadata"] = json!({ "skill": "factcheck" });
        let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        assert_eq!(
            (&task["metadata"]["skill"], part(&task, "answer", "text")),
            (&json!("factcheck"), &json!("TRUE"))
        );

        let verifier = json!({
            "name": "sourced", "description": "The answer names its source.",
            "criterion": r#"{"contains": {"field": "answer", "text": "Source:"}}"#,
            "input_contract": "text", "input_fields": ["answer"],
            "model_settings": { "model": "builtin/rules" },
        });
        assert_eq!(app.admin().post("/v1/verifiers", &verifier).await.status, StatusCode::CREATED);
        for (id, answer, passed) in [("m3", "Source: x", true), ("m4", "x", false)] {
            let request = json!({ "skill": "run-verifier", "verifier": "sourced", "inputs": { "answer": answer } });
            let sent = data(id, &request);
            let task =
                call(&app.admin(), binding, "SendMessage", &sent).await.unwrap()["task"].clone();
            assert_eq!(task["metadata"]["skill"], "run-verifier", "{task}");
            assert_eq!(part(&task, "answer", "data")["passed"], passed);
            assert_eq!(task["history"][0]["messageId"], id);
            let run = part(&task, "answer", "data")["verifier_run_id"].as_str().unwrap();
            let run = app.admin().get(&format!("/v1/verifier-runs/{run}")).await.json();
            assert_eq!(run["passed"], passed);
            let shown = call(&app.admin(), binding, "GetTask", &json!({ "id": task["id"] })).await;
            assert_eq!(
                shown.unwrap()["history"][0]["parts"][0]["data"]["inputs"]["answer"],
                answer
            );
        }
    }
}

#[tokio::test]
async fn a_round_without_consensus_is_completed_and_has_no_verdict() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_invalid(), hangs()]).await;
    for (index, policy) in ["return_all", "fail_hard"].into_iter().enumerate() {
        let request = json!({
            "skill": "validate", "claim": "x", "execution": { "timeout_ms": 500 },
            "consensus": { "replicas": 3, "disagreement_policy": policy },
        });
        let sent = data(&format!("m{index}"), &request);
        let task =
            call(&app.admin(), Binding::Http, "SendMessage", &sent).await.unwrap()["task"].clone();
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{policy}");
        assert_eq!(part(&task, "answer", "data")["verdict"], json!(null), "{policy}");
        assert_eq!(part(&task, "answer", "data")["consensus"]["outcome"], "split", "{policy}");
        assert_eq!(part(&task, "answer", "text"), "No answer: outcome `split`.", "{policy}");
        let text = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
        assert_eq!(text.starts_with("consensus_disagreement"), policy == "fail_hard", "{text}");
    }
}

#[tokio::test]
async fn the_same_message_is_one_task_and_another_under_its_id_is_refused() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let [fake] = app.executors([says_valid()]).await;
        let sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
        let first = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap();
        let again = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap();
        assert_eq!(first, again);
        assert_eq!(fake.calls().iter().filter(|it| it.endpoint() == "verify").count(), 1);

        let other = data("m1", &json!({ "skill": "validate", "claim": "y" }));
        let refusal = call(&app.admin(), binding, "SendMessage", &other).await.unwrap_err();
        assert_eq!(refusal.code, "idempotency_mismatch");
        assert_eq!(refusal.field.as_deref(), Some("message.messageId"));
        assert!(refusal.message.contains("`m1` was used for another message"), "{refusal:?}");

        // Another account may use the same id.
        let bob = app.caller("bob", &[Scope::RoundsCreate, Scope::RoundsRead]).await;
        let others = call(&bob, binding, "SendMessage", &sent).await.unwrap();
        assert_ne!(others["task"]["id"], first["task"]["id"]);
    }
}

#[tokio::test]
async fn a_caller_that_does_not_wait_gets_a_working_task_and_may_cancel_it() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let [fake] = app.executors([gated(says_valid())]).await;
        let mut sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
        sent["configuration"] = json!({ "returnImmediately": true, "historyLength": 0 });
        let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        assert_eq!(task["status"]["state"], "TASK_STATE_WORKING");
        assert_eq!((task.get("artifacts"), task.get("history")), (None, None));
        fake.wait_for_calls(1).await;
        let id = json!({ "id": task["id"] });
        let ended = call(&app.admin(), binding, "CancelTask", &id).await.unwrap();
        assert_eq!(ended["status"]["state"], "TASK_STATE_CANCELED");
        assert_eq!(part(&ended, "answer", "data")["verdict"], json!(null));
        let again = call(&app.admin(), binding, "CancelTask", &id).await.unwrap();
        assert_eq!(again, ended, "cancelling again has no effect");
        let shown = call(&app.admin(), binding, "GetTask", &id).await.unwrap();
        assert_eq!(shown, ended);
    }
}

#[tokio::test]
async fn a_key_that_may_not_read_a_task_cancels_it_and_is_shown_its_state() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let [fake] = app.executors([gated(says_valid())]).await;
        let reader = app.caller("alice", &Scope::OWN).await;
        let mut sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
        sent["configuration"] = json!({ "returnImmediately": true });
        let task = call(&reader, binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        fake.wait_for_calls(1).await;
        let id = json!({ "id": task["id"] });
        let blind = app.caller("alice", &[Scope::RoundsCreate]).await;
        for _ in 0..2 {
            let ended = call(&blind, binding, "CancelTask", &id).await.unwrap();
            assert_eq!(ended["status"]["state"], "TASK_STATE_CANCELED");
            assert_eq!(ended["contextId"], task["contextId"]);
            assert_eq!(ended["status"].get("message"), None, "{ended}");
            assert_eq!((ended.get("artifacts"), ended.get("history")), (None, None));
        }
        let refusal = call(&blind, binding, "GetTask", &id).await.unwrap_err();
        assert_eq!(refusal.code, "forbidden");
    }
}

#[tokio::test]
async fn a_task_that_has_ended_cannot_be_cancelled() {
    for binding in BINDINGS {
        let app = TestApp::new().await;
        let _fakes = app.executors([says_valid()]).await;
        let sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
        let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        let id = json!({ "id": task["id"] });
        let refusal = call(&app.admin(), binding, "CancelTask", &id).await.unwrap_err();
        assert_eq!(refusal.reason, "TASK_NOT_CANCELABLE");
        assert_eq!(refusal.number, if binding == Binding::Http { 400 } else { -32_002 });
    }
}

#[tokio::test]
async fn a_round_of_the_api_is_a_task_too_without_a_message() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let round = app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await.json();
    for binding in BINDINGS {
        let id = json!({ "id": round["round_id"] });
        let task = call(&app.admin(), binding, "GetTask", &id).await.unwrap();
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
        assert_eq!(task.get("history"), None);
    }
}

#[tokio::test]
async fn every_reply_shows_the_message_as_it_was_sent() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let verifier = json!({
        "name": "sourced", "description": "The answer names its source.",
        "criterion": r#"{"contains": {"field": "answer", "text": "Source:"}}"#,
        "input_contract": "text", "input_fields": ["answer"],
        "model_settings": { "model": "builtin/rules" },
    });
    assert_eq!(app.admin().post("/v1/verifiers", &verifier).await.status, StatusCode::CREATED);
    let (text, claim) =
        (json!({ "text": "Say hello." }), json!({ "skill": "validate", "claim": 1 }));
    let run = json!({
        "skill": "run-verifier", "verifier": "sourced", "inputs": { "answer": "x" }, "fresh": true,
    });
    for (index, parts) in [
        json!([{ "text": "Say hello.", "mediaType": "text/markdown", "metadata": { "a": 1 } }]),
        json!([text, { "text": "In French." }]),
        json!([text, { "data": { "input": { "n": 7 } }, "filename": "input.json" }]),
        json!([{ "data": claim }]),
        json!([{ "data": run }]),
    ]
    .into_iter()
    .enumerate()
    {
        let is_claim = parts == json!([{ "data": claim }]);
        fake.set(if is_claim { says_valid() } else { answers(json!("Bonjour")) });
        for binding in BINDINGS {
            let message = json!({
                "messageId": format!("{binding:?}{index}"), "role": "ROLE_USER", "parts": parts,
                "metadata": { "skill": "delegate", "trace": [1, 2.5] },
                "extensions": ["https://example.com/extension"], "referenceTaskIds": ["rnd_1"],
            });
            let sent = json!({ "message": message });
            let task = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap();
            let task = task["task"].clone();
            let mut expected = message.clone();
            expected["taskId"] = task["id"].clone();
            expected["contextId"] = task["contextId"].clone();
            assert_eq!(task["history"], json!([expected]));
            let shown = call(&app.admin(), binding, "GetTask", &json!({ "id": task["id"] })).await;
            assert_eq!(shown.unwrap(), task);
            let again = call(&app.admin(), binding, "SendMessage", &sent).await.unwrap();
            assert_eq!(again["task"], task);
        }
    }
}

#[tokio::test]
async fn the_text_of_an_answer_is_what_the_executor_says() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    for (index, (output, text, media_type)) in [
        (json!({ "answer": "four", "confidence": 0.9 }), "four", "text/plain"),
        (json!({ "content": "four" }), "four", "text/plain"),
        (json!("four"), "four", "text/plain"),
        (json!({ "sum": 4 }), r#"{"sum":4}"#, "application/json"),
    ]
    .into_iter()
    .enumerate()
    {
        fake.set(answers(output.clone()));
        let sent = message(&format!("m{index}"), &json!({ "text": "What is 2 + 2?" }));
        let task = call(&app.admin(), Binding::Http, "SendMessage", &sent).await.unwrap();
        let parts = &task["task"]["artifacts"][0]["parts"];
        assert_eq!(parts[0], json!({ "text": text, "mediaType": media_type }));
        assert_eq!(parts[1]["data"]["output"], output);
    }
}

#[tokio::test]
async fn a_task_of_a_node_that_stopped_has_failed_and_its_message_runs_again() {
    for binding in BINDINGS {
        let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
        let gone = TestApp::on(Arc::clone(&store), EngineLimits::default()).await;
        let [fake] = gone.executors([gated(says_valid())]).await;
        let mut sent = data("m1", &json!({ "skill": "validate", "claim": "x" }));
        sent["configuration"] = json!({ "returnImmediately": true });
        let first = call(&gone.admin(), binding, "SendMessage", &sent).await.unwrap();
        let id = json!({ "id": first["task"]["id"] });
        // For another node, the node of the round is gone.
        let next = TestApp::on(store, EngineLimits::default()).await;
        next.clock.advance_ms(200_000);
        assert_eq!(next.engine.expire_orphans(TakeoverScope::LeaseOver).await.unwrap(), 1);
        let failed = call(&next.admin(), binding, "GetTask", &id).await.unwrap();
        assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED", "{failed}");
        let listed = json!({ "status": "TASK_STATE_FAILED" });
        let page = call(&next.admin(), binding, "ListTasks", &listed).await.unwrap();
        assert_eq!(page["tasks"][0]["id"], id["id"]);
        fake.set(says_valid());
        fake.release();
        sent["configuration"] = json!({});
        let again = call(&next.admin(), binding, "SendMessage", &sent).await.unwrap();
        assert_ne!(again["task"]["id"], id["id"]);
        assert_eq!(again["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{again}");
        let same = call(&next.admin(), binding, "SendMessage", &sent).await.unwrap();
        assert_eq!(same["task"]["id"], again["task"]["id"]);
        gone.engine.drain().await;
    }
}
