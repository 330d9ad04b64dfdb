//! The echo executor and its faults.

use std::time::Duration;

use serde_json::json;

use jurat_runtime::engines::{EchoExecutor, EchoMode};
use jurat_runtime::{ExecutorLimits, ExecutorOptions};

use crate::server::{Server, execute_request, verify_request};

async fn start(name: &str, mode: EchoMode) -> Server {
    let limits = ExecutorLimits { execute: Duration::from_millis(50), ..ExecutorLimits::default() };
    let options = ExecutorOptions { limits, ..ExecutorOptions::default() };
    Server::start(EchoExecutor::new(name, "m", mode), options).await
}

#[tokio::test]
async fn honest_executors_agree_and_a_liar_does_not() {
    let a = start("a", EchoMode::Honest).await;
    let b = start("b", EchoMode::Honest).await;
    let liar = start("c", EchoMode::Lie).await;
    let request = execute_request("e", "delegate", &json!({"prompt": "hello"}));
    let honest = a.post("/execute", &request).await.json["candidate_output"].clone();
    assert_eq!(honest, json!({"answer": "hello", "confidence": 0.9}));
    assert_eq!(b.post("/execute", &request).await.json["candidate_output"], honest);
    let lie = liar.post("/execute", &request).await.json["candidate_output"].clone();
    assert_eq!(lie, json!({"answer": "the contrary of: hello", "confidence": 0.9}));
}

#[tokio::test]
async fn arithmetic_is_fact_checked_and_the_liar_answers_the_opposite() {
    let honest = start("a", EchoMode::Honest).await;
    let liar = start("c", EchoMode::Lie).await;
    for (id, claim, truth, lie) in [
        ("1", "2 + 2 = 4", "TRUE", "FALSE"),
        ("2", "2 + 2 = 5", "FALSE", "TRUE"),
        ("3", "it will rain", "UNSURE", "TRUE"),
    ] {
        let inputs = json!({"claim": claim, "prompt": claim, "mode": "standard", "context": {}});
        let request = execute_request(id, "factcheck", &inputs);
        let said = honest.post("/execute", &request).await.json["candidate_output"].clone();
        assert_eq!(said["verdict"], truth, "{claim}");
        let said = liar.post("/execute", &request).await.json["candidate_output"].clone();
        assert_eq!(said["verdict"], lie, "{claim}");
    }
}

#[tokio::test]
async fn a_hanging_executor_is_healthy_and_times_out() {
    let server = start("h", EchoMode::Hang).await;
    assert_eq!(server.get("/health").await.status, 200);
    let reply = server.post("/execute", &execute_request("e", "swarm", &json!({}))).await;
    assert_eq!((reply.status, &reply.json["error"]), (504, &json!("timeout")));
    let request = verify_request(&json!(1), &json!({}), "vp.schema_only.v1", &json!({}));
    assert_eq!(server.post("/verify", &request).await.status, 504);
}

#[tokio::test]
async fn the_budget_of_the_contract_ends_an_execution_too() {
    let executor = EchoExecutor::new("h", "m", EchoMode::Hang);
    let server = Server::start(executor, ExecutorOptions::default()).await;
    let mut request = execute_request("e", "swarm", &json!({}));
    request["task_contract"]["budget"] = json!({"time_ms": 20});
    assert_eq!(server.post("/execute", &request).await.status, 504);
}

#[tokio::test]
async fn a_failing_executor_answers_500_and_is_healthy() {
    let server = start("f", EchoMode::Fail).await;
    assert_eq!(server.get("/health").await.status, 200);
    let reply = server.post("/execute", &execute_request("e", "swarm", &json!({}))).await;
    assert_eq!((reply.status, &reply.json["error"]), (500, &json!("executor_failed")));
    let request = verify_request(&json!(1), &json!({}), "vp.schema_only.v1", &json!({}));
    assert_eq!(server.post("/verify", &request).await.status, 500);
}
