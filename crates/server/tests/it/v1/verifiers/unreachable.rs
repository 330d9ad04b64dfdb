//! What cannot be reached does not exist, in the same words.

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::app::{TestApp, TestCaller, TestReply};
use serde_json::json;

use super::{OWNER, assert_problem, claims, claims_with, deploy, owner, text};

/// Every route that leads to one verifier.
const ROUTES: &[(&str, &str)] = &[
    ("GET", ""),
    ("GET", "?version=1"),
    ("GET", "@1"),
    ("GET", "/versions"),
    ("GET", "/runs"),
    ("DELETE", ""),
    ("DELETE", "/permanent"),
];

async fn send(caller: &TestCaller<'_>, method: &str, path: &str) -> TestReply {
    caller.send(method, path, Body::empty(), &[]).await
}

#[tokio::test]
async fn another_accounts_verifier_looks_like_a_missing_one() {
    masking(&TestApp::new().await).await;
}

/// Two accounts, on whatever store.
pub(crate) async fn masking(app: &TestApp) {
    let alice = owner(app).await;
    let bob = app.caller("bob", OWNER).await;
    let made = deploy(&alice, &claims()).await;
    let id = text(&made["verifier_id"]).to_owned();
    let answers = async || {
        let mut answers = Vec::new();
        for (method, rest) in ROUTES {
            let reply = send(&bob, method, &format!("/v1/verifiers/{id}{rest}")).await;
            assert_problem(&reply, StatusCode::NOT_FOUND, "not_found");
            answers.push(reply.text());
        }
        for rest in ["", "@1", "/versions", "/runs"] {
            let reply = bob.get(&format!("/v1/verifiers/claims-cite-source{rest}")).await;
            assert_problem(&reply, StatusCode::NOT_FOUND, "not_found");
            answers.push(reply.text());
        }
        answers
    };
    let foreign = answers().await;
    assert_eq!(alice.get(&format!("/v1/verifiers/{id}")).await.status, StatusCode::OK);
    let revoked = alice.delete(&format!("/v1/verifiers/{id}")).await;
    assert_eq!(revoked.status, StatusCode::OK);
    assert_eq!(answers().await, foreign, "revoked");
    alice.delete(&format!("/v1/verifiers/{id}/permanent")).await;
    assert_eq!(answers().await, foreign, "absent");
    assert_eq!(bob.get("/v1/verifiers").await.json()["items"], json!([]));
}

#[tokio::test]
async fn verifiers_of_the_platform_are_neither_listed_nor_shown_nor_removed() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    assert_eq!(alice.get("/v1/verifiers").await.json()["items"], json!([]));
    for name in ["workflow-design-qa", "skill-design-qa", "safety-block", "safety-advisory"] {
        for (method, rest) in ROUTES.iter().filter(|(_, rest)| *rest != "/runs") {
            let there = send(&alice, method, &format!("/v1/verifiers/system:{name}{rest}")).await;
            assert_problem(&there, StatusCode::NOT_FOUND, "not_found");
            let absent = send(&alice, method, &format!("/v1/verifiers/system:x{rest}")).await;
            let words = absent.text().replace("system:x", &format!("system:{name}"));
            assert_eq!(there.text(), words, "{method} {rest}");
        }
        // Who ran one may read what came of it.
        let runs = alice.get(&format!("/v1/verifiers/system:{name}/runs")).await.json();
        assert_eq!(runs["items"], json!([]));
    }
    let unknown = alice.get("/v1/verifiers/system:nothing/runs").await;
    assert_problem(&unknown, StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn an_invalid_name_is_not_found() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    for name in ["Claims", "a%20b", "a_b", "system:", "a%5B/b%5D", "%5Bx%5D", "é"] {
        let reply = alice.get(&format!("/v1/verifiers/{name}")).await;
        assert_eq!(reply.json()["code"], "not_found", "{name}: {}", reply.text());
    }
    for name in ["claims@", "claims@0", "claims@x", "claims@4294967296"] {
        let reply = alice.get(&format!("/v1/verifiers/{name}")).await;
        assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
        assert_eq!(reply.json()["field"], "verifier_id");
    }
}

#[tokio::test]
async fn a_verifier_is_removed_only_by_an_unambiguous_name() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let id = text(&deploy(&alice, &claims()).await["verifier_id"]).to_owned();
    for path in [
        format!("/v1/verifiers/{id}@1"),
        format!("/v1/verifiers/{id}@1/permanent"),
        "/v1/verifiers/claims-cite-source@1".to_owned(),
        "/v1/verifiers/claims-cite-source/permanent".to_owned(),
        // The same for a name that is not there: nothing is told.
        "/v1/verifiers/nothing/permanent".to_owned(),
    ] {
        let reply = alice.delete(&path).await;
        assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
    }
    assert_eq!(alice.get(&format!("/v1/verifiers/{id}")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_key_needs_the_scope_of_what_it_does() {
    let app = TestApp::new().await;
    let reader = app.caller("alice", &[Scope::VerifiersRead]).await;
    let writer = app.caller("alice", &[Scope::VerifiersWrite]).await;
    let runner = app.caller("alice", &[Scope::VerifiersRun, Scope::RoundsRead]).await;
    let (read, write) = ("verifiers:read", "verifiers:write");
    for (method, path, scope) in [
        ("POST", "/v1/verifiers", write),
        ("DELETE", "/v1/verifiers/x", write),
        ("DELETE", "/v1/verifiers/0198c1f0-0000-7000-8000-000000000001/permanent", write),
        ("POST", "/v1/verifiers/x/runs", "verifiers:run"),
        ("GET", "/v1/verifiers", read),
        ("GET", "/v1/verifiers/x", read),
        ("GET", "/v1/verifiers/x/versions", read),
        ("GET", "/v1/verifiers/x/runs", read),
        ("GET", "/v1/verifier-runs", read),
        ("GET", "/v1/verifier-runs/x", read),
    ] {
        let body = if method == "POST" { claims() } else { json!({}) };
        for (caller, has) in [(&reader, read), (&writer, write), (&runner, "verifiers:run")] {
            let reply = caller.send(method, path, Body::from(body.to_string()), &[]).await;
            if has == scope {
                assert_ne!(reply.status, StatusCode::FORBIDDEN, "{method} {path}");
            } else {
                assert_problem(&reply, StatusCode::FORBIDDEN, "forbidden");
                assert!(reply.text().contains(scope), "{method} {path}: {}", reply.text());
            }
        }
    }
}

#[tokio::test]
async fn an_admin_has_only_the_verifiers_of_their_own_account() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    deploy(&alice, &claims_with("name", json!("hers"))).await;
    assert_eq!(app.admin().get("/v1/verifiers").await.json()["items"], json!([]));
    let reply = app.admin().get("/v1/verifiers/hers").await;
    assert_problem(&reply, StatusCode::NOT_FOUND, "not_found");
}
