//! A process is killed at each of its fail points: the next one finishes the work, and nothing is
//! lost or done twice.
//!
//! A first process counts the points that the same work passes. On SQLite a process then dies at
//! each of them, on PostgreSQL at the first and the last of each name, and with `just killed` at
//! each of them there, too.

mod agent_runs;
mod evidence_and_events;
mod interrupted;
mod kept;
mod payments;
mod site;
mod tasks;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use jurat_testkit::fake_executor::{FakeExecutor, ReceivedCall, answers};
use serde_json::json;
use tokio::runtime::Handle;

use self::site::{Kind, Prepared, Site};

/// How many die concurrently: most of the time is spent waiting for leases to end.
const AT_ONCE: usize = 6;
/// How long a lease holds if nobody renews it.
const LEASE_MS: u64 = 1_000;

/// Executors that answer immediately, with names and models of their own.
async fn fakes(names: &[&str]) -> BTreeMap<String, FakeExecutor> {
    let mut fakes = BTreeMap::new();
    for name in names {
        let behaviour = answers(json!({ "answer": "42" })).provider_family(name);
        fakes.insert((*name).to_owned(), FakeExecutor::start(behaviour).await);
    }
    fakes
}

fn addresses(fakes: &BTreeMap<String, FakeExecutor>) -> Vec<(String, String)> {
    fakes.iter().map(|(name, fake)| (name.clone(), fake.url())).collect()
}

/// The requests to an executor to propose for a task.
fn proposals(fake: &FakeExecutor, task: &str) -> Vec<ReceivedCall> {
    let calls = fake.calls().into_iter();
    calls.filter(|it| it.endpoint() == "execute" && it.body["task_id"] == task).collect()
}

/// Whether a process dies at each point that there is.
#[expect(clippy::disallowed_methods, reason = "a test is told how thorough it is to be")]
fn is_thorough() -> bool {
    std::env::var("JURAT_TEST_KILLED").is_ok_and(|it| it == "all")
}

/// At which of these points a process dies, counted from 1.
fn deaths(kind: Kind, points: &[String]) -> Vec<usize> {
    if kind == Kind::File || is_thorough() {
        return (1..=points.len()).collect();
    }
    let mut ends: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (at, name) in (1..).zip(points) {
        ends.entry(name).and_modify(|it| it.1 = at).or_insert((at, at));
    }
    ends.values().flat_map(|(first, last)| BTreeSet::from([*first, *last])).collect()
}

/// Where and at which points processes die.
struct Deaths {
    kind: Kind,
    prepared: Prepared,
    points: Vec<String>,
    at: Vec<usize>,
}

impl Deaths {
    fn new(kind: Kind, fakes: &BTreeMap<String, FakeExecutor>, points: Vec<String>) -> Self {
        let at = deaths(kind, &points);
        Self { kind, prepared: Prepared::new(kind, addresses(fakes)), points, at }
    }

    /// Lets a process die at each of the points, several concurrently. Each death in a file has a
    /// store of its own; on PostgreSQL, where that takes long, one follows the other.
    fn each(&self, die: impl Fn(&Site, usize) + Sync) {
        let runtime = Handle::current();
        let next = AtomicUsize::new(0);
        let one_after_the_other = || {
            let mut site = None;
            while let Some(at) = self.at.get(next.fetch_add(1, Ordering::SeqCst)) {
                let here = site.get_or_insert_with(|| runtime.block_on(self.prepared.site()));
                self.one(&die, here, *at);
                if self.kind == Kind::File {
                    site = None;
                }
            }
            if let Some(site) = site {
                runtime.block_on(site.drop());
            }
        };
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(one_after_the_other);
            }
        });
    }

    /// The thread of a death is named after it, so that a failure names it.
    fn one(&self, die: &(impl Fn(&Site, usize) + Sync), site: &Site, at: usize) {
        let thread = thread::Builder::new().name(format!("dies at {at}, {}", self.points[at - 1]));
        thread::scope(|scope| {
            thread.spawn_scoped(scope, || die(site, at)).unwrap();
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_decided_whatever_the_server_was_doing_when_it_died() {
    tasks::all(Kind::File).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_whatever_its_worker_was_doing_when_it_died() {
    agent_runs::all(Kind::File).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_on_postgresql_is_decided_whatever_the_server_was_doing_when_it_died() {
    tasks::all(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_on_postgresql_ends_whatever_its_worker_was_doing_when_it_died() {
    agent_runs::all(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_and_events_are_retried_after_the_server_died() {
    evidence_and_events::all(Kind::File).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_evidence_and_events_are_retried_after_the_server_died() {
    evidence_and_events::all(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_work_continues_without_another_charge() {
    interrupted::work(Kind::File).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_abandoned_work_continues_without_another_charge() {
    interrupted::work(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_key_is_answered_after_the_server_died() {
    interrupted::request(Kind::File).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_a_request_with_a_key_is_answered_after_the_server_died() {
    interrupted::request(Kind::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_a_task_call_is_paid_once_if_a_node_loses_its_database() {
    interrupted::stalled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_settled_once_whatever_the_server_was_doing_when_it_died() {
    payments::all(Kind::File).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_a_payment_is_settled_once_whatever_the_server_was_doing_when_it_died() {
    payments::all(Kind::Postgres).await;
}

/// A point that nothing reaches would never be tested.
#[tokio::test(flavor = "multi_thread")]
async fn every_fail_point_is_reached() {
    let (task, run) = (tasks::counted(Kind::File).await, agent_runs::counted(Kind::File).await);
    let told = evidence_and_events::counted().await;
    let sold = payments::counted().await;
    let passed = task.iter().chain(&run).chain(&told).chain(&sold);
    let passed: BTreeSet<&str> = passed.map(String::as_str).collect();
    assert_eq!(passed, BTreeSet::from(jurat_engine::FAILPOINTS));
}
