//! Several workers on one PostgreSQL: each step is done once, also when a worker is paused past its lease.

use std::{
    collections::BTreeSet,
    process::{Child, Command},
};

use jurat_testkit::{
    fake_executor::{FakeExecutor, gated},
    postgres::Schema,
};
use serde_json::Value;

use crate::{
    home::{Home, Process},
    runs::{says, spec},
};

fn worker(home: &Home, url: &str, name: &str) -> Process {
    let of_time = ["--poll-ms", "50", "--lease-ms", "1500"];
    let args = ["run", "worker", "--store", url, "--worker-id", name];
    let process = home.start(&[&args[..], &of_time].concat());
    process.wait_for("working on runs");
    process
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

fn executed(fake: &FakeExecutor, member: &str) -> Vec<String> {
    let calls = fake.calls().into_iter().filter(|call| call.endpoint() == "execute");
    calls.map(|call| call.body[member].as_str().unwrap().to_owned()).collect()
}

/// Events of one kind, the newest first.
fn told(home: &Home, url: &str, run: &str, kind: &str) -> Vec<Value> {
    let events = home.run(&["run", "events", run, "--store", url, "--limit", "200", "--json"]).ok();
    let items = events.json()["items"].as_array().unwrap().clone();
    items.into_iter().filter(|event| event["event_type"] == kind).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_workers_do_each_step_once() {
    let schema = Schema::served().await;
    let url = schema.serving_url();
    let home = Home::new();
    let fake = FakeExecutor::start(says("yes")).await;
    home.run(&["executors", "add", "one", &fake.url(), "--store", &url]).ok();
    let names: Vec<String> = (0..6).map(|number| format!("a{number}")).collect();
    let agents: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "one")).collect();
    let runs = ["r1", "r2", "r3"];
    for run in runs {
        let file = spec(&home, run, &agents);
        home.run(&["run", "submit", &file, "--kickoff", "--store", &url]).ok();
    }
    let homes = [Home::new(), Home::new(), Home::new()];
    let workers: Vec<Process> =
        homes.iter().zip(["w1", "w2", "w3"]).map(|(home, name)| worker(home, &url, name)).collect();
    fake.called(18).await;
    // One more process that ends when there is nothing left to do.
    home.run(&["run", "worker", "--once", "--store", &url]).ok();
    for run in runs {
        let result = home.run(&["run", "result", run, "--store", &url, "--json"]).ok().json();
        assert_eq!(result["status"], "FINALIZED");
        assert_eq!(told(&home, &url, run, "STEP_COMPLETED").len(), 6);
        assert_eq!(told(&home, &url, run, "RUN_FINALIZED").len(), 1);
    }
    let tasks = executed(&fake, "task_id");
    let distinct: BTreeSet<&String> = tasks.iter().collect();
    assert_eq!((tasks.len(), distinct.len()), (18, 18), "each step is executed once");
    for process in workers {
        process.terminate();
        assert!(process.wait().success());
    }
    schema.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_paused_past_its_lease_changes_nothing_afterwards() {
    let schema = Schema::served().await;
    let url = schema.serving_url();
    let (home, first, second) = (Home::new(), Home::new(), Home::new());
    let fake = FakeExecutor::start(gated(says("yes"))).await;
    home.run(&["executors", "add", "one", &fake.url(), "--store", &url]).ok();
    let file = spec(&home, "r1", &[("a", "one")]);
    home.run(&["run", "submit", &file, "--kickoff", "--store", &url]).ok();
    let paused = worker(&first, &url, "paused");
    fake.called(1).await;
    signal(&paused.child, "-STOP");
    let awake = worker(&second, &url, "awake");
    // The other one goes on with the same task, and asks under the same execution id.
    fake.called(2).await;
    fake.release();
    let run = ["run", "show", "r1", "--store", &url, "--json"];
    let ended = home.run(&["run", "worker", "--once", "--store", &url]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let before = home.run(&run).ok().json();
    assert_eq!(before["status"], "FINALIZED");
    let workers: Vec<Value> = told(&home, &url, "r1", "STEP_LEASED")
        .into_iter()
        .map(|event| event["payload"]["worker"].clone())
        .collect();
    assert_eq!(workers.last().unwrap(), "paused");
    assert!(1 < workers.len(), "{workers:?}");
    signal(&paused.child, "-CONT");
    paused.wait_for("somebody else's");
    assert_eq!(home.run(&run).ok().json(), before, "what the late one has is refused");
    assert_eq!(told(&home, &url, "r1", "STEP_COMPLETED").len(), 1);
    let tasks: BTreeSet<String> = executed(&fake, "task_id").into_iter().collect();
    let executions: BTreeSet<String> = executed(&fake, "execution_id").into_iter().collect();
    assert_eq!((tasks.len(), executions.len()), (1, 1));
    awake.terminate();
    assert!(awake.wait().success());
    schema.drop().await;
}
