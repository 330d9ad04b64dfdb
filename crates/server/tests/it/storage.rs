//! What is kept of rounds, how much an account may store, and what goes when it is old.

use std::time::Duration;

use http::StatusCode;
use jurat_core::caller::Scope;
use jurat_engine::{Alone, Limits, StorageTerms};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{gated, says_valid},
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
async fn a_round_says_what_was_asked() {
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
    // Nobody else sees it, nor erases it.
    let bob = app.caller("bob", &[Scope::RoundsRead, Scope::RoundsCreate]).await;
    let at = format!("/v1/rounds/{round}/payload");
    assert_eq!(bob.delete(&at).await.status, StatusCode::NOT_FOUND);
    assert_eq!(shown(&app, &round).await["request"], body["request"]);
}

#[tokio::test]
async fn what_was_asked_is_one_line_of_bounded_length() {
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
async fn what_was_asked_is_not_kept_where_the_operator_says_so() {
    let storage = StorageTerms { keeps_requests: false, ..StorageTerms::default() };
    let app = TestApp::with_limits(Limits { storage, ..Limits::default() }).await;
    let _fakes = app.executors([says_valid()]).await;
    let body = shown(&app, &validated(&app, "a secret").await).await;
    assert_eq!((body.get("request"), &body["asked"]), (None, &Value::Null));
}

#[tokio::test]
async fn what_was_asked_and_said_is_erased_on_demand() {
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
    // What is checked of it says that nothing is missing that must be there.
    let entries = admin.get("/v1/doctor/entries").await.json();
    assert_eq!(entries["problems"], json!([]), "{entries}");
}

#[tokio::test]
async fn an_account_stores_no_more_than_its_quota() {
    let storage = StorageTerms { quota_bytes: 20_000, ..StorageTerms::default() };
    let app = TestApp::with_limits(Limits { storage, ..Limits::default() }).await;
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
    // Others go on, and so does the operator.
    let bob = app.caller("bob", &scopes).await;
    assert!(bob.post("/v1/workflows", &save("his")).await.status.is_success());
    for number in 0..5 {
        let name = format!("admin{number}");
        assert!(app.admin().post("/v1/workflows", &save(&name)).await.status.is_success());
    }
}

#[tokio::test]
async fn what_is_old_is_removed_and_decisions_stay() {
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
    // The answer under the key is gone, so the request is a new one.
    let anew = admin.post_with("/api/v3/validate", &body, &key).await;
    assert_ne!(anew.json()["round_id"], old.as_str());
    let entries = admin.get("/v1/doctor/entries").await.json();
    assert_eq!(entries["problems"], json!([]), "{entries}");
    let alice = app.caller("alice", &Scope::OWN).await;
    assert_eq!(alice.post("/v1/prune", &json!({})).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_node_removes_what_is_old_by_itself() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let old = validated(&app, "old").await;
    app.clock.advance_ms(91 * DAY_MS);
    app.start(Alone::Yes).await;
    let gone = async {
        while !shown(&app, &old).await["asked"].is_null() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(15), gone).await.unwrap();
    assert_eq!(shown(&app, &old).await["verdict"], "VALID", "the decision stays");
    app.engine.shutdown().await;
}
