//! A server that dies while it drives a task.

use std::collections::BTreeMap;

use jurat_testkit::fake_executor::FakeExecutor;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::{
    Deaths, LEASE_MS, addresses, fakes, kept, proposals,
    site::{Kind, PRICE, Prepared, Site, serve},
};
use crate::http::Http;

/// One proposes, and two vote.
const PANEL: [&str; 3] = ["a", "b", "c"];

type Fakes = BTreeMap<String, FakeExecutor>;

/// The points that an undisturbed task passes.
pub(super) async fn counted(kind: Kind) -> Vec<String> {
    let fakes = fakes(&PANEL).await;
    let site = Prepared::new(kind, addresses(&fakes)).site().await;
    tokio::task::block_in_place(|| live_and_die(&site, &order(&site, "t"), None));
    let points = site.points();
    assert!(!points.is_empty());
    site.drop().await;
    points
}

pub(super) async fn all(kind: Kind) {
    let points = counted(kind).await;
    let fakes = fakes(&PANEL).await;
    let deaths = Deaths::new(kind, &fakes, points);
    let runtime = Handle::current();
    tokio::task::block_in_place(|| {
        deaths.each(|site, at| {
            die_at(site, at);
            runtime.block_on(assert_whole(site, &fakes, &format!("task-{at}-")));
        });
    });
}

fn order(site: &Site, id: &str) -> Value {
    let sample = site.home.run(&["task", "sample", "--task-id", id, "--json"]).ok();
    let mut contract = sample.json();
    // An earlier decision on the same inputs would be tried first, so each task has its own.
    contract["inputs"]["prompt"] = json!(id);
    contract["assignment"]["claim"] =
        json!({ "lease_ms": LEASE_MS, "max_concurrency": { "propose": 1, "verify": 2 } });
    contract["assignment"]["verify"]["max_verifiers"] = json!(2);
    contract["acceptance"]["quorum_threshold"] = json!(2);
    json!({ "contract": contract, "executors": ["a"], "verifiers": ["b", "c"] })
}

/// Submits the task to a server, and follows it as long as the server lives.
fn live_and_die(site: &Site, order: &Value, at: Option<usize>) {
    let server = serve(site.mortal(&["serve"], at));
    let http = Http::new(&server.url, &site.home.state());
    let id = order["contract"]["task_id"].as_str().unwrap();
    // A caller without a reply asks again later.
    if let Ok((status, reply)) = http.ask("POST", "/v1/tasks", &order.to_string()) {
        assert!((200..300).contains(&status), "{reply}");
        drop(http.ask("GET", &format!("/v1/tasks/{id}?wait=20"), ""));
    }
    server.terminate();
    let ended = server.wait();
    site.assert_died(ended, at.unwrap_or(usize::MAX));
}

fn die_at(site: &Site, at: usize) {
    let id = format!("task-{at}-");
    let order = order(site, &id);
    live_and_die(site, &order, Some(at));
    let server = serve(site.command(&["serve"]));
    let http = Http::new(&server.url, &site.home.state());
    let (status, reply) = http.post("/v1/tasks", &order);
    assert!((200..300).contains(&status), "{reply}");
    assert_eq!(reply["task_id"], id.as_str());
    let (_, task) = http.get(&format!("/v1/tasks/{id}?wait=20"));
    assert_eq!(task["state"], "finalized", "{task}");
    let (_, decision) = http.get(&format!("/v1/tasks/{id}/decision"));
    assert_eq!(decision["candidate_output"]["answer"], "42", "{decision}");
    server.kill();
}

async fn assert_whole(site: &Site, fakes: &Fakes, id: &str) {
    let store = site.store().await;
    let kept = kept::tasks(&store, id).await;
    let [task] = &kept[..] else { panic!("there are {} tasks", kept.len()) };
    task.assert_decided_once();
    let asked = proposals(&fakes["a"], id);
    let mut names: Vec<&Value> = asked.iter().map(|it| &it.body["execution_id"]).collect();
    assert!(names.len() <= 2, "asked {} times", names.len());
    names.dedup();
    assert_eq!(names.len(), 1, "{names:?}");
    let candidates = task.candidates();
    for verifier in ["b", "c"] {
        let is_own = |id: &Value| id.as_str().is_some_and(|id| candidates.contains(id));
        let calls = fakes[verifier].calls();
        let of_task = calls.iter().filter(|it| is_own(&it.body["candidate"]["candidate_id"]));
        assert!((1..=2).contains(&of_task.count()), "{verifier} was not asked once or twice");
    }
    // Three answers were given, and each is paid for once.
    let paid = site.paid_since(kept::spent(&store).await);
    assert!(paid == 3 * PRICE || task.is_starved(), "{paid} was paid");
    store.close().await;
}
