//! The card: where it is, what it says, and its signature.

use axum::body::Body;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use ed25519_dalek::{Signature, SigningKey, Verifier as _};
use http::StatusCode;
use jurat_core::{account::caller::Scope, canonical::canonical};
use jurat_server::ServerOptions;
use jurat_testkit::app::{TestApp, admin_key};
use serde_json::{Value, json};

use super::{BINDINGS, Binding, call, read, send};
use crate::inbound::{Served, patient};

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
    let host = [("host", "localhost:5872")];
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
            (&json!("http://localhost:5872/a2a"), &json!("JSONRPC"), &json!("1.0")),
            (&json!("http://localhost:5872/a2a/v1"), &json!("HTTP+JSON"), &json!("1.0")),
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
    let known = [("host", "localhost:5872"), ("if-none-match", tag)];
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

/// The card, public or extended, for a caller of this host.
async fn asked(served: &Served, host: &str, key: Option<&str>) -> Value {
    let mut peer = served.connect().await;
    let rest = format!("host: {host}\r\nconnection: close\r\n");
    let head = match key {
        None => format!("GET /.well-known/agent-card.json HTTP/1.1\r\n{rest}"),
        Some(key) => format!(
            "GET /a2a/v1/extendedAgentCard HTTP/1.1\r\n{rest}a2a-version: 1.0\r\nx-api-key: {key}\r\n"
        ),
    };
    peer.say(&format!("{head}\r\n")).await;
    let reply = peer.rest().await;
    serde_json::from_str(reply.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[tokio::test]
async fn the_node_signs_for_its_own_hosts_only() {
    let front = ServerOptions {
        inbound: patient(),
        hosts: vec!["agents.example".to_owned()],
        ..ServerOptions::default()
    };
    let served = Served::behind(TestApp::new().await, front).await;
    let admin = admin_key().reveal();
    let port = served.url().rsplit_once(':').unwrap().1.to_owned();
    for key in [None, Some(&*admin)] {
        for name in ["agents.example", "Agents.Example", "localhost", "127.0.0.1"] {
            let host = format!("{name}:{port}");
            let card = asked(&served, &host, key).await;
            check_signature(&card);
            assert_eq!(card["supportedInterfaces"][0]["url"], format!("http://{host}/a2a"));
        }
        // At another port of an own host, another program may listen.
        for host in ["agents.example", "Agents.Example:443", "localhost:1", "127.0.0.1:5872"] {
            let card = asked(&served, host, key).await;
            assert_eq!(card.get("signatures"), None, "{host}");
            assert_eq!(card["supportedInterfaces"][0]["url"], format!("http://{host}/a2a"));
        }
        for host in ["evil.example", "203.0.113.9", "agents.example.evil.example:80", "a@b"] {
            let card = asked(&served, host, key).await;
            assert_eq!(card.get("signatures"), None, "{host}");
            let url = format!("{}/a2a", served.url());
            assert_eq!(card["supportedInterfaces"][0]["url"], url, "{host}");
            assert!(!card.to_string().contains(host), "{card}");
        }
    }
}
