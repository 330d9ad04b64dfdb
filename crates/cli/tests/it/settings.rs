//! Settings by file, environment and flags, and the commands that show them.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// A home whose state folder has a file with settings.
fn with_file(text: &str) -> Home {
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    fs::write(home.state().join("jurat.toml"), text).unwrap();
    home
}

fn of<'a>(body: &'a Value, name: &str) -> &'a Value {
    let items = body["items"].as_array().unwrap();
    items.iter().find(|item| item["name"] == name).unwrap()
}

fn shown(home: &Home, args: &[&str], variables: &[(&str, &str)]) -> Value {
    let mut command = home.command(&[args, &["config", "show", "--json"]].concat());
    command.envs(variables.iter().copied());
    Ran::from(command.output().unwrap()).ok().json()
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let file =
        "[limits]\nrounds = 7\ncalls_per_executor = 9\n[client]\nserver = \"http://file:1\"\n";
    let home = with_file(file);
    let path = home.state().join("jurat.toml");
    let variables = [("JURAT_LIMITS_ROUNDS", "8"), ("JURAT_SERVER", "http://variable:1")];
    let body = shown(&home, &["--server", "http://flag:1/"], &variables);
    assert_eq!(body["file"], json!(path));
    for (name, value, origin) in [
        ("limits.calls_per_executor", json!(9), json!({"kind": "file", "path": path, "line": 3})),
        (
            "limits.rounds",
            json!(8),
            json!({"kind": "environment", "variable": "JURAT_LIMITS_ROUNDS"}),
        ),
        ("client.server", json!("http://flag:1"), json!({"kind": "flag", "flag": "--server"})),
        ("server.listen", json!("127.0.0.1:5872"), json!({"kind": "default"})),
        ("store.migrate_url", Value::Null, json!({"kind": "default"})),
    ] {
        let item = of(&body, name);
        assert_eq!((&item["value"], &item["origin"]), (&value, &origin), "{name}");
    }
    // Showing settings creates nothing.
    assert!(!home.state().join("admin.key").exists());
}

#[test]
fn a_named_file_replaces_the_one_in_the_state_folder() {
    let home = with_file("[limits]\nrounds = 7\n");
    let other = home.path().join("other.toml");
    fs::write(&other, "state.dir = 'elsewhere'\n").unwrap();
    let other = other.to_str().unwrap();
    let body = shown(&home, &["--config", other], &[]);
    assert_eq!(of(&body, "limits.rounds")["value"], 1024);
    // The test sets the variable, which takes precedence.
    assert_eq!(of(&body, "state.dir")["origin"]["kind"], "environment");
    let mut command = home.command(&["config", "show", "--json"]);
    command.env_remove("JURAT_STATE_DIR").env("JURAT_CONFIG", other);
    let body = Ran::from(command.output().unwrap()).ok().json();
    assert_eq!(of(&body, "state.dir")["value"], "elsewhere");
    let ran = home.run(&["--config", "none.toml", "executors", "list"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("error: `none.toml` cannot be read: "), "{}", ran.err);
}

#[test]
fn every_fault_of_a_file_is_named_with_its_line_before_anything_is_touched() {
    let home = with_file("[limits]\nround = 7\nrounds = \"many\"\n[state]\ndir = \"x\"\n");
    let ran = home.run(&["executors", "list"]);
    assert_eq!(ran.code, 2);
    let file = home.state().join("jurat.toml").display().to_string();
    let err = ran.err.replace(&file, "FILE");
    insta::assert_snapshot!(err, @r"
    error: `FILE` line 2: there is no setting `limits.round`; did you mean `limits.rounds`?
    `FILE` line 3: `limits.rounds` must be a whole number from 1 to 1000000, and is a string
    ");
    assert!(!home.state().join("jurat.db").exists());
    let home = with_file("[state]\ndir = \"x\"\n");
    let ran = home.run(&["config", "check"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("`state.dir` cannot be set by the file in the state folder itself"));
}

#[test]
fn a_wrong_variable_is_named() {
    let home = Home::new();
    for (name, value, text) in [
        ("JURAT_LIMITS_ROUNDS", "0", "the variable JURAT_LIMITS_ROUNDS must be a whole number"),
        ("JURAT_LOG", "jurat=loud", "the variable JURAT_LOG must be a filter like"),
        ("JURAT_LISTEN", "5872", "the variable JURAT_LISTEN must be an address and a port"),
        ("JURAT_LOG_FORMAT", "xml", "must be `text` or `json`, and is `xml`"),
        ("JURAT_MIGRATE_URL", "s3cret", "must be a URL that starts with postgres://"),
    ] {
        let ran =
            Ran::from(home.command(&["executors", "list"]).env(name, value).output().unwrap());
        assert_eq!(ran.code, 2, "{name}");
        assert!(ran.err.contains(text), "{}", ran.err);
        assert!(!ran.err.contains("s3cret"), "{}", ran.err);
    }
    // Commands that need no settings work all the same.
    for args in [&["help", "settings"][..], &["config", "example"], &["completions", "bash"]] {
        Ran::from(home.command(args).env("JURAT_LOG", "jurat=loud").output().unwrap()).ok();
    }
}

#[test]
fn passwords_and_keys_are_not_shown() {
    let home = with_file("[store]\nlocation = \"postgres://me:s3cret@db/jurat\"\n");
    let variables =
        [("JURAT_KEY", "jrt_live_s3cret"), ("JURAT_MIGRATE_URL", "postgres://o:s3cret@db/j")];
    let body = shown(&home, &[], &variables);
    assert_eq!(of(&body, "store.location")["value"], "postgres://me@db/jurat");
    assert_eq!(of(&body, "client.key")["value"], "(hidden)");
    let mut command = home.command(&["config", "show"]);
    command.envs(variables);
    let ran = Ran::from(command.output().unwrap()).ok();
    assert!(!ran.out.contains("s3cret") && !body.to_string().contains("s3cret"), "{}", ran.out);
    assert!(ran.out.contains("postgres://o@db/j"), "{}", ran.out);
}

#[test]
fn the_settings_are_a_table_and_say_when_there_is_no_file() {
    let home = Home::new();
    let mut command = home.command(&["config", "show"]);
    command.env("JURAT_STATE_DIR", "state").env("JURAT_LOG", "info");
    let ran = Ran::from(command.output().unwrap()).ok();
    insta::assert_snapshot!(ran.out);
    assert!(ran.err.contains("`jurat config example` prints a sample"), "{}", ran.err);
    assert_eq!(home.run(&["config", "show", "--quiet"]).ok().err, "");
}

#[test]
fn the_example_file_is_valid() {
    let home = Home::new();
    let example = home.run(&["config", "example"]).ok().out;
    fs::create_dir_all(home.state()).unwrap();
    fs::write(home.state().join("jurat.toml"), &example).unwrap();
    let ran = home.run(&["config", "check"]).ok();
    assert!(ran.out.contains("jurat.toml` is valid: 0 settings"), "{}", ran.out);
    // Every commented-out line could be used.
    let used: Vec<&str> = example
        .lines()
        .filter_map(|line| match line.strip_prefix("# ") {
            Some(rest) => Some(rest).filter(|rest| rest.contains(" = ") || rest.starts_with('[')),
            None => Some(line),
        })
        .collect();
    let file = home.path().join("used.toml");
    fs::write(&file, used.join("\n")).unwrap();
    let ran = home.run(&["config", "check", file.to_str().unwrap(), "--json"]).ok();
    let count =
        home.run(&["config", "show", "--json"]).ok().json()["items"].as_array().unwrap().len();
    assert_eq!(ran.json()["settings"], count);
    assert_eq!((&ran.json()["providers"], &ran.json()["profiles"]), (&json!(1), &json!(1)));
    fs::write(&file, "[log]\nformat = 1\n").unwrap();
    assert_eq!(home.run(&["config", "check", file.to_str().unwrap()]).code, 2);
}

#[test]
fn a_server_takes_its_settings_from_the_file() {
    let home = with_file(
        "[server]\nlisten = \"127.0.0.1:0\"\n[log]\nformat = \"json\"\n[store]\nlocation = \"mine.db\"\n\
         [limits]\nrounds = 1\n",
    );
    let server = home.start(&["serve"]);
    let line = server.wait_for("listening on http://127.0.0.1:");
    assert!(line.starts_with('{'), "{line}");
    assert!(home.state().join("mine.db").exists());
    assert!(!home.state().join("jurat.db").exists());
    // A command finds the same store, with the server and without it.
    home.run(&["executors", "add", "down", "http://127.0.0.1:1", "--no-check"]).ok();
    server.terminate();
    assert!(server.wait().success());
    let listed = home.run(&["executors", "list", "--json"]).ok().json();
    assert_eq!(listed["items"][0]["name"], "down");
}

#[test]
fn the_configured_limit_of_rounds_applies() {
    let home = with_file("[limits]\nrounds = 1\n");
    let _server = home.serve();
    let _executor = home.register("sleeper", "hang");
    let asking = home.start(&["validate", "--claim", "1 = 1", "--session", "sleeper"]);
    asking.wait_for(" in round ");
    let ran = home.run(&["validate", "--claim", "1 = 1", "--session", "sleeper", "--json"]);
    assert_eq!(ran.json()["code"], "overloaded", "{}", ran.err);
}

/// The reply to a request without a key.
fn keyless(url: &str, path: &str) -> String {
    keyless_at(url, path, "localhost")
}

/// The same for a caller of this host.
fn keyless_at(url: &str, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

#[test]
fn the_settings_for_other_systems_apply() {
    let home = with_file(
        "[accounts]\npublic_url = \"https://jurat.example.com\"\n\
         [erc8004]\nname = \"Example\"\nregistrations = \"22@eip155:1:0x8004\"\n",
    );
    let server = home.serve();
    let file = keyless(&server.url, "/.well-known/agent-registration.json");
    assert!(file.contains("\"agentId\":22") && file.contains("\"name\":\"Example\""), "{file}");
    let card = keyless_at(&server.url, "/.well-known/agent-card.json", "evil.example");
    assert!(card.contains("\"https://jurat.example.com/a2a\""), "{card}");
    assert!(card.contains("\"signatures\"") && !card.contains("evil.example"), "{card}");

    let home = with_file("[auth]\nloopback_account = \"acct_admin\"\n");
    let server = home.serve();
    assert!(keyless(&server.url, "/api/v1/status").starts_with("HTTP/1.1 200 "));
    let doctor = home.run(&["doctor"]).ok().out;
    assert!(doctor.contains("need no key and act for `acct_admin`"), "{doctor}");
    let log = server.everything();
    assert!(log.contains("programs on this machine need no key"), "{log}");

    let plain = Home::new();
    let server = plain.serve();
    assert!(keyless(&server.url, "/api/v1/status").starts_with("HTTP/1.1 401 "));
    let file = keyless(&server.url, "/.well-known/agent-registration.json");
    assert!(file.starts_with("HTTP/1.1 404 "), "{file}");
    assert!(!plain.run(&["doctor"]).ok().out.contains("need no key"));
}

#[test]
fn a_server_that_others_reach_does_not_start_with_a_loopback_account() {
    let public = "[accounts]\npublic_url = \"https://jurat.example.com\"\n";
    let named = "[mcp]\nhosts = \"jurat.example.com\"\n";
    let behind = "[server]\ntrusted_proxies = \"127.0.0.1/32\"\n";
    for (more, listen, named) in [
        (public, "127.0.0.1:0", "accounts.public_url"),
        (named, "127.0.0.1:0", "mcp.hosts"),
        (behind, "127.0.0.1:0", "server.trusted_proxies"),
        ("", "0.0.0.0:0", "server.listen"),
    ] {
        let home = with_file(&format!("[auth]\nloopback_account = \"acct_admin\"\n{more}"));
        let ran = home.run(&["serve", "--listen", listen]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("`auth.loopback_account`"), "{}", ran.err);
        assert!(ran.err.contains(&format!("`{named}`")), "{}", ran.err);
    }
}

#[test]
fn a_wrong_account_or_registration_is_refused_by_name() {
    for (file, named) in [
        ("[auth]\nloopback_account = \"admin\"\n", "auth.loopback_account"),
        ("[erc8004]\nregistrations = \"22\"\n", "erc8004.registrations"),
        ("[shims]\nreplicas = \"2\"\n", "shims.replicas"),
    ] {
        let ran = with_file(file).run(&["config", "check"]);
        assert_ne!(ran.code, 0, "{file}");
        assert!(ran.err.contains(named) || ran.out.contains(named), "{}{}", ran.out, ran.err);
    }
}

#[test]
fn the_configured_inbound_limits_apply() {
    let home = with_file("[inbound]\nmax_connections = 1\n[shutdown]\ndrain_seconds = 1\n");
    let server = home.serve();
    let address = server.url.strip_prefix("http://").unwrap();
    let first = TcpStream::connect(address).unwrap();
    let mut second = TcpStream::connect(address).unwrap();
    let mut answer = String::new();
    // Bytes before a reset count.
    drop(second.read_to_string(&mut answer));
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    drop(first);
}

#[test]
fn an_error_of_a_server_that_logs_json_is_json_too() {
    let home = Home::new();
    for args in [
        &["serve", "--log-format", "json", "--listen", "5999"][..],
        &["serve", "--log-format", "json", "--listen", "192.0.2.1:1"],
        &["runtime", "--log-format", "json", "--engine", "openai"],
    ] {
        let ran = home.run(args);
        let lines: Vec<Value> =
            ran.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let last = lines.last().unwrap();
        assert_eq!(last["level"], "ERROR", "{}", ran.err);
        assert!(last["message"].as_str().unwrap().len() > 10, "{}", ran.err);
    }
    // Other formats get text.
    let ran = home.run(&["serve", "--listen", "5999"]);
    assert!(ran.err.starts_with("error: `--listen` must be an address"), "{}", ran.err);
}

#[test]
fn help_topics_are_read_like_the_help_of_a_command() {
    let home = Home::new();
    let ran = home.run(&["help", "exit-codes"]).ok();
    assert!(ran.out.starts_with("Exit codes:\n  0   success"), "{}", ran.out);
    assert!(ran.out.contains("\n  12  only with --gate"), "{}", ran.out);
    assert!(!ran.out.contains("Usage:"), "{}", ran.out);
    let settings = home.run(&["help", "settings"]).ok().out;
    for item in shown(&home, &[], &[])["items"].as_array().unwrap() {
        let name = item["name"].as_str().unwrap();
        assert!(settings.contains(&format!("\n  {name}\n")), "{name}");
    }
    assert!(home.run(&["help", "executors", "add"]).ok().out.contains("Register an executor"));
}

const PROVIDERS: &str = "[providers.anthropic]\n\
    [providers.local]\nbase_url = \"http://me:s3cret@127.0.0.1:11434/v1\"\nkey_env = \"LOCAL_KEY\"\n\
    models = [\"llama3.3\"]\n\
    [providers.local.prices.\"*\"]\ninput_usd_per_million = \"1.25\"\noutput_usd_per_million = \"10\"\n\
    [judges]\ndefault_model = \"local/llama3.3\"\n";

#[test]
fn providers_are_shown_with_where_their_keys_are_and_never_with_the_keys() {
    let home = with_file(PROVIDERS);
    let variables = [("LOCAL_KEY", "k3y-s3cret")];
    let body = shown(&home, &[], &variables);
    let local = &body["providers"][1];
    assert_eq!(local["name"], "local");
    assert_eq!((&local["kind"], &local["key_env"]), (&json!("openai"), &json!("LOCAL_KEY")));
    assert_eq!(local["key_is_set"], true);
    assert_eq!(local["base_url"], "http://me@127.0.0.1:11434/v1");
    let price =
        json!({"model": "*", "input_usd_per_million": "1.25", "output_usd_per_million": "10.00"});
    assert_eq!(local["prices"], json!([price]));
    assert_eq!(local["origin"]["line"], 2);
    let vendor = &body["providers"][0];
    assert_eq!(
        (&vendor["key_env"], &vendor["key_is_set"]),
        (&json!("ANTHROPIC_API_KEY"), &json!(false))
    );
    assert_eq!(of(&body, "judges.default_model")["value"], "local/llama3.3");
    let mut command = home.command(&["config", "show"]);
    let ran = Ran::from(command.envs(variables).output().unwrap()).ok();
    assert!(!ran.out.contains("s3cret") && !body.to_string().contains("s3cret"), "{}", ran.out);
    assert!(ran.out.contains("ANTHROPIC_API_KEY, not set"), "{}", ran.out);
    assert!(ran.out.contains("LOCAL_KEY, set"), "{}", ran.out);
    assert!(ran.out.contains("*: 1.25 in, 10.00 out"), "{}", ran.out);
    let ran = home.run(&["config", "check"]).ok();
    assert!(ran.out.ends_with("is valid: 1 setting and 2 providers\n"), "{}", ran.out);
}

#[test]
fn consensus_profiles_are_models_and_are_shown() {
    let home = with_file("[profiles.pair]\nreplicas = 1\nsession_pool = [\"a\", \"nobody\"]\n");
    let profile = &shown(&home, &[], &[])["profiles"][0];
    assert_eq!((&profile["model"], &profile["origin"]["line"]), (&json!("jurat/pair"), &json!(1)));
    let table = home.run(&["config", "show"]).ok().out;
    assert!(table.contains("jurat/pair") && table.contains("a pool of 2"), "{table}");
    let ran = home.run(&["config", "check"]).ok();
    assert!(ran.out.ends_with("is valid: 0 settings and 1 profile\n"), "{}", ran.out);
    let _executor = home.register("a", "honest");
    let found = home.run(&["doctor"]);
    assert_eq!(found.code, 1);
    assert!(
        found.out.contains("`jurat/pair` names sessions that do not exist: `nobody`"),
        "{}",
        found.out
    );
}

#[test]
fn a_server_does_not_start_with_a_wrong_profile() {
    let home = with_file("[profiles.pair]\nreplicas = 2\n[profiles.safe]\n");
    let ran = home.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 2);
    for fault in [
        "line 2: `profiles.pair.replicas` must be 1, 3 or 5",
        "line 3: `profiles.safe` cannot be set: it is the built-in profile of that tier",
    ] {
        assert!(ran.err.contains(fault), "{}", ran.err);
    }
}

#[test]
fn a_fault_of_a_provider_is_named_with_its_line() {
    let home = with_file(
        "[providers.local]\nkey_env = \"sk-abc-s3cret\"\nbase_ulr = \"http://h\"\n\
         [judges]\npanel = \"local/a,openai/b\"\nmedia_allow = \"everywhere\"\n",
    );
    let ran = home.run(&["executors", "list"]);
    assert_eq!(ran.code, 2);
    let file = home.state().join("jurat.toml").display().to_string();
    let err = ran.err.replace(&file, "FILE");
    insta::assert_snapshot!(err);
    assert!(!err.contains("s3cret"), "{err}");
    let home = with_file("[judges]\npanel = \"builtin/rules,openai/b\"\n");
    let ran = home.run(&["config", "check"]);
    assert_eq!(ran.code, 2);
    let expected = "line 2: `judges.panel` names the judge `openai/b`, but there is no section `[providers.openai]`\n";
    assert!(ran.err.ends_with(expected), "{}", ran.err);
    let home = Home::new();
    let mut command = home.command(&["executors", "list"]);
    let ran = Ran::from(command.env("JURAT_JUDGES_DEFAULT_MODEL", "openai/b").output().unwrap());
    assert_eq!(ran.code, 2);
    let expected = "error: the variable JURAT_JUDGES_DEFAULT_MODEL: `judges.default_model` names the judge `openai/b`, but there is no section `[providers.openai]`\n";
    assert_eq!(ran.err, expected);
}

#[test]
fn an_amount_is_a_number_or_a_text() {
    for text in ["5.00", "\"5.00\"", "5", "\"5\""] {
        let home = with_file(&format!("[accounts]\ngrant_usd = {text}\n"));
        let value = of(&shown(&home, &[], &[]), "accounts.grant_usd")["value"].clone();
        let amount = value.as_f64().or_else(|| value.as_str()?.parse().ok());
        assert_eq!(amount, Some(5.0), "{text}: {value}");
    }
    let home = with_file("[accounts]\ngrant_usd = \"five\"\n");
    let ran = home.run(&["config", "check"]);
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("`accounts.grant_usd` must be an amount like 0.10"), "{}", ran.err);
}
