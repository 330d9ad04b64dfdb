//! Stored payloads of rounds, storage quotas, and pruning.

use std::time::Duration;

use axum::body::Body;
use http::StatusCode;
use jurat_core::{
    account::{caller::Scope, key::ApiKey},
    id::AccountId,
};
use jurat_engine::{EngineLimits, RunWorkerSettings, SoleNode, StorageTerms};
use jurat_store::Behalf;
use jurat_testkit::{
    app::{TestApp, TestCaller, TestReply, key_record},
    fake_executor::{answers, gated, says_valid},
};
use serde_json::{Value, json};

const DAY_MS: i64 = 86_400_000;

async fn validated(app: &TestApp, claim: &str) -> String {
    let reply = app.admin().post("/api/v3/validate", &json!({ "claim": claim })).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()["round_id"].as_str().unwrap().to_owned()
}

async fn shown(app: &TestApp, round: &str) -> Value {
    app.admin().get(&format!("/v1/rounds/{round}")).await.json()
}

#[tokio::test]
async fn a_round_shows_its_request() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let round = validated(&app, "two and\ntwo are four").await;
    let list = app.admin().get("/v1/rounds").await.json();
    assert_eq!(list["items"][0]["asked"], "two and two are four");
    assert_eq!(list["items"][0].get("request"), None, "lists are short");
    let body = shown(&app, &round).await;
    assert_eq!(body["asked"], "two and two are four");
    assert_eq!(body["request"], json!({ "claim": "two and\ntwo are four" }));
    let digest = jurat_core::canonical::digest_json(&body["request"]);
    assert_eq!(body["request_digest"], digest, "the entry commits to it");
    // Nobody else can read or erase it.
    let bob = app.caller("bob", &[Scope::RoundsRead, Scope::RoundsCreate]).await;
    let at = format!("/v1/rounds/{round}/payload");
    assert_eq!(bob.delete(&at).await.status, StatusCode::NOT_FOUND);
    assert_eq!(shown(&app, &round).await["request"], body["request"]);
}

#[tokio::test]
async fn the_summary_of_a_request_is_one_line_of_limited_length() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let claim = "one\ntwo ".repeat(1_000);
    let body = shown(&app, &validated(&app, &claim).await).await;
    let line = body["asked"].as_str().unwrap();
    assert!(line.starts_with("one two one two ") && line.ends_with('…'), "{line}");
    assert!(line.chars().count() <= 120, "{line}");
    assert_eq!(body["request"]["claim"], claim, "the request itself is whole");
}

#[tokio::test]
async fn requests_are_not_kept_if_the_operator_says_so() {
    let storage = StorageTerms { keeps_requests: false, ..StorageTerms::default() };
    let app = TestApp::with_limits(EngineLimits { storage, ..EngineLimits::default() }).await;
    let _fakes = app.executors([says_valid()]).await;
    let body = shown(&app, &validated(&app, "a secret").await).await;
    assert_eq!((body.get("request"), &body["asked"]), (None, &Value::Null));
}

#[tokio::test]
async fn request_and_answers_are_erased_on_demand() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let admin = app.admin();
    let body = json!({ "claim": "a secret" });
    let prefer = [("prefer", "respond-async")];
    let begun = admin.post_with("/api/v3/validate", &body, &prefer).await.json();
    assert_eq!(begun["asked"], "a secret");
    let round = begun["round_id"].as_str().unwrap().to_owned();
    let at = format!("/v1/rounds/{round}/payload");
    assert_eq!(admin.delete(&at).await.status, StatusCode::CONFLICT, "it has not ended");
    fake.release();
    app.engine.drain().await;
    let before = shown(&app, &round).await;
    let erased = admin.delete(&at).await;
    assert_eq!(erased.status, StatusCode::OK, "{}", erased.text());
    let after = shown(&app, &round).await;
    assert_eq!(after["erased_at"], erased.json()["erased_at"]);
    assert_eq!((after.get("request"), &after["asked"]), (None, &Value::Null));
    for kept in ["verdict", "receipt_id", "request_digest", "agreement"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    let reader = app.caller("reader", &[Scope::RoundsRead]).await;
    assert_eq!(reader.delete(&at).await.status, StatusCode::FORBIDDEN);
    // The check-up reports that nothing required is missing.
    let entries = admin.get("/v1/doctor/entries").await.json();
    assert_eq!(entries["problems"], json!([]), "{entries}");
}

#[tokio::test]
async fn an_account_stores_no_more_than_its_quota() {
    let storage = StorageTerms { quota_bytes: 20_000, ..StorageTerms::default() };
    let app = TestApp::with_limits(EngineLimits { storage, ..EngineLimits::default() }).await;
    let scopes = [Scope::WorkflowsWrite, Scope::WorkflowsRead, Scope::RoundsCreate];
    let alice = app.caller("alice", &scopes).await;
    let save = |name: &str| {
        let body = format!("---\nname: {name}\n---\n{}", "x".repeat(6_000));
        json!({ "name": name, "description": "d", "outcome": "o", "body": body })
    };
    let mut refused = None;
    for number in 0..10 {
        let reply = alice.post("/v1/workflows", &save(&format!("w{number}"))).await;
        if !reply.status.is_success() {
            refused = Some(reply);
            break;
        }
    }
    let refused = refused.expect("it ends somewhere");
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refused.json()["code"], "quota_exceeded");
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("its quota is 20000"), "{detail}");
    let round = alice.post("/api/v3/validate", &json!({ "claim": "x" })).await;
    assert_eq!(round.json()["code"], "quota_exceeded");
    // Others continue, and so does the operator.
    let bob = app.caller("bob", &scopes).await;
    assert!(bob.post("/v1/workflows", &save("his")).await.status.is_success());
    for number in 0..5 {
        let name = format!("admin{number}");
        assert!(app.admin().post("/v1/workflows", &save(&name)).await.status.is_success());
    }
}

#[tokio::test]
async fn old_data_is_removed_and_decisions_stay() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let admin = app.admin();
    let key = [("idempotency-key", "once")];
    let body = json!({ "claim": "old" });
    let first = admin.post_with("/api/v3/validate", &body, &key).await.json();
    let old = first["round_id"].as_str().unwrap().to_owned();
    app.clock.advance_ms(89 * DAY_MS);
    let young = validated(&app, "young").await;
    let replayed = admin.post_with("/api/v3/validate", &body, &key).await;
    assert_eq!(replayed.json()["round_id"], old.as_str());
    app.clock.advance_ms(2 * DAY_MS);

    let dry = admin.post("/v1/prune", &json!({ "dry_run": true })).await.json();
    assert_eq!((&dry["rounds"], &dry["idempotency_answers"]), (&json!(1), &json!(1)), "{dry}");
    assert_eq!(shown(&app, &old).await["asked"], "old", "it was a dry run");
    let pruned = admin.post("/v1/prune", &json!({})).await.json();
    assert_eq!((&pruned["rounds"], &pruned["dry_run"]), (&json!(1), &json!(false)));
    let again = admin.post("/v1/prune", &json!({})).await.json();
    assert_eq!((&again["rounds"], &again["accounts"]), (&json!(0), &json!(0)));

    let gone = shown(&app, &old).await;
    assert_eq!((&gone["asked"], &gone["verdict"]), (&Value::Null, &json!("VALID")));
    assert_eq!(gone["receipt_id"], first["receipt_id"]);
    assert_eq!(shown(&app, &young).await["asked"], "young");
    // The reply under the key is gone, so the request is a new one.
    let anew = admin.post_with("/api/v3/validate", &body, &key).await;
    assert_ne!(anew.json()["round_id"], old.as_str());
    let entries = admin.get("/v1/doctor/entries").await.json();
    assert_eq!(entries["problems"], json!([]), "{entries}");
    let alice = app.caller("alice", &Scope::OWN).await;
    assert_eq!(alice.post("/v1/prune", &json!({})).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_node_prunes_old_data_by_itself() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let old = validated(&app, "old").await;
    app.clock.advance_ms(91 * DAY_MS);
    app.start(SoleNode::Yes).await;
    let gone = async {
        while !shown(&app, &old).await["asked"].is_null() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(15), gone).await.unwrap();
    assert_eq!(shown(&app, &old).await["verdict"], "VALID", "the decision stays");
    app.engine.shutdown().await;
}
async fn with_quota(quota_bytes: u64) -> TestApp {
    let storage = StorageTerms { quota_bytes, ..StorageTerms::default() };
    TestApp::with_limits(EngineLimits { storage, ..EngineLimits::default() }).await
}

fn workflow(name: &str, size: usize) -> Value {
    let body = format!("# Do\n{}", "x".repeat(size));
    json!({ "name": name, "description": "d", "outcome": "o", "body": body })
}

/// Stores until the quota is reached, and returns the first workflow.
async fn filled(caller: &TestCaller<'_>) -> String {
    for number in 0..20 {
        let reply = caller.post("/v1/workflows", &workflow(&format!("w{number}"), 5_000)).await;
        if !reply.status.is_success() {
            assert_eq!(reply.json()["code"], "quota_exceeded", "{}", reply.text());
            return "w0".to_owned();
        }
    }
    panic!("it never ends")
}

#[track_caller]
fn assert_full(reply: &TestReply) {
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", reply.text());
    assert_eq!(reply.json()["code"], "quota_exceeded");
}

#[tokio::test]
async fn an_editor_cannot_fill_the_account_of_the_owner() {
    let app = with_quota(20_000).await;
    let (ann, bob) = (app.caller("ann", &Scope::OWN).await, app.caller("bob", &Scope::OWN).await);
    for (caller, handle) in [(&ann, "ann"), (&bob, "bob")] {
        let claim = Body::from(json!({ "handle": handle }).to_string());
        assert!(caller.send("PATCH", "/v1/me", claim, &[]).await.status.is_success());
    }
    let mut saved = ann.post("/v1/workflows", &workflow("report", 5_000)).await.json();
    let id = saved["id"].as_str().unwrap().to_owned();
    let grant = json!({ "grantee_email_or_at_team_handle": "@bob", "role": "edit" });
    let granted = ann.post(&format!("/v1/workflows/{id}/grants"), &grant).await;
    assert_eq!(granted.status, StatusCode::CREATED, "{}", granted.text());
    let accepted = bob.post(&format!("/v1/shares/{id}/accept"), &json!({})).await;
    assert!(accepted.status.is_success(), "{}", accepted.text());
    let mut last = None;
    for _ in 0..10 {
        let mut next = workflow("report", 5_000);
        next["id"] = json!(id);
        next["expected_version_token"] = saved["version_token"].clone();
        let reply = bob.post("/v1/workflows", &next).await;
        if !reply.status.is_success() {
            last = Some(reply);
            break;
        }
        saved = reply.json();
    }
    let last = last.expect("it ends somewhere");
    assert_full(&last);
    let detail = last.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.contains("the owner of the workflow has used up their storage quota"),
        "{detail}"
    );
    assert!(!detail.contains("20000"), "how much the owner has is nobody else's: {detail}");
    let patch = json!({
        "files": [{ "path": "a.md", "content": "a" }],
        "expected_version_token": saved["version_token"],
    });
    let path = format!("/v1/workflows/{id}/files");
    let patched = bob.send("PATCH", &path, Body::from(patch.to_string()), &[]).await;
    assert_full(&patched);
    // The editor's own workflow counts for the editor.
    assert!(bob.post("/v1/workflows", &workflow("own", 5_000)).await.status.is_success());
}

#[tokio::test]
async fn an_idempotency_record_needs_room_unless_the_write_frees_storage() {
    let app = with_quota(20_000).await;
    let ann = app.caller("ann", &Scope::OWN).await;
    let key = [("idempotency-key", "early")];
    let early = ann.post_with("/v1/workflows", &workflow("early", 1), &key).await;
    assert_eq!(early.status, StatusCode::CREATED, "{}", early.text());
    let first = filled(&ann).await;
    // A repeated request is answered again.
    let again = ann.post_with("/v1/workflows", &workflow("early", 1), &key).await;
    assert_eq!((again.status, again.json()), (early.status, early.json()));
    let claim = || Body::from(json!({ "handle": "ann" }).to_string());
    let noted = ann.send("PATCH", "/v1/me", claim(), &[("idempotency-key", "claim")]).await;
    assert_full(&noted);
    let key = [("idempotency-key", "delete")];
    let path = format!("/v1/workflows/{first}");
    let deleted = ann.send("DELETE", &path, Body::empty(), &key).await;
    assert!(deleted.status.is_success(), "{}", deleted.text());
    let noted = ann.send("PATCH", "/v1/me", claim(), &[("idempotency-key", "claim")]).await;
    assert!(noted.status.is_success(), "{}", noted.text());
}

#[tokio::test]
async fn revoking_the_same_key_again_under_new_keys_does_not_fill_the_store() {
    let storage =
        StorageTerms { quota_bytes: 20_000, reserve_bytes: 8_000, ..StorageTerms::default() };
    let app = TestApp::with_limits(EngineLimits { storage, ..EngineLimits::default() }).await;
    let ann = app.caller("ann", &Scope::OWN).await;
    let made = ann.post("/v1/api-keys", &json!({ "name": "spare" })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    filled(&ann).await;
    let revoke = async |key: &str| {
        let headers = [("idempotency-key", key)];
        ann.send("DELETE", "/v1/api-keys/spare", Body::empty(), &headers).await
    };
    let first = revoke("0").await;
    assert!(first.status.is_success(), "a full account can revoke: {}", first.text());
    let mut refused = None;
    for number in 1..100 {
        let reply = revoke(&number.to_string()).await;
        if !reply.status.is_success() {
            refused = Some(reply);
            break;
        }
    }
    assert_full(&refused.expect("the reserve ends"));
    let plain = ann.send("DELETE", "/v1/api-keys/spare", Body::empty(), &[]).await;
    assert!(plain.status.is_success(), "without a key nothing is stored: {}", plain.text());
}

fn run(id: &str) -> Value {
    let agent = json!({ "agent_id": "a", "executor": "s1", "prompt": "a secret" });
    json!({ "run_id": id, "agents": [agent], "retry": { "max_attempts": 1 } })
}

#[tokio::test]
async fn neither_a_retry_nor_a_task_call_exceeds_the_quota() {
    let app = with_quota(40_000).await;
    let says = answers(json!({ "answer": "yes" })).task_types(&["swarm"]);
    let _fakes = app.executors([says]).await;
    let ann = app.caller("ann", &Scope::OWN).await;
    for id in ["r1", "r2", "r3"] {
        let reply = ann.post("/v1/runs", &run(id)).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    }
    for (id, verb) in [("r1", "cancel"), ("r2", "kickoff")] {
        let reply = ann.post(&format!("/v1/runs/{id}/{verb}"), &json!({})).await;
        assert!(reply.status.is_success(), "{}", reply.text());
    }
    filled(&ann).await;
    assert_full(&ann.post("/v1/runs/r1/retry", &json!({})).await);
    assert_full(&ann.post("/v1/runs/r3/kickoff", &json!({})).await);
    assert!(ann.post("/v1/runs/r3/cancel", &json!({})).await.status.is_success());
    // The step of the run that was started before finds no room for its task.
    app.start(SoleNode::Yes).await;
    let poll = Duration::from_millis(20);
    app.engine.spawn_run_worker(RunWorkerSettings { poll, ..RunWorkerSettings::of_a_node(8) });
    let run = ann.get("/v1/runs/r2?wait=20").await.json();
    assert_eq!(run["status"], "FAILED", "{run}");
    let error = run["steps"][0]["error"].as_str().unwrap();
    assert!(error.contains("its quota is 40000"), "{error}");
    assert_eq!(ann.get("/v1/tasks").await.json()["items"], json!([]));
    app.engine.stop_rounds();
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_pruned_run_is_a_skeleton_and_cannot_be_retried() {
    let app = TestApp::new().await;
    let says = answers(json!({ "answer": "yes" })).task_types(&["swarm"]);
    let _fakes = app.executors([says]).await;
    let ann = app.caller("ann", &Scope::OWN).await;
    assert_eq!(ann.post("/v1/runs", &run("r1")).await.status, StatusCode::CREATED);
    assert!(ann.post("/v1/runs/r1/cancel", &json!({})).await.status.is_success());
    let before = ann.get("/v1/runs/r1").await.json();
    app.clock.advance_ms(91 * DAY_MS);
    let pruned = app.admin().post("/v1/prune", &json!({})).await.json();
    assert_eq!(pruned["runs"], 1, "{pruned}");
    assert_eq!(ann.get("/v1/runs/r1").await.json(), before, "who and how far stays");
    assert_eq!(ann.get("/v1/runs/r1/events").await.json()["items"], json!([]));
    let retried = ann.post("/v1/runs/r1/retry", &json!({})).await;
    assert_eq!(retried.status, StatusCode::CONFLICT, "{}", retried.text());
    assert!(retried.text().contains("its prompts were pruned"), "{}", retried.text());
    // The same spec is still the same run.
    assert_eq!(ann.post("/v1/runs", &run("r1")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_pruned_task_cannot_be_disputed() {
    let app = TestApp::new().await;
    let _fakes = app.executors([answers(json!({ "answer": "yes" })).task_types(&["swarm"])]).await;
    let ann = app.caller("ann", &Scope::OWN).await;
    let contract = ann.get("/v1/tasks/sample").await.json();
    let id = contract["task_id"].as_str().unwrap().to_owned();
    let submitted = ann.post("/v1/tasks", &contract).await;
    assert_eq!(submitted.status, StatusCode::CREATED, "{}", submitted.text());
    assert!(ann.post(&format!("/v1/tasks/{id}/cancel"), &json!({})).await.status.is_success());
    app.clock.advance_ms(91 * DAY_MS);
    let pruned = app.admin().post("/v1/prune", &json!({})).await.json();
    assert_eq!(pruned["tasks"], 1, "{pruned}");
    let task = ann.get(&format!("/v1/tasks/{id}")).await.json();
    assert_eq!((&task["contract"], &task["state"]), (&Value::Null, &json!("cancelled")));
    let complained =
        ann.post(&format!("/v1/tasks/{id}/feedback"), &json!({ "reason": "bad" })).await;
    assert!(complained.text().contains("its contract was pruned"), "{}", complained.text());
    assert_eq!(ann.post("/v1/tasks", &contract).await.status, StatusCode::OK);
}

#[tokio::test]
async fn nothing_is_written_for_accounts_without_old_data() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    validated(&app, "young").await;
    let writes = async || {
        let figures = app.admin().get("/metrics").await.text();
        let count = "jurat_store_write_duration_seconds_count{write=\"prune\"}";
        figures.lines().find(|line| line.starts_with(count)).map(str::to_owned)
    };
    app.admin().post("/v1/prune", &json!({})).await;
    assert_eq!(writes().await, None);
    app.clock.advance_ms(91 * DAY_MS);
    app.admin().post("/v1/prune", &json!({})).await;
    assert!(writes().await.is_some_and(|line| line.ends_with(" 1")));
}

#[tokio::test]
async fn the_operators_live_key_is_found_behind_a_thousand_that_have_ended() {
    let app = TestApp::new().await;
    assert!(app.engine.key_has_admin().await.unwrap());
    let admin = AccountId::admin();
    for number in 0..1_001 {
        let key = ApiKey::new(1_000 + number, [5, 5]);
        let mut record = key_record(
            &key,
            admin.clone(),
            &[Scope::Admin],
            jurat_core::time::Timestamp::from_micros(1),
        );
        record.key.revoked_at = Some(record.key.created_at);
        app.store.keys().put(&Behalf::Platform, &record).await.unwrap();
    }
    assert!(app.engine.key_has_admin().await.unwrap());
}
