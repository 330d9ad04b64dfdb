//! Errors of the OpenAI shape, whichever layer they come from.

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::EngineLimits;
use jurat_testkit::app::{TestApp, TestReply};
use serde_json::json;

use super::{CHAT, app, ask, says};

#[track_caller]
fn refused(reply: &TestReply, status: u16, kind: &str, code: &str) {
    assert_eq!(reply.status.as_u16(), status, "{}", reply.text());
    assert_eq!(reply.headers["content-type"], "application/json");
    assert!(reply.headers.contains_key("x-request-id"));
    let error = reply.json()["error"].clone();
    assert_eq!((&error["type"], &error["code"]), (&json!(kind), &json!(code)), "{error}");
    assert_eq!(error["message"], error["jurat"]["detail"]);
    assert!(error["jurat"]["hint"].is_string());
}

const INVALID: &str = "invalid_request_error";

#[tokio::test]
async fn every_layer_answers_with_the_error_object() {
    let app = app().await;
    for (method, path) in [("POST", CHAT), ("GET", "/v1/models"), ("GET", "/v1/models/jurat/safe")]
    {
        let reply = app.anonymous().send(method, path, Body::from("{}"), &[]).await;
        refused(&reply, 401, "authentication_error", "auth_required");
        assert_eq!(reply.headers["www-authenticate"], "Bearer");
    }
    let send = async |body: Body| app.admin().send("POST", CHAT, body, &[]).await;
    refused(&send(Body::from("{")).await, 400, INVALID, "invalid_json");
    let twice = r#"{"model":"a","model":"b"}"#;
    refused(&send(Body::from(twice)).await, 400, INVALID, "invalid_json");
    let large = Body::from(vec![b' '; 1024 * 1024 + 1]);
    refused(&send(large).await, 413, INVALID, "payload_too_large");
    let text = [("content-type", "text/plain")];
    let reply = app.admin().send("POST", CHAT, Body::from("x"), &text).await;
    refused(&reply, 415, INVALID, "unsupported_media_type");
    let reader = app.caller("reader", &[Scope::RoundsRead]).await;
    refused(&reader.post(CHAT, &ask(json!({}))).await, 403, "permission_error", "forbidden");
    assert_eq!(reader.get("/v1/models").await.status, StatusCode::OK);
    let reply = app.admin().post(CHAT, &ask(json!({}))).await;
    refused(&reply, 503, "server_error", "sessions_unavailable");
    let key = [("idempotency-key", "")];
    let reply = app.admin().post_with(CHAT, &ask(json!({})), &key).await;
    refused(&reply, 400, INVALID, "validation_error");
    let reply = app.admin().send("GET", CHAT, Body::empty(), &[]).await;
    refused(&reply, 405, INVALID, "method_not_allowed");
}

#[tokio::test]
async fn a_limit_is_a_rate_limit_error() {
    let limits = EngineLimits { requests_per_minute_per_key: Some(1), ..EngineLimits::default() };
    let app = TestApp::with_limits(limits).await;
    let ann = app.caller("ann", &[Scope::RoundsCreate]).await;
    assert_eq!(ann.get("/v1/models").await.status, StatusCode::OK);
    let reply = ann.get("/v1/models").await;
    refused(&reply, 429, "rate_limit_error", "rate_limited");
    assert!(reply.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn bad_members_are_named() {
    let app = app().await;
    let _fakes = app.executors([says("a"), says("a"), says("a")]).await;
    let remote = json!({ "type": "json_schema", "json_schema": {
        "name": "x", "schema": { "$ref": "https://example.com/schema.json" } } });
    for (more, status, code, param) in [
        (json!({ "model": "gpt-4o" }), 404, "not_found", "model"),
        (json!({ "model": "jurat/none" }), 404, "not_found", "model"),
        (json!({ "messages": [] }), 400, "validation_error", "messages"),
        (json!({ "n": 2 }), 422, "not_supported", "n"),
        (json!({ "tools": [{ "type": "function" }] }), 422, "not_supported", "tools"),
        (json!({ "logprobs": true }), 422, "not_supported", "logprobs"),
        (json!({ "temperature": 9 }), 400, "validation_error", "temperature"),
        (json!({ "jurat": { "replica": 3 } }), 400, "validation_error", "jurat.replica"),
        (
            json!({ "response_format": remote }),
            422,
            "schema_refused",
            "response_format.json_schema.schema",
        ),
    ] {
        let reply = app.admin().post(CHAT, &ask(more)).await;
        refused(&reply, status, INVALID, code);
        assert_eq!(reply.json()["error"]["param"], param);
    }
    let image = json!([{ "role": "user", "content": [{ "type": "image_url" }] }]);
    let reply = app.admin().post(CHAT, &ask(json!({ "messages": image }))).await;
    refused(&reply, 422, INVALID, "not_supported");
    assert_eq!(reply.json()["error"]["param"], "messages.0.content.0.type");
    let reply = app.admin().get("/v1/models/gpt-4o").await;
    refused(&reply, 404, INVALID, "not_found");
    let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.ends_with("use one of `jurat/fast`, `jurat/oracle`, `jurat/safe`"),
        "{message}"
    );
}
