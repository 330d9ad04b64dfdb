//! The card: where it is, what it says, and its signature.

use axum::body::Body;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use ed25519_dalek::{Signature, SigningKey, Verifier as _};
use http::StatusCode;
use jurat_core::{account::caller::Scope, canonical::canonical};
use jurat_testkit::app::TestApp;
use serde_json::{Value, json};

use super::{BINDINGS, Binding, call, read, send};

/// Checks the signature of a card as the guide describes it.
#[track_caller]
fn check_signature(card: &Value) {
    let node = SigningKey::from_bytes(&[7; 32]).verifying_key();
    let signature = &card["signatures"][0];
    let protected = signature["protected"].as_str().unwrap();
    let header: Value = serde_json::from_slice(&BASE64.decode(protected).unwrap()).unwrap();
    assert_eq!(header["alg"], "EdDSA");
    assert_eq!(header["kid"], hex::encode(node.as_bytes()));
    assert_eq!(header["jwk"]["x"], BASE64.encode(node.as_bytes()));
    let mut unsigned = card.clone();
    unsigned.as_object_mut().unwrap().remove("signatures");
    let input = format!("{protected}.{}", BASE64.encode(canonical(&unsigned)));
    let bytes = BASE64.decode(signature["signature"].as_str().unwrap()).unwrap();
    node.verify(input.as_bytes(), &Signature::from_slice(&bytes).unwrap()).unwrap();
    unsigned["name"] = json!("Somebody else");
    let forged = format!("{protected}.{}", BASE64.encode(canonical(&unsigned)));
    assert!(node.verify(forged.as_bytes(), &Signature::from_slice(&bytes).unwrap()).is_err());
}

#[tokio::test]
async fn the_card_is_public_signed_and_cacheable_at_both_addresses() {
    let app = TestApp::new().await;
    let host = [("host", "agents.example:5872")];
    let reply =
        app.anonymous().send("GET", "/.well-known/agent-card.json", Body::empty(), &host).await;
    let card = reply.json();
    check_signature(&card);
    let interfaces = card["supportedInterfaces"].as_array().unwrap();
    let shown: Vec<(&Value, &Value, &Value)> = interfaces
        .iter()
        .map(|it| (&it["url"], &it["protocolBinding"], &it["protocolVersion"]))
        .collect();
    assert_eq!(
        shown,
        [
            (&json!("http://agents.example:5872/a2a"), &json!("JSONRPC"), &json!("1.0")),
            (&json!("http://agents.example:5872/a2a/v1"), &json!("HTTP+JSON"), &json!("1.0")),
        ]
    );
    let skills: Vec<&Value> =
        card["skills"].as_array().unwrap().iter().map(|skill| &skill["id"]).collect();
    assert_eq!(skills, ["delegate", "validate", "factcheck", "run-verifier"]);
    assert_eq!(
        card["capabilities"],
        json!({ "streaming": true, "pushNotifications": true, "extendedAgentCard": true })
    );
    assert_eq!(reply.headers["cache-control"], "public, max-age=300");
    assert!(reply.headers["last-modified"].to_str().unwrap().ends_with(" GMT"));
    let tag = reply.headers["etag"].to_str().unwrap();
    let known = [("host", "agents.example:5872"), ("if-none-match", tag)];
    for path in
        ["/.well-known/agent-card.json", "/.well-known/agent.json", "/api/v1/a2a/agent.json"]
    {
        let same = app.anonymous().send("GET", path, Body::empty(), &host).await;
        assert_eq!(same.json(), card);
        let unchanged = app.anonymous().send("GET", path, Body::empty(), &known).await;
        assert_eq!(unchanged.status, StatusCode::NOT_MODIFIED);
        assert_eq!(unchanged.headers["etag"], tag);
    }
    let other = app.anonymous().get("/.well-known/agent-card.json").await;
    assert_ne!(other.headers["etag"], tag, "the host is another");
}

#[tokio::test]
async fn the_extended_card_lists_what_a_key_may_do() {
    let app = TestApp::new().await;
    let all =
        [Scope::RoundsCreate, Scope::VerifiersRead, Scope::VerifiersWrite, Scope::VerifiersRun];
    let alice = app.caller("alice", &all).await;
    let verifier = json!({
        "name": "sourced", "description": "The answer names its source.",
        "criterion": r#"{"contains": {"field": "answer", "text": "Source:"}}"#,
        "input_contract": "text", "input_fields": ["answer"],
        "model_settings": { "model": "builtin/rules" },
    });
    assert_eq!(alice.post("/v1/verifiers", &verifier).await.status, StatusCode::CREATED);
    let judge = app.caller("judge", &[Scope::VerifiersRun]).await;
    for binding in BINDINGS {
        let reply = send(&alice, binding, "GetExtendedAgentCard", &json!({})).await;
        if binding == Binding::Http {
            assert_eq!(reply.headers["cache-control"], "private, max-age=300");
            assert_eq!(reply.headers["vary"], "host, authorization, x-api-key");
        }
        let card = read(binding, &reply).unwrap();
        check_signature(&card);
        let skills = card["skills"].as_array().unwrap();
        assert_eq!(skills.len(), 5);
        assert_eq!(skills[4]["id"], "run-verifier:sourced");
        assert_eq!(skills[4]["description"], "The answer names its source.");
        let card = call(&judge, binding, "GetExtendedAgentCard", &json!({})).await.unwrap();
        let skills = card["skills"].as_array().unwrap();
        assert_eq!((skills.len(), &skills[0]["id"]), (1, &json!("run-verifier")));
    }
}
