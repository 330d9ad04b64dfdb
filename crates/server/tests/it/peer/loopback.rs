//! The account of programs on this machine that send no key.

use jurat_core::id::AccountId;
use jurat_server::{PeerOptions, ServerOptions};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{FakeExecutor, answers},
};
use serde_json::json;

use crate::inbound::{Served, patient};

async fn served(account: Option<&str>, proxies: &[&str]) -> (Served, [FakeExecutor; 1]) {
    let app = TestApp::new().await;
    let fakes = app.executors([answers(json!({ "answer": "x" }))]).await;
    let front = ServerOptions {
        inbound: patient(),
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

#[tokio::test]
async fn a_program_on_this_machine_needs_no_key_if_the_operator_says_so() {
    let (off, _fakes) = served(None, &[]).await;
    assert_eq!(status(&off, "/api/v1/status", HOST).await, "401");
    let (on, _fakes) = served(Some("acct_admin"), &[]).await;
    assert_eq!(status(&on, "/api/v1/status", HOST).await, "200");
    assert_eq!(status(&on, "/v1/rounds", HOST).await, "200");
    // The account's rounds, and nothing else.
    assert_eq!(status(&on, "/v1/executors", HOST).await, "403");
    let (nobody, _fakes) = served(Some("acct_nobody"), &[]).await;
    assert_eq!(status(&nobody, "/api/v1/status", HOST).await, "401");
}

#[tokio::test]
async fn a_wrong_key_a_proxy_and_a_web_page_are_refused() {
    let (on, _fakes) = served(Some("acct_admin"), &[]).await;
    for line in [
        "authorization: Bearer default-dev-token",
        "x-api-key: nonsense",
        "x-forwarded-for: 203.0.113.1",
        "x-forwarded-proto: https",
        "x-forwarded-host: jurat.example.com",
        "X-Forwarded: for=203.0.113.1",
        "x-original-forwarded-for: 203.0.113.1",
        "x-original-url: /api/v1/status",
        "forwarded: for=203.0.113.1",
        "x-real-ip: 203.0.113.1",
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
        "via: 1.1 proxy",
        "origin: http://localhost:3000",
        "sec-fetch-site: same-origin",
    ] {
        assert_eq!(
            status(&on, "/api/v1/status", &format!("{HOST}{line}\r\n")).await,
            "401",
            "{line}"
        );
    }
    assert_eq!(status(&on, "/api/v1/status", "host: evil.example\r\n").await, "401");
    let (behind, _fakes) = served(Some("acct_admin"), &["127.0.0.0/8"]).await;
    assert_eq!(status(&behind, "/api/v1/status", HOST).await, "401", "a proxy speaks for others");
}

#[tokio::test]
async fn a_request_within_the_process_is_not_from_this_machine() {
    let peers =
        PeerOptions { loopback_account: Some(AccountId::admin()), ..PeerOptions::default() };
    let app = TestApp::new().await.with_peers(peers);
    let reply = app.anonymous().at("127.0.0.1").get("/api/v1/status").await;
    assert_eq!(reply.status, http::StatusCode::UNAUTHORIZED);
}
