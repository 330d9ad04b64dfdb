//! Hostile schemas and policies against the sandbox, from outside.

use std::{sync::Arc, thread};

use jurat_core::{
    policy::{Evaluation, EvaluationStatus, Policy, PolicyBinding},
    round::candidate::{Candidate, Evidence, InlineEvidence},
    schema::SchemaError,
};
use jurat_guard::sandbox::{PolicyRefusal, Sandbox, SchemaRefusal};
use serde_json::{Value, json};

fn candidate(output: Value) -> Arc<Candidate> {
    Arc::new(Candidate {
        candidate_id: "cand-1".to_owned(),
        execution_id: "exec-1".to_owned(),
        output,
        evidence: Evidence::default(),
    })
}

fn policy(policy_id: &str, params: Value) -> Arc<Policy> {
    Arc::new(Policy::bind(&PolicyBinding::new(policy_id, params)).unwrap())
}

async fn decide(bounded: &Sandbox, schema: &Value, output: Value) -> Evaluation {
    let schema = bounded.schema(schema).await.unwrap();
    bounded.evaluate(policy("vp.schema_only.v1", json!({})), candidate(output), schema).await
}

#[tokio::test]
async fn a_candidate_is_decided() {
    let bounded = Sandbox::default();
    let schema = json!({"type": "object", "required": ["answer"]});
    let passed = decide(&bounded, &schema, json!({"answer": 1})).await;
    assert_eq!(passed, Evaluation::passed(Vec::new()));
    let failed = decide(&bounded, &schema, json!({})).await;
    assert_eq!((failed.status, failed.reason_codes), (EvaluationStatus::Failed, vec![101]));
}

#[tokio::test]
async fn the_same_schema_is_compiled_once() {
    let bounded = Sandbox::new(1);
    let first = bounded.schema(&json!({"minimum": 1, "type": "number"})).await.unwrap();
    let again = bounded.schema(&json!({"type": "number", "minimum": 1})).await.unwrap();
    let shared = bounded.clone().schema(&json!({"type": "number", "minimum": 1})).await.unwrap();
    for other in [again, shared] {
        assert!(std::ptr::eq(first.source(), other.source()), "it comes from the cache");
    }
}

#[tokio::test]
async fn a_refusal_is_cached_too() {
    let bounded = Sandbox::new(1);
    let remote = json!({"$ref": "http://127.0.0.1:9/x"});
    let first = bounded.schema(&remote).await.unwrap_err();
    assert_eq!(first.slug(), "schema_remote_ref");
    assert!(matches!(first, SchemaRefusal::Schema(SchemaError::RemoteRef { .. })));
    assert_eq!(bounded.schema(&remote).await, Err(first));
}

#[tokio::test]
async fn schema_bombs_are_refused_by_name() {
    let mut defs = serde_json::Map::new();
    for level in 0..28 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"allOf": [next, next]}));
    }
    defs.insert("d28".to_owned(), json!(true));
    let words: Vec<String> = (0..500_000).map(|n| format!("w{n}")).collect();
    let bombs = [
        (json!({"$ref": "#/$defs/d0", "$defs": defs}), "schema_expansion"),
        (json!({"enum": words}), "schema_too_large"),
        (json!({"pattern": "^(((a{100}){100}){100})$"}), "schema_pattern_refused"),
        (json!({"pattern": "^((?=a)a+)+$"}), "schema_pattern_refused"),
        (json!({"$ref": "file:///etc/hostname"}), "schema_remote_ref"),
        (json!({"$ref": "#"}), "schema_cycle"),
    ];
    let bounded = Sandbox::new(1);
    for (bomb, slug) in bombs {
        let refused = bounded.schema(&bomb).await.unwrap_err();
        assert_eq!(refused.slug(), slug, "{refused}");
    }
}

#[tokio::test]
async fn a_schema_too_deep_to_write_is_refused_before_it_is_written() {
    let deep = (0..100_000).fold(json!(true), |inner, _| {
        Value::Object(serde_json::Map::from_iter([("not".to_owned(), inner)]))
    });
    // Dropping it would recurse as well.
    let deep = Box::leak(Box::new(deep));
    let refused = Sandbox::new(1).schema(deep).await.unwrap_err();
    assert_eq!(refused.slug(), "schema_too_deep");
}

#[tokio::test]
async fn work_beyond_the_limits_is_not_a_verdict() {
    let bounded = Sandbox::new(1);
    let large =
        decide(&bounded, &json!({"items": {"type": "null"}}), json!(vec![1; 1_100_000])).await;
    assert_eq!((large.status, large.reason_codes), (EvaluationStatus::Inconclusive, vec![1040]));
    let deep = (0..100).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    let deep = decide(&bounded, &json!({"type": "array"}), deep).await;
    assert_eq!((deep.status, deep.reason_codes), (EvaluationStatus::Inconclusive, vec![1040]));
}

#[tokio::test]
async fn the_deepest_allowed_work_fits_the_stack() {
    let mut defs = serde_json::Map::new();
    for link in 0..95 {
        let next = json!({"$ref": format!("#/$defs/d{}", link + 1)});
        defs.insert(format!("d{link}"), json!({"anyOf": [next]}));
    }
    defs.insert("d95".to_owned(), json!({"items": {"$ref": "#/$defs/d0"}}));
    let schema = json!({"$ref": "#/$defs/d0", "$defs": defs});
    let output = (0..64).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    let said = decide(&Sandbox::new(1), &schema, output).await;
    assert_eq!(said.status, EvaluationStatus::Passed);
}

#[tokio::test]
async fn comparing_too_much_evidence_is_not_a_verdict() {
    let bounded = Sandbox::new(1);
    let schema = bounded.schema(&json!({})).await.unwrap();
    let mut candidate = Arc::unwrap_or_clone(candidate(json!(1)));
    let item = InlineEvidence {
        mime: "application/json".to_owned(),
        content: json!({"kind": "candidate", "output": 1}).to_string(),
    };
    candidate.evidence.inline = vec![item; 101];
    let many = Arc::new(candidate);
    let said = bounded.evaluate(policy("vp.crosscheck.v1", json!({})), many, schema).await;
    assert_eq!((said.status, said.reason_codes), (EvaluationStatus::Inconclusive, vec![1040]));
}

#[tokio::test]
async fn many_concurrent_jobs_are_all_answered() {
    let bounded = Sandbox::new(2);
    let schemas: Vec<Value> = (0..50).map(|n| json!({"maximum": n})).collect();
    let checks = schemas.iter().map(|schema| decide(&bounded, schema, json!(25)));
    let said = futures::future::join_all(checks).await;
    let passed = said.iter().filter(|said| said.status == EvaluationStatus::Passed).count();
    assert_eq!(passed, 25);
}

#[test]
fn large_work_does_not_use_the_callers_small_stack() {
    // Slightly more than runs inline, so the caller's own stack does not matter.
    let caller = thread::Builder::new().stack_size(256 * 1024).spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let schema = json!({"$ref": "#/$defs/n", "$defs": {"n": {
                "oneOf": [{"allOf": [{"items": {"$ref": "#/$defs/n"}}]}]}}});
            let output = (0..64).fold(json!(1), |inner, _| Value::Array(vec![inner]));
            decide(&Sandbox::new(1), &schema, output).await.status
        })
    });
    assert_eq!(caller.unwrap().join().unwrap(), EvaluationStatus::Passed);
}

#[tokio::test]
async fn checks_are_compiled_and_made_within_the_limits() {
    let bounded = Sandbox::new(1);
    let open = bounded.schema(&json!({})).await.unwrap();
    let bind = |checks: Value| PolicyBinding::new("vp.checks.v1", json!({ "checks": checks }));
    let binding = bind(json!([{"schema": {"$ref": "#"}}]));
    assert!(matches!(bounded.policy(&binding).await, Err(PolicyRefusal::Policy(_))));

    // As deep as an expression can be, on threads with large enough stacks.
    let deep =
        (0..18).fold("true".to_owned(), |inner, level| format!("[1].all(x{level}, {inner})"));
    let policy = bounded.policy(&bind(json!([{ "cel": deep }]))).await.unwrap();
    let said = bounded.evaluate(Arc::new(policy), candidate(json!(1)), open.clone()).await;
    assert_eq!(said.status, EvaluationStatus::Passed);

    let doubling = format!("['x']{} == []", ".map(a, a + a)".repeat(26));
    let policy = bounded.policy(&bind(json!([{ "cel": doubling }]))).await.unwrap();
    let said = bounded.evaluate(Arc::new(policy), candidate(json!(1)), open).await;
    assert_eq!((said.status, said.reason_codes), (EvaluationStatus::Inconclusive, vec![1040]));
}
