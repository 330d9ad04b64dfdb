//! `/v1/webhooks`: events of an account at its own addresses.

pub(crate) mod announced;
mod delivered;
mod limited;
mod managed;

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::{Clock as _, SoleNode, WebhookSettings, WebhookTerms};
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_receiver::{FakeReceiver, OneAddress},
};
use jurat_wire::api::kit::time::Time;
use serde_json::{Value, json};

/// The longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(20);

fn near() -> WebhookSettings {
    WebhookSettings { allow: vec!["127.0.0.0/8".parse().unwrap()], ..WebhookSettings::default() }
}

fn under(change: impl FnOnce(&mut WebhookTerms)) -> WebhookSettings {
    let mut settings = near();
    change(&mut settings.terms);
    settings
}

/// An application that may send webhooks to this machine.
async fn started() -> TestApp {
    let app = TestApp::with_webhooks(near()).await;
    app.start(SoleNode::Yes).await;
    app
}

async fn added(caller: &TestCaller<'_>, url: &str, events: &[&str]) -> Value {
    let mut body = json!({ "url": url });
    if !events.is_empty() {
        body["events"] = json!(events);
    }
    let reply = caller.post("/v1/webhooks", &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    reply.json()
}

async fn hook(caller: &TestCaller<'_>, receiver: &FakeReceiver, events: &[&str]) -> String {
    id(&added(caller, &receiver.url(), events).await)
}

fn id(object: &Value) -> String {
    object["id"].as_str().unwrap().to_owned()
}

async fn tested(caller: &TestCaller<'_>, webhook: &str) -> String {
    let reply = caller.post(&format!("/v1/webhooks/{webhook}/test"), &json!({})).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    id(&reply.json())
}

/// Reads an object until it satisfies the condition.
async fn until(caller: &TestCaller<'_>, path: &str, is_done: impl Fn(&Value) -> bool) -> Value {
    let looking = async {
        loop {
            let found = caller.get(path).await.json();
            if is_done(&found) {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap()
}

/// Waits until the outcome of an attempt is recorded: until then, the delivery is leased.
async fn noted(app: &TestApp, caller: &TestCaller<'_>, id: &str, attempts: u32) -> Value {
    let lease_ms = u64::try_from(near().terms.timeout.as_millis()).unwrap() + 5_000;
    let leased = json!(Time(app.clock.now().plus_millis(lease_ms)));
    until(caller, &format!("/v1/webhooks/deliveries/{id}"), |it| {
        it["attempts"] == attempts && it["next_attempt_at"] != leased
    })
    .await
}

async fn delivery(caller: &TestCaller<'_>, id: &str, state: &str) -> Value {
    until(caller, &format!("/v1/webhooks/deliveries/{id}"), |it| it["state"] == state).await
}

async fn owner(app: &TestApp) -> TestCaller<'_> {
    app.caller("owner", &Scope::OWN).await
}

fn resolving(address: &'static str) -> (Arc<OneAddress>, WebhookSettings) {
    let resolver = OneAddress::new(address);
    let settings = WebhookSettings { resolver: Arc::<OneAddress>::clone(&resolver), ..near() };
    (resolver, settings)
}
