//! `POST /verify`: the server as an executor that verifies.

use http::StatusCode;
use jurat_core::{
    account::caller::Scope,
    policy::{ResultFields, policy_hash, result_hash},
};
use jurat_engine::{JudgesConfig, ProviderKind, ProviderSettings};
use jurat_testkit::{
    app::{TestApp, TestCaller, TestReply},
    fake_executor::says_valid,
    fake_provider::{FakeProvider, ProviderReply, verdict},
};
use serde_json::{Value, json};

use crate::inbound::{Served, patient};

fn request(policy_id: &str, params: &Value, output: &Value) -> Value {
    json!({
        "candidate": {
            "candidate_id": "cand-1", "execution_id": "exec-1", "output": output,
            "evidence_inline": [], "evidence_refs": [],
        },
        "output_schema": { "type": "object", "required": ["n"] },
        "policy": {
            "policy_id": policy_id, "policy_version": "1",
            "policy_hash": policy_hash(policy_id, params), "policy_params": params,
        },
    })
}

/// Asserts that the hash is that of the answer to the request, and returns the answer.
#[track_caller]
fn sound(request: &Value, reply: &TestReply) -> Value {
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    let answer = reply.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let codes: Vec<u16> = serde_json::from_value(answer["reason_codes"].clone()).unwrap();
    let expected = result_hash(&ResultFields {
        candidate_id: "cand-1",
        execution_id: "exec-1",
        passed: answer["passed"].as_bool().unwrap(),
        score: answer["score"].as_f64().unwrap(),
        reason_codes: &codes,
        provider_family: &text(&answer["provider_family"]),
        model_id: &text(&answer["model_id"]),
        policy_hash: &text(&request["policy"]["policy_hash"]),
    });
    assert_eq!(answer["verifier_result_hash"], expected);
    answer
}

async fn verified(caller: &TestCaller<'_>, request: &Value) -> Value {
    let reply = caller.post("/verify", request).await;
    sound(request, &reply)
}

#[tokio::test]
async fn a_node_without_executors_decides_policies_without_a_judge() {
    let app = TestApp::new().await;
    let thresholds = json!({ "thresholds": [{ "path": "/n", "op": ">=", "value": 3 }] });
    let check = json!({ "checks": [{ "cel": "output.n > 3" }] });
    let references = json!({ "references": [{ "n": 4 }, { "n": 4 }, { "n": 5 }] });
    for (policy, params, output, status, codes) in [
        ("vp.schema_only.v1", json!({}), json!({ "n": 1 }), "passed", json!([])),
        ("vp.schema_only.v1", json!({}), json!({}), "failed", json!([101])),
        ("vp.schema_thresholds.v1", thresholds.clone(), json!({ "n": 4 }), "passed", json!([])),
        ("vp.schema_thresholds.v1", thresholds, json!({ "n": 2 }), "failed", json!([1000])),
        ("vp.checks.v1", check.clone(), json!({ "n": 4 }), "passed", json!([])),
        ("vp.checks.v1", check, json!({ "n": 3 }), "failed", json!([1057])),
        ("vp.crosscheck.v1", references, json!({ "n": 5 }), "failed", json!([1011])),
        ("vp.crosscheck.v1", json!({}), json!({ "n": 5 }), "inconclusive", json!([1012])),
    ] {
        let answer = verified(&app.admin(), &request(policy, &params, &output)).await;
        assert_eq!(answer["verification_status"], status, "{policy} {output}: {answer}");
        assert_eq!(answer["passed"], status == "passed", "{policy} {output}");
        assert_eq!(answer["reason_codes"], codes, "{policy} {output}");
        assert_eq!(answer["score"], if status == "inconclusive" { 0.0 } else { 1.0 });
        assert_eq!(answer["provider_family"], "jurat");
    }
}

#[tokio::test]
async fn a_verification_is_a_round_and_happens_once_under_a_key() {
    let app = TestApp::new().await;
    let body = request("vp.schema_only.v1", &json!({}), &json!({ "n": 1 }));
    let key = [("idempotency-key", "k")];
    let first = app.admin().post_with("/verify", &body, &key).await;
    let again = app.admin().post_with("/verify", &body, &key).await;
    assert_eq!(
        (first.json(), &again.headers["idempotent-replayed"]),
        (again.json(), &"true".parse().unwrap())
    );
    let round = first.headers["x-jurat-round"].to_str().unwrap().to_owned();
    assert_eq!(round, again.headers["x-jurat-round"]);
    let round = app.admin().get(&format!("/v1/rounds/{round}")).await.json();
    assert_eq!((&round["kind"], &round["verdict"]), (&json!("validate"), &json!("VALID")));
    assert_eq!(round["replicas"][0]["session_id"], "builtin:policies");
}

#[tokio::test]
async fn an_invalid_or_undecidable_request_is_refused_with_its_field() {
    let app = TestApp::new().await;
    // An executor that would say yes is never asked.
    let [fake] = app.executors([says_valid().policies(&["acme.tone.v1"])]).await;
    let good = request("vp.schema_only.v1", &json!({}), &json!({ "n": 1 }));
    let mut wrong_hash = good.clone();
    wrong_hash["policy"]["policy_hash"] = json!(format!("sha256:{}", "0".repeat(64)));
    let mut no_candidate = good.clone();
    no_candidate.as_object_mut().unwrap().remove("candidate");
    let mut evidence = good.clone();
    evidence["candidate"]["evidence_inline"] = json!([{ "mime": 1, "content": "" }]);
    let mut schema = good.clone();
    schema["output_schema"] = json!({ "$ref": "https://example.com/schema.json" });
    for (body, field) in [
        (wrong_hash, "policy"),
        (no_candidate, "candidate"),
        (evidence, "candidate.evidence_inline.0.mime"),
        (schema, "output_schema"),
        (request("vp.claim.v1", &json!({}), &json!({ "n": 1 })), "policy.policy_id"),
        (request("acme.tone.v1", &json!({}), &json!({ "n": 1 })), "policy.policy_id"),
        (request("vp.nothing.v1", &json!({}), &json!({ "n": 1 })), "policy"),
        (
            request("vp.semantic.v1", &json!({ "verifier": "nobody" }), &json!({ "n": 1 })),
            "policy.policy_params.verifier",
        ),
    ] {
        let reply = app.admin().post("/verify", &body).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{}", reply.text());
        let problem = reply.json();
        let found = (&problem["code"], &problem["field"]);
        assert_eq!(found, (&json!("validation_error"), &json!(field)), "{problem}");
        if field == "policy" {
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.starts_with("policy binding invalid: "), "{detail}");
        }
    }
    assert!(fake.calls().iter().all(|call| call.endpoint() != "/verify"));
    assert_eq!(app.anonymous().post("/verify", &good).await.status, StatusCode::UNAUTHORIZED);
    let reader = app.caller("reader", &[Scope::RoundsRead]).await;
    assert_eq!(reader.post("/verify", &good).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_judge_of_a_verifier_decides_and_one_that_fails_decides_nothing() {
    for (says, status, codes) in [
        (ProviderReply::Answer(verdict("met")), "passed", json!([])),
        (ProviderReply::Answer(verdict("not_met")), "failed", json!([1070])),
        (ProviderReply::Answer(verdict("conflicting")), "inconclusive", json!([1072])),
        (ProviderReply::Status(401), "inconclusive", json!([1030])),
        (ProviderReply::Text("passed".to_owned()), "inconclusive", json!([1030])),
    ] {
        let fake = FakeProvider::saying([says.clone()]).await;
        let mut judges = JudgesConfig::default();
        let settings = ProviderSettings::new(ProviderKind::OpenAi, fake.url());
        judges.providers.insert("p".to_owned(), settings);
        let app = TestApp::with_judges(judges).await;
        let verifier = json!({
            "name": "polite", "description": "It is polite.",
            "criterion": "Return passed=true when it is polite.",
            "input_contract": "text", "input_fields": ["response"],
            "model_settings": { "model": "p/m" },
        });
        let deployed = app.admin().post("/v1/verifiers", &verifier).await;
        assert_eq!(deployed.status, StatusCode::CREATED, "{}", deployed.text());
        let params = json!({ "verifier": "polite", "inputs": { "response": "/text" } });
        let asked = request("vp.semantic.v1", &params, &json!({ "n": 1, "text": "Please." }));
        let answer = verified(&app.admin(), &asked).await;
        assert_eq!(
            (&answer["verification_status"], &answer["reason_codes"]),
            (&json!(status), &codes)
        );
        assert_eq!((&answer["provider_family"], &answer["model_id"]), (&json!("p"), &json!("m")));
        let score = answer["score"].as_f64().unwrap();
        assert_eq!(score > 0.0, status != "inconclusive", "{says:?}: {score}");
        // The schema comes first.
        let before = fake.asked().len();
        let asked = request("vp.semantic.v1", &params, &json!({ "text": "Please." }));
        let answer = verified(&app.admin(), &asked).await;
        assert_eq!(
            (&answer["verification_status"], &answer["reason_codes"]),
            (&json!("failed"), &json!([101]))
        );
        assert_eq!(fake.asked().len(), before);
    }
}

#[tokio::test]
async fn one_server_is_the_executor_of_another() {
    let below = Served::with(patient()).await;
    let above = TestApp::new().await;
    let body = json!({ "name": "below", "url": below.url(), "token_env": "JURAT_TEST_ADMIN" });
    let added = above.admin().post("/v1/executors", &body).await;
    assert_eq!(added.status, StatusCode::CREATED, "{}", added.text());
    let validate = |n: u32, policy: &str| {
        json!({
            "claim": { "output": { "n": n } },
            "output_schema": { "properties": { "n": { "maximum": 3 } } },
            "policy": { "policy_id": policy },
            "consensus": { "session_pool": ["below"] },
        })
    };
    for (n, policy, expected) in [
        (2, "vp.schema_only.v1", "VALID"),
        (4, "vp.schema_only.v1", "INVALID"),
        (2, "vp.claim.v1", "NEEDS_SPEC"),
    ] {
        let reply = above.admin().post("/api/v3/validate", &validate(n, policy)).await.json();
        assert_eq!(reply["consensus"]["verdicts"], json!([expected]), "{reply:#}");
    }
    let rounds = below.app.admin().get("/v1/rounds").await.json();
    assert_eq!(rounds["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn validate_can_name_the_session_of_the_node() {
    let app = TestApp::new().await;
    let mut body = json!({
        "claim": { "output": { "n": 4 } },
        "output_schema": { "properties": { "n": { "maximum": 3 } } },
        "consensus": { "session_pool": ["builtin:policies"] },
    });
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(
        (&reply["verdict"], &reply["confidence"], &reply["consensus"]["basis"]),
        (&json!("INVALID"), &json!(0.7), &json!("form")),
        "{reply:#}"
    );
    body["consensus"]["replicas"] = json!(3);
    let refused = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(refused["code"], "session_pool_too_small");
    let body = json!({ "claim": "x", "consensus": { "session_pool": ["builtin:policies"] } });
    let refused = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(refused["code"], "not_supported");
}
