//! The four endpoints, and the requests that they refuse.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use jurat_core::policy::policy_hash;
use jurat_runtime::engines::{EchoExecutor, EchoMode};
use jurat_runtime::{ExecutorLimits, ExecutorOptions, Secret, serve};

use crate::server::{Server, background, execute_request};

fn echo() -> EchoExecutor {
    EchoExecutor::new("echo-family", "echo-1", EchoMode::Honest)
}

fn picky() -> EchoExecutor {
    let mut echo = echo();
    echo.capabilities.task_types = vec!["swarm".to_owned()];
    echo.capabilities.profiles = vec!["default".to_owned()];
    echo
}

#[tokio::test]
async fn health_and_capabilities_answer() {
    let server = Server::start(echo(), ExecutorOptions::default()).await;
    assert_eq!(server.get("/health").await.json, json!({"status": "ok"}));
    assert_eq!(
        server.get("/capabilities").await.json,
        json!({
            "task_types": ["*", "swarm"], "profiles": ["*", "default"],
            "provider_family": "echo-family",
            "model_id": "echo-1", "policies": ["vp.claim.v1"],
        })
    );
}

#[tokio::test]
async fn wattswarm_finds_the_words_that_it_requires() {
    let echo = EchoExecutor::new("echo", "echo-1", EchoMode::Honest);
    let server = Server::start(echo, ExecutorOptions::default()).await;
    let declared = server.get("/capabilities").await.json;
    assert_eq!(declared["profiles"], json!(["*", "default"]));
    assert_eq!(declared["task_types"], json!(["*", "swarm"]));
}

#[tokio::test]
async fn execute_answers_a_recorded_wattswarm_request() {
    let server = Server::start(picky(), ExecutorOptions::default()).await;
    let request: Value =
        serde_json::from_str(include_str!("golden/wattswarm-execute.json")).unwrap();
    let reply = server.post("/execute", &request).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let output = &reply.json["candidate_output"];
    assert_eq!((&output["answer"], &output["confidence"]), (&json!("hello"), &json!(0.9)));
    assert_eq!(reply.json["evidence_inline"][0]["mime"], "text/plain");
    // Without these, WattSwarm's kernel finalizes no cross-check and counts no agent of a run.
    assert!(!output["check_summary"].as_str().unwrap().trim().is_empty(), "{output}");
    let reference = &reply.json["evidence_refs"][0];
    assert!(reference["digest"].as_str().unwrap().starts_with("sha256:"), "{reference}");
    for name in ["uri", "mime", "producer"] {
        assert!(!reference[name].as_str().unwrap().is_empty(), "{reference}");
    }
    assert!(reference["size_bytes"].is_u64() && reference["created_at"].is_u64(), "{reference}");
}

#[tokio::test]
async fn other_policies_get_no_wattswarm_members() {
    let server = Server::start(picky(), ExecutorOptions::default()).await;
    let mut request: Value =
        serde_json::from_str(include_str!("golden/wattswarm-execute.json")).unwrap();
    let own = policy_hash("vp.schema_only.v1", &json!({}));
    request["task_contract"]["acceptance"]["verifier_policy"]["policy_hash"] = json!(own);
    let reply = server.post("/execute", &request).await;
    assert_eq!(reply.json["candidate_output"], json!({"answer": "hello", "confidence": 0.9}));
    assert_eq!(reply.json["evidence_refs"], json!([]));
}

#[tokio::test]
async fn invalid_json_is_a_400_and_a_wrong_field_a_422() {
    let server = Server::start(echo(), ExecutorOptions::default()).await;
    let reply = server.post_text("/execute", "{\"a\":1,\"a\":2}").await;
    assert_eq!((reply.status, &reply.json["error"]), (400, &json!("invalid_json")));
    assert!(reply.json["message"].as_str().unwrap().contains("`a` appears twice"), "{reply:?}");

    let mut body = execute_request("e", "swarm", &json!({}));
    body["task_contract"]["budget"] = json!({"time_ms": "soon"});
    let reply = server.post("/execute", &body).await;
    assert_eq!((reply.status, &reply.json["field"]), (422, &json!("task_contract.budget.time_ms")));

    let reply = server.post("/verify", &json!({"candidate": {}})).await;
    assert_eq!((reply.status, &reply.json["field"]), (422, &json!("candidate.candidate_id")));
}

#[tokio::test]
async fn an_undeclared_task_type_or_profile_is_refused() {
    let server = Server::start(picky(), ExecutorOptions::default()).await;
    let reply = server.post("/execute", &execute_request("e", "poetry", &json!({}))).await;
    assert_eq!((reply.status, &reply.json["field"]), (422, &json!("task_type")));
    assert_eq!(
        reply.json["message"],
        "task_type: `poetry` is not declared; this executor takes `swarm`"
    );
    let mut body = execute_request("e", "swarm", &json!({}));
    body["profile"] = json!("careful");
    let reply = server.post("/execute", &body).await;
    assert_eq!((reply.status, &reply.json["error"]), (422, &json!("profile_unsupported")));
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let limits = ExecutorLimits { body_bytes: 10_000, ..ExecutorLimits::default() };
    let server =
        Server::start(echo(), ExecutorOptions { limits, ..ExecutorOptions::default() }).await;
    let body = execute_request("e", "swarm", &json!({"prompt": "x".repeat(9_000)}));
    assert_eq!(server.post("/execute", &body).await.status, 200);
    let body = execute_request("e", "swarm", &json!({"prompt": "x".repeat(10_000)}));
    let reply = server.post("/execute", &body).await;
    assert_eq!((reply.status, &reply.json["error"]), (413, &json!("payload_too_large")));
}

#[tokio::test]
async fn a_body_with_too_many_values_is_refused() {
    let server = Server::start(echo(), ExecutorOptions::default()).await;
    let body = |count| execute_request("e", "swarm", &json!({"list": vec![json!({"": 0}); count]}));
    assert_eq!(server.post("/execute", &body(1_000)).await.status, 200);
    let many = body(125_000);
    for path in ["/execute", "/verify", "/agent-events"] {
        let reply = server.post(path, &many).await;
        assert_eq!(
            (reply.status, &reply.json["error"]),
            (413, &json!("payload_too_large")),
            "{path}"
        );
        let message = reply.json["message"].as_str().unwrap();
        assert!(message.starts_with("more than 200000 values"), "{path}: {message}");
    }
    // A wide number under a WattSwarm policy does not lift the limit, either.
    let mut wide: Value =
        serde_json::from_str(include_str!("golden/wattswarm-execute.json")).unwrap();
    wide["inputs"] = json!({ "id": u64::MAX, "list": many["inputs"]["list"] });
    assert_eq!(server.post("/execute", &wide).await.status, 413);
}

#[tokio::test]
async fn a_form_that_a_web_page_could_send_is_refused() {
    let server = Server::start(echo(), ExecutorOptions::default()).await;
    let body = execute_request("e", "swarm", &json!({})).to_string();
    assert_eq!(server.post_as("/execute", "text/plain", &body).await.status, 415);
    assert_eq!(
        server.post_as("/execute", "application/json; charset=utf-8", &body).await.status,
        200
    );
}

#[tokio::test]
async fn a_token_guards_everything_but_health() {
    let options =
        ExecutorOptions { token: Some(Secret::new("open sesame")), ..ExecutorOptions::default() };
    let server = Server::start(echo(), options).await;
    assert_eq!(server.get("/health").await.status, 200);
    let reply = server.get("/capabilities").await;
    assert_eq!((reply.status, &reply.json["error"]), (401, &json!("auth_required")));
    assert_eq!(server.with_token("open").post("/execute", &json!({})).await.status, 401);
    assert_eq!(server.with_token("open sesame").get("/capabilities").await.status, 200);
}

#[tokio::test]
async fn unknown_paths_and_methods_list_the_endpoints() {
    let server = Server::start(echo(), ExecutorOptions::default()).await;
    assert_eq!(server.get("/nothing").await.status, 404);
    let reply = server.get("/execute").await;
    assert_eq!((reply.status, &reply.json["error"]), (405, &json!("method_not_allowed")));
}

#[tokio::test]
async fn a_server_stops_although_a_request_hangs() {
    let limits = ExecutorLimits { grace: Duration::from_millis(20), ..ExecutorLimits::default() };
    let options = ExecutorOptions { limits, ..ExecutorOptions::default() };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move { drop(stopped.await) };
    let hanging = Arc::new(EchoExecutor::new("h", "m", EchoMode::Hang));
    let asking = async {
        let body = execute_request("e", "swarm", &json!({})).to_string();
        let head = "POST /execute HTTP/1.1\r\nHost: x\r\nContent-Type: application/json";
        let text = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stop.send(()).unwrap();
        stream
    };
    let (served, _stream) = tokio::join!(serve(listener, hanging, options, shutdown), asking);
    served.unwrap();
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_frees_its_slot() {
    let limits = ExecutorLimits {
        connections: 1,
        idle: Duration::from_millis(200),
        ..ExecutorLimits::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = ExecutorOptions { limits, ..ExecutorOptions::default() };
    let serving = serve(listener, Arc::new(echo()), options, std::future::pending());
    background(async { serving.await.unwrap() });
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET /health HTTP/1.1\r\nHost:").await.unwrap();
    // The only slot is taken, so this waits until the other connection is closed.
    assert_eq!(Server::at(address).get("/health").await.status, 200);
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).await.unwrap();
    assert!(!rest.starts_with(b"HTTP/1.1 200"), "{rest:?}");
}

#[tokio::test]
async fn ambiguous_json_is_refused() {
    let server = Server::start(echo(), ExecutorOptions::default()).await;
    for document in jurat_testkit::json_table::documents() {
        for path in ["/execute", "/verify"] {
            let reply = server.post_text(path, document.within(r#"{"x":"#, "}")).await;
            let is_refused = reply.json["error"] == "invalid_json";
            assert_eq!(is_refused, !document.is_read, "{path}: {}", document.name);
        }
    }
}
