//! Webhooks that fail are disabled, and accounts take turns.

use jurat_testkit::fake_receiver::ReceiverAnswer;

use super::*;
use crate::v1::logins;

#[tokio::test]
async fn a_webhook_that_keeps_failing_is_disabled_and_can_be_enabled_again() {
    let settings = under(|it| it.disable_after = Duration::from_hours(1));
    let app = TestApp::with_webhooks(settings).await;
    app.start(SoleNode::Yes).await;
    let owner = owner(&app).await;
    let broken = FakeReceiver::start(ReceiverAnswer::Status(500)).await;
    let works = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    let webhook = hook(&owner, &broken, &[]).await;
    hook(&owner, &works, &[]).await;
    let first = tested(&owner, &webhook).await;
    let path = format!("/v1/webhooks/{webhook}");
    // The time alone disables nothing: a few attempts may fail by chance.
    for (number, wait_ms) in (1..).zip([6_000, 331_000, 1_981_000, 7_921_000, 19_801_000]) {
        noted(&app, &owner, &first, number).await;
        assert_eq!(owner.get(&path).await.json()["state"], "enabled", "{number}");
        app.clock.advance_ms(wait_ms);
    }
    let disabled = until(&owner, &path, |it| it["state"] == "disabled").await;
    let reason = disabled["disabled_reason"].as_str().unwrap();
    assert!(reason.starts_with("every delivery has failed since 2026-09-21T14"), "{reason}");
    let notice = works.until(1).await[0].json();
    assert_eq!(
        (&notice["type"], &notice["data"]["webhook_id"]),
        (&json!("webhook.disabled"), &json!(webhook))
    );
    let given_up = delivery(&owner, &first, "failed").await;
    assert_eq!(given_up["next_attempt_at"], Value::Null);
    let doctor = app.admin().get("/v1/doctor").await.json().to_string();
    assert!(
        doctor.contains(&webhook) && doctor.contains("disabled because they failed"),
        "{doctor}"
    );
    broken.answer_with(ReceiverAnswer::Status(200));
    let change = json!({ "is_enabled": true }).to_string();
    let enabled = owner.send("PATCH", &path, change.into(), &[]).await.json();
    assert_eq!((&enabled["state"], &enabled["disabled_reason"]), (&json!("enabled"), &Value::Null));
    owner.post(&format!("/v1/webhooks/deliveries/{first}/replay"), &json!({})).await;
    delivery(&owner, &first, "delivered").await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_disabled_at_once() {
    let app = started().await;
    let owner = owner(&app).await;
    let gone = FakeReceiver::start(ReceiverAnswer::Status(410)).await;
    let webhook = hook(&owner, &gone, &[]).await;
    tested(&owner, &webhook).await;
    let path = format!("/v1/webhooks/{webhook}");
    let disabled = until(&owner, &path, |it| it["state"] == "disabled").await;
    assert_eq!(disabled["disabled_reason"], "the receiver answered 410 Gone");
    app.engine.shutdown().await;
}

#[tokio::test]
async fn an_owner_gets_few_mails_about_disabled_webhooks() {
    let app = started().await;
    let ann = app.with_key(&logins::registered(&app, "ann@example.com").await);
    let gone = FakeReceiver::start(ReceiverAnswer::Status(410)).await;
    let webhook = hook(&ann, &gone, &[]).await;
    let path = format!("/v1/webhooks/{webhook}");
    for number in 0..8 {
        tested(&ann, &webhook).await;
        until(&ann, &path, |it| it["state"] == "disabled").await;
        if number == 0 {
            let mail = app.outbox.next_to("ann@example.com").await;
            assert!(mail.text.contains(&webhook), "{}", mail.text);
        }
        let change = json!({ "is_enabled": true }).to_string();
        ann.send("PATCH", &path, change.into(), &[]).await;
    }
    app.engine.shutdown().await;
    assert_eq!(app.outbox.addressees(), ["ann@example.com"; 4], "five on one day");
}

#[tokio::test]
async fn an_account_that_sends_too_much_waits_for_the_next_minute() {
    let settings = under(|it| it.deliveries_per_minute = 2);
    let app = TestApp::with_webhooks(settings).await;
    app.start(SoleNode::Yes).await;
    let (owner, other) = (owner(&app).await, app.caller("other", &Scope::OWN).await);
    let receiver = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    let (mine, theirs) = (hook(&owner, &receiver, &[]).await, hook(&other, &receiver, &[]).await);
    let mut sent = Vec::new();
    for _ in 0..2 {
        sent.push(tested(&owner, &mine).await);
        delivery(&owner, sent.last().unwrap(), "delivered").await;
    }
    sent.push(tested(&owner, &mine).await);
    let of_other = tested(&other, &theirs).await;
    delivery(&other, &of_other, "delivered").await;
    let waiting = owner.get(&format!("/v1/webhooks/deliveries/{}", sent[2])).await.json();
    assert_eq!((&waiting["state"], &waiting["attempts"]), (&json!("pending"), &json!(0)));
    app.clock.advance_ms(60_000);
    delivery(&owner, &sent[2], "delivered").await;
    app.engine.shutdown().await;
}

#[tokio::test]
async fn slow_receivers_of_one_account_do_not_delay_the_deliveries_of_another() {
    // A delivery ends only when its receiver answers.
    let settings = under(|it| it.timeout = Duration::from_hours(1));
    let app = TestApp::with_webhooks(settings).await;
    let (owner, other) = (owner(&app).await, app.caller("other", &Scope::OWN).await);
    let slow = FakeReceiver::start(ReceiverAnswer::Silence).await;
    let fast = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    for number in 0..10 {
        let webhook = added(&owner, &format!("{}/{number}", slow.url()), &[]).await;
        for _ in 0..8 {
            tested(&owner, &id(&webhook)).await;
        }
    }
    // Those are due before this one.
    app.clock.advance_ms(1);
    let theirs = hook(&other, &fast, &[]).await;
    tested(&other, &theirs).await;
    app.start(SoleNode::Yes).await;
    tokio::time::timeout(PATIENCE, fast.until(1)).await.unwrap();
    assert!(slow.received().len() < 24, "{}", slow.received().len());
    slow.answer_with(ReceiverAnswer::Status(200));
    tokio::time::timeout(PATIENCE, slow.until(80)).await.unwrap();
    app.engine.shutdown().await;
}

#[tokio::test]
async fn slow_receivers_of_a_few_accounts_do_not_delay_the_deliveries_of_another() {
    let settings = under(|it| it.timeout = Duration::from_hours(1));
    let app = TestApp::with_webhooks(settings).await;
    let slow = FakeReceiver::start(ReceiverAnswer::Silence).await;
    let fast = FakeReceiver::start(ReceiverAnswer::Status(200)).await;
    for name in ["anna", "bert", "cora", "dora", "egon", "fred"] {
        let caller = app.caller(name, &Scope::OWN).await;
        for number in 0..3 {
            let webhook = added(&caller, &format!("{}/{number}", slow.url()), &[]).await;
            for _ in 0..8 {
                tested(&caller, &id(&webhook)).await;
            }
        }
    }
    app.clock.advance_ms(1);
    let other = app.caller("other", &Scope::OWN).await;
    let theirs = hook(&other, &fast, &[]).await;
    tested(&other, &theirs).await;
    app.start(SoleNode::Yes).await;
    tokio::time::timeout(PATIENCE, fast.until(1)).await.unwrap();
    slow.answer_with(ReceiverAnswer::Status(200));
    tokio::time::timeout(PATIENCE, slow.until(144)).await.unwrap();
    app.engine.shutdown().await;
}
