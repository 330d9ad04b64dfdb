//! `POST /agent-events`: each event is handled once, and its decision is returned.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::SystemTime,
};

use async_trait::async_trait;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_runtime::{
    AgentDecision, AgentEvent, Capabilities, Evidence, Execute, Execution, ExecutorError,
    ExecutorOptions, ExecutorService, Secret,
    engines::{CommandExecutor, EchoExecutor, EchoMode},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

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
impl ExecutorService for Declines {
    fn capabilities(&self) -> Capabilities {
        EchoExecutor::new("f", "m", EchoMode::Honest).capabilities()
    }

    async fn execute(&self, _: &Execute) -> Result<Execution, ExecutorError> {
        Ok(Execution { output: Value::Null, evidence: Evidence::default() })
    }

    async fn on_event(&self, event: &AgentEvent) -> Result<Option<AgentDecision>, ExecutorError> {
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
async fn an_event_is_accepted_and_acknowledged() {
    let server =
        Server::start(EchoExecutor::new("f", "m", EchoMode::Honest), ExecutorOptions::default())
            .await;
    let reply = server.post("/agent-events", &event("e1", None)).await;
    assert_eq!((reply.status, &reply.json["ok"]), (200, &json!(true)), "{reply:?}");
    assert_eq!(reply.json["detail"], "received task_claim_received");
    assert!(1_700_000_000_000 < reply.json["acked_at"].as_u64().unwrap());
    assert!(reply.json.get("decision").is_none());
    let reply = server.post("/agent-events", &json!({ "event": {} })).await;
    assert_eq!((reply.status, &reply.json["field"]), (422, &json!("event.event_id")));
}

#[tokio::test]
async fn the_same_event_is_handled_once() {
    let server = Server::start(Declines::default(), ExecutorOptions::default()).await;
    let first = server.post("/agent-events", &event("e1", Some("k"))).await;
    assert_eq!(first.json["decision"]["decision_id"], "d0");
    // Sent again under another name: the key decides.
    assert_eq!(server.post("/agent-events", &event("e2", Some("k"))).await.json, first.json);
    let other = server.post("/agent-events", &event("e3", Some("other"))).await;
    assert_eq!(other.json["decision"]["decision_id"], "d1");
    // A failed event is handled again.
    let failed = server.post("/agent-events", &event("bad", None)).await;
    assert_eq!((failed.status, &failed.json["error"]), (502, &json!("upstream_failed")));
    server.post("/agent-events", &event("bad", None)).await;
    let last = server.post("/agent-events", &event("e4", None)).await;
    assert_eq!(last.json["decision"]["decision_id"], "d4");
}

#[tokio::test]
async fn events_need_the_token_like_all_work() {
    let options = ExecutorOptions { token: Some(Secret::new("t")), ..ExecutorOptions::default() };
    let server = Server::start(EchoExecutor::new("f", "m", EchoMode::Honest), options).await;
    let reply = server.post("/agent-events", &event("e1", None)).await;
    assert_eq!((reply.status, &reply.json["error"]), (401, &json!("auth_required")));
}

#[tokio::test]
async fn a_program_receives_events_if_it_wants_them() {
    let script = r#"read line
        case "$line" in
            *agent_event*) echo '{"ok": true, "decision": {"decision_id": "p", "action": "ignore", "route": "noop"}}' ;;
            *) exit 3 ;;
        esac"#;
    let capabilities = EchoExecutor::new("f", "m", EchoMode::Honest).capabilities();
    let arguments = vec!["-c".to_owned(), script.to_owned()];
    let deaf = CommandExecutor::new(capabilities, "sh".into(), arguments);
    let hears = CommandExecutor { hears_events: true, ..deaf.clone() };
    let server = Server::start(deaf, ExecutorOptions::default()).await;
    let reply = server.post("/agent-events", &event("e1", None)).await;
    assert_eq!((reply.status, reply.json.get("decision")), (200, None));
    let server = Server::start(hears, ExecutorOptions::default()).await;
    let reply = server.post("/agent-events", &event("e1", None)).await;
    assert_eq!((reply.status, &reply.json["decision"]["decision_id"]), (200, &json!("p")));
}

/// The signed parts of an event.
struct Letter {
    body: String,
    host: String,
    path: &'static str,
    age_s: u64,
    /// The components that the signature covers besides the address.
    covers: &'static [&'static str],
}

const ALL: &[&str] = &["content-digest", "x-jurat-event"];

impl Letter {
    /// The headers by which the executor identifies the sender.
    fn signed(&self, seed: [u8; 32]) -> Vec<(&'static str, String)> {
        let key = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        let digest = STANDARD.encode(Sha256::digest(self.body.as_bytes()));
        let digest = format!("sha-256=:{digest}:");
        #[expect(clippy::disallowed_methods, reason = "the executor looks at the same clock")]
        let now = SystemTime::now();
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let covers: Vec<String> = self.covers.iter().map(|it| format!(" \"{it}\"")).collect();
        let params = format!(
            "(\"@method\" \"@authority\" \"@path\"{});created={};keyid=\"{}\";alg=\"ed25519\"",
            covers.concat(),
            since.as_secs() - self.age_s,
            hex::encode(key.public_key()),
        );
        let value = |name: &str| if name == "content-digest" { &*digest } else { "e1" };
        let lines = self.covers.iter().map(|it| format!("\"{it}\": {}\n", value(it)));
        let base = format!(
            "\"@method\": POST\n\"@authority\": {}\n\"@path\": {}\n{}\"@signature-params\": {params}",
            self.host,
            self.path,
            lines.collect::<String>(),
        );
        let signature = STANDARD.encode(key.sign(base.as_bytes()));
        vec![
            ("x-jurat-event", "e1".to_owned()),
            ("content-digest", digest),
            ("signature-input", format!("sig1={params}")),
            ("signature", format!("sig1=:{signature}:")),
        ]
    }
}

#[tokio::test]
async fn only_events_signed_by_a_known_node_are_accepted() {
    const NODE: [u8; 32] = [7; 32];
    let key = Ed25519KeyPair::from_seed_unchecked(&NODE).unwrap();
    let nodes = vec![hex::encode(key.public_key()).parse().unwrap()];
    let server =
        Server::start(Declines::default(), ExecutorOptions { nodes, ..ExecutorOptions::default() })
            .await;
    let body = event("e1", None).to_string();
    let letter = |age_s| Letter {
        body: body.clone(),
        host: server.host(),
        path: "/agent-events",
        age_s,
        covers: ALL,
    };
    let post = async |body: &str, headers: &[(&'static str, String)]| {
        let reply = server.post_with("/agent-events", body, headers).await;
        let message = reply.json["message"].as_str().unwrap_or_default().to_owned();
        (reply.status, message)
    };
    let (status, message) = post(&body, &[]).await;
    assert!(status == 401 && message.contains("`content-digest`"), "{status} {message}");
    assert_eq!(post(&body, &letter(0).signed(NODE)).await.0, 200);
    assert_eq!(post(&body, &letter(200).signed(NODE)).await.0, 200);
    let (status, message) = post(&body, &letter(1_000).signed(NODE)).await;
    assert!(status == 401 && message.contains("more than 300 seconds"), "{status} {message}");
    let (status, message) = post(&body, &letter(0).signed([8; 32])).await;
    assert!(status == 401 && message.contains("the signing node is unknown"), "{status} {message}");
    // A signature that does not cover the body, or the event, could be reused by anybody who
    // forwards it.
    for covers in [&ALL[..1], &ALL[1..]] {
        let (status, message) = post(&body, &Letter { covers, ..letter(0) }.signed(NODE)).await;
        assert!(status == 401 && message.contains("must cover"), "{status} {message}");
    }
    // Another body with the same signature, and the same body for another host.
    let other = event("e2", None).to_string();
    let (status, message) = post(&other, &letter(0).signed(NODE)).await;
    assert!(status == 401 && message.contains("does not match the body"), "{status} {message}");
    let elsewhere = Letter { host: "elsewhere".to_owned(), ..letter(0) };
    let (status, message) = post(&body, &elsewhere.signed(NODE)).await;
    assert!(
        status == 401 && message.contains("does not match the received request"),
        "{status} {message}"
    );
    let mut forged = letter(0).signed([8; 32]);
    forged[2] = letter(0).signed(NODE)[2].clone();
    assert_eq!(post(&body, &forged).await.0, 401);
    // A signature that does not cover its target is refused.
    let mut narrow = letter(0).signed(NODE);
    narrow[2].1 = narrow[2].1.replace(" \"@path\"", "");
    let (status, message) = post(&body, &narrow).await;
    assert!(status == 401 && message.contains("must cover"), "{status} {message}");
    let mut twice = letter(0).signed(NODE);
    twice.push(("x-jurat-event", "e2".to_owned()));
    assert_eq!(post(&body, &twice).await.0, 401);
    // The other endpoints do not require a signature.
    assert_eq!(server.get("/capabilities").await.status, 200);
}

#[tokio::test]
async fn a_dedupe_key_counts_per_signer() {
    let server = Server::start(Declines::default(), ExecutorOptions::default()).await;
    let told = async |id: &str, seed: Option<[u8; 32]>| {
        let letter = Letter {
            body: event(id, Some("k")).to_string(),
            host: server.host(),
            path: "/agent-events",
            age_s: 0,
            covers: ALL,
        };
        let headers = seed.map(|seed| letter.signed(seed)).unwrap_or_default();
        let reply = server.post_with("/agent-events", &letter.body, &headers).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json["decision"]["decision_id"].as_str().unwrap().to_owned()
    };
    // An unsigned event, or one with another key, cannot suppress a node's event by using its key
    // first.
    assert_eq!(told("e1", None).await, "d0");
    assert_eq!(told("e2", Some([8; 32])).await, "d1");
    assert_eq!(told("e3", Some([7; 32])).await, "d2");
    // The same signer and key are the same event.
    assert_eq!(told("e4", Some([7; 32])).await, "d2");
    assert_eq!(told("e5", Some([8; 32])).await, "d1");
    assert_eq!(told("e6", None).await, "d0");
}
