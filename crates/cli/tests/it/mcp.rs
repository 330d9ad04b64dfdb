//! `jurat mcp`: messages in, messages out, with a server and without one.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use jurat_testkit::fake_executor::{FakeExecutor, answers, gated, hangs};
use serde_json::{Value, json};

use crate::home::Home;

/// A client that started the command.
pub(crate) struct Spoken {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Spoken {
    pub(crate) fn start(home: &Home) -> Self {
        let mut command = home.command(&["mcp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { input: child.stdin.take(), child, output }
    }

    fn say(&mut self, message: &str) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The next message; null at the end.
    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        if line.is_empty() { Value::Null } else { serde_json::from_str(&line).unwrap() }
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params });
        self.say(&message.to_string());
        let reply = self.hear();
        assert_eq!(reply["id"], "q", "{reply}");
        reply
    }

    pub(crate) fn initialize(&mut self) {
        let client = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let reply = self.ask("initialize", &params);
        assert_eq!(reply["result"]["protocolVersion"], "2025-11-25", "{reply}");
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
    }

    /// Ends the input, and returns the exit code.
    pub(crate) fn end(mut self) -> i32 {
        drop(self.input.take());
        assert_eq!(self.hear(), Value::Null);
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Spoken {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn validate() -> Value {
    json!({ "name": "validate", "arguments": { "claim": "12 * 12 = 144" } })
}

#[test]
fn without_a_server_the_command_works_and_releases_the_store_in_between() {
    let home = Home::new();
    let _executor = home.register("one", "honest");
    let mut client = Spoken::start(&home);
    client.initialize();
    let reply = client.ask("tools/call", &validate());
    assert_eq!(reply["result"]["structuredContent"]["verdict"], "VALID", "{reply}");
    // The command waits for its next message and holds nothing.
    let listed = home.run(&["rounds", "list", "--json"]).ok().json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    // A server that was started since is found.
    let server = home.serve();
    let reply = client.ask("tools/call", &validate());
    assert_eq!(reply["result"]["structuredContent"]["verdict"], "VALID", "{reply}");
    assert_eq!(client.end(), 0);
    drop(server);
}

#[test]
fn the_newest_revision_needs_no_handshake_and_a_request_can_be_cancelled() {
    let home = Home::new();
    let server = home.serve();
    let _executors = [home.register("slow", "hang"), home.register("one", "honest")];
    let mut client = Spoken::start(&home);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut slow = validate();
    slow["arguments"]["session_id"] = json!("slow");
    slow["_meta"] = meta.clone();
    slow["_meta"]["progressToken"] = json!("p");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": slow });
    client.say(&message.to_string());
    let step = client.hear();
    assert_eq!(step["params"]["message"], "calling replica 1 of 1 in session `slow`", "{step}");
    let mut quick = validate();
    quick["arguments"]["session_id"] = json!("one");
    quick["_meta"] = meta;
    // The second is answered while the first is in progress.
    let reply = client.ask("tools/call", &quick);
    assert_eq!(reply["result"]["structuredContent"]["verdict"], "VALID", "{reply}");
    let off = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    client.say(&off.to_string());
    // A cancelled request gets no reply, and its round ends early.
    assert_eq!(client.end(), 0);
    let listed = home.run(&["rounds", "list", "--json"]).ok().json();
    let states = listed["items"].as_array().unwrap().iter().map(|round| {
        let id = round["round_id"].as_str().unwrap();
        let shown = home.run(&["rounds", "show", id, "--wait", "20", "--json"]).ok().json();
        shown["state"].as_str().unwrap().to_owned()
    });
    assert_eq!(states.collect::<Vec<_>>(), ["closed", "cancelled"], "{listed}");
    drop(server);
}

/// Sends a call whose id is 1.
fn start(client: &mut Spoken, params: &Value) {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    client.say(&call.to_string());
}

/// Cancels the call whose id is 1.
fn cancel(client: &mut Spoken) {
    let params = json!({ "requestId": 1 });
    let off = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    client.say(&off.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_of_an_older_revision_cancels_its_round() {
    for has_server in [true, false] {
        let home = Home::new();
        let server = has_server.then(|| home.serve());
        let fake = FakeExecutor::start(hangs()).await;
        home.run(&["executors", "add", "slow", &fake.url()]).ok();
        let mut client = Spoken::start(&home);
        client.initialize();
        start(&mut client, &validate());
        fake.wait_for_calls(1).await;
        cancel(&mut client);
        let listed = json!({ "name": "list_rounds", "arguments": {} });
        let listed = client.ask("tools/call", &listed);
        let id = &listed["result"]["structuredContent"]["items"][0]["round_id"];
        let waited = json!({ "name": "wait_round", "arguments": { "round_id": id } });
        let shown = client.ask("tools/call", &waited);
        assert_eq!(shown["result"]["structuredContent"]["state"], "cancelled", "{shown}");
        assert_eq!(client.end(), 0);
        drop(server);
    }
}

/// A client without a server whose round goes on after its call: these tools have no handles, but a
/// caller that cancels one leaves its round, as one that gets a handle does.
async fn left_open(home: &Home, fake: &FakeExecutor) -> Spoken {
    fs::write(home.state().join("jurat.toml"), "[mcp]\ntools = \"cortensor,consensus\"\n").unwrap();
    home.run(&["executors", "add", "slow", &fake.url()]).ok();
    let mut client = Spoken::start(home);
    client.initialize();
    start(&mut client, &json!({ "name": "cortensor_delegate_v1", "arguments": { "prompt": "x" } }));
    fake.wait_for_calls(1).await;
    cancel(&mut client);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_a_round_goes_on_after_its_call_and_can_be_awaited() {
    let home = Home::new();
    let fake = FakeExecutor::start(gated(answers(json!({ "answer": "42" })))).await;
    let mut client = left_open(&home, &fake).await;
    let listed = json!({ "name": "list_rounds", "arguments": {} });
    let listed = client.ask("tools/call", &listed);
    let round = &listed["result"]["structuredContent"]["items"][0];
    assert_eq!(round["state"], "open", "{listed}");
    fake.release();
    let waited = json!({ "name": "wait_round", "arguments": { "round_id": round["round_id"] } });
    let ended = client.ask("tools/call", &waited);
    let body = &ended["result"]["structuredContent"];
    assert_eq!((&body["state"], &body["status"]), (&json!("closed"), &json!("OK")), "{ended}");
    assert_eq!(client.end(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_end_of_the_input_open_rounds_end_too() {
    let home = Home::new();
    let fake = FakeExecutor::start(hangs()).await;
    let mut client = left_open(&home, &fake).await;
    // An answer to a later message: the call has been dropped.
    client.ask("ping", &json!({}));
    assert_eq!(client.end(), 0);
    let listed = home.run(&["rounds", "list", "--json"]).ok().json();
    assert_eq!(listed["items"][0]["state"], "expired", "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_the_command_takes_are_refused_and_leave_room_to_cancel() {
    let home = Home::new();
    let server = home.serve();
    let fake = FakeExecutor::start(hangs()).await;
    home.run(&["executors", "add", "slow", &fake.url()]).ok();
    let mut client = Spoken::start(&home);
    client.initialize();
    for id in 1..=64 {
        let call =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": validate() });
        client.say(&call.to_string());
    }
    fake.wait_for_calls(64).await;
    let refused = client.ask("ping", &json!({}));
    assert_eq!(refused["error"]["data"]["code"], "rate_limited", "{refused}");
    cancel(&mut client);
    let is_answered = |client: &mut Spoken| client.ask("ping", &json!({})).get("result").is_some();
    while !is_answered(&mut client) {}
    drop(client);
    drop(server);
}

#[test]
fn the_configured_sets_of_tools_apply_with_a_server_and_without_one() {
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    fs::write(home.state().join("jurat.toml"), "[mcp]\ntools = \"verifiers\"\n").unwrap();
    let mut client = Spoken::start(&home);
    client.initialize();
    let listed = |client: &mut Spoken| {
        let reply = client.ask("tools/list", &json!({}));
        let tools = reply["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let alone = listed(&mut client);
    assert!(alone.contains(&"run_verifier".to_owned()), "{alone:?}");
    // Runs of verifiers are rounds, which may take longer than a call.
    let is_known = |name: &str| name.contains("verifier") || name.ends_with("_round");
    assert!(alone.iter().all(|name| is_known(name)), "{alone:?}");
    let server = home.serve();
    assert_eq!(listed(&mut client), alone);
    assert_eq!(client.end(), 0);
    drop(server);
}

#[test]
fn unreadable_messages_and_missing_servers_are_protocol_errors() {
    let home = Home::new();
    let mut client = Spoken::start(&home);
    client.say("nonsense");
    assert_eq!(client.hear()["error"]["code"], -32700);
    client.say(&format!("\"{}\"", "x".repeat(1024 * 1024)));
    assert_eq!(client.hear()["error"]["code"], -32600);
    client.say("[]");
    assert_eq!(client.hear()["error"]["code"], -32600);
    assert_eq!(client.end(), 0);
    let mut command = home.command(&["--server", "http://127.0.0.1:1", "mcp"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}").unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["id"], 7);
    let text = reply["error"]["message"].as_str().unwrap();
    assert!(text.contains("is it running?"), "{text}");
}

#[test]
fn a_wrong_setting_is_reported_before_the_first_message() {
    let home = Home::new();
    let ran = home.run(&["--server", "https://jurat.example.com", "mcp"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.is_empty() && ran.err.contains("there is no key"), "{}", ran.err);
}
