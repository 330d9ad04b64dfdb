//! Heads that are too large, or that two programs could read differently.

use super::{HEALTH, Served, patient, post};

#[tokio::test]
async fn too_many_headers_are_refused() {
    let served = Served::with(patient()).await;
    let headers = |count: usize| "x-a: 1\r\n".repeat(count);
    let fits = format!("GET /health HTTP/1.1\r\nhost: x\r\n{}\r\n", headers(63));
    served.says(&fits).await.until("HTTP/1.1 200 ").await;
    let bomb = format!("GET /health HTTP/1.1\r\nhost: x\r\n{}\r\n", headers(64));
    let answer = served.says(&bomb).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn an_oversized_head_is_refused_before_it_ends() {
    let served = Served::with(patient()).await;
    let fits =
        format!("GET /health HTTP/1.1\r\nhost: h\r\nx-a: {}\r\n\r\n", "a".repeat(30 * 1_024));
    served.says(&fits).await.until("HTTP/1.1 200 ").await;
    let mut peer = served.says("GET /health HTTP/1.1\r\nx-a: ").await;
    let endless = "a".repeat(40 * 1_024);
    // The reply may come before everything is sent.
    drop(tokio::io::AsyncWriteExt::write_all(&mut peer.0, endless.as_bytes()).await);
    let answer = peer.rest().await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let path = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(40 * 1_024));
    let answer = served.says(&path).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
}

#[tokio::test]
async fn a_body_with_a_length_and_chunks_ends_the_connection_after_its_reply() {
    let served = Served::with(patient()).await;
    for both in [
        "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
    ] {
        // By the length, the body is its first four bytes, and the rest another request.
        let answer = served.says(&(post(both) + "0\r\n\r\n" + HEALTH)).await.rest().await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
}

#[tokio::test]
async fn contradicting_lengths_and_encodings_are_refused() {
    let served = Served::with(patient()).await;
    for wrong in [
        "content-length: 4\r\ncontent-length: 5\r\n",
        "content-length: 4, 5\r\n",
        "content-length: -1\r\n",
        "content-length: +4\r\n",
        "transfer-encoding: gzip\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
        "host: another\r\n",
        "transfer-encoding: chunked, gzip\r\n",
        "transfer-encoding : chunked\r\n",
    ] {
        let answer = served.says(&(post(wrong) + "{}  ")).await.rest().await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{wrong}: {answer}");
    }
}

#[tokio::test]
async fn expect_continue_is_answered_or_refused_immediately() {
    let served = Served::with(patient()).await;
    let expecting = "content-length: 2\r\nexpect: 100-continue\r\nconnection: close\r\n";
    let mut peer = served.says(&post(expecting)).await;
    peer.until("HTTP/1.1 100 Continue\r\n\r\n").await;
    peer.say("{}").await;
    let answer = peer.rest().await;
    assert!(answer.contains(r#""code":"request_invalid""#), "{answer}");
    let stranger = format!("POST /api/v3/validate HTTP/1.1\r\nhost: x\r\n{expecting}\r\n");
    let answer = served.says(&stranger).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[tokio::test]
async fn a_body_that_is_announced_too_large_is_refused_before_it_is_sent() {
    let served = Served::with(patient()).await;
    let answer = served.says(&post("content-length: 20000000\r\n")).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    let expecting = "content-length: 20000000\r\nexpect: 100-continue\r\n";
    let answer = served.says(&post(expecting)).await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "it is not invited to come: {answer}");
}

#[tokio::test]
async fn repeated_keys_or_content_types_are_refused() {
    let served = Served::with(patient()).await;
    let body = "content-length: 2\r\nconnection: close\r\n";
    for (twice, status) in [
        ("authorization: Bearer another\r\n", "401"),
        ("x-api-key: one\r\nx-api-key: two\r\n", "401"),
        ("content-type: text/plain\r\n", "415"),
    ] {
        let answer = served.says(&(post(&format!("{twice}{body}")) + "{}")).await.rest().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{twice}: {answer}");
    }
}
