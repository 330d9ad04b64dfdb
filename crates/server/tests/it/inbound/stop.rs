//! A server that is told to stop.

use jurat_server::InboundLimits;
use jurat_store::StoreLocation;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{gated, says_valid},
};

use super::{HEALTH, SHORT, Served, patient, post};

const READY: &str = "GET /ready HTTP/1.1\r\nhost: x\r\n\r\n";

fn round() -> String {
    let body = r#"{"claim":"x"}"#;
    post(&format!("content-length: {}\r\n", body.len())) + body
}

#[tokio::test]
async fn an_idle_server_stops_immediately() {
    let mut served = Served::with(patient()).await;
    let mut idle = served.says(HEALTH).await;
    idle.until("ok").await;
    let mut silent = served.connect().await;
    served.stop();
    served.ended().await;
    assert_eq!(idle.rest().await, "");
    assert_eq!(silent.rest().await, "");
}

#[tokio::test]
async fn a_round_in_progress_finishes_while_new_ones_are_refused() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let mut served = Served::on(app, patient()).await;
    let mut asking = served.says(&round()).await;
    fake.wait_for_calls(1).await;
    served.stop();
    served.app.engine.stopping().await;

    let mut other = served.says(READY).await;
    let answer = other.until("}").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains(r#""code":"shutting_down""#), "{answer}");
    other.say(HEALTH).await;
    other.until(r#""status":"ok""#).await;
    other.say(&round()).await;
    let refused = other.until("}").await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains(r#""code":"shutting_down""#), "{refused}");
    assert!(refused.contains("\r\nretry-after: "), "{refused}");

    fake.release();
    let answer = asking.rest().await;
    assert!(answer.contains(r#""verdict":"VALID""#), "{answer}");
    served.ended().await;
}

#[tokio::test]
async fn connections_that_do_not_end_are_dropped() {
    let mut served = Served::with(InboundLimits { close_timeout: SHORT, ..patient() }).await;
    let mut half = served.says("GET /health HTTP/1.1\r\nhost:").await;
    // The server has seen it once it has answered a later one.
    served.says(HEALTH).await.until("ok").await;
    served.stop();
    served.ended().await;
    assert_eq!(half.rest().await, "");
}

#[tokio::test]
async fn a_stopping_server_keeps_serving_until_load_balancers_notice() {
    let mut served = Served::with(InboundLimits { shutdown_delay: SHORT, ..patient() }).await;
    served.stop();
    served.app.engine.stopping().await;
    served.says(HEALTH).await.until("ok").await;
    served.ended().await;
}

#[tokio::test]
async fn a_round_that_outlasts_the_drain_is_expired_before_the_process_ends() {
    let folder = tempfile::tempdir().unwrap();
    let file = StoreLocation::File(folder.path().join("jurat.db"));
    let app = TestApp::with_store(&file).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let mut served = Served::on(app, InboundLimits { drain: SHORT, ..patient() }).await;
    let mut asking = served.says(&round()).await;
    fake.wait_for_calls(1).await;
    served.stop();
    served.ended().await;
    // The waiting caller gets a reply, and the connection ends.
    assert!(asking.rest().await.starts_with("HTTP/1.1 "));
    served.app.engine.shutdown().await;

    // Nothing is started, so only the end of the first process can have ended it.
    let next = TestApp::with_store(&file).await;
    let list = next.admin().get("/v1/rounds").await.json();
    assert_eq!(list["items"][0]["state"], "expired", "{list}");
    let id = list["items"][0]["round_id"].as_str().unwrap();
    let shown = next.admin().get(&format!("/v1/rounds/{id}")).await.json();
    assert_eq!(shown["replicas"][0]["error"]["code"], "node_stopped", "{shown}");
}
