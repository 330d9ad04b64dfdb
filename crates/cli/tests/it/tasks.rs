//! `jurat task`, with real executors.

use std::fs;

use jurat_testkit::fake_executor::{FakeExecutor, answers, gated};
use serde_json::{Value, json};

use crate::home::Home;

/// A contract in a file, with this change.
fn contract(home: &Home, id: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut contract = home.run(&["task", "sample", "--task-id", id, "--json"]).ok().json();
    change(&mut contract);
    let file = home.path().join(format!("{id}.json"));
    fs::write(&file, contract.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_task_runs_to_its_decision_on_a_server() {
    let home = Home::new();
    let _server = home.serve();
    let _alpha = home.register("alpha", "honest");
    let _beta = home.register("beta", "honest");
    // The words of WattSwarm, and the keys that its programs read.
    let args = ["--executor", "alpha", "--profile", "default", "--task-id", "task-001", "--json"];
    let ran = home.run(&[&["task", "run-real"][..], &args].concat()).ok();
    let body = ran.json();
    assert_eq!(body["task_id"], "task-001");
    assert_eq!(body["terminal_state"], "finalized");
    assert_eq!(body["executor"], "alpha");
    let ran = home.run(&["task", "run", "--executor", "alpha", "--executor", "beta", "--gate"]);
    let ran = ran.ok();
    assert!(ran.out.contains("finalized"), "{}", ran.out);
    // An earlier decision on the same inputs is voted on again, and not proposed again.
    assert!(ran.err.contains("reused from knowledge:task-001#1"), "{}", ran.err);
    assert!(ran.err.contains("is final"), "{}", ran.err);
    let decision = home.run(&["task", "decision", "task-001", "--json"]).ok().json();
    assert_eq!(decision, body);
    let listed = home.run(&["task", "list", "--state", "finalized"]).ok().out;
    assert!(listed.contains("task-001") && listed.contains("swarm"), "{listed}");
    let shown = home.run(&["task", "show", "task-001"]).ok().out;
    assert!(shown.contains("approved") && shown.contains("this node"), "{shown}");
    let events = home.run(&["task", "events", "task-001", "--follow", "--json"]).ok().out;
    let first: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!(first["type"], "TASK_CREATED");
    assert!(events.lines().last().unwrap().contains("DECISION_FINALIZED"), "{events}");
}

#[test]
fn a_gate_reports_how_a_task_ended() {
    let home = Home::new();
    let _server = home.serve();
    let _alpha = home.register("alpha", "honest");
    let _omega = home.register("omega", "fail");
    let file = contract(&home, "task-1", |contract| {
        contract["assignment"]["explore"]["max_retries"] = json!(0);
    });
    let failed = home.run(&["task", "run", "--file", &file, "--executor", "omega", "--gate"]);
    assert_eq!(failed.code, 11, "{} {}", failed.out, failed.err);
    assert!(failed.out.contains("failed"), "{}", failed.out);
    let without = home.run(&["task", "decision", "task-1"]).ok();
    assert!(without.out.contains("reason"), "{}", without.out);
    let over = home.run(&["task", "cancel", "task-1"]);
    assert_eq!(over.code, 1, "{}", over.err);
    assert_eq!(home.run(&["task", "watch", "task-1", "--gate"]).code, 11);
    let file = contract(&home, "task-2", |contract| contract["expiry_ms"] = json!(1));
    let late = home.run(&["task", "submit", &file]);
    assert_eq!(late.code, 2, "{}", late.err);
    assert!(late.err.contains("expiry_ms"), "{}", late.err);
    let soon =
        home.run(&["task", "submit", &file, "--expires-in", "60", "--executor", "alpha"]).ok();
    assert_eq!(soon.out, "submitted task-2\n");
    home.run(&["task", "watch", "task-2", "--gate"]).ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_cancelled() {
    let home = Home::new();
    let able = answers(json!({ "answer": "42" })).task_types(&["swarm"]);
    let fake = FakeExecutor::start(gated(able)).await;
    let _server = home.serve();
    home.run(&["executors", "add", "alpha", &fake.url()]).ok();
    let file = contract(&home, "task-1", |_| {});
    home.run(&["task", "submit", &file, "--executor", "alpha"]).ok();
    let ran = home.run(&["task", "cancel", "task-1", "--reason", "asked twice"]).ok();
    assert!(ran.out.contains("cancelled") && ran.out.contains("asked twice"), "{}", ran.out);
    assert_eq!(home.run(&["task", "watch", "task-1", "--gate"]).code, 12);
    // The same contract with another roster is not the same task.
    let ran = home.run(&["task", "submit", &file, "--profile", "other"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("and other `profile`"), "{}", ran.err);
}

#[test]
fn a_decision_is_disputed_and_the_next_epoch_starts() {
    let home = Home::new();
    let _server = home.serve();
    let _alpha = home.register("alpha", "honest");
    let file = contract(&home, "task-1", |contract| {
        contract["task_mode"] = json!("CONTINUOUS");
        contract["budget"]["mode"] = json!("EPOCH_RENEW");
    });
    // A continuous task is followed until it has decided.
    let ran = home.run(&["task", "run", "--file", &file, "--executor", "alpha", "--gate"]).ok();
    assert!(ran.out.contains("finalized"), "{}", ran.out);
    let said = home.run(&["task", "complain", "task-1", "--reason", "it is wrong"]).ok();
    assert!(said.out.contains("disputed: it is wrong"), "{}", said.out);
    let twice = home.run(&["task", "complain", "task-1", "--reason", "it is wrong"]);
    assert_eq!(twice.code, 1);
    assert!(twice.err.contains("it was already disputed"), "{}", twice.err);
    let exported = home.run(&["knowledge", "export", "--task-type", "swarm"]).ok();
    let first: Value = serde_json::from_str(exported.out.lines().next().unwrap()).unwrap();
    assert_eq!((&first["task_id"], exported.out.lines().count()), (&json!("task-1"), 1));
    let file = home.path().join("decisions.jsonl");
    let file = file.to_str().unwrap();
    let exported = home.run(&["knowledge", "export", "--task-id", "task-1", "--out", file]).ok();
    assert_eq!(exported.out, format!("exported {file}\n"));
    assert!(fs::read_to_string(file).unwrap().contains("\"deprecated_at\":\"2"));
    for wrong in [&["--task-type", "a", "--task-id", "b"][..], &[]] {
        assert_eq!(home.run(&[&["knowledge", "export"], wrong].concat()).code, 2);
    }
    let unknown = home.run(&["knowledge", "export", "--task-id", "task-9"]);
    assert_eq!(unknown.code, 1);
    let begun = home.run(&["task", "next-epoch", "task-1"]).ok();
    assert_eq!(begun.out, "started epoch 2 of task-1\n");
    let watched = home.run(&["task", "watch", "task-1"]).ok();
    assert!(watched.err.contains("epoch 1 ended"), "{}", watched.err);
    let shown = home.run(&["task", "show", "task-1", "--json"]).ok().json();
    assert_eq!((&shown["epoch"], &shown["state"]), (&json!(2), &json!("finalized")));
    home.run(&["task", "run", "--executor", "alpha", "--task-id", "task-2"]).ok();
    let once = home.run(&["task", "next-epoch", "task-2"]);
    assert_eq!(once.code, 1);
    assert!(once.err.contains("ONE_SHOT"), "{}", once.err);
    let unsaid = home.run(&["task", "complain", "task-2"]);
    assert_eq!(unsaid.code, 2);
    assert!(unsaid.err.contains("--reason"), "{}", unsaid.err);
}

#[test]
fn without_a_server_the_command_drives_the_task_itself() {
    let home = Home::new();
    let _alpha = home.register("alpha", "honest");
    let file = contract(&home, "task-1", |_| {});
    let submitted = home.run(&["task", "submit", &file]).ok();
    assert!(submitted.err.contains("no server is running"), "{}", submitted.err);
    let shown = home.run(&["task", "show", "task-1", "--json"]).ok().json();
    assert_eq!(shown["state"], "created");
    let watched = home.run(&["task", "watch", "task-1"]).ok();
    assert!(watched.out.contains("finalized"), "{}", watched.out);
}

#[test]
fn an_error_suggests_the_next_step() {
    let home = Home::new();
    let none = home.run(&["task", "submit"]);
    assert_eq!(none.code, 2);
    assert!(none.err.contains("jurat task sample"), "{}", none.err);
    let nobody = home.run(&["task", "run"]);
    assert_eq!(nobody.code, 2, "{}", nobody.err);
    assert!(nobody.err.contains("has no executor for the task"), "{}", nobody.err);
    let file = contract(&home, "task-1", |contract| {
        contract["budget"]["max_steps"] = json!("many");
        contract["surplus"] = json!(1);
    });
    let wrong = home.run(&["task", "submit", &file]);
    assert_eq!(wrong.code, 2);
    let both = wrong.err.contains("`contract.surplus`")
        && wrong.err.contains("`contract.budget.max_steps`");
    assert!(both, "{}", wrong.err);
    let unknown = home.run(&["task", "watch", "task-9"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("there is no task `task-9`"), "{}", unknown.err);
}

#[test]
fn run_real_fails_when_its_task_does() {
    let home = Home::new();
    let _server = home.serve();
    let _broken = home.register("broken", "fail");
    let real = ["task", "run-real", "--executor", "broken", "--json", "--task-id"];
    let ran = home.run(&[&real[..], &["task-1"]].concat());
    assert_eq!(ran.code, 1, "{} {}", ran.out, ran.err);
    assert_eq!(ran.json()["terminal_state"], "failed", "the decision is printed all the same");
    let gated = home.run(&[&real[..], &["task-2", "--gate"]].concat());
    assert_eq!(gated.code, 11, "{} {}", gated.out, gated.err);
    let plain = home.run(&["task", "run", "--executor", "broken", "--task-id", "task-3"]);
    assert_eq!(plain.code, 0, "{} {}", plain.out, plain.err);
}

#[test]
fn the_peers_name_for_the_events_address_is_a_flag_too() {
    let home = Home::new();
    let _server = home.serve();
    let runtime = home.start(&["runtime", "--listen", "127.0.0.1:0"]).listening();
    let url = runtime.url.as_str();
    let flag = "--agent-event-callback-base-url";
    home.run(&["executors", "add", "alpha", url, flag, url]).ok();
    let shown = home.run(&["executors", "show", "alpha", "--json"]).ok().json();
    assert_eq!(shown["agent_events_url"], url);
}
