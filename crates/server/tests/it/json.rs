//! Bodies that could be read in two ways are not read at all.

use axum::body::Body;
use jurat_testkit::app::TestApp;

async fn sent(body: impl Into<Body>, headers: &[(&str, &str)]) -> (u16, String) {
    let app = TestApp::new().await;
    let reply = app.admin().send("POST", "/api/v3/validate", body.into(), headers).await;
    (reply.status.as_u16(), reply.json()["code"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn what_does_not_parse_or_has_two_readings_is_400() {
    let deep = format!("{{\"claim\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    for body in [
        "",
        "{",
        "nonsense",
        "{\"claim\":1,\"claim\":2}",
        "{\"claim\":{\"a\":1,\"a\":1}}",
        "{\"claim\":\"\\ud800\"}",
        "{\"claim\":12345678901234567890}",
        "{\"claim\":1} {}",
        "\u{feff}{\"claim\":1}",
        deep.as_str(),
    ] {
        assert_eq!(sent(body.to_owned(), &[]).await, (400, "invalid_json".to_owned()), "{body}");
    }
    assert_eq!(sent(vec![b'"', 0xff, b'"'], &[]).await, (400, "invalid_json".to_owned()));
}

#[tokio::test]
async fn a_body_above_a_mebibyte_is_413() {
    let body = format!("{{\"claim\":\"{}\"}}", "x".repeat(1024 * 1024));
    assert_eq!(sent(body, &[]).await, (413, "payload_too_large".to_owned()));
}

#[tokio::test]
async fn compressed_and_foreign_bodies_are_415() {
    let unsupported = (415, "unsupported_media_type".to_owned());
    assert_eq!(sent("{}", &[("content-encoding", "gzip")]).await, unsupported);
    assert_eq!(sent("{}", &[("content-type", "text/plain")]).await, unsupported);
}
