//! A brief outage of the store costs no paid round.

use jurat_engine::EngineLimits;
use jurat_testkit::{
    app::TestApp,
    fake_executor::says_valid,
    unreliable_store::{UnreliableStore, WriteFault},
};
use serde_json::json;

async fn a_round_survives(fault: WriteFault, times: u32) {
    let app =
        TestApp::on(UnreliableStore::new(fault, times).store(), EngineLimits::default()).await;
    let [fake] = app.executors([says_valid()]).await;
    let reply = app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await;
    assert_eq!(reply.json()["verdict"], "VALID", "{}", reply.text());
    // The executor was asked once, and one round is recorded.
    assert_eq!(fake.calls().iter().filter(|call| call.endpoint() == "verify").count(), 1);
    let list = app.admin().get("/v1/rounds").await.json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(list["items"][0]["receipt_id"], reply.json()["receipt_id"]);
}

#[tokio::test]
async fn a_refused_close_is_retried() {
    a_round_survives(WriteFault::Refused, 2).await;
}

#[tokio::test]
async fn a_close_whose_answer_was_lost_is_recognised() {
    a_round_survives(WriteFault::AnswerLost, 1).await;
}

#[tokio::test]
async fn a_lasting_store_outage_is_reported_without_a_verdict() {
    let store = UnreliableStore::new(WriteFault::Refused, u32::MAX);
    let app = TestApp::on(store.store(), EngineLimits::default()).await;
    let _fakes = app.executors([says_valid()]).await;
    let reply = app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await.json();
    assert_eq!(reply["code"], "store_unavailable");
    assert_eq!(reply.get("verdict"), None);
}
