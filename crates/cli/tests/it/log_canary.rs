//! Puts a mark into everything that holds a secret, makes everything fail, and looks for the marks
//! in all output of the program: standard output, standard error, traces and metrics.

use std::{
    fs::File,
    io::Read as _,
    process::Stdio,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use jurat_guard::client::{ClientLimits, HttpReply, OutboundClient};
use jurat_testkit::{
    fake_collector::FakeCollector,
    fake_executor::{FakeExecutor, answers, redirects_to, replies, says_valid},
    postgres::TestSchema,
};
use serde_json::{Value, json};

use crate::home::{Home, Process};

const PATIENCE: Duration = Duration::from_secs(25);

/// Secrets, which must not be anywhere, not even in the store.
const TOKEN: &str = "canary-0token";
const COLLECTOR: &str = "canary-0collector";
/// Texts of callers and executors, which belong to them.
const CLAIM: &str = "canary-1claim";
const OUTPUT: &str = "canary-1output";
const REPLY: &str = "canary-1reply";
const BAD: &str = "canary-1bad";
const PASSWORD: &str = "canary-1password";

struct Asking {
    client: OutboundClient,
    url: String,
    key: String,
    sent: AtomicU32,
}

impl Asking {
    async fn send(
        &self,
        method: &str,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> HttpReply {
        let mut map = HeaderMap::new();
        let bearer = format!("Bearer {}", self.key);
        for (name, value) in [("authorization", bearer.as_str())].iter().chain(headers) {
            let name = HeaderName::try_from(*name).unwrap();
            map.insert(name, HeaderValue::from_str(value).unwrap());
        }
        let url = format!("{}{path}", self.url);
        let body = Bytes::from(body.to_owned());
        let mut request = Request::builder().method(method).uri(url).body(body).unwrap();
        *request.headers_mut() = map;
        self.client.send(request, PATIENCE).await.unwrap()
    }

    async fn post(&self, path: &str, body: &Value, expected: u16) -> Value {
        // A key of its own for each request, with the mark in it.
        let own = format!("{BAD}-{}", self.sent.fetch_add(1, Ordering::Relaxed));
        let headers = [("content-type", "application/json"), ("idempotency-key", own.as_str())];
        let reply = self.send("POST", path, &body.to_string(), &headers).await;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert_eq!(reply.status.as_u16(), expected, "{path} {body}: {text}");
        serde_json::from_str(&text).unwrap()
    }
}

/// Invalid keys, in forms that people send by mistake.
async fn knock(asking: &Asking) {
    let basic = format!("Basic {}", STANDARD.encode(format!("user:{BAD}")));
    let formed = format!("Bearer jrt_live_{BAD}");
    // Another secret under an existing identifier.
    let almost = format!("Bearer {}", asking.key.replace(secret_of(&asking.key), BAD));
    for value in
        [&basic, &formed, &almost, BAD, &format!("bearer   {BAD}"), &format!("Token {BAD}")]
    {
        let headers = [("authorization", value), ("cookie", BAD), ("user-agent", BAD)];
        let reply = asking.send("GET", "/v1/rounds", "", &headers).await;
        assert_eq!(reply.status, StatusCode::UNAUTHORIZED, "{value}");
    }
    let headers = [("authorization", "none"), ("x-api-key", BAD), ("x-request-id", "a b")];
    assert_eq!(asking.send("GET", "/metrics", "", &headers).await.status.as_u16(), 401);
}

/// Requests that fail, each with marks in it.
async fn fail(asking: &Asking) {
    let json = [("content-type", "application/json")];
    for (method, path, body, expected) in [
        ("POST", "/api/v3/validate", format!("{{\"claim\": {CLAIM}"), 400),
        ("POST", "/api/v3/validate", format!("{{\"{CLAIM}\": 1, \"{CLAIM}\": 2}}"), 400),
        ("POST", "/api/v3/validate", format!("{{\"claim\": \"{}\"}}", CLAIM.repeat(100_000)), 413),
        ("GET", &format!("/v1/rounds/{BAD}?token={BAD}"), String::new(), 404),
        ("GET", &format!("/{BAD}?token={BAD}"), String::new(), 404),
        ("PUT", "/v1/rounds", BAD.to_owned(), 405),
    ] {
        let reply = asking.send(method, path, &body, &json).await;
        assert_eq!(reply.status.as_u16(), expected, "{method} {path}");
    }
    let odd = [("content-type", BAD)];
    assert_eq!(asking.send("POST", "/api/v3/validate", CLAIM, &odd).await.status.as_u16(), 415);
    for url in [
        format!("http://user:{PASSWORD}@127.0.0.1:1"),
        format!("http://127.0.0.1:1/?key={PASSWORD}"),
        format!("{PASSWORD}://x"),
    ] {
        asking.post("/v1/executors", &json!({ "name": "x", "url": url }), 400).await;
    }
    let body = json!({ "claim": CLAIM, "consensus": { "session_pool": [BAD] } });
    asking.post("/api/v3/validate", &body, 422).await;
    let body = json!({ "claim": CLAIM, "policy": { "policy_id": BAD } });
    asking.post("/api/v3/validate", &body, 422).await;
}

/// Rounds with executors that answer, fail and lie, each with marks in its text.
async fn judge(asking: &Asking) -> Vec<FakeExecutor> {
    let behaviours = [
        answers(json!({ "answer": OUTPUT })),
        answers(json!({ "answer": "another" })),
        replies(500, "text/plain", REPLY),
        replies(200, "application/json", format!("{{\"{REPLY}\": 1")),
        redirects_to(&format!("http://127.0.0.1:1/{REPLY}")),
        says_valid().evidence("text/plain", REPLY),
    ];
    let mut fakes = Vec::new();
    for (index, behaviour) in behaviours.into_iter().enumerate() {
        let fake = FakeExecutor::start(behaviour).await;
        let body =
            json!({ "name": format!("e{index}"), "url": fake.url(), "token_env": "THE_TOKEN" });
        asking.post("/v1/executors", &body, 201).await;
        fakes.push(fake);
    }
    asking.post("/v1/executors", &json!({ "name": "e0", "url": "http://127.0.0.1:1" }), 409).await;
    let body = json!({
        "objective": CLAIM, "input": { "text": CLAIM }, "context": CLAIM,
        "consensus": { "session_pool": ["e0", "e1", "e2", "e3", "e4"], "replicas": 5 },
    });
    asking.post("/api/v3/delegate", &body, 200).await;
    let body = json!({ "claim": CLAIM, "context": CLAIM, "consensus": { "session_pool": ["e5"] } });
    asking.post("/api/v3/validate", &body, 200).await;
    let terms = json!({
        "session_pool": ["e2", "e3", "e4"], "replicas": 3, "disagreement_policy": "fail_hard",
    });
    asking.post("/api/v3/factcheck", &json!({ "claim": CLAIM, "consensus": terms }), 409).await;
    let nobody = json!({ "name": "gone", "url": "http://127.0.0.1:1" });
    asking.post("/v1/executors", &nobody, 201).await;
    let body = json!({ "claim": CLAIM, "consensus": { "session_pool": ["gone"] } });
    asking.post("/api/v3/validate", &body, 503).await;
    fakes
}

/// Messages of the protocol for models, valid and invalid, each with marks.
async fn speak(asking: &Asking) {
    let arguments = json!({ "objective": CLAIM, "consensus": { "session_pool": ["e0"] } });
    let good =
        json!({ "name": "delegate", "arguments": arguments, "_meta": { "progressToken": BAD } });
    let client = json!({ "name": BAD, "version": BAD });
    let begin =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let off = json!({ "requestId": BAD, "reason": BAD });
    let messages = [
        (json!({ "id": BAD, "method": "initialize", "params": begin }), 200),
        (json!({ "id": BAD, "method": "tools/call", "params": good }), 200),
        (json!({ "id": BAD, "method": "tools/call", "params": { "name": BAD } }), 200),
        (json!({ "id": BAD, "method": BAD, "params": { "a": CLAIM } }), 200),
        (json!({ "method": "notifications/cancelled", "params": off }), 202),
        (json!({ "id": BAD, "params": CLAIM }), 400),
    ];
    let json = ("content-type", "application/json");
    for (mut message, expected) in messages {
        message["jsonrpc"] = json!("2.0");
        let reply = asking.send("POST", "/mcp", &message.to_string(), &[json]).await;
        assert_eq!(reply.status.as_u16(), expected, "{message}");
    }
    for (name, value) in [("origin", "http://canary-1bad.example"), ("mcp-protocol-version", BAD)] {
        let reply = asking.send("POST", "/mcp", CLAIM, &[json, (name, value)]).await;
        assert!(matches!(reply.status.as_u16(), 400 | 403), "{name}");
    }
}

/// The secret part of a key.
fn secret_of(key: &str) -> &str {
    key.rsplit_once('_').unwrap().1
}

/// Runs a server through all of it, and returns its output, with the secrets of its keys.
async fn run(home: &Home, format: &str, store: &str) -> (String, Vec<String>) {
    let collector = FakeCollector::start().await;
    let out = home.path().join("stdout");
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0", "--log-format", format]);
    command.env("JURAT_LOG", "trace").env("THE_TOKEN", TOKEN).env("JURAT_STORE", store);
    command.env("JURAT_TELEMETRY_OTLP_ENDPOINT", collector.url());
    command.env("OTEL_EXPORTER_OTLP_HEADERS", format!("authorization=Bearer {COLLECTOR}"));
    command.stdout(File::create(&out).unwrap());
    let server = Process::heard(command).listening();
    let key = std::fs::read_to_string(home.state().join("admin.key")).unwrap();
    let client = OutboundClient::new(ClientLimits::default()).unwrap();
    let (url, key) = (server.url.clone(), key.trim().to_owned());
    let asking = Asking { client, url, key, sent: AtomicU32::new(0) };

    knock(&asking).await;
    fail(&asking).await;
    let fakes = judge(&asking).await;
    speak(&asking).await;
    let body = json!({ "name": "another", "scopes": ["rounds:create"] });
    let made = asking.post("/v1/api-keys", &body, 201).await;
    let other = made["key"].as_str().unwrap().to_owned();
    let figures = asking.send("GET", "/metrics", "", &[]).await.body;
    // Secrets were used, so not finding them means something.
    let bearer = format!("Bearer {TOKEN}");
    for fake in &fakes {
        assert!(fake.calls().iter().all(|call| call.header("authorization") == Some(&bearer)));
    }
    let said = tokio::task::spawn_blocking(move || server.everything()).await.unwrap();
    assert_eq!(collector.last_header("authorization"), Some(format!("Bearer {COLLECTOR}")));
    let mut all = said;
    File::open(out).unwrap().read_to_string(&mut all).unwrap();
    all.push_str(std::str::from_utf8(&figures).unwrap());
    for body in collector.bodies() {
        all.push_str(&String::from_utf8_lossy(&body));
    }
    assert!(collector.bodies().len() >= 2, "nothing was traced");
    let secrets = vec![secret_of(&asking.key).to_owned(), secret_of(&other).to_owned()];
    (all, secrets)
}

#[track_caller]
fn check(all: &str, secrets: &[String]) {
    let basic = STANDARD.encode(format!("user:{BAD}"));
    let marks = [TOKEN, COLLECTOR, CLAIM, OUTPUT, REPLY, BAD, PASSWORD, basic.as_str()];
    for mark in marks.into_iter().chain(secrets.iter().map(String::as_str)) {
        let line = all.lines().find(|line| line.contains(mark));
        assert!(line.is_none(), "`{mark}` is in: {}", line.unwrap_or_default());
    }
    assert!(all.contains("served a request"), "there is no log");
    assert!(all.contains("gen_ai.evaluation.result"), "there are no events");
}

/// The files of a store, as a thief would read them.
fn stored(home: &Home) -> String {
    let mut all = String::new();
    for name in ["jurat.db", "jurat.db-wal"] {
        if let Ok(bytes) = std::fs::read(home.state().join(name)) {
            all.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    assert!(all.contains("executors"));
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_and_no_content_is_in_text_logs_traces_or_metrics() {
    let home = Home::new();
    let (all, secrets) = run(&home, "text", "jurat.db").await;
    check(&all, &secrets);
    let stored = stored(&home);
    for secret in secrets.iter().map(String::as_str).chain([TOKEN, COLLECTOR]) {
        assert!(!stored.contains(secret), "`{secret}` is in the store");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_and_no_content_is_in_json_logs() {
    let home = Home::new();
    let (all, secrets) = run(&home, "json", "jurat.db").await;
    check(&all, &secrets);
    let lines: Vec<Value> = all
        .lines()
        .take_while(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(20 < lines.len(), "{}", lines.len());
    let served = lines.iter().find(|line| {
        line["message"] == "served a request" && line["http.route"] == "/api/v3/delegate"
    });
    let served = served.unwrap();
    for field in ["timestamp", "request.id", "key.id", "duration_ms", "http.response.status_code"] {
        assert!(!served[field].is_null(), "no {field} in {served}");
    }
    assert!(lines.iter().all(|line| !line["level"].is_null() && !line["target"].is_null()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_its_database_does_not_reveal_the_password() {
    let home = Home::new();
    let store = format!("postgres://me:{PASSWORD}@127.0.0.1:1/jurat");
    for format in ["text", "json"] {
        let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("JURAT_LOG", "trace").env("JURAT_STORE", &store).env("JURAT_KEY", TOKEN);
        command.env("JURAT_LOG_FORMAT", format).stdout(Stdio::piped());
        let ran = command.output().unwrap();
        assert!(!ran.status.success());
        let said = [ran.stdout, ran.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("postgresql"), "{said}");
        assert!(!said.contains(PASSWORD) && !said.contains(TOKEN), "{said}");
    }
}

/// The same with a database that needs a password.
pub(crate) async fn on_postgres() {
    let (home, schema) = (Home::new(), TestSchema::served().await);
    let mut url = url::Url::parse(&schema.serving_url()).unwrap();
    url.set_password(Some(PASSWORD)).unwrap();
    let (all, secrets) = run(&home, "text", url.as_str()).await;
    check(&all, &secrets);
    schema.drop().await;
}
