//! `jurat mcp`: messages in, messages out, with a server and without one.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

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
    assert!(alone.iter().all(|name| name.contains("verifier")), "{alone:?}");
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
