//! Replies that come before their request has ended.

use tokio::io::AsyncWriteExt as _;

use super::{Served, patient, post};

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_and_the_refusal_arrives() {
    let served = Served::with(patient()).await;
    let size = 3 * 1_024 * 1_024;
    let mut peer = served.says(&post(&format!("content-length: {size}\r\n"))).await;
    // All of it is sent before anything is read, as simple clients do.
    peer.0.write_all(" ".repeat(size).as_bytes()).await.unwrap();
    let answer = peer.rest().await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains(r#""code":"payload_too_large""#), "{answer}");
}

#[tokio::test]
async fn an_unwanted_small_body_does_not_cost_the_connection() {
    let served = Served::with(patient()).await;
    let refused = "POST /api/v3/validate HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";
    let mut peer = served.connect().await;
    for _ in 0..3 {
        peer.say(refused).await;
        peer.until(r#""code":"auth_required""#).await;
    }
}

#[tokio::test]
async fn a_body_in_any_encoding_is_refused_however_it_is_listed() {
    let served = Served::with(patient()).await;
    for encoded in [
        "content-encoding: gzip\r\n",
        "content-encoding: identity\r\ncontent-encoding: gzip\r\n",
        "content-encoding: identity, gzip\r\n",
        "content-encoding: gzip, identity\r\n",
        "content-encoding: zstd\r\ncontent-encoding: br\r\n",
    ] {
        let request = post(&format!("content-length: 2\r\nconnection: close\r\n{encoded}")) + "{}";
        let answer = served.says(&request).await.rest().await;
        assert!(answer.contains(r#""code":"unsupported_media_type""#), "{encoded}: {answer}");
    }
    let plain = "content-length: 2\r\nconnection: close\r\ncontent-encoding: Identity\r\n";
    let answer = served.says(&(post(plain) + "{}")).await.rest().await;
    assert!(answer.contains(r#""code":"request_invalid""#), "{answer}");
}
