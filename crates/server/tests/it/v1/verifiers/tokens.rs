//! Version tokens, and names that are taken.

use http::StatusCode;
use jurat_testkit::app::TestApp;
use serde_json::{Value, json};

use super::{OWNER, assert_problem, claims, claims_with, deploy, owner, text};

#[tokio::test]
async fn a_missing_or_stale_token_is_a_conflict_that_names_the_current_one() {
    conflicts(&TestApp::new().await).await;
}

/// Tokens that are none, on whatever store.
pub(crate) async fn conflicts(app: &TestApp) {
    let alice = owner(app).await;
    let first = deploy(&alice, &claims()).await;
    let next = claims_with("expected_version_token", first["version_token"].clone());
    let second = deploy(&alice, &next).await;
    let current = text(&second["version_token"]);
    let nul = claims_with("expected_version_token", json!("\u{0}"));
    let long = claims_with("expected_version_token", json!("x".repeat(1_000)));
    for body in [claims(), next, claims_with("expected_version_token", json!("")), nul, long] {
        let reply = alice.post("/v1/verifiers", &body).await;
        assert_problem(&reply, StatusCode::CONFLICT, "conflict");
        let problem = reply.json();
        assert_eq!(problem["current_version_token"], current);
        assert!(text(&problem["hint"]).contains(current), "{problem}");
    }
    // With the token of the conflict it goes on.
    let body = claims_with("expected_version_token", json!(current));
    assert_eq!(deploy(&alice, &body).await["version"], 3);
}

#[tokio::test]
async fn a_first_deploy_with_a_token_is_a_conflict_without_one() {
    let app = TestApp::new().await;
    let body = claims_with("expected_version_token", json!("t"));
    let reply = owner(&app).await.post("/v1/verifiers", &body).await;
    assert_problem(&reply, StatusCode::CONFLICT, "conflict");
    assert_eq!(reply.json()["current_version_token"], Value::Null);
    assert!(text(&reply.json()["message"]).contains("leave out `expected_version_token`"));
}

#[tokio::test]
async fn two_deploys_with_the_same_token_have_one_winner() {
    let app = TestApp::new().await;
    let (one, two) = (owner(&app).await, owner(&app).await);
    let first = deploy(&one, &claims()).await;
    let next = claims_with("expected_version_token", first["version_token"].clone());
    let (left, right) =
        tokio::join!(one.post("/v1/verifiers", &next), two.post("/v1/verifiers", &next));
    let mut statuses = [left.status.as_u16(), right.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409], "{} {}", left.text(), right.text());
}

#[tokio::test]
async fn a_name_belongs_to_one_account() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let bob = app.caller("bob", OWNER).await;
    let hers = deploy(&alice, &claims()).await;
    let his = deploy(&bob, &claims()).await;
    assert_ne!(hers["verifier_id"], his["verifier_id"]);
    assert_ne!(hers["version_token"], his["version_token"]);
}

#[tokio::test]
async fn names_of_the_platform_are_taken() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    for name in ["workflow-design-qa", "skill-design-qa", "safety-block", "safety-advisory"] {
        let reply = alice.post("/v1/verifiers", &claims_with("name", json!(name))).await;
        assert_problem(&reply, StatusCode::CONFLICT, "conflict");
        assert!(text(&reply.json()["message"]).contains("reserved"), "{}", reply.text());
    }
    deploy(&alice, &claims_with("name", json!("workflow-design-qa-2"))).await;
}
