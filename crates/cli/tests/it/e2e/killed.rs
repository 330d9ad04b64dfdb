//! A process that is killed at each of its points: whoever comes after it ends the work, and nothing
//! is lost or done twice.
//!
//! A first process counts the points that the same work passes. On SQLite a process then dies at each
//! of them, on PostgreSQL at the first and the last of each name, and with `just killed` at each of
//! them there too.

mod kept;
mod runs;
mod site;
mod tasks;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use jurat_testkit::fake_executor::{Call, FakeExecutor, answers};
use serde_json::json;

use self::site::Kind;

/// How many die at a time: most of the time is spent waiting for leases to end.
const AT_ONCE: usize = 6;
/// How long a claim holds that nobody renews.
const LEASE_MS: u64 = 1_000;

/// Executors that answer at once, under names and models of their own.
async fn fakes(names: &[&str]) -> BTreeMap<String, FakeExecutor> {
    let mut fakes = BTreeMap::new();
    for name in names {
        let behaviour = answers(json!({ "answer": "42" })).provider_family(name);
        fakes.insert((*name).to_owned(), FakeExecutor::start(behaviour).await);
    }
    fakes
}

fn addresses(fakes: &BTreeMap<String, FakeExecutor>) -> Vec<(&str, String)> {
    fakes.iter().map(|(name, fake)| (name.as_str(), fake.url())).collect()
}

/// What an executor was asked to propose for a task.
fn proposals(fake: &FakeExecutor, task: &str) -> Vec<Call> {
    let calls = fake.calls().into_iter();
    calls.filter(|it| it.endpoint() == "execute" && it.body["task_id"] == task).collect()
}

/// At which of these points a process dies, counted from 1.
fn deaths(kind: Kind, points: &[String]) -> Vec<usize> {
    #[expect(clippy::disallowed_methods, reason = "a test is told how thorough it is to be")]
    let is_thorough = std::env::var("JURAT_TEST_KILLED").is_ok_and(|it| it == "all");
    if kind == Kind::File || is_thorough {
        return (1..=points.len()).collect();
    }
    let mut ends: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (at, name) in (1..).zip(points) {
        ends.entry(name).and_modify(|it| it.1 = at).or_insert((at, at));
    }
    ends.values().flat_map(|(first, last)| BTreeSet::from([*first, *last])).collect()
}

/// Lets a process die at each of these points, several at a time; the thread is named after it.
fn each(deaths: &[usize], points: &[String], die: impl Fn(usize, usize) + Sync) {
    let next = AtomicUsize::new(0);
    let (die, next) = (&die, &next);
    let one_after_the_other = || {
        while let Some(at) = deaths.get(next.fetch_add(1, Ordering::SeqCst)) {
            let name = points.get(at - 1).map_or("nothing", String::as_str);
            let thread = thread::Builder::new().name(format!("dies at {at}, {name}"));
            thread::scope(|scope| {
                let place = deaths.iter().position(|it| it == at).unwrap();
                thread.spawn_scoped(scope, move || die(place, *at)).unwrap();
            });
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(one_after_the_other);
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_decided_whatever_the_server_was_doing_when_it_died() {
    tasks::all(Kind::File).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_whatever_its_worker_was_doing_when_it_died() {
    runs::all(Kind::File).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_on_postgresql_is_decided_whatever_the_server_was_doing_when_it_died() {
    tasks::all(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_on_postgresql_ends_whatever_its_worker_was_doing_when_it_died() {
    runs::all(Kind::Postgres).await;
}

/// A point that neither a task nor a run comes by would never be tried.
#[tokio::test(flavor = "multi_thread")]
async fn every_point_that_there_is_lies_on_the_way() {
    let (task, run) = (tasks::counted(Kind::File).await, runs::counted(Kind::File).await);
    let passed: BTreeSet<&str> = task.iter().chain(&run).map(String::as_str).collect();
    assert_eq!(passed, BTreeSet::from(jurat_engine::POINTS));
}
