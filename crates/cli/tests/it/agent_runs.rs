//! `jurat run`, with a server and without one.

use jurat_testkit::fake_executor::{Behaviour, FakeExecutor, answers};
use serde_json::{Value, json};

use crate::home::Home;

pub(crate) fn says(answer: &str) -> Behaviour {
    answers(json!({ "answer": answer })).task_types(&["swarm"])
}

/// A file with a spec in which each agent has its executor.
pub(crate) fn spec(home: &Home, id: &str, agents: &[(&str, &str)]) -> String {
    let agent = |(agent, executor): &(&str, &str)| json!({ "agent_id": agent, "executor": executor, "prompt": "what is so?" });
    let agents: Vec<Value> = agents.iter().map(agent).collect();
    // An earlier decision on the same inputs would be tried first, without an execution.
    let spec = json!({
        "run_id": id, "agents": agents, "shared_inputs": { "of": id },
        "contract": { "assignment": { "claim": { "lease_ms": 1_000 } } },
    });
    let file = format!("{id}.json");
    std::fs::write(home.path().join(&file), spec.to_string()).unwrap();
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_works_on_a_run_that_is_submitted() {
    let home = Home::new();
    let (one, other) =
        (FakeExecutor::start(says("Paris")).await, FakeExecutor::start(says("paris")).await);
    let _server = home.serve();
    home.run(&["executors", "add", "one", &one.url()]).ok();
    home.run(&["executors", "add", "other", &other.url()]).ok();
    let file = spec(&home, "r1", &[("a", "one"), ("b", "other")]);
    let ran = home.run(&["run", "submit", &file]).ok();
    assert_eq!(ran.out.trim(), "submitted r1");
    assert!(ran.err.contains("`jurat run kickoff r1`"), "{}", ran.err);
    assert_eq!(home.run(&["run", "kickoff", "r1"]).ok().out.trim(), "kicked off r1");
    let ran = home.run(&["run", "watch", "r1", "--gate"]).ok();
    assert!(ran.err.contains("a completed") && ran.err.contains("b completed"), "{}", ran.err);
    assert!(ran.out.contains("answer    Paris"), "{}", ran.out);
    let result = home.run(&["run", "result", "r1", "--json"]).ok().json();
    assert_eq!(result["result"]["aggregation"]["answer_votes"], json!({ "Paris": 2 }));
    let events = home.run(&["run", "events", "r1", "--limit", "1"]).ok();
    assert!(events.out.contains("RUN_FINALIZED") && events.out.lines().count() == 1);
    let list = home.run(&["run", "list"]).ok();
    assert!(list.out.contains("2 of 2"), "{}", list.out);
    let ran = home.run(&["run", "retry", "r1"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("every step succeeded"), "{}", ran.err);
    // The store belongs to the server, which works on runs itself.
    let ran = home.run(&["run", "worker", "--once"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("works on its runs itself"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_and_retried() {
    let home = Home::new();
    let fake = FakeExecutor::start(says("yes")).await;
    let _server = home.serve();
    home.run(&["executors", "add", "one", &fake.url()]).ok();
    let file = spec(&home, "r1", &[("a", "one")]);
    home.run(&["run", "submit", &file]).ok();
    let ran = home.run(&["run", "cancel", "r1", "--reason", "asked twice"]).ok();
    assert_eq!(ran.out, "requested cancellation of r1\n");
    assert_eq!(home.run(&["run", "show", "r1", "--json"]).ok().json()["status"], "CANCELLED");
    assert_eq!(home.run(&["run", "retry", "r1"]).ok().out, "requested retry of r1\n");
    let ran = home.run(&["run", "watch", "r1", "--gate"]).ok();
    assert!(ran.out.contains("answer    yes"), "{}", ran.out);
    // The form of `POST /v1/runs` is accepted from a file, too, and a fault names the file.
    let order = json!({ "kickoff": true, "spec": {
        "run_id": "r2", "agents": [{ "agent_id": "a", "executor": "one", "prompt": "again?" }],
    } });
    std::fs::write(home.path().join("r2.json"), order.to_string()).unwrap();
    let ran = home.run(&["run", "submit", "r2.json"]).ok();
    assert!(ran.err.contains("`jurat run watch r2`"), "{}", ran.err);
    std::fs::write(home.path().join("r3.json"), json!({ "run_id": "r3" }).to_string()).unwrap();
    let ran = home.run(&["run", "submit", "r3.json"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("`r3.json`: `spec.agents` is required"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_server_a_worker_does_the_queued_steps_and_exits() {
    let home = Home::new();
    let fake = FakeExecutor::start(says("yes")).await;
    home.run(&["executors", "add", "one", &fake.url()]).ok();
    assert_eq!(home.run(&["run", "init"]).ok().out, "run queue schema initialized\n");
    let missing = home.run(&["run", "submit", "missing.json"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("`missing.json` cannot be read"), "{}", missing.err);
    let file = spec(&home, "r1", &[("a", "one"), ("b", "one")]);
    let ran = home.run(&["run", "submit", &file, "--kickoff"]).ok();
    assert!(ran.err.contains("no server is running"), "{}", ran.err);
    home.run(&["run", "worker", "--once", "--worker-id", "me"]).ok();
    let run = home.run(&["run", "show", "r1", "--json"]).ok().json();
    assert_eq!((&run["status"], &run["counts"]["succeeded"]), (&json!("FINALIZED"), &json!(2)));
    // Watching works on a run if nobody else does.
    let file = spec(&home, "r2", &[("a", "one")]);
    home.run(&["run", "submit", &file, "--kickoff"]).ok();
    let ran = home.run(&["run", "watch", "r2", "--gate"]).ok();
    assert!(ran.out.contains("answer    yes"), "{}", ran.out);
}
