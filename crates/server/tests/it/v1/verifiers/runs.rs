//! Running a verifier, and reading its runs.

use std::collections::BTreeMap;

use axum::body::Body;
use http::StatusCode;
use insta::assert_json_snapshot;
use jurat_core::{
    account::caller::Scope,
    id::AccountId,
    verifier::{
        VerifierRef,
        registry::Measurement,
        run::{Provenance, VerifierRunPurpose},
    },
};
use jurat_engine::{RoundWatcher, VerifierRunOrder};
use jurat_store::Behalf;
use jurat_testkit::app::{TestApp, TestCaller, TestReply, admin_caller};
use serde_json::{Value, json};

use super::{OWNER, assert_problem, claims, claims_with, deploy, owner, text};

/// A verifier whose judge needs no model.
pub(crate) fn sourced() -> Value {
    json!({
        "name": "names-a-source",
        "description": "The answer names its source.",
        "criterion": r#"{"contains": {"field": "answer", "text": "Source:"}}"#,
        "input_contract": "text",
        "input_fields": ["answer"],
        "model_settings": { "model": "builtin/rules" },
    })
}

const AT: &str = "/v1/verifiers/names-a-source/runs";

async fn run(caller: &TestCaller<'_>, path: &str, answer: &str) -> Value {
    let reply = caller.post(path, &json!({ "inputs": { "answer": answer } })).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    reply.json()
}

fn request(answer: &str) -> VerifierRunOrder {
    VerifierRunOrder {
        reference: VerifierRef::parse("names-a-source").unwrap(),
        inputs: BTreeMap::from([("answer".to_owned(), answer.to_owned())]),
        media_url: None,
        replicas: 1,
        judges: Vec::new(),
        is_fresh: true,
        commit_first: None,
        timeout_ms: 10_000,
        provenance: Provenance::default(),
        request_digest: "d".to_owned(),
        notes: serde_json::Map::new(),
        purpose: VerifierRunPurpose::Run,
        leave_out: None,
    }
}

async fn ids(caller: &TestCaller<'_>, path: &str) -> Vec<String> {
    let reply = caller.get(path).await;
    assert_eq!(reply.status, StatusCode::OK, "{path}: {}", reply.text());
    let items = reply.json()["items"].as_array().unwrap().clone();
    items.iter().map(|item| text(&item["verifier_run_id"]).to_owned()).collect()
}

#[tokio::test]
async fn a_run_passes_or_fails_and_reads_back_as_it_was_answered() {
    runs(&TestApp::new().await).await;
}

/// Runs and their lists, on any store.
pub(crate) async fn runs(app: &TestApp) {
    let alice = owner(app).await;
    let made = deploy(&alice, &sourced()).await;
    let good = run(&alice, AT, "It rains. Source: the window.").await;
    assert_eq!((&good["status"], &good["passed"]), (&json!("success"), &json!(true)));
    assert_eq!(good["verifier_id"], made["verifier_id"]);
    app.clock.advance_ms(1_000);
    let bad = run(&alice, AT, "It rains.").await;
    assert_eq!((&bad["status"], &bad["passed"]), (&json!("success"), &json!(false)));
    assert_eq!(bad["judges"][0]["verdict"], "not_met");
    assert!(bad["duration_ms"].is_u64() && text(&bad["created_at"]).ends_with('Z'), "{bad}");
    for run in [&good, &bad] {
        let path = format!("/v1/verifier-runs/{}", text(&run["verifier_run_id"]));
        assert_eq!(alice.get(&path).await.json(), *run);
    }
    let (good, bad) = (text(&good["verifier_run_id"]), text(&bad["verifier_run_id"]));
    assert_eq!(ids(&alice, AT).await, [bad, good]);
    assert_eq!(ids(&alice, "/v1/verifier-runs").await, [bad, good]);
    assert_eq!(ids(&alice, &format!("{AT}?verdict=passed")).await, [good]);
    assert_eq!(ids(&alice, &format!("{AT}?verdict=failed&version=1&purpose=run")).await, [bad]);
    assert_eq!(ids(&alice, &format!("{AT}?verdict=error")).await, [] as [&str; 0]);
    let page = alice.get(&format!("{AT}?version=1&limit=1")).await.json();
    assert_eq!(page["items"][0]["verifier_run_id"], bad);
    let cursor = text(&page["next_cursor"]);
    assert_eq!(ids(&alice, &format!("{AT}?version=1&limit=1&cursor={cursor}")).await, [good]);
    let id = text(&made["verifier_id"]);
    for verifier in [id, "names-a-source", &format!("{id}@1")] {
        let path = format!("/v1/verifier-runs?verifier={verifier}");
        assert_eq!(ids(&alice, &path).await, [bad, good], "{verifier}");
    }
}

#[tokio::test]
async fn the_reply_has_the_members_that_clients_read() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    deploy(&alice, &sourced()).await;
    let mut passed = run(&alice, AT, "It rains. Source: the window.").await;
    // The receipt covers how long it took.
    passed["receipt_id"] = json!("sha256:…");
    passed["judges"][0]["latency_ms"] = json!(0);
    assert_json_snapshot!(passed);
}

#[tokio::test]
async fn the_measurement_of_a_version_is_shown_with_it_and_its_runs() {
    let app = TestApp::new().await;
    let alice = app.admin();
    let made = deploy(&alice, &sourced()).await;
    let measurement = Measurement {
        id: "01a0c450-0000-7000-8000-000000000001".to_owned(),
        verifier_id: text(&made["verifier_id"]).to_owned(),
        version: 1,
        purpose: VerifierRunPurpose::Test,
        data_digest: "d".repeat(64),
        document: json!({
            "own": true, "judges": ["builtin/rules"], "replicas": 1, "families": [],
            "figures": { "accuracy": 0.9 },
        }),
        cases: json!([{ "inputs": { "answer": "secret" } }]),
        at: app.engine.clock().now(),
    };
    app.store
        .measurements()
        .add(&Behalf::from(&AccountId::admin()), &AccountId::admin(), &measurement)
        .await
        .unwrap();
    let shown = alice.get("/v1/verifiers/names-a-source").await.json();
    let ran = run(&alice, AT, "x").await;
    for body in [&shown, &ran] {
        let test = &body["measured"]["test"];
        assert_eq!(test["figures"], json!({ "accuracy": 0.9 }), "{body}");
        assert_eq!((&test["judges"], &test["replicas"]), (&json!(["builtin/rules"]), &json!(1)));
        assert_eq!(test["measurement_id"], measurement.id.as_str());
        assert_eq!(body["measured"]["attack"], Value::Null);
        assert!(!body.to_string().contains("secret"), "{body}");
    }
    let mut next = sourced();
    next["expected_version_token"] = made["version_token"].clone();
    deploy(&alice, &next).await;
    let shown = alice.get("/v1/verifiers/names-a-source").await.json();
    assert_eq!(shown["measured"], Value::Null, "the next version was not measured");
}

#[tokio::test]
async fn a_run_takes_the_version_that_is_pinned_wherever_it_is_pinned() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let first = deploy(&alice, &sourced()).await;
    let mut next = sourced();
    next["criterion"] = json!(r#"{"contains": {"field": "answer", "text": "Ref:"}}"#);
    next["expected_version_token"] = first["version_token"].clone();
    deploy(&alice, &next).await;
    let id = text(&first["verifier_id"]);
    let send = async |rest: &str, version: Value| {
        let body = json!({ "inputs": { "answer": "Source: x" }, "version": version });
        alice.post(&format!("/v1/verifiers/{rest}"), &body).await
    };
    for (rest, version, used) in [
        (format!("{id}/runs"), Value::Null, 2),
        (format!("{id}/runs"), json!(1), 1),
        (format!("{id}@1/runs"), Value::Null, 1),
        (format!("{id}@1/runs?version=1"), json!(1), 1),
        ("names-a-source/runs?version=1".to_owned(), Value::Null, 1),
        ("names-a-source@2/runs".to_owned(), json!(2), 2),
    ] {
        let run = send(&rest, version).await.json();
        assert_eq!((&run["version"], &run["passed"]), (&json!(used), &json!(used == 1)), "{rest}");
        assert_eq!(run["verifier_id"], id);
    }
    for (rest, version) in [
        (format!("{id}@1/runs"), json!(2)),
        (format!("{id}@1/runs?version=2"), Value::Null),
        (format!("{id}/runs?version=1"), json!(2)),
    ] {
        let reply = send(&rest, version).await;
        assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
        assert_eq!(reply.json()["field"], "version", "{rest}");
    }
    assert_problem(
        &send(&format!("{id}@3/runs"), Value::Null).await,
        StatusCode::NOT_FOUND,
        "not_found",
    );
    assert_eq!(ids(&alice, &format!("/v1/verifiers/{id}@1/runs")).await.len(), 4);
    assert_eq!(ids(&alice, &format!("/v1/verifier-runs?verifier={id}&version=2")).await.len(), 2);
}

#[tokio::test]
async fn invalid_inputs_are_refused_and_leave_no_run() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    deploy(&alice, &sourced()).await;
    let fits = json!({ "answer": "x" });
    let cases = [
        (json!({}), "inputs"),
        (json!({ "inputs": {} }), "inputs"),
        (json!({ "inputs": "x" }), "inputs"),
        (json!({ "inputs": { "answer": 1 } }), "inputs.answer"),
        (json!({ "inputs": { "answer": null } }), "inputs.answer"),
        (json!({ "inputs": { "answer": " " } }), "inputs.answer"),
        (json!({ "inputs": { "answer": "x", "[/more]": "y" } }), "inputs"),
        (json!({ "inputs": fits, "media_url": "https://example.com/a.png" }), "media_url"),
        (json!({ "inputs": fits, "media_url": 1 }), "media_url"),
        (json!({ "inputs": fits, "version": 0 }), "version"),
        (json!({ "inputs": fits, "version": "1" }), "version"),
        (json!({ "inputs": fits, "replicas": 2 }), "replicas"),
        (json!({ "inputs": fits, "judges": "a/b" }), "judges"),
        (json!({ "inputs": fits, "judges": ["a"] }), "judges"),
        (json!({ "inputs": fits, "judges": ["a/b", "a/c"] }), "replicas"),
        (json!({ "inputs": fits, "judges": vec!["a/b"; 6] }), "judges"),
        (json!({ "inputs": fits, "judges": ["a/b", "a/b", "a/b"] }), "judges"),
        (json!({ "inputs": fits, "judges": ["a/b"], "replicas": 3 }), "judges"),
        (json!({ "inputs": fits, "fresh": "yes" }), "fresh"),
        (json!({ "inputs": fits, "commit_first": 1 }), "commit_first"),
        (json!({ "inputs": fits, "timeout_ms": 300_001 }), "timeout_ms"),
        (json!({ "inputs": fits, "workflow_id": "" }), "workflow_id"),
        (json!({ "inputs": fits, "workflow_id": "a\u{0}" }), "workflow_id"),
        (json!({ "inputs": fits, "run_id": "x".repeat(201) }), "run_id"),
        (json!({ "inputs": fits, "workflow_id": "a", "skill_id": "b" }), "skill_id"),
        (json!({ "inputs": fits, "workflow_version": 1, "skill_version": 2 }), "skill_version"),
    ];
    for (body, field) in cases {
        let reply = alice.post(AT, &body).await;
        assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
        assert_eq!(reply.json()["field"], field, "{body}: {}", reply.text());
    }
    assert_eq!(ids(&alice, AT).await, [] as [&str; 0]);
    assert_eq!(app.admin().get("/v1/rounds").await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_judge_that_cannot_be_asked_is_neither_a_pass_nor_a_fail() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    deploy(&alice, &claims()).await;
    let inputs = json!({ "response": "a", "source": "b" });
    let path = "/v1/verifiers/claims-cite-source/runs";
    let reply = alice.post(path, &json!({ "inputs": inputs })).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    let run = reply.json();
    assert_eq!((&run["status"], &run["passed"]), (&json!("error"), &Value::Null), "{run}");
    assert_eq!(run["error_code"], "verifier_unavailable");
    assert!(text(&run["error_message"]).contains("anthropic"), "{run}");
    assert_eq!(run["judges"][0]["error"]["code"], "judge_unavailable");
    assert_eq!(ids(&alice, "/v1/verifier-runs?verdict=error").await.len(), 1);
    assert_eq!(ids(&alice, "/v1/verifier-runs?verdict=passed").await.len(), 0);
}

#[tokio::test]
async fn verifiers_of_the_platform_are_run_by_everybody_and_named_by_their_alias() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let workflow = json!({ "name": "n", "description": "d", "outcome": "o", "body": "b" });
    for (name, inputs) in [
        ("workflow-design-qa", workflow.clone()),
        ("skill-design-qa", workflow),
        ("safety-block", json!({ "content": "c" })),
        ("safety-advisory", json!({ "content": "c" })),
    ] {
        let path = format!("/v1/verifiers/system:{name}/runs");
        let reply = alice.post(&path, &json!({ "inputs": inputs })).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
        let run = reply.json();
        let known = name.replace("skill-", "workflow-");
        assert_eq!(run["verifier_id"], format!("system:{known}"));
        assert_eq!(run["version"], 1);
        // Without a default judge nobody decides.
        assert_eq!(run["error_code"], "verifier_unavailable", "{run}");
        assert!(text(&run["error_message"]).contains("judges.default_model"), "{run}");
        let wrong = alice.post(&path, &json!({ "inputs": { "text": "c" } })).await;
        assert_eq!(wrong.json()["field"], "inputs");
        assert!(!ids(&alice, &path).await.is_empty());
    }
    assert_eq!(ids(&alice, "/v1/verifier-runs?verifier=system:skill-design-qa").await.len(), 2);
    let pinned = alice.post("/v1/verifiers/system:safety-block@2/runs", &json!({})).await;
    assert_problem(&pinned, StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn the_provenance_of_a_run_is_kept_under_both_names() {
    let app = TestApp::new().await;
    let alice = app
        .caller(
            "alice",
            &[
                Scope::VerifiersRead,
                Scope::VerifiersWrite,
                Scope::VerifiersRun,
                Scope::WorkflowsWrite,
            ],
        )
        .await;
    deploy(&alice, &sourced()).await;
    let body = json!({ "name": "r", "description": "d", "body": "b" });
    let workflow = alice.post("/v1/workflows", &body).await.json()["id"].clone();
    let inputs = json!({ "answer": "x" });
    for body in [
        json!({ "inputs": inputs, "workflow_id": workflow, "workflow_version": 1, "workflow_ref": "r", "run_id": "ci-7" }),
        json!({ "inputs": inputs, "skill_id": workflow, "skill_version": 1, "skill_ref": "r", "run_id": "ci-7" }),
    ] {
        let run = alice.post(AT, &body).await.json();
        for (name, value) in [
            ("workflow_id", workflow.clone()),
            ("skill_id", workflow.clone()),
            ("workflow_version", json!(1)),
            ("skill_version", json!(1)),
            ("workflow_ref", json!("r")),
            ("skill_ref", json!("r")),
            ("run_id", json!("ci-7")),
        ] {
            assert_eq!(run[name], value, "{name}");
        }
    }
    let listed = alice.get(AT).await.json();
    assert_eq!(listed["items"][0]["skill_id"], workflow);
    let plain = run(&alice, AT, "x").await;
    assert!(plain.get("workflow_id").is_none() && plain.get("run_id").is_none(), "{plain}");
}

#[tokio::test]
async fn a_repeated_request_is_one_run() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    deploy(&alice, &sourced()).await;
    let body = json!({ "inputs": { "answer": "x" } });
    let send = async |path: &str| -> TestReply {
        alice.post_with(path, &body, &[("idempotency-key", "k")]).await
    };
    let first = send(AT).await;
    app.clock.advance_ms(5_000);
    let second = send(AT).await;
    assert_eq!((first.status, second.status), (StatusCode::CREATED, StatusCode::CREATED));
    assert_eq!(first.text(), second.text());
    assert_eq!(second.headers["idempotent-replayed"], "true");
    assert_eq!(ids(&alice, AT).await.len(), 1);
    let other = send(&format!("{AT}?version=1")).await;
    assert_problem(&other, StatusCode::CONFLICT, "idempotency_mismatch");
}

#[tokio::test]
async fn another_accounts_runs_and_verifiers_look_like_missing_ones() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let bob = app.caller("bob", OWNER).await;
    let made = deploy(&alice, &sourced()).await;
    let id = text(&made["verifier_id"]);
    let hers = run(&alice, AT, "x").await;
    let shown = format!("/v1/verifier-runs/{}", text(&hers["verifier_run_id"]));
    let (at, body) = (format!("/v1/verifiers/{id}/runs"), json!({ "inputs": { "answer": "x" } }));
    let answers = async || {
        let mut answers = vec![bob.get(&shown).await, bob.post(&at, &body).await];
        // The shape of the inputs tells nothing either.
        answers.push(bob.post(&at, &json!({ "inputs": {} })).await);
        for answer in &answers {
            assert_problem(answer, StatusCode::NOT_FOUND, "not_found");
        }
        answers.iter().map(TestReply::text).collect::<Vec<String>>()
    };
    let foreign = answers().await;
    assert_eq!(ids(&bob, "/v1/verifier-runs").await, [] as [&str; 0]);
    assert_eq!(ids(&bob, &format!("/v1/verifier-runs?verifier={id}")).await, [] as [&str; 0]);
    alice.delete(&format!("/v1/verifiers/{id}/permanent")).await;
    assert_eq!(answers().await, foreign);
    assert_problem(&alice.get(&shown).await, StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn a_revoked_verifier_cannot_run_and_its_runs_stay() {
    revocation(&TestApp::new().await).await;
}

/// Runs that outlive their verifier, on whatever store.
pub(crate) async fn revocation(app: &TestApp) {
    let alice = owner(app).await;
    let made = deploy(&alice, &sourced()).await;
    let id = text(&made["verifier_id"]);
    let before = run(&alice, AT, "x").await;
    alice.delete("/v1/verifiers/names-a-source").await;
    let reply = alice.post(AT, &json!({ "inputs": { "answer": "x" } })).await;
    assert_problem(&reply, StatusCode::NOT_FOUND, "not_found");
    let kept = text(&before["verifier_run_id"]);
    assert_eq!(ids(&alice, &format!("/v1/verifier-runs?verifier={id}")).await, [kept]);
    let shown = alice.get(&format!("/v1/verifier-runs/{kept}")).await.json();
    assert_eq!(shown["reasoning"], before["reasoning"]);
    alice.delete(&format!("/v1/verifiers/{id}/permanent")).await;
    assert_eq!(ids(&alice, "/v1/verifier-runs").await, [] as [&str; 0]);
}

#[tokio::test]
async fn an_export_has_every_run_once_and_comes_in_lines() {
    let app = TestApp::new().await;
    let alice = app.admin();
    deploy(&alice, &sourced()).await;
    let mut expected = Vec::new();
    for number in 0..205 {
        app.clock.advance_ms(10);
        let order = request(&format!("answer {number}"));
        // Without HTTP, because there are so many.
        let made =
            app.engine.verifier_run(&admin_caller(), order, RoundWatcher::nobody(), None).await;
        expected.insert(0, made.unwrap().run.ticket.id);
    }
    let lines = async |path: &str, accept: &str| {
        let reply = alice.send("GET", path, Body::empty(), &[("accept", accept)]).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
        assert_eq!(reply.headers["content-type"], "application/x-ndjson");
        let lines = reply.text();
        lines
            .lines()
            .map(|line| {
                text(&serde_json::from_str::<Value>(line).unwrap()["verifier_run_id"]).to_owned()
            })
            .collect::<Vec<_>>()
    };
    let all = lines("/v1/verifier-runs?limit=3", "application/x-ndjson").await;
    assert_eq!(all, expected);
    let page = alice.get("/v1/verifier-runs?limit=200").await.json();
    let path = format!("/v1/verifier-runs?cursor={}", text(&page["next_cursor"]));
    assert_eq!(lines(&path, "application/x-ndjson;q=1").await, expected[200..]);
    let none = lines("/v1/verifier-runs?verdict=passed", "application/x-ndjson").await;
    assert_eq!(none, [] as [&str; 0]);
    let accept = [("accept", "application/json, application/x-ndjson")];
    let page = alice.send("GET", "/v1/verifier-runs", Body::empty(), &accept).await;
    assert_eq!(page.json()["items"].as_array().unwrap().len(), 50);
}

#[tokio::test]
async fn an_invalid_export_is_refused_before_it_starts() {
    let app = TestApp::new().await;
    let runner = app.caller("alice", &[Scope::VerifiersRun]).await;
    let accept = [("accept", "application/x-ndjson")];
    let reply = runner.send("GET", "/v1/verifier-runs", Body::empty(), &accept).await;
    assert_problem(&reply, StatusCode::FORBIDDEN, "forbidden");
    let path = "/v1/verifier-runs?verifier=nothing";
    let reply = owner(&app).await.send("GET", path, Body::empty(), &accept).await;
    assert_problem(&reply, StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn without_a_judge_the_criterion_must_be_rules() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let reply = alice.post("/v1/verifiers", &claims_with("model_settings", Value::Null)).await;
    assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
    assert_eq!(reply.json()["field"], "criterion", "{}", reply.text());
    assert!(reply.text().contains("model_settings.model"), "{}", reply.text());
    let mut rules = sourced();
    rules["model_settings"] = Value::Null;
    let made = deploy(&alice, &rules).await;
    let shown = alice.get("/v1/verifiers/names-a-source").await.json();
    assert_eq!(shown["judge_model_config"]["model"], "builtin/rules");
    assert_eq!(shown["config_hash"], made["config_hash"]);
    rules["name"] = json!("other");
    rules["model_settings"] = json!({ "model": "builtin/magic" });
    let reply = alice.post("/v1/verifiers", &rules).await;
    assert_eq!(reply.json()["field"], "model_settings.model", "{}", reply.text());
    rules["model_settings"] = Value::Null;
    rules["criterion"] = json!(r#"{"contains": {"field": "other", "text": "x"}}"#);
    let reply = alice.post("/v1/verifiers", &rules).await;
    assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
    assert!(text(&reply.json()["field"]).starts_with("criterion"), "{}", reply.text());
}
