//! The command line gives the same decisions and codes as the surfaces of the server.

use std::fs;

use jurat_core::code::ProblemCode;
use jurat_testkit::{
    fake_executor::{Behaviour, FakeExecutor, says_valid},
    surface_table::{
        self, BadRequest, JobKind, Sender, Sending, Surface, assert_decided, bad_requests,
        decided_rounds, decision_of, patched,
    },
};
use serde_json::Value;

use crate::{
    home::{Home, Process, Ran},
    http::Http,
};

/// A server with three sessions, and keys for it.
struct Desk {
    home: Home,
    server: Process,
    http: Http,
    reader: String,
    poor: String,
    hasty: String,
    _executors: Vec<FakeExecutor>,
}

impl Desk {
    async fn with(behaviours: [Behaviour; 3]) -> Self {
        let home = Home::new();
        let server = home.serve();
        let http = Http::new(&server.url, &home.state());
        let mut executors = Vec::new();
        for (fake, body) in surface_table::executors(behaviours).await {
            let (status, reply) = http.post("/v1/executors", &body);
            assert_eq!(status, 201, "{reply}");
            executors.push(fake);
        }
        for (fake, body) in surface_table::sick_executors().await {
            let (status, reply) = http.post("/v1/executors", &body);
            assert_eq!(status, 201, "{reply}");
            surface_table::fall_ill(&fake);
            let check = format!("/v1/executors/{}/check", body["name"].as_str().unwrap());
            http.post(&check, &Value::Null);
            executors.push(fake);
        }
        let key = |args: &[&str]| home.run(&[&["keys", "create"], args].concat()).ok().out;
        let reader = key(&["reader", "--scope", "rounds:read"]).trim().to_owned();
        let poor = key(&["poor", "--account", "acct_poor"]).trim().to_owned();
        let hasty = key(&["hasty", "--rate-per-minute", "1"]).trim().to_owned();
        let spent = home.command(&["rounds", "list"]).env("JURAT_KEY", &hasty).output().unwrap();
        assert!(spent.status.success());
        Self { home, server, http, reader, poor, hasty, _executors: executors }
    }

    /// Sends a request from a file.
    fn send(&self, kind: JobKind, request: &Value, (sender, sending): (Sender, Sending)) -> Ran {
        let text = match sending {
            Sending::AsText(text) => text.to_owned(),
            Sending::AsJson | Sending::UnderUsedKey => request.to_string(),
        };
        fs::write(self.home.path().join("request.json"), text).unwrap();
        let mut command = self.home.command(&[kind.as_str(), "--file", "request.json", "--json"]);
        if sending == Sending::UnderUsedKey {
            command.args(["--idempotency-key", kind.as_str()]);
        }
        match sender {
            Sender::Operator => &mut command,
            Sender::Reader => command.env("JURAT_KEY", &self.reader),
            Sender::Poor => command.env("JURAT_KEY", &self.poor),
            Sender::Hasty => command.env("JURAT_KEY", &self.hasty),
            // Another folder has no key for this server.
            Sender::Nobody => command
                .env("JURAT_STATE_DIR", self.home.path().join("elsewhere"))
                .args(["--server", &self.server.url]),
        };
        command.output().unwrap().into()
    }
}

/// The stable code: that of the problem, or that of a command that sent nothing.
fn code_of(ran: &Ran) -> String {
    let body = ran.json();
    let code = body.get("code").or_else(|| body.get("error"));
    code.and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_gives_the_decision_of_the_api() {
    for round in decided_rounds() {
        let desk = Desk::with(round.executors.clone()).await;
        let request = patched(round.kind.request(), &round.patch);
        let (_, reply) = desk.http.post(&format!("/api/v3/{}", round.kind.as_str()), &request);
        let ran = desk.send(round.kind, &request, (Sender::Operator, Sending::AsJson));
        let printed = ran.json();
        assert_eq!(printed["code"].as_str(), round.code, "{}: {printed}", round.name);
        assert_eq!(ran.code, i32::from(round.code.is_some()), "{}: {printed}", round.name);
        assert_decided(&round, &printed, Surface::Cli);
        assert_eq!(decision_of(&printed), decision_of(&reply), "{}", round.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_say_the_same_as_a_file() {
    let rounds = decided_rounds();
    let round = rounds.iter().find(|it| it.kind == JobKind::Validate).unwrap();
    let desk = Desk::with(round.executors.clone()).await;
    let claim = round.kind.request()["claim"].as_str().unwrap().to_owned();
    let sessions = ["--session", "s1", "--session", "s2", "--session", "s3"];
    let flags = ["validate", "--claim", &claim, "--replicas", "3", "--json"];
    for args in [flags.to_vec(), [&flags[..], &sessions].concat()] {
        assert_decided(round, &desk.home.run(&args).ok().json(), Surface::Cli);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_refuses_a_bad_request_with_the_code_of_the_api() {
    let desk = Desk::with([says_valid(), says_valid(), says_valid()]).await;
    for bad in bad_requests() {
        for kind in JobKind::ALL {
            let Some(expected) = bad.code(Surface::Cli).filter(|_| bad.is_for(kind)) else {
                continue;
            };
            let by = (bad.sender, bad.sending);
            if bad.sending == Sending::UnderUsedKey {
                desk.send(kind, &kind.request(), by).ok();
            }
            let ran = desk.send(kind, &bad.request(kind), by);
            assert_eq!(code_of(&ran), expected, "{kind:?}, {}: {}", bad.name, ran.err);
            assert_eq!(ran.code, exit_code(&bad, expected), "{kind:?}, {}", bad.name);
        }
    }
}

/// The exit code of a stable code; a command that sends nothing has two of its own.
fn exit_code(bad: &BadRequest, code: &str) -> i32 {
    let known = ProblemCode::ALL.iter().find(|it| it.as_str() == code);
    match (known, code) {
        (Some(code), _) => i32::from(code.exit_code()),
        (None, "usage_error") => 2,
        (None, "command_failed") => 1,
        (None, other) => panic!("{}: `{other}` is no code", bad.name),
    }
}
