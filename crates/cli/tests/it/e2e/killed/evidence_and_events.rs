//! A server that dies while it fetches evidence, or while it delivers agent events or webhooks.

use std::{
    collections::BTreeMap, os::unix::process::ExitStatusExt as _, process::Command, sync::Arc,
};

use jurat_testkit::{
    fake_documents::FakeDocuments,
    fake_executor::{FakeExecutor, ReceivedCall, answers},
    fake_receiver::{FakeReceiver, ReceiverAnswer},
};
use serde_json::{Value, json};

use super::{
    LEASE_MS, kept,
    site::{Kind, PRICE, Prepared, Site, serve},
};
use crate::http::Http;

/// Where the server dies.
const DEATHS: [&str; 5] = [
    "evidence_fetch_after",
    "event_take_after",
    "event_tell_after",
    "webhook_take_after",
    "webhook_send_after",
];
/// Its lease, the result of its candidate, and the end; more if a lease was lost.
const EVENTS: usize = 3;
/// A lost delivery is repeated after seconds, and a fast machine reads the list a thousand times in
/// one of them.
const LOOKS: usize = 200_000;

/// An executor whose answer refers to a document, and that subscribes to events, and a webhook for
/// the end of its task.
struct Told {
    site: Site,
    web: FakeDocuments,
    fake: Arc<FakeExecutor>,
    receiver: FakeReceiver,
    webhook: String,
    order: Value,
}

impl Told {
    async fn new(kind: Kind) -> Self {
        let web = FakeDocuments::start().await;
        let reference = web.publish("/a", b"a document");
        let behaviour = answers(json!({ "answer": "42" })).evidence_ref(reference);
        let fake = Arc::new(FakeExecutor::start(behaviour).await);
        let spare = ("spare".to_owned(), fake.url());
        let site = Prepared::new(kind, vec![spare]).site().await;
        let (url, price) = (fake.url(), PRICE.to_string());
        let mut add = site.command(&["executors", "add", "a", &url, "--agent-events-url", &url]);
        add.args(["--price-micros", &price]);
        let (added, order) = tokio::task::block_in_place(|| (add.output(), Self::order(&site)));
        assert!(added.unwrap().status.success());
        let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
        let url = receiver.url();
        let mut add =
            site.command(&["webhooks", "add", &url, "--event", "task.finalized", "--json"]);
        add.env("JURAT_WEBHOOKS_ALLOW", "127.0.0.0/8");
        let added = tokio::task::block_in_place(|| add.output()).unwrap();
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        let added: Value = serde_json::from_slice(&added.stdout).unwrap();
        let webhook = added["id"].as_str().unwrap().to_owned();
        Self { site, web, fake, receiver, webhook, order }
    }

    fn order(site: &Site) -> Value {
        let sample = site.home.run(&["task", "sample", "--task-id", "t", "--json"]).ok();
        let mut contract = sample.json();
        contract["assignment"]["claim"] =
            json!({ "lease_ms": LEASE_MS, "max_concurrency": { "propose": 1, "verify": 1 } });
        // The node that votes must have seen the evidence.
        contract["acceptance"]["da_quorum_threshold"] = json!(1);
        json!({ "contract": contract, "executors": ["a"] })
    }

    /// Submits the task to a server, and follows it and its events as long as the server lives.
    fn live(&self, mut command: Command) -> Option<Vec<Value>> {
        command.env("JURAT_JUDGES_MEDIA_ALLOW", "127.0.0.0/8");
        command.env("JURAT_AGENT_EVENTS_TIMEOUT_MS", "2000");
        command.env("JURAT_WEBHOOKS_ALLOW", "127.0.0.0/8");
        command.env("JURAT_WEBHOOKS_TIMEOUT_MS", "2000");
        let server = serve(command);
        let http = Http::new(&server.url, &self.site.home.state());
        let events = self.follow(&http);
        server.terminate();
        let ended = server.wait();
        assert_eq!(ended.signal(), events.is_none().then_some(9), "{ended}");
        events
    }

    /// The outcome of the task's events; `None` if the server died.
    fn follow(&self, http: &Http) -> Option<Vec<Value>> {
        let (status, reply) = http.ask("POST", "/v1/tasks", &self.order.to_string()).ok()?;
        assert!((200..300).contains(&status), "{reply}");
        let (_, task) = http.ask("GET", "/v1/tasks/t?wait=20", "").ok()?;
        assert_eq!(task["state"], "finalized", "{task}");
        let mut last = Value::Null;
        for _ in 0..LOOKS {
            let (_, listed) = http.ask("GET", "/v1/agent-events?executor=a", "").ok()?;
            let items = listed["items"].as_array().unwrap();
            let path = format!("/v1/webhooks/{}/deliveries", self.webhook);
            let (_, sent) = http.ask("GET", &path, "").ok()?;
            let is_sent = sent["items"][0]["state"] == "delivered";
            if EVENTS <= items.len() && items.iter().all(|it| it["state"] == "acked") && is_sent {
                return Some(items.clone());
            }
            last = json!([listed, sent]);
        }
        panic!("the events were not told: {last}")
    }

    /// How often each event was delivered, each time with the same content.
    fn told(&self) -> BTreeMap<String, usize> {
        let mut told: BTreeMap<String, Vec<ReceivedCall>> = BTreeMap::new();
        for call in self.fake.events() {
            let id = call.body["event"]["event_id"].as_str().unwrap().to_owned();
            told.entry(id).or_default().push(call);
        }
        for calls in told.values() {
            assert!(calls.iter().all(|it| it.body == calls[0].body), "{calls:?}");
            assert!(calls[0].body["event"]["dedupe_key"].is_string());
        }
        told.into_iter().map(|(id, calls)| (id, calls.len())).collect()
    }
}

/// The points that undisturbed work passes.
pub(super) async fn counted() -> Vec<String> {
    let told = Told::new(Kind::File).await;
    let events = tokio::task::block_in_place(|| told.live(told.site.mortal(&["serve"], None)));
    assert!(events.is_some_and(|it| it.iter().all(|it| it["attempts"] == 1)));
    assert_eq!(told.web.asked(), ["/a"]);
    let points = told.site.points();
    told.site.drop().await;
    points
}

pub(super) async fn all(kind: Kind) {
    for point in DEATHS {
        let told = Told::new(kind).await;
        let events = tokio::task::block_in_place(|| {
            let mut mortal = told.site.mortal(&["serve"], None);
            mortal.env("JURAT_TEST_KILL_AT", point);
            assert_eq!(told.live(mortal), None, "it lived past {point}");
            assert_eq!(told.site.points().last().map(String::as_str), Some(point));
            told.live(told.site.command(&["serve"])).unwrap()
        });
        let told_before = told.told();
        assert_eq!(told_before.len(), events.len(), "{told_before:?}");
        let count = |wanted: usize| told_before.values().filter(|it| **it == wanted).count();
        let tried = events.iter().filter(|it| it["attempts"] == 2).count();
        match point {
            // An unrecorded delivery is repeated, under the same name.
            "event_tell_after" => assert!(0 < count(2) && count(2) <= tried, "{told_before:?}"),
            "event_take_after" => assert!(count(2) == 0 && 0 < tried, "{told_before:?}"),
            // It was fetched but not recorded, so it is fetched again.
            "evidence_fetch_after" => assert_eq!(told.web.asked(), ["/a", "/a"]),
            // A webhook is sent at least once, and again only if nobody recorded it.
            "webhook_take_after" => assert_eq!(told.receiver.received().len(), 1),
            _ => assert_eq!(told.receiver.received().len(), 2),
        }
        let received = told.receiver.received();
        let id = received[0].header("webhook-id");
        assert!(
            received.iter().all(|it| it.header("webhook-id") == id && it.body == received[0].body)
        );
        assert_eq!(count(1) + count(2), events.len(), "{told_before:?}");
        let store = told.site.store().await;
        let [task] = &kept::tasks(&store, "t").await[..] else { panic!("there is one task") };
        task.assert_decided_once();
        let paid = kept::spent(&store).await;
        assert!(paid == PRICE || task.is_starved(), "{paid} was paid");
        store.close().await;
        told.site.drop().await;
    }
}
