//! A process that dies while it accepts a run, and a worker that dies while it works on one.

use std::{collections::BTreeMap, process::Command};

use jurat_core::agent_run::{AgentRunEventKind, AgentRunEventRow, AgentRunStatus};
use jurat_testkit::fake_executor::FakeExecutor;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{
    Deaths, LEASE_MS, addresses, fakes, kept, proposals,
    site::{Kind, PRICE, Prepared, Site},
};
use crate::home::Ran;

/// Each agent has an executor of its own, and the node votes on its answers.
const AGENTS: [&str; 2] = ["a", "b"];

type Fakes = BTreeMap<String, FakeExecutor>;

/// Which process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Submitter,
    Worker,
}

/// The points that an undisturbed run passes.
pub(super) async fn counted(kind: Kind) -> Vec<String> {
    let (taking, working) = counted_each(kind).await;
    [taking, working].concat()
}

async fn counted_each(kind: Kind) -> (Vec<String>, Vec<String>) {
    let fakes = fakes(&AGENTS).await;
    let site = Prepared::new(kind, addresses(&fakes)).site().await;
    let (taking, working) = tokio::task::block_in_place(|| {
        let file = spec(&site, "r");
        ran(site.mortal(&submit(&file), None)).ok();
        let taking = site.points();
        ran(site.mortal(&worker(), None)).ok();
        (taking, site.points())
    });
    assert!(!taking.is_empty() && !working.is_empty());
    site.drop().await;
    (taking, working)
}

pub(super) async fn all(kind: Kind) {
    let (taking, working) = counted_each(kind).await;
    for (who, points) in [(Who::Submitter, taking), (Who::Worker, working)] {
        let fakes = fakes(&AGENTS).await;
        let deaths = Deaths::new(kind, &fakes, points);
        let runtime = Handle::current();
        tokio::task::block_in_place(|| {
            deaths.each(|site, at| {
                let id = format!("r{at}");
                die_at(site, &id, (who, at));
                runtime.block_on(assert_whole(site, &fakes, &id));
            });
        });
    }
}

fn spec(site: &Site, id: &str) -> String {
    // An earlier decision on the same inputs would be tried first, so each agent has its own.
    let agent = |name: &&str| json!({ "agent_id": name, "executor": name, "prompt": name });
    let agents: Vec<Value> = AGENTS.iter().map(agent).collect();
    let spec = json!({
        "run_id": id, "agents": agents, "shared_inputs": { "of": id },
        "contract": { "assignment": { "claim": { "lease_ms": LEASE_MS } } },
    });
    let file = format!("{id}.json");
    std::fs::write(site.home.path().join(&file), spec.to_string()).unwrap();
    file
}

fn submit(file: &str) -> [&str; 4] {
    ["run", "submit", file, "--kickoff"]
}

fn worker() -> [&'static str; 7] {
    ["run", "worker", "--once", "--poll-ms", "50", "--lease-ms", "1000"]
}

fn ran(mut command: Command) -> Ran {
    command.output().unwrap().into()
}

fn die_at(site: &Site, id: &str, (who, at): (Who, usize)) {
    let file = spec(site, id);
    if who == Who::Submitter {
        let ended = site.mortal(&submit(&file), Some(at)).output().unwrap();
        site.assert_died(ended.status, at);
    }
    // A caller without a reply asks again, and the same spec is the same run.
    let again = ran(site.command(&submit(&file))).ok();
    assert_eq!(again.out.trim(), format!("submitted {id}"));
    if who == Who::Worker {
        let ended = site.mortal(&worker(), Some(at)).output().unwrap();
        site.assert_died(ended.status, at);
    }
    ran(site.command(&worker())).ok();
    let result = ran(site.command(&["run", "result", id, "--json"])).ok().json();
    assert_eq!(result["status"], AgentRunStatus::Finalized.as_str(), "{result}");
    assert_eq!(result["result"]["aggregation"]["answer_votes"], json!({ "42": 2 }), "{result}");
}

async fn assert_whole(site: &Site, fakes: &Fakes, id: &str) {
    let store = site.store().await;
    let events = kept::run_events(&store, id).await;
    let of = |kind: AgentRunEventKind| -> Vec<&AgentRunEventRow> {
        events.iter().filter(|it| it.event.kind == kind).collect()
    };
    assert_eq!(of(AgentRunEventKind::RunCreated).len(), 1);
    assert_eq!(of(AgentRunEventKind::RunKickoff).len(), 1);
    assert_eq!(of(AgentRunEventKind::RunFinalized).len(), 1);
    let done = of(AgentRunEventKind::StepCompleted);
    let mut agents: Vec<&str> =
        done.iter().filter_map(|it| it.event.body["agent_id"].as_str()).collect();
    agents.sort_unstable();
    assert_eq!(agents, AGENTS, "each step is done once");

    let tasks = kept::tasks(&store, &format!("run-{id}:")).await;
    assert_eq!(tasks.len(), AGENTS.len(), "each step is one task");
    let is_starved = tasks.iter().any(kept::Kept::is_starved);
    for task in &tasks {
        task.assert_decided_once();
        let asked: Vec<_> = fakes.values().flat_map(|fake| proposals(fake, task.id())).collect();
        let mut names: Vec<&Value> = asked.iter().map(|it| &it.body["execution_id"]).collect();
        assert!(names.len() <= 2, "asked {} times", names.len());
        names.dedup();
        assert_eq!(names.len(), 1, "{names:?}");
    }
    let paid = site.paid_since(kept::spent(&store).await);
    assert!(paid == 2 * PRICE || is_starved, "{paid} was paid");
    store.close().await;
}
