//! Deliveries: signed, retried, replayed, and given up.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_store::StoreLocation;
use jurat_testkit::{
    fake_executor::{answers, says_valid},
    fake_receiver::{ReceivedDelivery, ReceiverAnswer},
};
use sha2::{Digest as _, Sha256};

use super::*;

/// HMAC with SHA-256, written out so that it shares no code with the server.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let padded = |pad: u8| -> Vec<u8> {
        (0..64).map(|at| key.get(at).copied().unwrap_or_default() ^ pad).collect()
    };
    let inner = Sha256::digest([padded(0x36), text.to_vec()].concat());
    Sha256::digest([padded(0x5c), inner.to_vec()].concat()).to_vec()
}

/// The signature that a receiver with this secret expects.
fn expected(secret: &Value, sent: &ReceivedDelivery) -> String {
    let encoded = secret.as_str().unwrap().strip_prefix("whsec_").unwrap();
    let key = STANDARD.decode(encoded).unwrap();
    let (id, time) = (sent.header("webhook-id"), sent.header("webhook-timestamp"));
    let text = [format!("{id}.{time}.").into_bytes(), sent.body.clone()].concat();
    format!("v1,{}", STANDARD.encode(hmac(&key, &text)))
}

#[tokio::test]
async fn a_decided_round_is_announced_with_its_ids_and_without_its_content() {
    let app = started().await;
    let owner = owner(&app).await;
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    let webhook = added(&owner, &receiver.url(), &["round.decided"]).await;
    let deaf = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    hook(&owner, &deaf, &["task.failed"]).await;
    let _executors = app.executors([says_valid(), says_valid(), says_valid()]).await;
    let claim = json!({ "claim": "the moon is made of stone", "consensus": { "replicas": 3 } });
    let round = owner.post("/api/v3/validate", &claim).await;
    assert_eq!(round.status, StatusCode::OK, "{}", round.text());
    let sent = receiver.until(1).await;
    let event = sent[0].json();
    assert_eq!(event["type"], "round.decided");
    assert_eq!(event["timestamp"], "2026-09-21T14:13:20.000Z");
    let data = &event["data"];
    assert_eq!(data["round_id"], round.json()["round_id"]);
    assert_eq!(data["receipt_id"], round.json()["receipt_id"]);
    assert_eq!((&data["outcome"], &data["agreement"]), (&json!("agreed"), &json!(1.0)));
    assert!(data["confidence"].is_f64() && data["verdict"].is_string(), "{data}");
    assert!(!event.to_string().contains("moon"), "{event}");
    assert_eq!(sent[0].header("webhook-signature"), expected(&webhook["secret"], &sent[0]));
    assert_eq!(sent[0].header("webhook-timestamp"), "1790000000");
    assert_eq!(sent[0].header("content-type"), "application/json");
    let path = format!("/v1/webhooks/{}/deliveries", id(&webhook));
    let list = until(&owner, &path, |it| it["items"][0]["state"] == "delivered").await;
    assert_eq!(list["items"][0]["event_id"], sent[0].header("webhook-id"));
    assert_eq!(list["items"][0]["status"], 200);
    assert_eq!(deaf.received().len(), 0, "it wants other events");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_task_is_announced_when_it_ends() {
    let app = started().await;
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(204)).await;
    let admin = app.admin();
    hook(&admin, &receiver, &[]).await;
    let _executors = app
        .executors([answers(json!({ "answer": "yes" })).task_types(&["swarm"]), says_valid()])
        .await;
    let contract = admin.get("/v1/tasks/sample?task_id=task-1").await.json();
    let order = json!({ "contract": contract, "executors": ["s1"], "verifiers": ["s2"] });
    let reply = admin.post("/v1/tasks", &order).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let sent = receiver.until(1).await;
    let event = sent[0].json();
    assert_eq!(
        (&event["type"], &event["data"]["task_id"]),
        (&json!("task.finalized"), &json!("task-1"))
    );
    assert!(!event.to_string().contains("yes"), "{event}");
    assert_eq!(receiver.received().len(), 1, "the rounds of a task may be secret votes");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn credit_is_announced_when_it_is_granted() {
    let app = started().await;
    let owner = owner(&app).await;
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    hook(&owner, &receiver, &["credit.granted"]).await;
    let grant = json!({ "amount_usd": "5.00" });
    let reply = app.admin().post("/v1/accounts/acct_owner/grants", &grant).await;
    assert!(reply.status.is_success(), "{}", reply.text());
    let event = receiver.until(1).await[0].json();
    assert_eq!(event["data"]["left_micros"], 5_000_000);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn both_secrets_sign_until_the_grace_period_ends() {
    let app = started().await;
    let owner = owner(&app).await;
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    let before = added(&owner, &receiver.url(), &[]).await;
    let path = format!("/v1/webhooks/{}/rotate", id(&before));
    let reply = owner.post(&path, &json!({ "grace_seconds": 60 })).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let after = reply.json();
    assert_ne!(after["secret"], before["secret"]);
    tested(&owner, &id(&before)).await;
    let sent = receiver.until(1).await.remove(0);
    let both = [expected(&after["secret"], &sent), expected(&before["secret"], &sent)];
    assert_eq!(sent.header("webhook-signature"), both.join(" "));
    app.clock.advance_ms(60_000);
    tested(&owner, &id(&before)).await;
    let sent = receiver.until(2).await.remove(1);
    assert_eq!(sent.header("webhook-signature"), expected(&after["secret"], &sent));
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_failed_delivery_is_retried_and_a_delivered_one_can_be_replayed() {
    let app = started().await;
    let owner = owner(&app).await;
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(503)).await;
    let webhook = hook(&owner, &receiver, &[]).await;
    let sent = tested(&owner, &webhook).await;
    let path = format!("/v1/webhooks/deliveries/{sent}");
    let waiting = until(&owner, &path, |it| it["status"] == 503).await;
    assert_eq!((&waiting["state"], &waiting["attempts"]), (&json!("pending"), &json!(1)));
    assert_eq!(waiting["last_error"], "the receiver answered 503 Service Unavailable");
    assert_eq!(waiting["reply"], "the answer");
    let failing = owner.get(&format!("/v1/webhooks/{webhook}")).await.json();
    assert!(failing["failing_since"].is_string(), "{failing}");
    receiver.answer_with(ReceiverAnswer::Status(200));
    app.clock.advance_ms(6_000);
    let done = delivery(&owner, &sent, "delivered").await;
    assert_eq!((&done["attempts"], &done["last_error"]), (&json!(2), &Value::Null));
    let works = owner.get(&format!("/v1/webhooks/{webhook}")).await.json();
    assert_eq!(works["failing_since"], Value::Null);
    let replayed = owner.post(&format!("{path}/replay"), &json!({})).await;
    assert_eq!(replayed.status, StatusCode::OK, "{}", replayed.text());
    let all = receiver.until(3).await;
    let ids: Vec<&str> = all.iter().map(|it| it.header("webhook-id")).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert!(all.iter().all(|it| it.body == all[0].body));
    let done = until(&owner, &path, |it| it["attempts"] == 3 && it["state"] == "delivered").await;
    assert_eq!(done["status"], 200);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_receiver_that_hangs_answers_ten_megabytes_or_redirects_does_no_harm() {
    let settings = under(|it| it.timeout = Duration::from_millis(300));
    let app = TestApp::with_webhooks(settings).await;
    app.start(SoleNode::Yes).await;
    let owner = owner(&app).await;
    let receiver = FakeReceiver::start(ReceiverAnswer::Silence).await;
    let webhook = hook(&owner, &receiver, &[]).await;
    let hung = tested(&owner, &webhook).await;
    let path = format!("/v1/webhooks/deliveries/{hung}");
    let found = until(&owner, &path, |it| it["last_error"].is_string()).await;
    assert_eq!(
        (&found["last_error"], &found["state"]),
        (&json!("no answer in time"), &json!("pending"))
    );
    receiver.answer_with(ReceiverAnswer::Bytes(10_000_000));
    let large = tested(&owner, &webhook).await;
    let found = delivery(&owner, &large, "delivered").await;
    assert_eq!(found["reply"].as_str().unwrap().len(), 1_024);
    let target = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    receiver.answer_with(ReceiverAnswer::MovedTo(target.url()));
    let moved = tested(&owner, &webhook).await;
    let path = format!("/v1/webhooks/deliveries/{moved}");
    let found = until(&owner, &path, |it| it["status"] == 302).await;
    assert_eq!(
        found["last_error"],
        "the receiver answered 302 Found, and redirects are not followed"
    );
    assert_eq!(target.received().len(), 0);
    app.engine.shutdown().await;
}

#[tokio::test]
async fn an_address_that_turns_private_later_is_not_dialled() {
    let (resolver, settings) = resolving("127.0.0.1");
    let app = TestApp::with_webhooks(settings).await;
    app.start(SoleNode::Yes).await;
    let owner = owner(&app).await;
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    let url = format!("http://hooks.example.com:{}/", receiver.port());
    let webhook = id(&added(&owner, &url, &[]).await);
    resolver.set("10.0.0.1");
    let sent = tested(&owner, &webhook).await;
    let path = format!("/v1/webhooks/deliveries/{sent}");
    let found = until(&owner, &path, |it| it["last_error"].is_string()).await;
    // The text is the same as for a public host that is down.
    assert_eq!(found["last_error"], "the address cannot be reached");
    assert_eq!(receiver.received().len(), 0);
    resolver.set("127.0.0.1");
    app.clock.advance_ms(6_000);
    delivery(&owner, &sent, "delivered").await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_delivery_survives_a_kill_between_the_commit_and_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let location = StoreLocation::File(folder.path().join("store.db"));
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    // The background work does not run: everything after the commit is lost.
    let store = jurat_store::open(&location).await.unwrap();
    let app = TestApp::sending(store, near()).await;
    let first = owner(&app).await;
    let webhook = hook(&first, &receiver, &["round.decided"]).await;
    let _executors = app.executors([says_valid()]).await;
    let claim = json!({ "claim": "it is so", "consensus": { "replicas": 1 } });
    let round = first.post("/api/v3/validate", &claim).await.json();
    app.store.close().await;
    let store = jurat_store::open(&location).await.unwrap();
    let next = TestApp::sending(store, near()).await;
    next.start(SoleNode::Yes).await;
    let event = receiver.until(1).await[0].json();
    assert_eq!(event["data"]["round_id"], round["round_id"]);
    let list = format!("/v1/webhooks/{webhook}/deliveries");
    until(&owner(&next).await, &list, |it| it["items"][0]["state"] == "delivered").await;
    assert_eq!(receiver.received().len(), 1);
    next.engine.shutdown().await;
}
