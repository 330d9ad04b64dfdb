//! The ways to keep a connection open without a request.

use std::time::Duration;

use jurat_server::InboundLimits;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{gated, says_valid},
};
use tokio::task::JoinSet;

use super::{HEALTH, SHORT, Served, patient, post};

const TICK: Duration = Duration::from_millis(20);

fn hasty_heads() -> InboundLimits {
    InboundLimits { header_timeout: SHORT, ..patient() }
}

fn hasty_bodies() -> InboundLimits {
    InboundLimits { body_grace: SHORT, ..patient() }
}

#[tokio::test]
async fn a_connection_that_sends_nothing_is_closed() {
    let served = Served::with(hasty_heads()).await;
    assert_eq!(served.connect().await.rest().await, "");
}

#[tokio::test]
async fn one_byte_does_not_extend_the_timeout() {
    let served = Served::with(hasty_heads()).await;
    assert_eq!(served.says("G").await.rest().await, "");
}

#[tokio::test]
async fn half_an_http_2_preface_is_not_a_head() {
    let served = Served::with(hasty_heads()).await;
    assert_eq!(served.says("PRI * HT").await.rest().await, "");
    let whole = served.says("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.rest().await;
    assert!(!whole.contains("200"), "{whole}");
}

#[tokio::test]
async fn half_a_head_is_closed() {
    let served = Served::with(hasty_heads()).await;
    let half = "GET /health HTTP/1.1\r\nhost: x\r\nx-more: ";
    assert_eq!(served.says(half).await.rest().await, "");
}

#[tokio::test]
async fn a_dripped_head_is_closed() {
    let served = Served::with(hasty_heads()).await;
    let endless = HEALTH[..20].bytes().chain(std::iter::repeat(b'a'));
    assert_eq!(served.connect().await.drip(TICK, endless).await, "");
}

#[tokio::test]
async fn a_body_that_never_starts_times_out() {
    let served = Served::with(hasty_bodies()).await;
    let answer = served.says(&post("content-length: 10\r\n")).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(answer.contains(r#""code":"request_timeout""#), "{answer}");
}

#[tokio::test]
async fn a_dripped_body_times_out() {
    let served = Served::with(hasty_bodies()).await;
    let mut peer = served.says(&post("content-length: 100000\r\n")).await;
    let answer = peer.drip(TICK, std::iter::repeat(b' ')).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    // The same without a length.
    let mut peer = served.says(&post("transfer-encoding: chunked\r\n")).await;
    let answer = peer.drip(TICK, "1\r\n \r\n".bytes().cycle()).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn a_steady_body_still_has_a_total_limit() {
    let inbound =
        InboundLimits { body_grace: TICK, body_timeout: SHORT, min_body_rate: 1, ..patient() };
    let served = Served::with(inbound).await;
    let mut peer = served.says(&post("content-length: 100000\r\n")).await;
    let answer = peer.drip(TICK, std::iter::repeat(b' ')).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn a_slow_body_that_keeps_the_rate_is_read() {
    let inbound = InboundLimits { body_grace: SHORT, min_body_rate: 1, ..patient() };
    let served = Served::with(inbound).await;
    let mut peer = served.says(&post("content-length: 20\r\nconnection: close\r\n")).await;
    let answer = peer.drip(TICK, std::iter::repeat_n(b'x', 20)).await;
    assert!(answer.contains(r#""code":"invalid_json""#), "{answer}");
}

#[tokio::test]
async fn a_later_request_may_wait_but_not_drip() {
    let served = Served::with(hasty_heads()).await;
    let (mut idle, mut dripping) = (served.says(HEALTH).await, served.says(HEALTH).await);
    idle.until("ok").await;
    dripping.until("ok").await;
    dripping.say("GET /hea").await;
    assert_eq!(dripping.rest().await, "");
    // As much time has passed for the silent one.
    idle.say(HEALTH).await;
    idle.until("ok").await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_time() {
    let served = Served::with(InboundLimits { idle_timeout: SHORT, ..patient() }).await;
    let mut peer = served.says(HEALTH).await;
    peer.until("ok").await;
    assert_eq!(peer.rest().await, "");
}

#[tokio::test]
async fn a_peer_that_does_not_read_its_replies_is_dropped() {
    let served = Served::with(InboundLimits { write_timeout: SHORT, ..patient() }).await;
    let mut peer = served.says(HEALTH).await;
    peer.until("ok").await;
    // The buffers of the machine accept a few of these large replies, so the server waits from the
    // start, up to its limit.
    let asking = HEALTH.replace("/health", "/openapi.json").repeat(100);
    let begun = tokio::time::Instant::now();
    while tokio::io::AsyncWriteExt::write_all(&mut peer.0, asking.as_bytes()).await.is_ok() {}
    assert!(SHORT <= begun.elapsed(), "it was closed before its time");
}

#[tokio::test]
async fn an_event_stream_that_is_read_outlives_every_timeout() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let inbound = InboundLimits {
        header_timeout: SHORT,
        idle_timeout: SHORT,
        body_grace: SHORT,
        body_timeout: SHORT,
        write_timeout: SHORT,
        ..patient()
    };
    let served = Served::on(app, inbound).await;
    let body = r#"{"claim":"x"}"#;
    let head = post(&format!("accept: text/event-stream\r\ncontent-length: {}\r\n", body.len()));
    let mut peer = served.says(&(head + body)).await;
    peer.until("event: replica_started").await;
    // Two that wait for nothing come and go meanwhile.
    for _ in 0..2 {
        assert_eq!(served.connect().await.rest().await, "");
    }
    fake.release();
    peer.until("event: final").await;
}

#[tokio::test]
async fn an_honest_client_among_two_hundred_stalled_ones_is_served() {
    let inbound = InboundLimits { body_grace: SHORT, header_timeout: SHORT, ..patient() };
    let served = Served::with(inbound).await;
    let body = post("content-length: 10\r\n");
    let kinds = ["", "G", "PRI * HT", "GET /health HTTP/1.1\r\nhost:", body.as_str()];
    let mut honest = served.says(HEALTH).await;
    honest.until("ok").await;
    let mut stalled = JoinSet::new();
    for kind in kinds.iter().cycle().take(200) {
        let mut peer = served.says(kind).await;
        stalled.spawn(async move { peer.rest().await });
    }
    for _ in 0..50 {
        honest.say(HEALTH).await;
        honest.until("ok").await;
    }
    for ended in stalled.join_all().await {
        assert!(ended.is_empty() || ended.starts_with("HTTP/1.1 408 "), "{ended}");
    }
}
