//! Commands that follow a task or a run while their server goes away and returns.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{ChildStdout, Command, Stdio},
};

use jurat_testkit::fake_executor::{FakeExecutor, gated};
use serde_json::json;

use crate::{
    agent_runs::{says, spec},
    home::{Home, Process},
};

/// A command and its output.
fn started(mut command: Command) -> (Process, BufReader<ChildStdout>) {
    command.stdout(Stdio::piped());
    let mut process = Process::heard(command);
    let out = BufReader::new(process.child.stdout.take().unwrap());
    (process, out)
}

/// The output of a command until it succeeds.
fn said((process, mut out): (Process, BufReader<ChildStdout>)) -> String {
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    assert!(process.wait().success(), "{text}");
    text
}

fn again(home: &Home, url: &str) -> Process {
    let address = url.strip_prefix("http://").unwrap();
    let mut command = home.command(&["serve", "--listen", address]);
    command.env("JURAT_LIMITS_LAG_MS", "0");
    Process::new(command).listening()
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_a_task_survives_a_restart_of_the_server() {
    let home = Home::new();
    let fake = FakeExecutor::start(gated(says("42"))).await;
    let server = home.serve();
    home.run(&["executors", "add", "one", &fake.url()]).ok();
    let mut contract = home.run(&["task", "sample", "--task-id", "t1", "--json"]).ok().json();
    contract["assignment"]["claim"]["lease_ms"] = json!(500);
    std::fs::write(home.path().join("t1.json"), contract.to_string()).unwrap();
    home.run(&["task", "submit", "t1.json", "--executor", "one"]).ok();
    fake.wait_for_calls(1).await;
    let watching = started(home.command(&["task", "watch", "t1", "--gate"]));
    let mut following = started(home.command(&["task", "events", "t1", "--follow", "--json"]));
    watching.0.wait_for("one is proposing");
    let mut first = String::new();
    following.1.read_line(&mut first).unwrap();
    let url = server.url.clone();
    server.kill();
    watching.0.wait_for("lost the connection to the server");
    following.0.wait_for("lost the connection to the server");

    let _server = again(&home, &url);
    fake.wait_for_calls(2).await;
    fake.release();
    let out = said(watching);
    assert!(out.contains("finalized"), "{out}");
    let events = first + &said(following);
    let numbers: Vec<u64> = events
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    let last = u64::try_from(numbers.len()).unwrap();
    assert_eq!(numbers, (1..=last).collect::<Vec<u64>>(), "each event is told once");
    assert!(events.lines().last().unwrap().contains("DECISION_FINALIZED"), "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_a_run_survives_a_restart_of_the_server() {
    let home = Home::new();
    let fake = FakeExecutor::start(says("42")).await;
    let mut serve = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    // No worker takes a step before the server is gone.
    serve.env("JURAT_RUNS_WORKER", "off");
    let server = Process::new(serve).listening();
    home.run(&["executors", "add", "one", &fake.url()]).ok();
    let file = spec(&home, "r1", &[("a", "one")]);
    home.run(&["run", "submit", &file, "--kickoff"]).ok();
    let watching = started(home.command(&["run", "watch", "r1", "--gate"]));
    watching.0.wait_for("run kicked off");
    let url = server.url.clone();
    server.terminate();
    assert!(server.wait().success());
    watching.0.wait_for("lost the connection to the server");
    let _server = again(&home, &url);
    let out = said(watching);
    assert!(out.contains("answer    42"), "{out}");
}

#[test]
fn a_server_that_never_ran_is_not_waited_for() {
    let home = Home::new();
    let ran = home.run(&["task", "watch", "t1", "--server", "http://127.0.0.1:1"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(!ran.err.contains("lost the connection"), "{}", ran.err);
}
