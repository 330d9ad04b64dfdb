//! Several processes: a server, executors, and commands that speak to them.

mod backup;
mod inbound;
mod killed;
mod memory;
mod nodes;

use std::fs;

use serde_json::json;

use crate::{
    home::{Home, Ran},
    redact::redacted,
};

const POOL: [&str; 8] =
    ["--replicas", "3", "--session", "a", "--session", "b", "--session", "liar"];

fn ask(home: &Home, args: &[&str], more: &[&str]) -> Ran {
    home.run(&[args, more].concat())
}

#[test]
fn a_claim_is_judged_through_the_server_and_the_gate_decides() {
    let home = Home::new();
    let _server = home.serve();
    let _executors = [("a", "honest"), ("b", "honest"), ("liar", "lie")]
        .map(|(name, mode)| home.register(name, mode));
    let validate = [&["validate", "--claim", "12 * 12 = 144"], &POOL[..]].concat();

    let ran = ask(&home, &validate, &["--gate"]).ok();
    assert!(ran.out.contains("VALID  ·  2 of 3 agree"), "{}", ran.out);
    assert!(ran.err.contains("replica 1: a: VALID after"), "{}", ran.err);
    let ran = ask(&home, &validate, &["--json"]).ok();
    insta::assert_json_snapshot!("validate", redacted(&ran.out));
    assert_eq!(ran.err, "");

    let wrong = [&["validate", "--claim", "2 + 2 = 5"], &POOL[..]].concat();
    assert_eq!(ask(&home, &wrong, &["--gate", "-q"]).code, 11);
    assert_eq!(ask(&home, &wrong, &["-q"]).code, 0);
    let unclear = [&["validate", "--claim", "the sky is blue"], &POOL[..]].concat();
    assert_eq!(ask(&home, &unclear, &["--gate", "-q"]).code, 12);
    let split = ["--min-agreement", "1", "--disagreement-policy", "fail_hard"];
    let ran = ask(&home, &validate, &split);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("the replicas do not agree"), "{}", ran.err);
    let ran = ask(&home, &[&validate[..], &split].concat(), &["--gate"]);
    assert_eq!(ran.code, 12);
    assert!(ran.out.contains("NO_CONSENSUS  ·  2 of 3 agree"), "{}", ran.out);
}

#[test]
fn a_revoked_key_is_refused_immediately_by_the_running_server() {
    let home = Home::new();
    let server = home.serve();
    let key = home.run(&["keys", "create", "ci", "--rate-per-minute", "2"]).ok().out;
    let ask = || -> Ran {
        let mut command = home.command(&["rounds", "list", "--server", &server.url]);
        command.env("JURAT_KEY", key.trim()).output().unwrap().into()
    };
    ask().ok();
    ask().ok();
    let ran = ask();
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("error: the key may send 2 requests per minute"), "{}", ran.err);
    home.run(&["keys", "revoke", "ci"]).ok();
    let ran = ask();
    assert!(ran.err.contains("error: the key is not valid"), "{}", ran.err);
}

#[test]
fn work_is_delegated_and_facts_are_checked() {
    let home = Home::new();
    let _server = home.serve();
    let _executors = [("a", "honest"), ("b", "honest"), ("liar", "lie")]
        .map(|(name, mode)| home.register(name, mode));

    let schema = r#"{"type": "object", "required": ["answer"]}"#;
    let delegate = ["delegate", "--objective", "Say hello", "--schema", schema];
    let ran = ask(&home, &delegate, &POOL).ok();
    assert!(ran.out.contains("OK  ·  2 of 3 agree"), "{}", ran.out);
    assert!(ran.out.contains("answer  {\"answer\":\"Say hello\""), "{}", ran.out);
    let ran = ask(&home, &delegate, &["--api", "v2", "--session", "a", "--json"]).ok();
    insta::assert_json_snapshot!("delegate_v2", redacted(&ran.out));
    ask(&home, &delegate, &["--api", "v2", "--session", "a", "--gate"]).ok();

    let ran = ask(&home, &["factcheck", "--claim", "7 * 8 = 54", "--gate"], &POOL);
    assert_eq!(ran.code, 11);
    assert!(ran.out.contains("FALSE  ·  2 of 3 agree"), "{}", ran.out);
    assert!(ran.out.contains("the sides differ"), "{}", ran.out);
    let ran = home.run(&["rounds", "list", "--kind", "factcheck", "--json"]).ok();
    assert_eq!(ran.json()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn commands_print_the_same_with_and_without_a_server() {
    let home = Home::new();
    let server = home.serve();
    let _executors = [("a", "honest"), ("b", "honest"), ("liar", "lie")]
        .map(|(name, mode)| home.register(name, mode));
    let validate = [&["validate", "--json", "--claim", "2 + 2 = 4"], &POOL[..]].concat();
    let first = home.run(&validate).ok();
    let round = first.json()["round_id"].as_str().unwrap().to_owned();
    let all = [
        &["executors", "list", "--json"][..],
        &["executors", "check", "a", "--json"],
        &["sessions", "list", "--json"],
        &["rounds", "show", &round, "--json"],
        &["validate", "--json", "--claim", "2 + 2 = 4", "--replicas", "2"],
    ];
    let through_server: Vec<Ran> = all.iter().map(|args| home.run(args)).collect();
    server.terminate();
    assert!(server.wait().success());
    assert!(!home.state().join("server.json").exists());

    for (args, there) in all.iter().zip(&through_server) {
        let here = home.run(args);
        assert_eq!(redacted(&here.out), redacted(&there.out), "{args:?}");
        assert_eq!((here.code, &here.err), (there.code, &there.err), "{args:?}");
    }
    let here = home.run(&validate).ok();
    assert_eq!(redacted(&here.out), redacted(&first.out));
    let ran = ask(&home, &["validate", "--claim", "2 + 2 = 4"], &POOL).ok();
    assert!(ran.err.contains("replica 3: liar: INVALID after"), "{}", ran.err);
}

#[test]
fn a_round_that_a_crash_left_open_is_expired_by_the_next_start() {
    let home = Home::new();
    let server = home.serve();
    let _executor = home.register("sleeper", "hang");
    let asking = home.start(&["validate", "--claim", "1 = 1", "--session", "sleeper"]);
    let line = asking.wait_for(" in round ");
    let round = line.split("in round ").nth(1).unwrap();
    let open = home.run(&["rounds", "list", "--json"]).ok().json();
    assert_eq!(open["items"][0]["round_id"], round);
    assert_eq!(open["items"][0]["state"], "open");

    server.kill();
    assert_eq!(asking.wait().code(), Some(1));
    let _server = home.serve();
    let shown = home.run(&["rounds", "show", round, "--json"]).ok();
    assert_eq!(shown.json()["state"], "expired");
    assert_eq!(shown.json()["replicas"][0]["error"]["code"], "node_stopped");
    insta::assert_json_snapshot!("expired_round", redacted(&shown.out));
}

#[test]
fn a_running_server_is_named_and_a_second_signal_kills_it() {
    let home = Home::new();
    let server = home.serve();
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 1);
    let holder = format!("is in use by the server with pid {} at", server.child.id());
    assert!(ran.err.contains(&holder), "{}", ran.err);
    let ran = home.run(&["rounds", "list", "--store", "other.db"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("leave out `--store`"), "{}", ran.err);
    let taken = server.url.strip_prefix("http://").unwrap();
    let ran = Home::new().run(&["serve", "--listen", taken]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("the address is in use"), "{}", ran.err);

    let _executor = home.register("sleeper", "hang");
    let asking = home.start(&["validate", "--claim", "1 = 1", "--session", "sleeper"]);
    asking.wait_for(" in round ");
    server.terminate();
    server.wait_for("stopping after the rounds in progress");
    server.terminate();
    server.wait_for("stopped by a second signal");
    assert_eq!(server.wait().code(), Some(130));
    assert!(!home.state().join("server.json").exists());
}

#[test]
fn keys_stay_with_their_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::bare();
    let _server = home.serve();
    for (name, mode) in
        [("", 0o700), ("admin.key", 0o600), ("node.key", 0o600), ("server.json", 0o600)]
    {
        let metadata = fs::metadata(home.state().join(name)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn an_executor_behind_a_token_is_asked_with_it() {
    let home = Home::new();
    let mut serve = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    serve.env("THE_TOKEN", "s3cret");
    let _server = crate::home::Process::new(serve).listening();
    let mut runtime =
        home.command(&["runtime", "--listen", "127.0.0.1:0", "--token-env", "THE_TOKEN"]);
    runtime.env("THE_TOKEN", "s3cret");
    let executor = crate::home::Process::new(runtime).listening();
    let ran = home.run(&["executors", "add", "open", &executor.url]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    assert!(ran.err.contains("GET /capabilities answered 401"), "{}", ran.err);
    let args = ["executors", "add", "shut", &executor.url, "--token-env", "THE_TOKEN"];
    home.run(&args).ok();
    home.run(&["executors", "check", "shut"]).ok();
    let ran = home.run(&["executors", "add", "x", &executor.url, "--token-env", "UNSET"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("field: token_env"), "{}", ran.err);
}

#[test]
fn a_local_program_becomes_an_executor() {
    let home = Home::new();
    let answer = json!({"candidate_output": {"answer": "from a program"}}).to_string();
    let script = format!("cat >/dev/null; echo '{answer}'");
    let args = ["runtime", "--listen", "127.0.0.1:0", "--engine", "command", "--task-types"];
    let executor = home
        .start(&[&args[..], &["delegate", "--", "/bin/sh", "-c", &script]].concat())
        .listening();
    home.run(&["executors", "add", "program", &executor.url]).ok();
    let ran = home.run(&["delegate", "--objective", "anything", "--json"]).ok();
    assert_eq!(ran.json()["output"]["answer"], "from a program");
}

#[test]
fn a_server_and_commands_can_start_concurrently() {
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    let lock = fs::File::create(home.state().join("lock")).unwrap();
    lock.lock().unwrap();
    let server = home.start(&["serve", "--listen", "127.0.0.1:0"]);
    server.wait_for("waiting for another jurat process");
    let commands = ["one", "two", "three"]
        .map(|name| home.spawn(&["executors", "add", name, "http://127.0.0.1:1", "--no-check"]));
    drop(lock);
    let _server = server.listening();
    for command in commands {
        Ran::from(command.wait_with_output().unwrap()).ok();
    }
    let listed = home.run(&["executors", "list", "--json"]).ok().json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 3);
}

#[test]
fn a_server_that_waits_for_the_folder_can_be_stopped() {
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    let lock = fs::File::create(home.state().join("lock")).unwrap();
    lock.lock().unwrap();
    let server = home.start(&["serve", "--listen", "127.0.0.1:0"]);
    server.wait_for("waiting for another jurat process");
    server.terminate();
    assert_eq!(server.wait().code(), Some(130));
}

#[test]
fn a_log_of_json_lines_has_no_other_lines() {
    for args in [&["serve"][..], &["runtime"]] {
        let home = Home::new();
        let more = ["--listen", "127.0.0.1:0", "--log-format", "json"];
        let mut command = home.command(&[args, &more].concat());
        // It is what others wait for, whatever the filter says.
        command.env("JURAT_LOG", "error");
        let server = crate::home::Process::new(command);
        let line = server.wait_for("");
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        let message = event["message"].as_str().unwrap();
        assert!(message.starts_with("listening on http://127.0.0.1:"), "{line}");
    }
}

#[test]
fn the_full_reason_of_an_error_is_printed() {
    let home = Home::new();
    let _server = home.serve();
    let executor = home.register("sleeper", "hang");
    executor.kill();
    let ran = home.run(&["validate", "--claim", "1 = 1", "--session", "sleeper", "-q"]).ok();
    let line = ran.out.lines().find(|line| line.starts_with("sleeper: ")).unwrap_or_default();
    assert!(line.contains("unreachable: ") && !line.ends_with('…'), "{}", ran.out);
    let round = ran.out.lines().find_map(|line| line.strip_prefix("round    ")).unwrap();
    let shown = home.run(&["rounds", "show", round]).ok().out;
    assert!(shown.lines().any(|shown| shown == line), "{shown}");
}

#[test]
fn a_hanging_round_is_started_repeated_watched_and_cancelled() {
    let home = Home::new();
    let alone = home.run(&["validate", "--claim", "2 + 2 = 4", "--async"]);
    assert_eq!(alone.code, 2, "{}", alone.err);
    assert!(alone.err.contains("start `jurat serve` first"), "{}", alone.err);
    let _server = home.serve();
    let _executor = home.register("a", "hang");
    let start =
        ["validate", "--claim", "2 + 2 = 4", "--async", "--idempotency-key", "once", "--json"];
    let first = home.run(&start).ok().json();
    assert_eq!(first["state"], "open");
    assert_eq!(home.run(&start).ok().json()["round_id"], first["round_id"]);
    let other =
        home.run(&["validate", "--claim", "2 + 2 = 5", "--async", "--idempotency-key", "once"]);
    assert_eq!(other.code, 1);
    assert!(other.err.contains("was used for another request"), "{}", other.err);

    let id = first["round_id"].as_str().unwrap();
    let open = home.run(&["rounds", "list", "--state", "open", "--json"]).ok().json();
    assert_eq!(open["items"][0]["round_id"], id);
    let shown = home.run(&["rounds", "show", id, "--wait", "0"]).ok();
    assert!(shown.out.contains("open"), "{}", shown.out);
    let ended = home.run(&["rounds", "cancel", id]).ok();
    assert!(ended.out.contains("cancelled"), "{}", ended.out);
    let again = home.run(&["rounds", "show", id, "--wait", "60", "--json"]).ok().json();
    assert_eq!(again["state"], "cancelled");
}
