//! Commands that need no other process.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    net::TcpListener,
    process::Stdio,
};

use crate::{
    home::{Home, Ran},
    redact::redacted,
};

/// Nothing listens on this port.
const NOWHERE: &str = "http://127.0.0.1:1";

#[test]
fn the_help_explains_the_program() {
    insta::assert_snapshot!(Home::new().run(&["--help"]).ok().out);
}

/// Every command, in the order of the help.
const COMMANDS: &[&str] = &[
    "demo",
    "serve",
    "runtime",
    "executors add",
    "executors list",
    "executors show",
    "executors check",
    "executors remove",
    "sessions add",
    "sessions list",
    "sessions show",
    "sessions remove",
    "delegate",
    "validate",
    "factcheck",
    "rounds list",
    "rounds show",
    "task submit",
    "task run",
    "task run-real",
    "task watch",
    "task decision",
    "task list",
    "task show",
    "task cancel",
    "task events",
    "task sample",
    "keys create",
    "keys list",
    "keys revoke",
    "keys rotate",
    "webhooks add",
    "webhooks list",
    "webhooks show",
    "webhooks enable",
    "webhooks disable",
    "webhooks rotate",
    "webhooks remove",
    "webhooks test",
    "webhooks deliveries",
    "webhooks replay",
    "node",
    "node id",
    "node status",
    "node invite",
    "node join",
    "node peers",
    "node show",
    "node trust",
    "node block",
    "node remove",
    "node offers",
    "node bookings",
    "node statement",
    "doctor",
    "config show",
    "config check",
    "config example",
    "completions",
];

#[test]
fn every_command_has_examples() {
    let home = Home::new();
    for command in COMMANDS {
        let mut args: Vec<&str> = command.split(' ').collect();
        args.push("--help");
        let help = home.run(&args).ok().out;
        let examples = help.split("Examples:\n").nth(1).unwrap_or_default();
        assert!(examples.contains(&format!("jurat {command}")), "{help}");
    }
}

#[test]
fn completions_are_printed() {
    let script = Home::new().run(&["completions", "bash"]).ok().out;
    assert!(script.contains("complete -F _jurat"), "{script}");
    for word in [
        "jurat__subcmd__doctor",
        "jurat__subcmd__config__subcmd__example",
        "jurat__subcmd__node__subcmd__statement",
        "--target-node",
        "--all-entries",
        "--junit-name",
    ] {
        assert!(script.contains(word), "{word} cannot be completed");
    }
}

#[test]
fn a_new_installation_is_empty_and_says_how_to_begin() {
    let home = Home::new();
    let ran = home.run(&["executors", "list"]).ok();
    assert_eq!(ran.err, "no executors yet: add one with `jurat executors add NAME URL`\n");
    for args in [["executors", "list"], ["sessions", "list"], ["rounds", "list"]] {
        let ran = home.run(&[args[0], args[1], "--json", "--quiet"]).ok();
        assert_eq!(ran.out, "{\"items\":[],\"next_cursor\":null}\n");
        assert_eq!(ran.err, "");
    }
}

#[test]
fn an_executor_that_is_down_is_registered_only_on_request() {
    let home = Home::new();
    let ran = home.run(&["executors", "add", "down", NOWHERE, "--tier", "safe"]);
    assert_eq!(ran.code, 1, "{}", ran.out);
    insta::assert_snapshot!(ran.err, @r"
    error: the executor at `http://127.0.0.1:1` does not answer: no connection
      field: url
      hint: Nothing was registered. Start the executor and run the command again, or skip the check with `--no-check`.
    ");
    assert_eq!(home.run(&["executors", "show", "down"]).code, 1);
    let ran = home.run(&["executors", "add", "down", NOWHERE, "--no-check", "--tier", "safe"]).ok();
    assert!(ran.out.contains("registered down with session down"), "{}", ran.out);
    assert!(ran.out.contains("health        unhealthy: no connection"), "{}", ran.out);
    assert!(ran.err.contains("down is registered but does not answer"), "{}", ran.err);
    let ran = home.run(&["executors", "check", "down", "--json"]);
    assert_eq!(ran.code, 1);
    insta::assert_json_snapshot!(redacted(&ran.out));
    let ran = home.run(&["executors", "show", "down"]).ok();
    assert!(ran.out.contains("status      down"), "{}", ran.out);
}

#[test]
fn sessions_come_and_go() {
    let home = Home::new();
    home.run(&["executors", "add", "a", NOWHERE, "--no-check", "--no-session"]).ok();
    let args = "sessions add 201 --executor a --profile careful --tier oracle --label heavy \
                --task-type delegate=swarm --price-micros 7 --reliability 0.9 --json";
    let ran = home.run(&args.split_whitespace().collect::<Vec<_>>()).ok();
    insta::assert_json_snapshot!(redacted(&ran.out));
    let ran = home.run(&["sessions", "list"]).ok();
    assert!(ran.out.contains("careful"), "{}", ran.out);
    home.run(&["sessions", "show", "201"]).ok();
    home.run(&["sessions", "remove", "201"]).ok();
    let gone = home.run(&["sessions", "show", "201"]);
    assert_eq!(gone.code, 1);
    assert!(gone.err.contains("error: there is no session `201`"), "{}", gone.err);
    let ran = home.run(&["executors", "remove", "a"]).ok();
    assert_eq!(ran.out, "removed a and its sessions: –\n");
}

#[test]
fn a_remote_executor_names_its_node() {
    let home = Home::new();
    let node = "ab".repeat(32);
    let add = |flags: &[&str]| {
        home.run(&[&["executors", "add", "r", NOWHERE, "--no-check"], flags].concat())
    };
    for (flags, field) in [
        (&["--target-node", node.as_str()][..], "target_node"),
        (&["--scope", "region:x"], "scope"),
        (&["--remote"], "target_node"),
        (&["--remote", "--target-node", "n"], "target_node"),
        (&["--remote", "--target-node", &node, "--scope", "zone:x"], "scope"),
        (&["--remote", "--target-node", &node, "--token-env", "HOME"], "token_env"),
    ] {
        let ran = add(flags);
        assert_eq!(ran.code, 2, "{flags:?}: {}", ran.err);
        assert!(ran.err.contains(&format!("field: {field}, set by `--")), "{flags:?}: {}", ran.err);
    }
    let ran = add(&["--remote", "--target-node", &node, "--scope", "region:x"]).ok();
    assert!(ran.out.contains("no endpoint for other nodes"), "{}", ran.out);
    let shown = home.run(&["executors", "show", "r", "--json"]).ok().json();
    assert_eq!(shown["remote"], true);
    assert_eq!((&shown["target_node"], &shown["scope"]), (&node.into(), &"region:x".into()));
}

#[test]
fn an_address_for_events_is_kept_with_its_executor() {
    let home = Home::new();
    let ran = home.run(&[
        "executors",
        "add",
        "e",
        NOWHERE,
        "--no-check",
        "--agent-events-url",
        "nowhere",
    ]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("field: agent_events_url"), "{}", ran.err);
    home.run(&["executors", "add", "e", NOWHERE, "--no-check", "--agent-events-url", NOWHERE]).ok();
    let ran = home.run(&["executors", "show", "e"]);
    let words: Vec<&str> = ran.out.split_whitespace().collect();
    assert!(words.windows(3).any(|it| it == ["events", "url", NOWHERE]), "{}", ran.out);
}

#[test]
fn a_wrong_field_is_named_with_what_to_do() {
    let home = Home::new();
    let args = ["validate", "--claim", "2 + 2 = 4", "--replicas", "4"];
    let ran = home.run(&args);
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.err, @r"
    error: `consensus.replicas` must be 1, 3 or 5
      field: consensus.replicas, set by `--replicas`
      hint: Correct the flag or the file as the message says, and run the command again.
    ");
    let ran = home.run(&[&args[..], &["--json"]].concat());
    assert_eq!((ran.code, &ran.json()["code"]), (2, &"request_invalid".into()));
}

#[test]
fn a_round_without_sessions_says_what_is_missing() {
    let home = Home::new();
    home.run(&["executors", "add", "down", NOWHERE, "--no-check"]).ok();
    let ran = home.run(&["validate", "--claim", "1 = 1"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("session down: "), "{}", ran.err);
    assert!(ran.err.contains("hint: Run `jurat executors list`"), "{}", ran.err);
}

#[test]
fn wrong_usage_exits_with_2_before_anything_is_touched() {
    let home = Home::bare();
    for (args, text) in [
        (&["validate"][..], "there is nothing to validate: add `--claim`"),
        (&["delegate", "--replicas", "3"], "add `--objective`"),
        (&["validate", "--claim", "{\"a\":"], "`--claim` is not JSON"),
        (&["validate", "--file", "none.json"], "`--file none.json` cannot be read"),
        (&["validate", "--claim", "x", "--schema", "none.json"], "`--schema none.json` cannot"),
        (&["validate", "--claim", "x", "--api", "v2", "--replicas", "3"], "use `--api v3`"),
        (&["factcheck", "--claim", "x", "--api", "v2"], "factcheck is not part of v2"),
        (&["serve", "--migrate-url", "postgres://h/d"], "`--migrate-url` needs a `--store`"),
        (&["runtime", "--engine", "command"], "needs a program"),
        (&["runtime", "--engine", "openai"], "needs `--model NAME`"),
        (
            &["runtime", "--engine", "command", "--", "/nope/x"],
            "there is no executable program `/nope/x`",
        ),
        (&["runtime", "--engine", "command", "--", "no-such-program"], "one of /usr/local/bin"),
        (&["runtime", "--engine", "command", "--", "/etc/passwd"], "there is no executable"),
        (&["runtime", "--engine", "echo", "--model", "m"], "`--model` is for `--engine openai`"),
        (&["runtime", "--base-url", NOWHERE], "`--base-url` is for `--engine openai`"),
        (&["runtime", "--pass-env", "HOME"], "`--pass-env` is for `--engine command`"),
        (&["runtime", "--", "/bin/sh"], "`-- PROGRAM` is for `--engine command`"),
        (&["runtime", "--engine", "openai", "--mode", "lie"], "`--mode` is for `--engine echo`"),
        (&["serve", "--listen", "5999"], "must be an address and a port"),
        (&["serve", "--listen", "::1:5999"], "must be an address and a port"),
        (&["runtime", "--listen", "localhost"], "write an address and a port"),
        (&["--store", "", "executors", "list"], "`--store` is empty"),
        (&["--store", "sqlite:x.db", "serve"], "cannot start with `sqlite:`"),
        (&["runtime", "--token-env", "NOT_SET"], "`NOT_SET`, which is not set"),
        (&["rounds", "list", "--kind", "other"], "invalid value 'other'"),
        // Others could read it in the list of processes.
        (&["rounds", "list", "--key", "jrt_live_x"], "unexpected argument '--key'"),
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(text), "{args:?}: {}", ran.err);
    }
    assert!(!home.state().exists());
}

#[test]
fn a_request_comes_from_standard_input_and_flags_override_it() {
    let home = Home::new();
    let mut command = home.command(&["validate", "--file", "-", "--replicas", "4"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let request = br#"{"claim": "1 = 1", "consensus": {"replicas": 3}}"#;
    child.stdin.take().unwrap().write_all(request).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("field: consensus.replicas"), "{}", ran.err);
}

/// A home whose lock is held, and what `server.json` says there.
fn held(server: Option<&str>) -> (Home, fs::File) {
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    let lock = fs::File::create(home.state().join("lock")).unwrap();
    lock.lock().unwrap();
    if let Some(server) = server {
        fs::write(home.state().join("server.json"), server).unwrap();
    }
    (home, lock)
}

#[test]
fn a_folder_that_stays_in_use_is_not_touched_and_the_holder_is_named() {
    let server = format!("{{\"url\":\"{NOWHERE}\",\"pid\":4711,\"store\":\"x\"}}");
    let (nobody, _first) = held(None);
    // Its server crashed, or it would hold a lock on this file, too.
    let (crashed, _second) = held(Some(&server));
    let (silent, _third) = held(Some(&server));
    let announced = fs::File::open(silent.state().join("server.json")).unwrap();
    announced.lock().unwrap();

    let ran = silent.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("is in use by the server with pid 4711"), "{}", ran.err);
    assert!(!ran.err.contains("waiting"), "{}", ran.err);

    // They time out together.
    let waiting = [
        (&nobody, &["executors", "list"][..], "is in use by another jurat command"),
        (&nobody, &["serve", "--listen", "127.0.0.1:0"], "is in use by another jurat command"),
        (&crashed, &["executors", "list"], "is in use by another jurat command"),
        (&silent, &["executors", "list"], "(pid 4711, http://127.0.0.1:1) does not answer"),
    ]
    .map(|(home, args, text)| (home.spawn(args), text));
    for (child, text) in waiting {
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 1, "{}", ran.err);
        assert!(ran.err.contains(text), "{}", ran.err);
        assert_eq!(ran.err.matches("waiting for another jurat").count(), 1, "{}", ran.err);
    }
    assert!(!nobody.state().join("admin.key").exists());
}

#[test]
fn a_command_waits_for_one_that_uses_the_folder() {
    let (home, lock) = held(None);
    let command = home.start(&["executors", "list"]);
    command.wait_for("waiting for another jurat process");
    drop(lock);
    assert!(command.wait().success());
}

#[test]
fn concurrent_commands_all_succeed() {
    let home = Home::new();
    let children = [(); 6].map(|()| home.spawn(&["executors", "list", "--json", "--quiet"]));
    for child in children {
        let ran = Ran::from(child.wait_with_output().unwrap()).ok();
        assert_eq!((ran.json()["items"].clone(), ran.err), (serde_json::json!([]), String::new()));
    }
}

#[test]
fn a_store_in_a_missing_folder_is_refused() {
    let home = Home::new();
    let ran = home.run(&["--store", "none/jurat.db", "executors", "list"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("the folder `none` for the store does not exist"), "{}", ran.err);
}

#[test]
fn an_address_of_another_database_is_refused_without_its_password() {
    let ran = Home::new().run(&["--store", "mysql://me:s3cret@db/jurat", "executors", "list"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("`--store` cannot start with `mysql:`"), "{}", ran.err);
    assert!(!ran.err.contains("s3cret"), "{}", ran.err);
}

#[test]
fn a_store_that_another_state_folder_uses_is_refused() {
    let home = Home::new();
    home.run(&["executors", "list"]).ok();
    let lock = fs::File::create(home.state().join("jurat.db.lock")).unwrap();
    lock.lock().unwrap();
    let store = home.state().join("jurat.db");
    fs::create_dir(home.path().join("other")).unwrap();
    let args = ["--state-dir", "other", "--store", store.to_str().unwrap(), "executors", "list"];
    let ran = home.run(&args);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("jurat.db` is in use by another jurat process"), "{}", ran.err);
    drop(lock);
    home.run(&args).ok();
}

#[test]
fn the_public_key_of_the_node_is_printed_once_there_is_one() {
    let home = Home::bare();
    let ran = home.run(&["node"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("the first start of `jurat serve` writes it"), "{}", ran.err);
    assert!(!home.state().exists());

    fs::create_dir_all(home.state()).unwrap();
    // The first test vector of RFC 8032.
    let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    fs::write(home.state().join("node.key"), seed).unwrap();
    let key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    let ran = home.run(&["node"]).ok();
    assert_eq!(ran.out, format!("key id      {key}\npublic key  {key}\nalgorithm   ed25519\n"));
    let body = home.run(&["node", "--json"]).ok().json();
    assert_eq!((&body["key_id"], &body["public_key"]), (&key.into(), &key.into()));
    assert_eq!(home.run(&["node", "id"]).ok().out, format!("{key}\n"));
    assert_eq!(home.run(&["node", "id", "--json"]).ok().json()["id"], key);
    let ran = home.run(&["node", "--server", NOWHERE]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("cannot ask a server"), "{}", ran.err);
}

#[test]
fn a_missing_database_is_named_with_one_cause() {
    let home = Home::new();
    let ran = home.run(&["--store", "postgres://jurat@127.0.0.1:1/none", "executors", "list"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.err.matches("refused").count(), 1, "{}", ran.err);
}

#[test]
fn leftovers_of_a_crashed_server_are_ignored() {
    let home = Home::new();
    home.run(&["executors", "list"]).ok();
    assert!(home.state().join("admin.key").exists());
    // Another program has the port now; it must not get the key.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    other.set_nonblocking(true).unwrap();
    let address = other.local_addr().unwrap();
    let server = format!("{{\"url\":\"http://{address}\",\"pid\":1,\"store\":\"x\"}}");
    fs::write(home.state().join("server.json"), server).unwrap();
    home.run(&["executors", "list"]).ok();
    assert_eq!(other.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_key_that_is_not_valid_is_refused() {
    let home = Home::new();
    let output = home.command(&["rounds", "list"]).env("JURAT_KEY", "wrong").output().unwrap();
    let ran = Ran::from(output);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("error: the key is not valid\n  hint: Set JURAT_KEY"), "{}", ran.err);
}

#[test]
fn the_key_of_the_folder_does_not_go_to_another_machine() {
    let home = Home::new();
    home.run(&["executors", "list"]).ok();
    let ran = home.run(&["executors", "list", "--server", "http://jurat.invalid:5872"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("set the variable JURAT_KEY"), "{}", ran.err);
    let ran = home.run(&["executors", "list", "--server", NOWHERE]);
    assert!(ran.err.contains("is it running? start it with `jurat serve`"), "{}", ran.err);
}

#[test]
fn an_unknown_round_is_an_error() {
    let ran = Home::new().run(&["rounds", "show", "rnd_0/../x"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("error: there is no round"), "{}", ran.err);
}

#[test]
fn a_file_with_ambiguous_json_is_refused() {
    let home = Home::new();
    let _server = home.serve();
    let file = home.path().join("request.json");
    let path = file.to_str().unwrap();
    for document in jurat_testkit::json_table::documents() {
        std::fs::write(&file, document.within(r#"{"claim":"#, "}")).unwrap();
        let ran = home.run(&["validate", "--file", path]);
        // An accepted document goes to the server, which has no executors.
        let expected = if document.is_read { 1 } else { 2 };
        assert_eq!(ran.code, expected, "{}: {}", document.name, ran.err);
    }
}

#[test]
fn a_filter_that_finds_nothing_is_not_told_to_begin() {
    let home = Home::new();
    assert!(home.run(&["rounds", "list"]).ok().err.starts_with("no rounds yet: "));
    assert_eq!(home.run(&["rounds", "list", "--state", "open"]).ok().err, "no rounds match\n");
}

#[test]
fn quiet_suppresses_confirmations() {
    let home = Home::new();
    home.run(&["executors", "add", "a", "http://127.0.0.1:1", "--no-check", "--no-session"]).ok();
    std::fs::write(home.state().join("jurat.toml"), "[log]\nformat = \"text\"\n").unwrap();
    for args in [
        &["sessions", "add", "s", "--executor", "a"][..],
        &["sessions", "remove", "s"],
        &["executors", "remove", "a"],
        &["config", "check"],
    ] {
        let ran = home.run(&[args, &["--quiet"]].concat()).ok();
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""), "{args:?}");
    }
}

#[test]
fn an_error_of_this_process_is_json_for_a_program() {
    let home = Home::new();
    let file = home.path().join("wrong.toml");
    std::fs::write(&file, "[log]\nformat = \"xml\"\n").unwrap();
    for (args, error, code) in [
        (&["backup", "verify", "nowhere"][..], "command_failed", 1),
        (&["restore", "nowhere"], "command_failed", 1),
        (&["config", "check", "wrong.toml"], "usage_error", 2),
    ] {
        let ran = home.run(&[args, &["--json"]].concat());
        assert_eq!((ran.code, &ran.json()["error"]), (code, &error.into()), "{}", ran.err);
        assert!(ran.err.contains(ran.json()["message"].as_str().unwrap()), "{}", ran.err);
    }
}

#[test]
fn prune_reports_what_it_removed_and_a_dry_run_removes_nothing() {
    let home = Home::new();
    let dry = home.run(&["prune", "--dry-run"]).ok();
    assert!(dry.out.contains("rounds (texts)"), "{}", dry.out);
    assert!(dry.err.contains("dry run: nothing was deleted"), "{}", dry.err);
    let dry = home.run(&["prune", "--dry-run", "--json"]).ok().json();
    assert_eq!(dry["dry_run"], true);
    let pruned = home.run(&["prune", "--json"]).ok();
    assert!(!pruned.err.contains("dry run"), "{}", pruned.err);
    assert_eq!(pruned.json()["dry_run"], false);
    assert_eq!(pruned.json()["rounds"], 0);
}
