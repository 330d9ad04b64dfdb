//! `POST /api/v3/validate`.

use http::StatusCode;
use insta::assert_json_snapshot;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{
        gated, hangs, needs_spec, says_inconclusive, says_invalid, says_valid, status,
    },
};
use serde_json::{Value, json};

fn claim(replicas: u8) -> Value {
    json!({
        "claim": "Water boils at 100 °C at sea level.",
        "execution": { "timeout_ms": 20_000 },
        "consensus": { "replicas": replicas },
    })
}

#[tokio::test]
async fn a_reply_with_a_dissenter() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_invalid(), says_valid()]).await;
    let body = json!({
        "claim": "Water boils at 100 °C at sea level.",
        "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3"] },
    });
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    assert_json_snapshot!(reply.json());
}

#[tokio::test]
async fn the_five_promised_fields_exist_for_one_replica_too() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let reply = app.admin().post("/api/v3/validate", &claim(1)).await.json();
    assert_eq!(reply["verdict"], "VALID");
    let consensus = &reply["consensus"];
    assert_eq!(consensus["replicas"], 1);
    assert_eq!(consensus["agreement"], 1.0);
    assert_eq!(consensus["verdicts"], json!(["VALID"]));
    assert_eq!(consensus["strategy"], "majority");
    assert_eq!(consensus["confidence"], 0.75);
}

#[tokio::test]
async fn four_of_five_agree_and_a_hanging_replica_stays_in_the_denominator() {
    let app = TestApp::new().await;
    let _fakes =
        app.executors([says_valid(), says_valid(), says_valid(), says_valid(), hangs()]).await;
    let mut body = claim(5);
    body["execution"]["timeout_ms"] = json!(2_000);
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["verdict"], "VALID");
    assert_eq!(reply["consensus"]["agreement"], 0.8);
    assert_eq!(reply["consensus"]["agreement_answered"], 1.0);
    assert_eq!(reply["consensus"]["answered"], 4);
    let labels = reply["consensus"]["verdicts"].to_string();
    assert!(labels.contains("TIMEOUT"), "{labels}");
}

#[tokio::test]
async fn a_split_has_no_verdict_and_no_confidence() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_invalid(), says_inconclusive()]).await;
    let reply = app.admin().post("/api/v3/validate", &claim(3)).await;
    assert_eq!(reply.status, StatusCode::OK);
    let reply = reply.json();
    assert_eq!(reply["verdict"], Value::Null);
    assert_eq!(reply["confidence"], 0.0);
    assert_eq!(reply["consensus"]["outcome"], "split");
    assert_eq!(reply["consensus"]["disagreement"], true);
}

#[tokio::test]
async fn fail_hard_answers_409_with_the_evidence_in_the_same_body() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_invalid(), says_inconclusive()]).await;
    let mut body = claim(3);
    body["consensus"]["disagreement_policy"] = json!("fail_hard");
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.status, StatusCode::CONFLICT);
    assert_eq!(reply.headers["content-type"], "application/problem+json");
    let reply = reply.json();
    assert_eq!(reply["code"], "consensus_disagreement");
    assert_eq!(reply["replicas"].as_array().unwrap().len(), 3);
    assert_eq!(reply["consensus"]["outcome"], "split");
    // The round is recorded all the same.
    let round =
        app.admin().get(&format!("/v1/rounds/{}", reply["round_id"].as_str().unwrap())).await;
    assert_eq!(round.json()["receipt_id"], reply["receipt_id"]);
}

#[tokio::test]
async fn best_effort_breaks_a_tie_aloud() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_invalid(), status(500)]).await;
    let mut body = claim(3);
    body["consensus"]["disagreement_policy"] = json!("best_effort");
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["consensus"]["tie_broken"], true);
    assert_eq!(reply["consensus"]["outcome"], "split");
    assert!(reply["verdict"].is_string());
    // A coin toss would be right as often.
    assert_eq!(reply["confidence"], 0.5);
    assert_eq!(reply["consensus"]["low_confidence"], true, "{reply}");
}

#[tokio::test]
async fn a_bare_claim_never_passes_without_an_executor_that_can_judge() {
    let app = TestApp::new().await;
    let _fakes = app.executors([needs_spec(), needs_spec(), says_valid()]).await;
    let reply = app.admin().post("/api/v3/validate", &claim(3)).await.json();
    assert_eq!(reply["verdict"], Value::Null);
    assert_eq!(reply["consensus"]["outcome"], "abstained");
}

#[tokio::test]
async fn all_replicas_failed_is_an_outcome_and_not_an_error() {
    let app = TestApp::new().await;
    let _fakes = app.executors([status(500), status(502), hangs()]).await;
    let mut body = claim(3);
    body["execution"]["timeout_ms"] = json!(500);
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.status, StatusCode::OK);
    assert_eq!(reply.json()["consensus"]["outcome"], "failed");
}

#[tokio::test]
async fn a_pass_that_the_schema_contradicts_is_not_a_vote() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_invalid(), says_invalid()]).await;
    let body = json!({
        "claim": { "output": { "total": "twelve" }, "output_schema": {
            "type": "object", "properties": { "total": { "type": "number" } },
        } },
        "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3"] },
    });
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["verdict"], "INVALID");
    assert_eq!(reply["consensus"]["verdicts"], json!(["ERROR", "INVALID", "INVALID"]));
    assert_eq!(reply["replicas"][0]["error"]["code"], "policy_contradicted");
}

#[tokio::test]
async fn a_fail_counts_even_if_our_own_check_passes() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_invalid()]).await;
    let body = json!({ "claim": { "output": 1, "output_schema": { "type": "number" } } });
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["verdict"], "INVALID");
}

#[tokio::test]
async fn the_executor_gets_candidate_schema_policy_and_context() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let body = json!({
        "claim": { "output": { "n": 1 }, "output_schema": { "type": "object" },
                   "evidence_inline": [{ "mime": "text/plain", "content": "seen" }] },
        "policy": { "policy_id": "vp.schema_thresholds.v1",
                    "policy_params": { "thresholds": [{ "path": "/n", "op": ">", "value": 0 }] } },
        "context": { "why": "a test" },
    });
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.json()["verdict"], "VALID", "{}", reply.text());
    let calls = fake.calls();
    let sent = calls.iter().find(|call| call.endpoint() == "verify").unwrap();
    assert_eq!(sent.body["candidate"]["output"], json!({ "n": 1 }));
    assert_eq!(sent.body["output_schema"], json!({ "type": "object" }));
    assert_eq!(sent.body["policy"]["policy_id"], "vp.schema_thresholds.v1");
    assert_eq!(sent.body["candidate"]["evidence_inline"][0]["content"], "seen");
    let context: Value = serde_json::from_str(
        sent.body["candidate"]["evidence_inline"][1]["content"].as_str().unwrap(),
    )
    .unwrap();
    assert_eq!(context, json!({ "kind": "context", "context": { "why": "a test" } }));
}

#[tokio::test]
async fn scores_of_the_winning_side_are_averaged_with_their_spread() {
    let app = TestApp::new().await;
    let _fakes = app
        .executors([says_valid().score(0.5), says_valid().score(1.0), says_invalid().score(0.9)])
        .await;
    let reply = app.admin().post("/api/v3/validate", &claim(3)).await.json();
    let score = &reply["consensus"]["score"];
    assert_eq!(score["value"], 0.75);
    assert_eq!(score["method"], "mean");
    assert_eq!((&score["min"], &score["max"]), (&json!(0.5), &json!(1.0)));
}

#[tokio::test]
async fn early_stop_cancels_what_cannot_change_the_winner() {
    let app = TestApp::new().await;
    let [_a, _b, slow] = app.executors([says_valid(), says_valid(), hangs()]).await;
    let mut body = claim(3);
    body["execution"]["timeout_ms"] = json!(30_000);
    body["consensus"]["early_stop"] = json!(true);
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["verdict"], "VALID");
    assert_eq!(reply["consensus"]["cancelled"], 1);
    assert_eq!(reply["consensus"]["asked"], 3);
    assert_eq!(reply["consensus"]["agreement"], 0.6667);
    slow.abandoned(1).await;
}

#[tokio::test]
async fn a_reliable_session_counts_more() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_valid()]).await;
    let session = json!({ "id": "good", "executor": "s1", "reliability": 0.95 });
    app.admin().post("/v1/sessions", &session).await;
    let mut body = claim(1);
    body["consensus"]["session_pool"] = json!(["good"]);
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["confidence"], 0.95);
}

#[tokio::test]
async fn a_pass_that_nothing_confirms_is_not_a_vote() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), says_valid(), says_valid()]).await;
    let mut body = claim(3);
    body["claim"] = json!({ "output": 41 });
    body["policy"] = json!("vp.crosscheck.v1");
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["consensus"]["outcome"], "failed");
    assert_eq!(reply["replicas"][0]["error"]["code"], "policy_contradicted");
    let detail = reply["replicas"][0]["error"]["detail"].as_str().unwrap();
    assert!(detail.contains("inconclusive") && detail.contains("1012"), "{detail}");
}

#[tokio::test]
async fn a_schema_next_to_the_claim_counts_like_one_inside() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let body = json!({ "claim": { "output": { "a": 1 } }, "output_schema": { "required": ["b"] },
                       "policy": "vp.schema_only.v1" });
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["replicas"][0]["error"]["code"], "policy_contradicted", "{reply}");
}

#[tokio::test]
async fn the_replicas_are_in_the_order_of_choice_and_not_of_arrival() {
    let app = TestApp::new().await;
    let [last, first, second] =
        app.executors([gated(says_invalid()), says_valid(), says_valid()]).await;
    let mut body = claim(3);
    body["consensus"]["session_pool"] = json!(["s1", "s2", "s3"]);
    let caller = app.admin();
    let asked = caller.post("/api/v3/validate", &body);
    let let_go = async {
        first.wait_for_calls(1).await;
        second.wait_for_calls(1).await;
        last.release();
    };
    let (reply, ()) = tokio::join!(asked, let_go);
    let reply = reply.json();
    assert_eq!(reply["consensus"]["verdicts"], json!(["INVALID", "VALID", "VALID"]));
    assert_eq!(reply["replicas"][0]["session_id"], "s1");
}
