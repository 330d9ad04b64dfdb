//! `POST /agent-events`: each event is heard once, and what is decided is answered.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use jurat_runtime::{
    AgentDecision, AgentEvent, Capabilities, Evidence, Execute, Execution, Executor, ExecutorError,
    Options, Secret,
    engines::{CommandExecutor, EchoExecutor, EchoMode},
};
use serde_json::{Value, json};

use crate::server::Server;

fn event(id: &str, key: Option<&str>) -> Value {
    json!({ "event": {
        "event_id": id,
        "event_type": "task_claim_received",
        "source_kind": "task_lifecycle",
        "payload": { "event_kind": "task_claimed" },
        "requires_commit": false,
        "allowed_actions": ["decide_claim"],
        "dedupe_key": key,
        "created_at": 1,
    } })
}

/// Declines every claim, and counts how often it was asked.
#[derive(Default)]
struct Declines {
    heard: AtomicUsize,
}

#[async_trait]
impl Executor for Declines {
    fn capabilities(&self) -> Capabilities {
        EchoExecutor::new("f", "m", EchoMode::Honest).capabilities()
    }

    async fn execute(&self, _: &Execute) -> Result<Execution, ExecutorError> {
        Ok(Execution { output: Value::Null, evidence: Evidence::default() })
    }

    async fn told(&self, event: &AgentEvent) -> Result<Option<AgentDecision>, ExecutorError> {
        let count = self.heard.fetch_add(1, Ordering::SeqCst);
        if event.event_id == "bad" {
            return Err(ExecutorError::Upstream("the model is away".to_owned()));
        }
        Ok(Some(AgentDecision {
            decision_id: format!("d{count}"),
            action: "decide_claim".to_owned(),
            route: "wattswarm_direct".to_owned(),
            reason: None,
            payload: Some(json!({ "accept": false })),
        }))
    }
}

#[tokio::test]
async fn an_event_is_taken_and_says_so() {
    let server =
        Server::start(EchoExecutor::new("f", "m", EchoMode::Honest), Options::default()).await;
    let reply = server.post("/agent-events", &event("e1", None)).await;
    assert_eq!((reply.status, &reply.json["ok"]), (200, &json!(true)), "{reply:?}");
    assert_eq!(reply.json["detail"], "received task_claim_received");
    assert!(1_700_000_000_000 < reply.json["acked_at"].as_u64().unwrap());
    assert!(reply.json.get("decision").is_none());
    let reply = server.post("/agent-events", &json!({ "event": {} })).await;
    assert_eq!((reply.status, &reply.json["field"]), (422, &json!("event.event_id")));
}

#[tokio::test]
async fn the_same_event_is_heard_once() {
    let server = Server::start(Declines::default(), Options::default()).await;
    let first = server.post("/agent-events", &event("e1", Some("k"))).await;
    assert_eq!(first.json["decision"]["decision_id"], "d0");
    // Told again under another name: the key is what counts.
    assert_eq!(server.post("/agent-events", &event("e2", Some("k"))).await.json, first.json);
    let other = server.post("/agent-events", &event("e3", Some("other"))).await;
    assert_eq!(other.json["decision"]["decision_id"], "d1");
    // What went wrong is heard again.
    let failed = server.post("/agent-events", &event("bad", None)).await;
    assert_eq!((failed.status, &failed.json["error"]), (502, &json!("upstream_failed")));
    server.post("/agent-events", &event("bad", None)).await;
    let last = server.post("/agent-events", &event("e4", None)).await;
    assert_eq!(last.json["decision"]["decision_id"], "d4");
}

#[tokio::test]
async fn events_need_the_token_as_all_work_does() {
    let options = Options { token: Some(Secret::new("t")), ..Options::default() };
    let server = Server::start(EchoExecutor::new("f", "m", EchoMode::Honest), options).await;
    let reply = server.post("/agent-events", &event("e1", None)).await;
    assert_eq!((reply.status, &reply.json["error"]), (401, &json!("auth_required")));
}

#[tokio::test]
async fn a_program_hears_of_events_where_it_wants_to() {
    let script = r#"read line
        case "$line" in
            *agent_event*) echo '{"ok": true, "decision": {"decision_id": "p", "action": "ignore", "route": "noop"}}' ;;
            *) exit 3 ;;
        esac"#;
    let capabilities = EchoExecutor::new("f", "m", EchoMode::Honest).capabilities();
    let arguments = vec!["-c".to_owned(), script.to_owned()];
    let deaf = CommandExecutor::new(capabilities, "sh".into(), arguments);
    let hears = CommandExecutor { hears_events: true, ..deaf.clone() };
    let server = Server::start(deaf, Options::default()).await;
    let reply = server.post("/agent-events", &event("e1", None)).await;
    assert_eq!((reply.status, reply.json.get("decision")), (200, None));
    let server = Server::start(hears, Options::default()).await;
    let reply = server.post("/agent-events", &event("e1", None)).await;
    assert_eq!((reply.status, &reply.json["decision"]["decision_id"]), (200, &json!("p")));
}
