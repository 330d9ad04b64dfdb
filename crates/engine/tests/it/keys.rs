//! Keys on a node that stops, and on two nodes that share a store.

use std::sync::Arc;

use http::StatusCode;
use jurat_engine::EngineLimits;
use jurat_store::{Behalf, StoreLocation};
use jurat_testkit::app::TestApp;
use serde_json::json;

#[tokio::test]
async fn the_last_use_is_written_when_the_node_stops() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::File(folder.path().join("store.db"));
    let app = TestApp::with_store(&location).await;
    let created = app.admin().post("/v1/api-keys", &json!({ "name": "ci" })).await.json();
    let used = app.with_key(created["key"].as_str().unwrap()).get("/v1/rounds").await;
    assert_eq!(used.status, StatusCode::OK);
    let now = app.engine.clock().now();
    app.engine.shutdown().await;
    let store = jurat_store::open(&location).await.unwrap();
    let record = store
        .keys()
        .get(&Behalf::Platform, created["id"].as_str().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(record.key.last_used_at, Some(now));
    store.close().await;
}

#[tokio::test]
async fn each_node_counts_separately() {
    let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
    let one = TestApp::on(Arc::clone(&store), EngineLimits::default()).await;
    let other = TestApp::on(store, EngineLimits::default()).await;
    let body = json!({ "name": "ci", "rate_per_minute": 1 });
    let created = one.admin().post("/v1/api-keys", &body).await.json();
    let key = created["key"].as_str().unwrap();
    for node in [&one, &other] {
        let ask = async || node.with_key(key).get("/v1/rounds").await.status.as_u16();
        assert_eq!((ask().await, ask().await), (200, 429));
    }
}
