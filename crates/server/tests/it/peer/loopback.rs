//! The account of programs on this machine that send no key.

use jurat_core::id::AccountId;
use jurat_server::{PeerOptions, ServerOptions};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{FakeExecutor, answers},
};
use serde_json::{Value, json};

use crate::inbound::{Served, patient};

async fn served(account: Option<&str>, proxies: &[&str]) -> (Served, [FakeExecutor; 1]) {
    let app = TestApp::new().await;
    let fakes = app.executors([answers(json!({ "answer": "x" }))]).await;
    let front = ServerOptions {
        inbound: patient(),
        // The name of a proxy, for example.
        hosts: vec!["agents.example".to_owned()],
        trusted_proxies: proxies.iter().map(|range| range.parse().unwrap()).collect(),
        peers: PeerOptions {
            loopback_account: account.map(|id| AccountId::parse(id).unwrap()),
            ..PeerOptions::default()
        },
        ..ServerOptions::default()
    };
    (Served::behind(app, front).await, fakes)
}

/// The status of a request without a key, with this head.
async fn status(served: &Served, target: &str, head: &str) -> String {
    let mut peer = served.connect().await;
    peer.say(&format!("GET {target} HTTP/1.1\r\n{head}connection: close\r\n\r\n")).await;
    peer.rest().await.chars().skip(9).take(3).collect()
}

const HOST: &str = "host: 127.0.0.1\r\n";
const NO_KEY: &str = "authorization: Bearer default-dev-token\r\n";

#[tokio::test]
async fn a_program_on_this_machine_needs_no_key_if_the_operator_says_so() {
    let (off, _fakes) = served(None, &[]).await;
    assert_eq!(status(&off, "/api/v1/status", HOST).await, "401");
    let (on, _fakes) = served(Some("acct_admin"), &[]).await;
    assert_eq!(status(&on, "/api/v1/status", HOST).await, "200");
    assert_eq!(status(&on, "/v1/rounds", HOST).await, "200");
    // What programs send that are given no key is none.
    assert_eq!(status(&off, "/api/v1/status", &format!("{HOST}{NO_KEY}")).await, "401");
    assert_eq!(status(&off, "/v1/templates", &format!("{HOST}{NO_KEY}")).await, "401");
    assert_eq!(status(&on, "/v1/templates", &format!("{HOST}{NO_KEY}")).await, "200");
    for line in [NO_KEY, "x-api-key: default-dev-token\r\n"] {
        assert_eq!(status(&on, "/api/v1/status", &format!("{HOST}{line}")).await, "200", "{line}");
        assert_eq!(status(&on, "/v1/executors", &format!("{HOST}{line}")).await, "403", "{line}");
    }
    // The account's rounds, and nothing else.
    assert_eq!(status(&on, "/v1/executors", HOST).await, "403");
    let (nobody, _fakes) = served(Some("acct_nobody"), &[]).await;
    assert_eq!(status(&nobody, "/api/v1/status", HOST).await, "401");
}

#[tokio::test]
async fn a_wrong_key_a_proxy_and_a_web_page_are_refused() {
    let (on, _fakes) = served(Some("acct_admin"), &[]).await;
    let (behind, _fakes) = served(Some("acct_admin"), &["127.0.0.0/8"]).await;
    for key in ["", NO_KEY] {
        for line in [
            "authorization: Bearer default-dev-tokens",
            "authorization: Basic default-dev-token",
            "x-api-key: nonsense",
            "x-forwarded-for: 203.0.113.1",
            "forwarded: for=203.0.113.1",
            "x-real-ip: 203.0.113.1",
            "via: 1.1 proxy",
            "origin: http://localhost:3000",
            "sec-fetch-site: same-origin",
            "x-forwarded-proto: https",
            "x-forwarded-host: jurat.example.com",
            "X-Forwarded: for=203.0.113.1",
            "x-original-forwarded-for: 203.0.113.1",
            "x-original-url: /api/v1/status",
            "cf-connecting-ip: 203.0.113.1",
            "cf-connecting-ipv6: 2001:db8::1",
            "cf-ray: 230b030023ae2822-SJC",
            "cdn-loop: cloudflare",
            "true-client-ip: 203.0.113.1",
            "x-client-ip: 203.0.113.1",
            "x-cluster-client-ip: 203.0.113.1",
            "fastly-client-ip: 203.0.113.1",
            "x-azure-clientip: 203.0.113.1",
            "x-appengine-user-ip: 203.0.113.1",
            "x-envoy-external-address: 203.0.113.1",
            "webhook-id: evt_1",
            "user-agent: jurat/0.1.0",
            "user-agent: Jurat/9",
        ] {
            let head = format!("{HOST}{key}{line}\r\n");
            assert_eq!(status(&on, "/api/v1/status", &head).await, "401", "{head}");
        }
        for host in ["evil.example", "agents.example", "127.0.0.1\r\nhost: agents.example"] {
            let head = format!("host: {host}\r\n{key}");
            assert_ne!(status(&on, "/api/v1/status", &head).await, "200", "{head}");
        }
        let head = format!("{HOST}{key}");
        let told = status(&behind, "/api/v1/status", &head).await;
        assert_eq!(told, "401", "a proxy speaks for others: {head}");
    }
}

#[tokio::test]
async fn a_request_within_the_process_is_not_from_this_machine() {
    let peers =
        PeerOptions { loopback_account: Some(AccountId::admin()), ..PeerOptions::default() };
    let app = TestApp::new().await.with_peers(peers);
    let reply = app.anonymous().at("127.0.0.1").get("/api/v1/status").await;
    assert_eq!(reply.status, http::StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_program_without_a_key_starts_reads_and_cancels_rounds_and_leaves_nothing_else() {
    let (on, _fakes) = served(Some("acct_admin"), &[]).await;
    let asked = async |verb: &str, target: &str, body: &str| -> (String, Value) {
        let mut peer = on.connect().await;
        let length = body.len();
        let head = format!(
            "{verb} {target} HTTP/1.1\r\n{HOST}a2a-version: 1.0\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        peer.say(&(head + body)).await;
        let reply = peer.rest().await;
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head[9..12].to_owned(), serde_json::from_str(body).unwrap_or_default())
    };
    let order = json!({ "objective": "x" }).to_string();
    let (status, round) = asked("POST", "/api/v3/delegate", &order).await;
    assert_eq!(status, "200", "{round}");
    let round = round["round_id"].as_str().unwrap();
    assert_eq!(asked("GET", &format!("/v1/rounds/{round}"), "").await.0, "200");
    let push = json!({ "url": "https://example.com/news" }).to_string();
    let configs = format!("/a2a/v1/tasks/{round}/pushNotificationConfigs");
    for (verb, target, body) in [
        ("DELETE", format!("/v1/rounds/{round}/payload"), ""),
        ("POST", configs.clone(), push.as_str()),
        ("DELETE", format!("{configs}/mine"), ""),
        ("POST", "/v1/webhooks".to_owned(), push.as_str()),
        ("POST", "/v1/api-keys".to_owned(), r#"{"name":"x"}"#),
    ] {
        let (status, reply) = asked(verb, &target, body).await;
        assert_eq!(status, "403", "{verb} {target}: {reply}");
    }
    assert_eq!(asked("POST", &format!("/v1/rounds/{round}/cancel"), "{}").await.0, "409");
}
