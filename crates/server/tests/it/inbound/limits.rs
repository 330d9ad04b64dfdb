//! The limit of connections.

use jurat_server::InboundLimits;

use super::{HEALTH, SHORT, Served, patient};

#[tokio::test]
async fn a_connection_beyond_the_limit_is_told_to_retry() {
    let served = Served::with(InboundLimits { max_connections: 2, ..patient() }).await;
    let (mut first, mut second) = (served.says(HEALTH).await, served.says(HEALTH).await);
    first.until("ok").await;
    second.until("ok").await;
    let answer = served.connect().await.rest().await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("\r\nretry-after: "), "{answer}");
    assert!(answer.contains(r#""code":"overloaded""#), "{answer}");
    // Existing connections notice nothing.
    first.say(HEALTH).await;
    first.until("ok").await;
}

#[tokio::test]
async fn a_slot_is_free_again_when_its_connection_ends() {
    let inbound = InboundLimits { max_connections: 1, header_timeout: SHORT, ..patient() };
    let served = Served::with(inbound).await;
    for _ in 0..3 {
        assert_eq!(served.connect().await.rest().await, "");
    }
}
