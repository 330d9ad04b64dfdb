//! A server is stopped or killed during work for a task, or for a request with a key: the next one
//! continues, and nothing is charged or paid twice.

use std::process::Command;

use jurat_core::task::{TaskEvent, TaskRole};
use jurat_store::Behalf;
use jurat_testkit::{
    fake_executor::{Behaviour, FakeExecutor, answers, gated},
    stalling_proxy::StallingProxy,
};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::{
    LEASE_MS, kept,
    site::{Kind, PRICE, Prepared, Site, serve},
};
use crate::{
    home::{Home, Process},
    http::Http,
};

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// As an operator stops it.
    Stopped,
    /// As a power failure ends it.
    Killed,
}

impl End {
    fn of(self, server: Process) {
        match self {
            Self::Stopped => {
                server.terminate();
                assert!(server.wait().success());
            }
            Self::Killed => server.kill(),
        }
    }
}

fn able(name: &str) -> Behaviour {
    answers(json!({ "answer": "42" })).provider_family(name)
}

/// A proposer and a voter, one of which answers only when it is released.
struct Pair {
    site: Site,
    proposer: FakeExecutor,
    verifier: FakeExecutor,
}

impl Pair {
    async fn new(kind: Kind, is_slow: TaskRole) -> Self {
        let of = |role: TaskRole, name: &str| {
            if role == is_slow { gated(able(name)) } else { able(name) }
        };
        let proposer = FakeExecutor::start(of(TaskRole::Propose, "a")).await;
        let verifier = FakeExecutor::start(of(TaskRole::Verify, "b")).await;
        let executors = [("a", &proposer), ("b", &verifier)];
        let addresses = executors.map(|(name, fake)| (name.to_owned(), fake.url())).to_vec();
        let site = Prepared::new(kind, addresses).site().await;
        Self { site, proposer, verifier }
    }

    fn slow(&self, role: TaskRole) -> &FakeExecutor {
        if role == TaskRole::Propose { &self.proposer } else { &self.verifier }
    }

    /// A contract that pays for one proposal and one vote, and for nothing else.
    fn order(&self, id: &str) -> Value {
        let sample = self.site.home.run(&["task", "sample", "--task-id", id, "--json"]).ok();
        let mut contract = sample.json();
        contract["assignment"]["claim"] =
            json!({ "lease_ms": LEASE_MS, "max_concurrency": { "propose": 1, "verify": 1 } });
        contract["assignment"]["explore"]["max_proposers"] = json!(1);
        contract["assignment"]["verify"]["max_verifiers"] = json!(1);
        contract["acceptance"]["quorum_threshold"] = json!(1);
        let budget = contract["budget"].as_object_mut().unwrap();
        for stage in ["explore_cost_units", "verify_cost_units", "finalize_cost_units"] {
            budget.insert(stage.to_owned(), json!(1));
        }
        budget.insert("cost_units".to_owned(), json!(3));
        budget.insert("max_steps".to_owned(), json!(2));
        budget.insert("reuse_verify_cost_units".to_owned(), json!(1));
        json!({ "contract": contract, "executors": ["a"], "verifiers": ["b"] })
    }
}

fn submit(http: &Http, order: &Value) {
    let (status, reply) = http.post("/v1/tasks", order);
    assert!((200..300).contains(&status), "{reply}");
}

/// The task is decided with the smallest budget, each executor was asked under one id, and paid
/// once.
async fn assert_charged_once(site: &Site, id: &str) {
    let store = site.store().await;
    let [task] = &kept::tasks(&store, id).await[..] else { panic!("there is one task") };
    task.assert_decided_once();
    let charged = |it: &TaskEvent| matches!(it, TaskEvent::Charged { .. });
    assert_eq!(task.count(charged), 3, "a proposal, a verdict and the decision");
    assert_eq!(kept::spent(&store).await, 2 * PRICE);
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
    store.close().await;
}

/// A server ends while an executor works for a task, and the next one continues.
pub(super) async fn work(kind: Kind) {
    for (role, end) in [
        (TaskRole::Propose, End::Stopped),
        (TaskRole::Propose, End::Killed),
        (TaskRole::Verify, End::Stopped),
        (TaskRole::Verify, End::Killed),
    ] {
        let pair = Pair::new(kind, role).await;
        let server = block_in_place(|| {
            let server = serve(pair.site.command(&["serve"]));
            submit(&Http::new(&server.url, &pair.site.home.state()), &pair.order("t"));
            server
        });
        pair.slow(role).wait_for_calls(1).await;
        block_in_place(|| {
            end.of(server);
            pair.slow(role).release();
            let server = serve(pair.site.command(&["serve"]));
            let http = Http::new(&server.url, &pair.site.home.state());
            let (_, task) = http.get("/v1/tasks/t?wait=20");
            assert_eq!(task["state"], "finalized", "{role} {end:?}: {task}");
            server.kill();
        });
        assert_charged_once(&pair.site, "t").await;
        pair.site.drop().await;
    }
}

/// A server dies during a request with a key, and the next one answers the same request.
pub(super) async fn request(kind: Kind) {
    let fake = FakeExecutor::start(gated(able("a"))).await;
    let site = Prepared::new(kind, vec![("a".to_owned(), fake.url())]).site().await;
    let body = json!({ "claim": "x", "execution": { "timeout_ms": 1_000 } }).to_string();
    let ask = |http: &Http| {
        http.ask_with("POST", "/api/v3/validate", &body, &[("idempotency-key", "once")])
    };
    let server = block_in_place(|| serve(site.command(&["serve"])));
    let http = Http::new(&server.url, &site.home.state());
    let first = tokio::task::spawn_blocking({
        let body = body.clone();
        move || http.ask_with("POST", "/api/v3/validate", &body, &[("idempotency-key", "once")])
    });
    fake.wait_for_calls(1).await;
    block_in_place(|| server.kill());
    assert!(first.await.unwrap().is_err(), "nobody heard of the first answer");
    fake.release();
    let answered = block_in_place(|| {
        let server = serve(site.command(&["serve"]));
        let http = Http::new(&server.url, &site.home.state());
        let (again, replay) = (ask(&http).unwrap(), ask(&http).unwrap());
        server.kill();
        [again, replay]
    });
    let [again, replay] = &answered;
    assert_eq!((again.status, &again.body["verdict"]), (200, &json!("VALID")), "{}", again.body);
    assert!(!again.has_header("idempotent-replayed: true"), "{}", again.head);
    assert!(replay.has_header("idempotent-replayed: true"), "{}", replay.head);
    assert_eq!(replay.body, again.body);
    let store = site.store().await;
    assert_eq!(kept::spent(&store).await, PRICE, "the round that was left costs nothing");
    assert_eq!(store.ledger().faults(&Behalf::Platform).await.unwrap(), [] as [&str; 0]);
    store.close().await;
    site.drop().await;
}

/// Two nodes, one of which loses its database after its executor has answered and recovers after
/// the other has decided the task.
pub(super) async fn stalled() {
    let pair = Pair::new(Kind::Postgres, TaskRole::Propose).await;
    let direct = pair.site.url().to_owned();
    let proxy = StallingProxy::to(&direct).await;
    let home = Home::new();
    let server = block_in_place(|| {
        let server = serve(on(&pair.site.home, &proxy.url(&direct)));
        submit(&Http::new(&server.url, &pair.site.home.state()), &pair.order("t"));
        server
    });
    pair.proposer.wait_for_calls(1).await;
    proxy.stall();
    pair.proposer.release();
    proxy.holds_something().await;
    let other = block_in_place(|| {
        let other = serve(on(&home, &direct));
        let http = Http::new(&other.url, &pair.site.home.state());
        let (_, task) = http.get("/v1/tasks/t?wait=20");
        assert_eq!(task["state"], "finalized", "{task}");
        other
    });
    proxy.cut();
    block_in_place(|| {
        let http = Http::new(&other.url, &pair.site.home.state());
        let (_, rounds) = http.get("/v1/rounds");
        for round in rounds["items"].as_array().unwrap() {
            let id = round["round_id"].as_str().unwrap();
            let (_, ended) = http.get(&format!("/v1/rounds/{id}?wait=20"));
            assert_eq!(ended["state"], "closed", "{ended}");
        }
        assert_eq!(rounds["items"].as_array().unwrap().len(), 3, "{rounds}");
        server.kill();
        other.kill();
    });
    assert_charged_once(&pair.site, "t").await;
    pair.site.drop().await;
}

fn on(home: &Home, url: &str) -> Command {
    let mut command = home.command(&["serve", "--store", url]);
    command.env("JURAT_LIMITS_LAG_MS", "0");
    command
}
