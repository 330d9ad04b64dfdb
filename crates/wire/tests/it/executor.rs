//! The four endpoints: accepted documents, refused ones, and the messages about them.

use serde_json::{Value, json};

use jurat_wire::executor::{
    JobContract, TaskContract, TaskStage, VerificationStatus, VerifyResponse, decode_capabilities,
    decode_execute_request, decode_execute_response, decode_verify_request, decode_verify_response,
};

fn contract() -> TaskContract {
    TaskContract::for_job(JobContract {
        task_id: "t".to_owned(),
        task_type: "swarm".to_owned(),
        inputs: json!({"prompt": "hello"}),
        output_schema: json!({"type": "object"}),
        timeout_ms: 5_000,
        max_steps: 3,
        policy: jurat_core::policy::PolicyBinding {
            policy_id: "vp.schema_only.v1".to_owned(),
            policy_version: "1".to_owned(),
            policy_hash: "sha256:00".to_owned(),
            policy_params: json!({}),
        },
        expiry_ms: 1_800_000_000_000,
    })
}

fn execute_request() -> Value {
    json!({
        "task_id": "t", "execution_id": "e", "task_type": "swarm", "inputs": {"prompt": "hello"},
        "profile": "default", "task_contract": contract(), "stage": "DECIDE", "attempt_id": "a",
        "seed_bundle": null, "a_field_of_tomorrow": 1,
    })
}

fn verdict(passed: bool, codes: &[u16], status: Option<&str>) -> VerifyResponse {
    let mut body = json!({"passed": passed, "score": 1, "reason_codes": codes});
    if let Some(status) = status {
        body["verification_status"] = json!(status);
    }
    decode_verify_response(body).unwrap()
}

#[test]
fn a_contract_for_a_job_has_every_field_of_the_sample_contract() {
    let written = serde_json::to_value(contract()).unwrap();
    assert_eq!(written["budget"]["time_ms"], 5_000);
    assert_eq!(written["budget"]["reuse_verify_time_ms"], 5_000);
    assert_eq!(written["assignment"]["mode"], "CLAIM");
    assert_eq!(
        written["acceptance"]["settlement"]["implicit_diminishing_returns"],
        json!({"W": 10, "K": 50})
    );
    assert_eq!(written["evidence_policy"]["max_inline_evidence_bytes"], 65_536);
    assert_eq!(serde_json::from_value::<TaskContract>(written).unwrap(), contract());
}

#[test]
fn an_execute_request_reads_with_foreign_fields_and_foreign_stages() {
    let read = decode_execute_request(execute_request()).unwrap();
    assert_eq!(read.stage, TaskStage::Explore);
    assert_eq!(read.task_contract, contract());
    assert_eq!(serde_json::to_value(&read).unwrap()["seed_bundle"], Value::Null);
}

#[test]
fn a_contract_with_a_schema_alone_is_filled_up() {
    let mut body = execute_request();
    body["task_contract"] =
        json!({"output_schema": {"required": ["answer"]}, "budget": {"time_ms": 7}});
    let read = decode_execute_request(body).unwrap();
    assert_eq!(read.task_contract.output_schema, json!({"required": ["answer"]}));
    assert_eq!(read.task_contract.budget.time_ms, 7);
    assert_eq!(read.task_contract.inputs, json!({"prompt": "hello"}));
    assert_eq!(read.task_contract.assignment, contract().assignment);
}

#[test]
fn a_bad_execute_request_names_the_field() {
    let check = |change: fn(&mut Value), expect: &str| {
        let mut body = execute_request();
        change(&mut body);
        assert_eq!(decode_execute_request(body).unwrap_err().to_string(), expect);
    };
    check(
        |body| drop(body.as_object_mut().unwrap().remove("execution_id")),
        "execution_id: is missing",
    );
    check(
        |body| drop(body.as_object_mut().unwrap().remove("task_contract")),
        "task_contract: is missing",
    );
    check(
        |body| body["task_contract"]["budget"]["time_ms"] = json!("soon"),
        "task_contract.budget.time_ms: invalid type: string \"soon\", expected a whole number that is not negative",
    );
    check(
        |body| body["task_contract"] = json!(7),
        "task_contract: invalid type: integer `7`, expected an object",
    );
    check(
        |body| body["stage"] = json!("later"),
        "stage: `later` is not a stage; use `explore`, `verify` or `finalize`",
    );
    check(|body| *body = json!([]), "body: must be a JSON object");
}

#[test]
fn evidence_may_be_left_out_of_an_answer_but_the_output_may_not() {
    let read =
        decode_execute_response(json!({"candidate_output": null, "evidence_refs": null})).unwrap();
    assert_eq!(read.into_parts(), (Value::Null, jurat_core::round::candidate::Evidence::default()));
    let error = decode_execute_response(json!({"evidence_inline": []})).unwrap_err();
    assert_eq!(error.to_string(), "candidate_output: is missing");
    let error =
        decode_execute_response(json!({"candidate_output": 1, "evidence_refs": [{"uri": "x"}]}))
            .unwrap_err();
    assert_eq!(error.field, "evidence_refs[0].digest");
}

#[test]
fn a_verify_request_needs_only_ids_and_output_of_its_candidate() {
    let read = decode_verify_request(json!({
        "candidate": {"candidate_id": "c", "execution_id": "e", "output": 5},
        "output_schema": {},
        "policy": {"policy_id": "p", "policy_version": "1", "policy_hash": "h", "policy_params": {}},
    }))
    .unwrap();
    let candidate = jurat_core::round::candidate::Candidate::from(read.candidate);
    assert_eq!(candidate.output, json!(5));
    let error = decode_verify_request(json!({"candidate": {"candidate_id": "c"}})).unwrap_err();
    assert_eq!(error.to_string(), "candidate.execution_id: is missing");
}

#[test]
fn an_unstated_status_is_inferred() {
    use VerificationStatus::{Failed, Inconclusive, Passed};
    for (passed, codes, expect) in [
        (true, &[][..], Passed),
        (true, &[200], Passed),
        (false, &[101], Failed),
        (false, &[203], Failed),
        (false, &[101, 200], Inconclusive),
        (false, &[201], Inconclusive),
        (false, &[202], Inconclusive),
    ] {
        assert_eq!(verdict(passed, codes, None).status(), Ok(expect), "{passed} {codes:?}");
    }
}

#[test]
fn a_status_that_contradicts_passed_is_an_error() {
    assert_eq!(
        verdict(false, &[1021], Some("inconclusive")).status(),
        Ok(VerificationStatus::Inconclusive)
    );
    for (passed, status) in [(true, "failed"), (true, "inconclusive"), (false, "passed")] {
        let error = verdict(passed, &[], Some(status)).status().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("verification_status: `{status}` contradicts `passed: {passed}`")
        );
    }
}

#[test]
fn a_bad_verdict_names_the_field() {
    let check = |name: &str, value: Value, field: &str| {
        let mut body = json!({"passed": true, "score": 1.0, "reason_codes": []});
        body[name] = value;
        assert_eq!(decode_verify_response(body).unwrap_err().field, field);
    };
    check("passed", json!("yes"), "passed");
    check("score", json!(1.5), "score");
    check("score", json!(-0.1), "score");
    check("score", json!("1"), "score");
    check("reason_codes", json!([100, 65_536]), "reason_codes[1]");
    check("reason_codes", json!([-1]), "reason_codes[0]");
    check("reason_codes", json!([1.5]), "reason_codes[0]");
    check("reason_codes", json!(100), "reason_codes");
    check("verification_status", json!("PASSED"), "verification_status");
    check("verifier_result_hash", json!(7), "verifier_result_hash");
}

#[test]
fn capabilities_need_four_fields_and_may_name_policies() {
    let body = json!({"task_types": ["*"], "profiles": ["default"], "provider_family": "f", "model_id": "m"});
    assert!(decode_capabilities(body.clone()).unwrap().policies.is_empty());
    let mut more = body.clone();
    more["policies"] = json!(["vp.claim.v1"]);
    assert_eq!(decode_capabilities(more).unwrap().policies, ["vp.claim.v1"]);
    let mut blank = body;
    blank["model_id"] = json!(" ");
    assert_eq!(decode_capabilities(blank).unwrap_err().to_string(), "model_id: must not be blank");
}
