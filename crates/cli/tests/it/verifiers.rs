//! `jurat verifiers`, as far as the command line itself decides.

use std::{fs, io::Write as _, process::Stdio};

use serde_json::{Value, json};

use crate::{
    home::{Home, Ran},
    samples::{sample, with},
    scripted::Scripted,
};

const ID: &str = "0198c1f0-0000-7000-8000-000000000001";

fn page(names: &[&str], next: Option<&str>) -> Value {
    let whole = sample("VerifierSummaryPage", json!({}))["items"][0].clone();
    let item = |name: &&str| {
        let members = json!({"verifier_id": ID, "name": name, "current_version": 1, "owner": null});
        with(whole.clone(), members)
    };
    let items: Vec<Value> = names.iter().map(item).collect();
    json!({"items": items, "next_cursor": next})
}

#[test]
fn a_list_is_json_in_a_pipe_and_a_table_on_request() {
    let home = Home::new();
    let first = page(&["a", "b"], Some("c1"));
    let server = Scripted::new()
        .on("GET /v1/verifiers?limit=25", 200, &first)
        .on("GET /v1/verifiers?limit=2", 200, &first)
        .on("GET /v1/verifiers?limit=2&cursor=c1", 200, page(&["c"], None));
    let ran = server.run(&home, &["verifiers", "list"]).ok();
    assert_eq!((ran.json(), ran.out.lines().count()), (first, 1));
    let ran = server.run(&home, &["verifiers", "list", "--table"]).ok();
    assert!(ran.out.contains(" a      1 "), "{}", ran.out);
    assert!(ran.err.contains("continue with `--cursor c1`"), "{}", ran.err);
    let ran = server.run(&home, &["verifiers", "list", "--all", "-l", "2"]).ok();
    assert_eq!(ran.json(), page(&["a", "b", "c"], None));
    let ran = server.run(&home, &["verifiers", "list", "--json", "--table"]);
    assert_eq!(ran.code, 2);
    // A server that repeats the same page is not followed for ever.
    let stuck = Scripted::new().on("GET /v1/verifiers?limit=25", 200, page(&["a"], Some("c1"))).on(
        "GET /v1/verifiers?limit=25&cursor=c1",
        200,
        page(&["a"], Some("c1")),
    );
    let ran = stuck.run(&home, &["verifiers", "list", "--all"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("keeps returning the same page"), "{}", ran.err);
}

#[test]
fn an_invalid_verifier_file_is_refused_before_anything_is_sent() {
    let home = Home::new();
    let server = Scripted::new();
    fs::write(home.path().join("list.json"), "[]").unwrap();
    fs::write(home.path().join("twice.json"), r#"{"name": "a", "name": "b"}"#).unwrap();
    fs::write(home.path().join("large.json"), " ".repeat(3 << 20)).unwrap();
    for (file, text) in [
        ("none.json", "`none.json` cannot be read: "),
        ("list.json", "`list.json` must contain one JSON object"),
        ("twice.json", "`twice.json` is not JSON: "),
        ("large.json", "`large.json` is larger than 2 MiB"),
    ] {
        let ran = server.run(&home, &["verifiers", "deploy", file]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.starts_with(&format!("error: {text}")), "{}", ran.err);
    }
    assert_eq!(server.asked(), []);
}

#[test]
fn a_deploy_sends_the_file_with_the_token_of_the_flag() {
    let home = Home::new();
    let members = json!({
        "verifier_id": ID, "name": "tone", "version": 1, "version_token": "t1", "current_version": 1,
    });
    let deployed = sample("DeployedVerifier", members);
    let server = Scripted::new().on("POST /v1/verifiers", 201, &deployed);
    let mut command = server
        .command(&home, &["verifiers", "deploy", "-", "--expected-version-token", "t0", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let text = br#"{"name": "tone", "mine": [1]}"#;
    child.stdin.take().unwrap().write_all(text).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap()).ok();
    assert_eq!(ran.json(), deployed);
    let expected = json!({"name": "tone", "mine": [1], "expected_version_token": "t0"});
    assert_eq!(server.asked(), [("POST /v1/verifiers".to_owned(), expected)]);
}

fn judged(passed: Option<bool>) -> Value {
    let members = json!({
        "verifier_run_id": "r-1", "anonymous_verifier_run_id": null, "verifier_id": ID,
        "version": 1, "status": "success", "passed": passed, "reasoning": "Because.",
        "error_code": null, "error_message": null, "duration_ms": 12,
        "created_at": "2026-11-15T09:30:00Z", "judges": [], "confidence": null,
    });
    let mut body = sample("VerifierRun", members);
    if passed.is_none() {
        body["status"] = json!("error");
        body["reasoning"] = Value::Null;
        body["error_code"] = json!("timeout");
        body["error_message"] = json!("the judge did not answer");
    }
    body
}

const RUNS: &str = "POST /v1/verifiers/tone/runs";

#[test]
fn a_run_prints_the_verdict_and_only_a_gate_fails() {
    let home = Home::new();
    let error = "ERROR verifier_run_id=r-1 timeout: the judge did not answer\n";
    for (body, out, [plain, gated]) in [
        (judged(Some(true)), "PASS verifier_run_id=r-1\n  Because.\n", [0, 0]),
        (judged(Some(false)), "FAIL verifier_run_id=r-1\n  Because.\n", [0, 11]),
        (judged(None), error, [1, 12]),
    ] {
        let server = Scripted::new().on(RUNS, 201, &body);
        let run = ["verifiers", "run", "tone", "--input", "response=x"];
        let ran = server.run(&home, &run);
        assert_eq!((ran.out.as_str(), ran.code), (out, plain), "{}", ran.err);
        let ran = server.run(&home, &[&run[..], &["--gate"]].concat());
        assert_eq!((ran.out.as_str(), ran.code), (out, gated), "{}", ran.err);
        let ran = server.run(&home, &[&run[..], &["--json"]].concat());
        assert_eq!((ran.json(), ran.code), (body, plain), "{}", ran.err);
    }
}

#[test]
fn inputs_come_as_json_from_a_file_or_one_by_one() {
    let home = Home::new();
    let server = Scripted::new().on(RUNS, 201, judged(Some(true)));
    fs::write(home.path().join("in.json"), r#"{"a": "file", "b": "file"}"#).unwrap();
    let all = [
        "--inputs-file",
        "in.json",
        "--input",
        "b=x=y",
        "--media-url",
        "https://h/i.png",
        "-v",
        "2",
        "--skill-id",
        "w",
        "--workflow-version",
        "3",
        "--workflow-ref",
        "r",
        "--run-id",
        "mine",
        "--replicas",
        "3",
        "--judge",
        "p/m",
        "--fresh",
        "--commit-first",
        "--timeout-ms",
        "5000",
    ];
    for (args, expected) in [
        (&[][..], json!({"inputs": {}})),
        (&["--inputs-json", r#"{"a": "b"}"#], json!({"inputs": {"a": "b"}})),
        (
            &all,
            json!({
                "inputs": {"a": "file", "b": "x=y"}, "media_url": "https://h/i.png", "version": 2,
                "workflow_id": "w", "workflow_version": 3, "workflow_ref": "r", "run_id": "mine",
                "replicas": 3, "judges": ["p/m"], "fresh": true, "commit_first": true,
                "timeout_ms": 5000,
            }),
        ),
    ] {
        server.run(&home, &[&["verifiers", "run", "tone"], args].concat()).ok();
        assert_eq!(server.asked().pop().unwrap().1, expected);
    }
    for (args, text) in [
        (&["--inputs-json", "{"][..], "`--inputs-json` is not JSON: "),
        (&["--inputs-json", "[]"], "`--inputs-json` must contain one JSON object"),
        (&["--inputs-file", "none"], "`--inputs-file none` cannot be read: "),
        (&["--input", "novalue"], "write it like `response=It rains.`"),
        (&["--replicas", "2"], "possible values: 1, 3, 5"),
        (&["--anonymous"], "`--anonymous` takes the id of a verifier"),
    ] {
        let ran = server.run(&home, &[&["verifiers", "run", "tone"], args].concat());
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(text), "{}", ran.err);
    }
}

#[test]
fn a_refusal_of_the_server_comes_with_advice() {
    let home = Home::new();
    let problem = json!({
        "code": "conflict", "message": "the token is stale", "hint": "Send the token t2.",
    });
    let server = Scripted::new().on("POST /v1/verifiers", 409, problem);
    fs::write(home.path().join("v.json"), "{}").unwrap();
    let ran = server.run(&home, &["verifiers", "deploy", "v.json"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.err, "error: the token is stale\n  hint: Send the token t2.\n");
}

#[test]
fn a_script_is_not_asked_before_something_is_removed() {
    let home = Home::new();
    let server = Scripted::new()
        .on("DELETE /v1/verifiers/tone", 200, sample("RevokedVerifier", json!({"name": "tone"})))
        .on(
            &format!("DELETE /v1/verifiers/{ID}/permanent"),
            200,
            sample("DeletedVerifier", json!({"name": "tone"})),
        );
    let ran = server.run(&home, &["verifiers", "revoke", "tone"]).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("Revoked tone\n", ""));
    let ran = server.run(&home, &["verifiers", "delete", ID]).ok();
    assert_eq!(ran.out, "Permanently deleted tone\n");
    // A name could mean another verifier than the intended one.
    let ran = server.run(&home, &["verifiers", "delete", "tone"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("takes the id of a verifier"), "{}", ran.err);
    assert_eq!(server.asked().len(), 2);
}

/// Runs a command on a terminal, answers its question, and returns everything that the terminal
/// showed.
fn on_a_terminal(server: &Scripted, home: &Home, args: &[&str], answer: &str) -> Ran {
    const PROGRAM: &str = "import os, pty, sys; pid, fd = pty.fork()\n\
        if pid == 0: os.execv(sys.argv[2], sys.argv[2:])\n\
        seen = b''\n\
        while b'[y/N]' not in seen: seen += os.read(fd, 1000)\n\
        os.write(fd, sys.argv[1].encode() + b'\\n')\n\
        while True:\n  try: more = os.read(fd, 1000)\n  except OSError: break\n  if not more: break\n  seen += more\n\
        sys.stdout.buffer.write(seen); sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))";
    let inner = server.command(home, args);
    let mut python = std::process::Command::new("python3");
    python.args(["-c", PROGRAM, answer]).arg(inner.get_program()).args(inner.get_args());
    python.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    python.current_dir(home.path()).output().unwrap().into()
}

#[test]
fn a_person_is_asked_before_something_is_removed() {
    let home = Home::new();
    let server = Scripted::new().on(
        "DELETE /v1/verifiers/tone",
        200,
        sample("RevokedVerifier", json!({"name": "tone"})),
    );
    let ran = on_a_terminal(&server, &home, &["verifiers", "revoke", "tone"], "n").ok();
    assert!(ran.out.contains("Revoke tone? This cannot be undone"), "{}", ran.out);
    assert!(ran.out.contains("nothing was revoked"), "{}", ran.out);
    assert_eq!(server.asked(), []);
    let ran = on_a_terminal(&server, &home, &["verifiers", "revoke", "tone"], "y").ok();
    assert!(ran.out.contains("Revoked tone"), "{}", ran.out);
}

#[test]
fn runs_are_exported_line_by_line_to_the_end() {
    let home = Home::new();
    let run = |id: &str| json!({"verifier_run_id": id, "passed": true});
    let page = |id: &str, next: Option<&str>| json!({"items": [run(id)], "next_cursor": next});
    let base = "GET /v1/verifier-runs?verifier=tone&verdict=failed&limit=200";
    let server = Scripted::new().on(base, 200, page("r1", Some("c1"))).on(
        &format!("{base}&cursor=c1"),
        200,
        page("r2", None),
    );
    let args = ["verifiers", "runs", "tone", "--verdict", "failed", "--jsonl"];
    let ran = server.run(&home, &args).ok();
    assert_eq!(ran.out, format!("{}\n{}\n", run("r1"), run("r2")));
}

#[test]
fn an_invalid_amount_is_refused_before_anything_is_sent() {
    let home = Home::new();
    let path = "POST /v1/accounts/acct_a/grants";
    let server = Scripted::new().on(path, 200, sample("Grant", json!({"available_usd": "20.00"})));
    for amount in ["0", "1e3", "1.0000001", "five", "--5"] {
        let ran = server.run(&home, &["admin", "grant", "acct_a", amount]);
        assert_eq!(ran.code, 2, "{amount}: {}", ran.err);
    }
    let ran = server.run(&home, &["admin", "grant", "acct_a", "-5", "--note", "twice"]).ok();
    assert_eq!(ran.out, "took $5 back from acct_a; $20.00 available\n");
    let expected = json!({"amount_usd": "-5", "note": "twice"});
    assert_eq!(server.asked(), [(path.to_owned(), expected)]);
}
