//! Schemas that would stall a naive server are refused by name, and nothing is fetched.

use http::StatusCode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, canary, says_valid},
};
use serde_json::{Value, json};

fn doubling(levels: usize) -> Value {
    let mut defs = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        defs.insert(format!("d{level}"), json!({ "allOf": [next, next] }));
    }
    defs.insert(format!("d{levels}"), json!({ "type": "integer" }));
    json!({ "$ref": "#/$defs/d0", "$defs": defs })
}

async fn refused(schema: Value) -> Value {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let body = json!({ "claim": { "output": 1, "output_schema": schema } });
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", reply.text());
    assert_eq!(reply.json()["code"], "schema_refused");
    reply.json()["reason"].clone()
}

#[tokio::test]
async fn references_that_double_are_refused() {
    assert_eq!(refused(doubling(28)).await, "schema_expansion");
}

#[tokio::test]
async fn remote_references_are_refused_and_not_followed() {
    let canary = canary();
    assert_eq!(
        refused(json!({ "$ref": format!("{}/x.json", canary.url()) })).await,
        "schema_remote_ref"
    );
    assert_eq!(refused(json!({ "$ref": "file:///etc/passwd" })).await, "schema_remote_ref");
    assert!(!canary.was_touched());
}

#[tokio::test]
async fn lookaround_is_refused_by_name() {
    assert_eq!(refused(json!({ "pattern": "^((?=a)a+)+$" })).await, "schema_pattern_refused");
}

#[tokio::test]
async fn a_schema_that_explodes_with_the_answer_leaves_the_answer_unchecked() {
    let app = TestApp::new().await;
    let mut deep = json!("x");
    for _ in 0..40 {
        deep = json!([deep]);
    }
    let _fakes = app.executors([answers(deep)]).await;
    let body = json!({ "objective": "x", "execution": { "output_schema": explosive() } });
    let reply = app.admin().post("/api/v3/delegate", &body).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    let replica = &reply.json()["replicas"][0];
    assert_eq!(replica["status"], "ERROR");
    assert_eq!(replica["error"]["code"], "output_unchecked");
    assert_eq!(replica["reason_codes"], json!([1040]));
}

#[tokio::test]
async fn a_claim_that_the_node_cannot_check_is_refused() {
    let app = TestApp::new().await;
    let fake = app.executors([says_valid()]).await;
    let mut deep = json!("x");
    for _ in 0..40 {
        deep = json!([deep]);
    }
    let body = json!({ "claim": { "output": deep, "output_schema": explosive() } });
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(reply.json()["code"], "schema_refused");
    assert!(fake[0].calls().iter().all(|call| call.endpoint() != "verify"));
}

/// Doubles its work with every level of the instance.
fn explosive() -> Value {
    json!({
        "$defs": { "t": { "anyOf": [
            { "contains": { "$ref": "#/$defs/t" } },
            { "items": { "$ref": "#/$defs/t" } },
            { "type": "integer" },
        ] } },
        "$ref": "#/$defs/t",
    })
}
