//! Bodies that two parsers could read differently are refused.

use axum::body::Body;
use jurat_server::route_table;
use jurat_store::StoreLocation;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, replies},
    fake_facilitator::FakeFacilitator,
    json_table::documents,
};
use serde_json::json;

use crate::coverage::code_of;

async fn sent(body: impl Into<Body>, headers: &[(&str, &str)]) -> (u16, String) {
    let app = TestApp::new().await;
    let reply = app.admin().send("POST", "/api/v3/validate", body.into(), headers).await;
    (reply.status.as_u16(), reply.json()["code"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn invalid_or_ambiguous_json_is_a_400() {
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

#[tokio::test]
async fn every_route_refuses_the_same_ambiguous_json() {
    // Paid routes exist only if something is sold.
    let facilitator = FakeFacilitator::start().await;
    let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
    let app = TestApp::selling(store, facilitator.settings()).await;
    let document = app.anonymous().get("/openapi.json").await.json();
    let takes_json = |path: &str| {
        document["paths"][path]["post"]["requestBody"]["content"]["application/json"].is_object()
    };
    let doors: Vec<String> = route_table()
        .into_iter()
        .filter(|route| route.method == "POST" && takes_json(route.path))
        .map(|route| route.path.replace("{id}", "nobody").replace("{ref}", "nobody"))
        .collect();
    assert!(40 <= doors.len(), "{doors:?}");
    for document in documents() {
        let body = document.within(r#"{"claim":"#, "}");
        for door in &doors {
            let reply = app.admin().send("POST", door, Body::from(body.clone()), &[]).await;
            let is_refused = code_of(&reply) == "invalid_json";
            assert_eq!(is_refused, !document.is_read, "{door}: {}", document.name);
            assert_eq!(is_refused, reply.status.as_u16() == 400 && is_refused);
        }
    }
}

#[tokio::test]
async fn the_answers_of_executors_are_read_as_strictly() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({}))]).await;
    let tail = r#","evidence_inline":[],"evidence_refs":[]}"#;
    for document in documents() {
        let body = document.within(r#"{"candidate_output":"#, tail);
        fake.set(replies(200, "application/json", body));
        let reply = app.admin().post("/api/v3/delegate", &json!({ "objective": "x" })).await.json();
        let replica = &reply["replicas"][0];
        let is_refused = replica["error"]["code"] == "not_json";
        assert_eq!(is_refused, !document.is_read, "{}: {reply}", document.name);
        assert_eq!(reply["status"] == "OK", document.is_read, "{}: {reply}", document.name);
        // Repeated invalid answers must not pause the executor in the middle of the table.
        fake.set(answers(json!({})));
        app.clock.advance_ms(120_000);
        app.admin().post("/v1/executors/s1/check", &json!({})).await;
        app.admin().post("/api/v3/delegate", &json!({ "objective": "x" })).await;
    }
}
