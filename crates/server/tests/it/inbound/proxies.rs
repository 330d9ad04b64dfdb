//! Requests that come through proxies.

use jurat_server::ServerOptions;
use jurat_testkit::app::TestApp;

use super::{Served, patient};

/// Asks for this many codes, each for another address, and returns the status of the last reply.
async fn asked(served: &Served, header: &str, name: &str, count: usize) -> String {
    let mut peer = served.connect().await;
    let mut last = String::new();
    for number in 0..count {
        let body = format!("{{\"email\":\"{name}{number}@example.com\"}}");
        let head = format!(
            "POST /v1/login HTTP/1.1\r\nhost: localhost\r\n{header}content-length: {}\r\n\r\n",
            body.len()
        );
        peer.say(&format!("{head}{body}")).await;
        last = peer.until("}").await;
    }
    last.chars().skip(9).take(3).collect()
}

#[tokio::test]
async fn requests_are_counted_for_the_client_that_a_trusted_proxy_names() {
    let trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let front = ServerOptions { inbound: patient(), trusted_proxies, ..ServerOptions::default() };
    let served = Served::behind(TestApp::new().await, front).await;
    let from = |address: &str| format!("x-forwarded-for: 10.9.9.9, {address}\r\n");
    assert_eq!(asked(&served, &from("203.0.113.1"), "a", 60).await, "202");
    assert_eq!(asked(&served, &from("203.0.113.1"), "b", 1).await, "429");
    assert_eq!(asked(&served, "forwarded: for=203.0.113.1\r\n", "c", 1).await, "429");
    assert_eq!(asked(&served, &from("203.0.113.2"), "d", 1).await, "202");
    // The machine itself may send more.
    assert_eq!(asked(&served, "", "e", 1).await, "202");
}

#[tokio::test]
async fn headers_of_untrusted_peers_are_ignored() {
    let served = Served::with(patient()).await;
    let header = "x-forwarded-for: 203.0.113.1\r\n";
    assert_eq!(asked(&served, header, "a", 61).await, "202", "it is this machine that asks");
}
