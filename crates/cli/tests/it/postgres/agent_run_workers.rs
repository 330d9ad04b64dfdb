//! Several workers, and several servers, on one PostgreSQL: everything is done once, even if one of
//! them is paused past its lease.

use std::{
    collections::BTreeSet,
    process::{Child, Command},
};

use jurat_core::id::AccountId;
use jurat_store::{Behalf, StoreLocation};
use jurat_testkit::{
    fake_executor::{FakeExecutor, gated},
    postgres::TestSchema,
};
use serde_json::{Value, json};

use crate::{
    agent_runs::{says, spec},
    home::{Home, Process},
    http::Http,
};

fn worker(home: &Home, url: &str, name: &str) -> Process {
    let of_time = ["--poll-ms", "50", "--lease-ms", "1500"];
    let args = ["run", "worker", "--store", url, "--worker-id", name];
    let process = home.start(&[&args[..], &of_time].concat());
    process.wait_for("working on runs");
    process
}

/// Does two steps concurrently.
fn worker_of_two(home: &Home, url: &str, name: &str) -> Process {
    let of_time = ["--poll-ms", "50", "--lease-ms", "1500", "--concurrency", "2"];
    let args = ["run", "worker", "--store", url, "--worker-id", name];
    let process = home.start(&[&args[..], &of_time].concat());
    process.wait_for("working on runs");
    process
}

/// A server that logs what it does with tasks.
fn server(home: &Home, url: &str) -> Process {
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", url, "--new-admin-key"];
    let mut command = home.command(&args);
    command.env("JURAT_LIMITS_LAG_MS", "0").env("JURAT_LOG", "info,jurat_engine=debug");
    Process::new(command).listening()
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

/// The spending of the account.
async fn spent(url: &str) -> i64 {
    let location = StoreLocation::Postgres { url: url.to_owned(), migrate_url: None };
    let store = jurat_store::open(&location).await.unwrap();
    let account =
        store.accounts().get(&Behalf::Platform, &AccountId::admin()).await.unwrap().unwrap();
    store.close().await;
    account.balance.spent
}

#[tokio::test(flavor = "multi_thread")]
async fn three_workers_do_each_step_once() {
    let schema = TestSchema::served().await;
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
    fake.wait_for_calls(18).await;
    // One more process that exits when there is nothing left to do.
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
async fn a_worker_paused_past_its_lease_changes_nothing_afterwards() {
    let schema = TestSchema::served().await;
    let url = schema.serving_url();
    let home = Home::new();
    let fake = FakeExecutor::start(gated(says("yes"))).await;
    let add = ["executors", "add", "one", &fake.url(), "--store", &url];
    home.run(&[&add[..], &["--price-micros", "1000"]].concat()).ok();
    let file = spec(&home, "r1", &[("a", "one"), ("b", "one"), ("c", "one")]);
    home.run(&["run", "submit", &file, "--kickoff", "--store", &url]).ok();
    let homes = [Home::new(), Home::new(), Home::new()];
    let paused = worker(&homes[0], &url, "paused");
    fake.wait_for_calls(3).await;
    signal(&paused.child, "-STOP");
    // Neither of the two has room for all three steps. They continue the same tasks under the same
    // execution ids.
    let awake = [(&homes[1], "second"), (&homes[2], "third")]
        .map(|(home, name)| worker_of_two(home, &url, name));
    let leased = |name: &str| {
        let leased = told(&home, &url, "r1", "STEP_LEASED");
        leased.iter().filter(|it| it["payload"]["worker"] == name).count()
    };
    // Each read is a process of its own, so that nobody is kept from work.
    while leased("second") == 0 || leased("third") == 0 {}
    fake.wait_for_calls(6).await;
    fake.release();
    let run = ["run", "show", "r1", "--store", &url, "--json"];
    let ended = home.run(&["run", "worker", "--once", "--store", &url]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let before = home.run(&run).ok().json();
    assert_eq!(before["status"], "FINALIZED");
    assert_eq!(leased("paused"), 3);
    signal(&paused.child, "-CONT");
    for _ in 0..3 {
        paused.wait_for("taken by another worker");
    }
    assert_eq!(home.run(&run).ok().json(), before, "what the late one has is refused");
    let mut done: Vec<Value> = told(&home, &url, "r1", "STEP_COMPLETED")
        .into_iter()
        .map(|event| event["payload"]["agent_id"].clone())
        .collect();
    done.sort_by_key(Value::to_string);
    assert_eq!(done, ["a", "b", "c"], "every step is done once");
    let tasks: BTreeSet<String> = executed(&fake, "task_id").into_iter().collect();
    let executions: BTreeSet<String> = executed(&fake, "execution_id").into_iter().collect();
    assert_eq!((tasks.len(), executions.len()), (3, 3));
    paused.terminate();
    assert!(paused.wait().success());
    assert_eq!(spent(&url).await, 3_000, "each execution is paid for once");
    for process in awake {
        process.terminate();
        assert!(process.wait().success());
    }
    schema.drop().await;
}

/// Three servers on one store: the one that drives a task is suspended, and another continues it.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_paused_past_its_lease_changes_nothing_afterwards() {
    let schema = TestSchema::served().await;
    let url = schema.serving_url();
    let homes = [Home::new(), Home::new(), Home::new()];
    let home = &homes[0];
    let fake = FakeExecutor::start(gated(says("yes"))).await;
    let add = ["executors", "add", "one", &fake.url(), "--store", &url];
    home.run(&[&add[..], &["--price-micros", "1000"]].concat()).ok();
    let mut contract = home.run(&["task", "sample", "--task-id", "t1", "--json"]).ok().json();
    contract["assignment"]["claim"]["lease_ms"] = json!(500);
    let first = server(home, &url);
    let http = Http::new(&first.url, &home.state());
    let order = json!({ "contract": contract, "executors": ["one"] });
    assert_eq!(http.post("/v1/tasks", &order).0, 201);
    fake.wait_for_calls(1).await;
    signal(&first.child, "-STOP");
    let others = [server(&homes[1], &url), server(&homes[2], &url)];
    fake.wait_for_calls(2).await;
    fake.release();
    // A server that accepts the same task again from its caller reports the same one.
    let other = Http::new(&others[0].url, &homes[1].state());
    let (status, again) = other.post("/v1/tasks", &order);
    assert_eq!((status, &again["task_id"]), (200, &json!("t1")));
    let (_, before) = other.get("/v1/tasks/t1?wait=20");
    assert_eq!(before["state"], "finalized", "{before}");
    let (_, events) = other.get("/v1/tasks/t1/events");

    signal(&first.child, "-CONT");
    first.wait_for("task was changed by another writer");
    let (_, after) = http.get("/v1/tasks/t1");
    assert_eq!(after, before, "what the late one has is refused");
    assert_eq!(http.get("/v1/tasks/t1/events").1, events);
    let executions: BTreeSet<String> = executed(&fake, "execution_id").into_iter().collect();
    assert_eq!((executed(&fake, "execution_id").len(), executions.len()), (2, 1));
    let of = |kind: &str| {
        let items = events["items"].as_array().unwrap();
        items.iter().filter(|event| event["type"] == kind).count()
    };
    assert_eq!((of("CANDIDATE_PROPOSED"), of("DECISION_FINALIZED")), (1, 1), "{events}");
    first.terminate();
    assert!(first.wait().success());
    assert_eq!(spent(&url).await, 1_000, "the execution is paid for once");
    schema.drop().await;
}
