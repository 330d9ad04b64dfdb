//! `POST /verify`: bindings, verdicts and hashes.

use serde_json::{Value, json};

use jurat_runtime::engines::{EchoExecutor, EchoMode};
use jurat_runtime::{ExecutorOptions, KernelCompat};
use jurat_testkit::fake_documents::{FakeDocument, FakeDocuments};

use crate::server::{Server, expected_hash, verify_request};

async fn echo(mode: EchoMode) -> Server {
    Server::start(EchoExecutor::new("echo", "echo-1", mode), ExecutorOptions::default()).await
}

fn answer_schema() -> Value {
    json!({"type": "object", "required": ["answer"], "properties": {"answer": {"type": "string"}}})
}

#[tokio::test]
async fn recorded_verdicts_of_wattswarm_are_reproduced() {
    let golden: Value = serde_json::from_str(include_str!("golden/wattswarm-verify.json")).unwrap();
    let executor = EchoExecutor::new("swarm-runtime", "swarm-model-v1", EchoMode::Honest);
    let options = ExecutorOptions { compat: KernelCompat::WattSwarm, ..ExecutorOptions::default() };
    let server = Server::start(executor, options).await;
    for case in golden.as_array().unwrap() {
        let reply = server.post("/verify", &case["request"]).await;
        assert_eq!(reply.json, case["response"], "{}", case["name"]);
    }
}

#[tokio::test]
async fn a_clean_pass_has_no_codes_and_the_prescribed_hash() {
    let server = echo(EchoMode::Honest).await;
    let request =
        verify_request(&json!({"answer": "x"}), &answer_schema(), "vp.schema_only.v1", &json!({}));
    let reply = server.post("/verify", &request).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.json["verification_status"], "passed");
    assert_eq!(reply.json["passed"], true);
    assert_eq!(reply.json["score"], 1.0);
    assert_eq!(reply.json["reason_codes"], json!([]));
    assert_eq!(reply.json["provider_family"], "echo");
    assert_eq!(reply.json["verifier_result_hash"], expected_hash(&request, &reply.json));
}

#[tokio::test]
async fn an_output_that_does_not_match_fails() {
    let server = echo(EchoMode::Honest).await;
    let request =
        verify_request(&json!({"answer": 5}), &answer_schema(), "vp.schema_only.v1", &json!({}));
    let reply = server.post("/verify", &request).await;
    assert_eq!(
        (&reply.json["passed"], &reply.json["reason_codes"]),
        (&json!(false), &json!([101]))
    );
    assert_eq!(reply.json["verifier_result_hash"], expected_hash(&request, &reply.json));
}

#[tokio::test]
async fn a_binding_with_a_wrong_hash_is_a_400() {
    let server = echo(EchoMode::Honest).await;
    for policy in ["vp.schema_only.v1", "vp.claim.v1"] {
        let mut request = verify_request(&json!("2 + 2 = 4"), &json!({}), policy, &json!({}));
        request["policy"]["policy_hash"] = json!(format!("sha256:{}", "0".repeat(64)));
        let reply = server.post("/verify", &request).await;
        assert_eq!(
            (reply.status, &reply.json["error"]),
            (400, &json!("policy_invalid")),
            "{reply:?}"
        );
        let message = reply.json["message"].as_str().unwrap();
        assert!(message.starts_with("policy binding invalid: "), "{message}");
    }
}

#[tokio::test]
async fn an_undeclared_policy_is_refused() {
    let server = echo(EchoMode::Honest).await;
    let request = verify_request(&json!(1), &json!({}), "vp.unheard_of.v1", &json!({}));
    let reply = server.post("/verify", &request).await;
    assert_eq!((reply.status, &reply.json["error"]), (400, &json!("policy_invalid")), "{reply:?}");
    assert_eq!(reply.json["field"], "policy.policy_id");
    let message = reply.json["message"].as_str().unwrap();
    assert!(message.starts_with("policy binding invalid: "), "{message}");
    assert!(message.contains("vp.unheard_of.v1"), "{message}");
}

/// The hash by which WattSwarm knows its schema policy.
const FIXED: &str = "a52d250d216f425973eb5a13c392d4dbc172357181b683e86caa4a5c64db94a7";

#[tokio::test]
async fn under_a_fixed_hash_a_schema_is_read_as_wattswarm_reads_it() {
    let server = echo(EchoMode::Honest).await;
    let typed = |schema: Value| {
        let mut schema = schema;
        schema["type"] = json!("object");
        schema["properties"]["answer"]["type"] = json!("string");
        schema
    };
    for schema in [
        typed(json!({"properties": {"answer": {"pattern": "^(?=4)"}}})),
        typed(json!({"properties": {"answer": {"required": true}}})),
        typed(json!({"required": true})),
        typed(json!({"$ref": "#/definitions/nowhere"})),
        typed(json!({"$ref": "https://example.com/schema.json"})),
        typed(json!({"$schema": "http://json-schema.org/draft-03/schema#", "extends": {}})),
        typed(json!({"minProperties": "many", "enum": "none"})),
    ] {
        for (output, passed) in [(json!({"answer": "42"}), true), (json!({"answer": 42}), false)] {
            let own = verify_request(&output, &schema, "vp.schema_only.v1", &json!({}));
            let mut request = own.clone();
            request["policy"]["policy_hash"] = json!(FIXED);
            let reply = server.post("/verify", &request).await;
            assert_eq!(reply.json["passed"], passed, "{schema} {reply:?}");
            // Under our own rules, such a schema is invalid.
            let reply = server.post("/verify", &own).await;
            let is_read = schema["$schema"].is_string() || reply.status == 422;
            assert!(is_read, "{schema} {reply:?}");
        }
    }
    let mut deep = json!({});
    for _ in 0..70 {
        deep = json!({ "not": deep });
    }
    let mut request = verify_request(&json!({}), &deep, "vp.schema_only.v1", &json!({}));
    request["policy"]["policy_hash"] = json!(FIXED);
    assert_ne!(server.post("/verify", &request).await.status, 200);
}

#[tokio::test]
async fn under_a_fixed_hash_integers_of_64_bits_are_accepted() {
    let server = echo(EchoMode::Honest).await;
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}});
    for id in [9_007_199_254_740_993_u64, u64::MAX] {
        let own = verify_request(&json!({ "id": id }), &schema, "vp.schema_only.v1", &json!({}));
        let mut request = own.clone();
        request["policy"]["policy_hash"] = json!(FIXED);
        let reply = server.post("/verify", &request).await;
        assert_eq!((reply.status, &reply.json["passed"]), (200, &json!(true)), "{reply:?}");
        let reply = server.post("/verify", &own).await;
        assert_eq!((reply.status, &reply.json["error"]), (400, &json!("invalid_json")));
    }
}

#[tokio::test]
async fn a_schema_with_outside_references_is_refused_by_name() {
    let server = echo(EchoMode::Honest).await;
    let schema = json!({"$ref": "https://example.com/schema.json"});
    let request = verify_request(&json!(1), &schema, "vp.schema_only.v1", &json!({}));
    let reply = server.post("/verify", &request).await;
    assert_eq!((reply.status, &reply.json["error"]), (422, &json!("schema_refused")), "{reply:?}");
    assert_eq!(reply.json["field"], "output_schema");
}

#[tokio::test]
async fn a_claim_is_judged_true_false_or_neither() {
    let server = echo(EchoMode::Honest).await;
    for (claim, status, codes) in [
        (json!("2 + 2 = 4"), "passed", json!([])),
        (json!({"claim": "2 + 2 = 5"}), "failed", json!([1020])),
        (json!("the sky is blue"), "inconclusive", json!([1021])),
    ] {
        let request = verify_request(&claim, &json!({}), "vp.claim.v1", &json!({}));
        let reply = server.post("/verify", &request).await;
        assert_eq!(reply.json["verification_status"], status, "{reply:?}");
        assert_eq!(reply.json["reason_codes"], codes);
        assert_eq!(reply.json["verifier_result_hash"], expected_hash(&request, &reply.json));
    }
}

#[tokio::test]
async fn a_claim_with_a_schema_must_match_it_first() {
    let server = echo(EchoMode::Honest).await;
    let request = verify_request(&json!("2 + 2 = 4"), &answer_schema(), "vp.claim.v1", &json!({}));
    let reply = server.post("/verify", &request).await;
    assert_eq!(
        (&reply.json["passed"], &reply.json["reason_codes"]),
        (&json!(false), &json!([101]))
    );
}

#[tokio::test]
async fn an_inconclusive_verdict_carries_a_code_that_wattswarm_knows() {
    let options = ExecutorOptions { compat: KernelCompat::WattSwarm, ..ExecutorOptions::default() };
    let server = Server::start(EchoExecutor::new("e", "m", EchoMode::Honest), options).await;
    let request = verify_request(&json!("who knows"), &json!({}), "vp.claim.v1", &json!({}));
    let reply = server.post("/verify", &request).await;
    assert_eq!(reply.json["verification_status"], "inconclusive");
    assert_eq!(reply.json["reason_codes"], json!([1021, 200]));
    let hash = expected_hash(&request, &reply.json);
    assert_eq!(reply.json["verifier_result_hash"], hash.trim_start_matches("sha256:"));
}

#[tokio::test]
async fn a_liar_inverts_the_verdict_with_a_reason_and_a_valid_hash() {
    let server = echo(EchoMode::Lie).await;
    let open = json!({});
    let references = json!({"references": [{"answer": "x"}]});
    for (output, schema, policy, params, passed, codes) in [
        (json!({"answer": "x"}), answer_schema(), "vp.schema_only.v1", &open, false, json!([101])),
        (json!({"answer": 5}), answer_schema(), "vp.schema_only.v1", &open, true, json!([])),
        (
            json!({"answer": "x"}),
            open.clone(),
            "vp.crosscheck.v1",
            &references,
            false,
            json!([1011]),
        ),
        (json!("2 + 2 = 4"), open.clone(), "vp.claim.v1", &open, false, json!([1020])),
        (json!("2 + 2 = 5"), open.clone(), "vp.claim.v1", &open, true, json!([])),
    ] {
        let request = verify_request(&output, &schema, policy, params);
        let reply = server.post("/verify", &request).await;
        assert_eq!(reply.json["passed"], passed, "{policy} of {output}: {reply:?}");
        assert_eq!(reply.json["reason_codes"], codes, "{policy} of {output}");
        assert_eq!(reply.json["verifier_result_hash"], expected_hash(&request, &reply.json));
    }
}

#[tokio::test]
async fn checks_are_made_and_bad_ones_refused_with_their_field() {
    let server = echo(EchoMode::Honest).await;
    let output = json!({"answer": "forty-two", "n": 42});
    for (check, status, codes) in [
        (json!({"path": "/answer", "regex": "^[a-z-]+$"}), "passed", json!([])),
        (
            json!({"cel": "output.n == 42 && output.answer.startsWith('forty')"}),
            "passed",
            json!([]),
        ),
        (json!({"path": "/n", "bounds": {"max": 10}}), "failed", json!([1053])),
        (json!({"cel": "output.missing > 1"}), "failed", json!([1058])),
    ] {
        let params = json!({ "checks": [check] });
        let request = verify_request(&output, &json!({}), "vp.checks.v1", &params);
        let reply = server.post("/verify", &request).await;
        assert_eq!(reply.json["verification_status"], status, "{check}: {reply:?}");
        assert_eq!(reply.json["reason_codes"], codes, "{check}");
        assert_eq!(reply.json["verifier_result_hash"], expected_hash(&request, &reply.json));
    }
    let params = json!({"checks": [{"required": ["n"]}, {"cel": "output.n ="}]});
    let request = verify_request(&output, &json!({}), "vp.checks.v1", &params);
    let reply = server.post("/verify", &request).await;
    assert_eq!((reply.status, &reply.json["error"]), (422, &json!("policy_invalid")), "{reply:?}");
    assert_eq!(reply.json["field"], "policy.policy_params.checks.1.cel");
}

#[tokio::test]
async fn evidence_is_fetched_if_the_policy_asks() {
    let web = FakeDocuments::start().await;
    web.put("/denied", FakeDocument::Status(403));
    let there = web.publish("/a", b"a document");
    let cases = [
        (there.clone(), "passed", json!([])),
        (web.reference("/nothing", b"a document"), "inconclusive", json!([200])),
        (web.reference("/denied", b"a document"), "inconclusive", json!([202])),
        (web.reference("/a", b"A document"), "failed", json!([203])),
    ];
    let options = || ExecutorOptions {
        evidence_allow: vec!["127.0.0.0/8".parse().unwrap()],
        ..ExecutorOptions::default()
    };
    let echo = || EchoExecutor::new("echo", "echo-1", EchoMode::Honest);
    let server = Server::start(echo(), options()).await;
    for (reference, status, codes) in cases {
        let reply = server.post("/verify", &referring(&reference, true)).await;
        assert_eq!(reply.json["verification_status"], status, "{reply:?}");
        assert_eq!(reply.json["reason_codes"], codes, "{reply:?}");
        let request = referring(&reference, true);
        assert_eq!(reply.json["verifier_result_hash"], expected_hash(&request, &reply.json));
    }
    let asked = web.asked().len();
    let unasked = web.reference("/nothing", b"a document");
    let reply = server.post("/verify", &referring(&unasked, false)).await;
    assert_eq!(reply.json["verification_status"], "passed");
    assert_eq!(web.asked().len(), asked, "nobody asked for it");
    let careful = Server::start(echo(), ExecutorOptions::default()).await;
    let reply = careful.post("/verify", &referring(&there, true)).await;
    assert_eq!(reply.json["reason_codes"], json!([202]), "private addresses are denied");
    assert_eq!(web.asked().len(), asked);
}

fn referring(reference: &Value, fetch: bool) -> Value {
    let params = json!({ "fetch_evidence": fetch });
    let mut request =
        verify_request(&json!({"answer": "x"}), &answer_schema(), "vp.schema_only.v1", &params);
    request["candidate"]["evidence_refs"] = json!([reference]);
    request
}
