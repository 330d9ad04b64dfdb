//! Payments on record: they are found whatever the settings say now, and whichever node is asked.

use std::{sync::Arc, time::Duration};

use jurat_core::{
    canonical,
    id::{AccountId, PaymentId},
    idempotency::SavedAnswer,
    payment::{
        PaymentDemand,
        network::PaymentNetwork,
        record::{Payment, PaymentKey, PaymentProtocol},
        state::PaymentState,
    },
    time::Timestamp,
};
use jurat_engine::{PaymentSettings, PurchaseOrder, PurchaseOutcome, RoundEncoder};
use jurat_store::{Behalf, NewPayment};
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{FakeExecutor, gated, says_valid},
    fake_facilitator::{FacilitatorMode, PAY_TO},
    log::LogCapture,
};
use jurat_wire::{
    api::consensus_request,
    x402::{
        payment::PaymentMessage,
        required::{IdentifierRule, PaidResource},
    },
};
use serde_json::{Value, json};

use super::{PAYER, Shop, VALIDATE, claim, encoded, expect, nonce_of, verified};

const CLAIM: &str = "Water boils at 100 °C.";

/// Another node on the store of a shop, with other settings.
pub(super) async fn neighbour(shop: &Shop, change: impl FnOnce(&mut PaymentSettings)) -> TestApp {
    let mut settings = shop.facilitator.settings();
    change(&mut settings);
    TestApp::selling(Arc::clone(&shop.app.store), settings).await
}

/// Sends the usual request with a payment to another node.
pub(super) async fn pay_at(node: &TestApp, payment: &Value) -> TestReply {
    let header = encoded(payment);
    let headers = [("PAYMENT-SIGNATURE", header.as_str())];
    node.anonymous().post_with(VALIDATE, &claim(CLAIM), &headers).await
}

fn message(payment: &Value) -> PaymentMessage {
    PaymentMessage::read(PaymentProtocol::V2, &encoded(payment)).unwrap()
}

/// The usual request, as a surface hands it to the engine.
fn order(payment: &Value, encoder: &RoundEncoder) -> PurchaseOrder {
    PurchaseOrder {
        job: consensus_request::validate(&claim(CLAIM)).unwrap(),
        resource: PaidResource { url: VALIDATE.to_owned(), description: "a verdict" },
        request_digest: request_digest(),
        payment: Some(message(payment)),
        encoder: Arc::clone(encoder),
        memory: None,
    }
}

fn request_digest() -> String {
    let mut request = format!("POST {VALIDATE}\n").into_bytes();
    request.extend(canonical::canonical(&claim(CLAIM)));
    canonical::digest(&request)
}

fn encoder() -> RoundEncoder {
    Arc::new(|_| SavedAnswer { tag: 200, text: "{}".to_owned() })
}

/// The account of the usual payer.
async fn payer(app: &TestApp) -> String {
    let accounts = app.admin().get("/v1/accounts").await.json();
    let accounts = accounts["items"].as_array().unwrap().iter();
    let mut ids = accounts.filter_map(|it| it["account_id"].as_str().or(it["id"].as_str()));
    ids.find(|id| id.starts_with("acct_payer")).unwrap().to_owned()
}

#[tokio::test]
async fn changed_terms_never_demand_a_payment_again() {
    type Change = fn(&mut PaymentSettings);
    let changes: [Change; 4] = [
        |it| it.price_per_replica = 2_000,
        |it| it.pay_to = format!("0x{}", "c".repeat(40)).parse().unwrap(),
        |it| it.network = PaymentNetwork::Base,
        |it| it.identifier = IdentifierRule::Required,
    ];
    let shop = Shop::with(|it| it.rpc = None).await;
    let settled = shop.payment(1);
    let first = shop.pay(&settled).await;
    expect(&first, 200);
    shop.facilitator.set(FacilitatorMode::FailsAfterSettling);
    let unknown = shop.payment(2);
    expect(&shop.pay(&unknown).await, 202);
    for (index, change) in changes.into_iter().enumerate() {
        let node = neighbour(&shop, change).await;
        let again = pay_at(&node, &settled).await;
        expect(&again, 200);
        assert_eq!(again.body, first.body, "change {index}");
        expect(&pay_at(&node, &unknown).await, 202);
        // A payment that is not on record must meet the terms.
        let reply = pay_at(&node, &shop.payment(3)).await;
        assert!([400, 402].contains(&reply.status.as_u16()), "change {index}");
    }
    assert_eq!(shop.facilitator.transfers().len(), 2);
}

#[tokio::test]
async fn a_payment_on_an_unknown_network_is_refused() {
    let shop = Shop::open().await;
    let mut payment = shop.payment(1);
    payment["accepted"]["network"] = json!("eip155:1");
    let reply = shop.pay(&payment).await;
    expect(&reply, 402);
    assert_eq!(reply.json()["detail"], "the payment is for another network");
}

/// Two nodes get the same payment, and the second one cannot wait for the end of the round.
#[tokio::test]
async fn a_node_gives_no_payment_back_that_another_one_works_for() {
    let says = [gated(says_valid()), gated(says_valid()), gated(says_valid())];
    let shop = Shop::of(says, |_| {}).await;
    let payment = shop.payment(1);
    let stopping = neighbour(&shop, |_| {}).await;
    let suspending = neighbour(&shop, |_| {}).await;
    let other = async {
        shop.executors[0].wait_for_calls(1).await;
        stopping.engine.stop_rounds();
        let stopped = stopping.engine.purchase(order(&payment, &encoder())).await.unwrap();
        let account = payer(&shop.app).await;
        let path = format!("/v1/accounts/{account}/suspend");
        expect(&shop.app.admin().post(&path, &json!({})).await, 200);
        let suspended = pay_at(&suspending, &payment).await;
        shop.executors.iter().for_each(FakeExecutor::release);
        (stopped, suspended)
    };
    let (reply, (stopped, suspended)) = tokio::join!(shop.pay(&payment), other);
    assert!(matches!(stopped, PurchaseOutcome::Pending(_)), "{stopped:?}");
    expect(&suspended, 202);
    expect(&reply, 200);
    assert_eq!(reply.json()["verdict"], "VALID");
    let path = suspended.headers["location"].to_str().unwrap();
    expect(&shop.app.anonymous().get(path).await, 200);
    assert_eq!(shop.facilitator.transfers().len(), 1);
    assert_eq!(shop.executors.iter().map(verified).sum::<usize>(), 3);
}

/// What is on record of a payment.
pub(super) async fn stored(shop: &Shop, payment: &Value) -> Payment {
    let key = key(&message(payment));
    let payments = shop.app.store.payments();
    payments.of_authorization(&Behalf::Platform, &key).await.unwrap().unwrap()
}

fn key(message: &PaymentMessage) -> PaymentKey {
    PaymentKey {
        network: PaymentNetwork::BaseSepolia,
        asset: PaymentNetwork::BaseSepolia.asset().to_owned(),
        payer: message.authorization.from.clone(),
        nonce: message.authorization.nonce.clone(),
    }
}

/// What a process leaves that died between the reservation and the round.
pub(super) async fn reserved(shop: &Shop, payment: &Value) -> Payment {
    let (now, message) = (shop.app.engine.clock().now(), message(payment));
    let ends = i64::try_from(message.authorization.valid_before).unwrap();
    let resource = PaidResource { url: VALIDATE.to_owned(), description: "a verdict" };
    let demand = PaymentDemand {
        network: PaymentNetwork::BaseSepolia,
        pay_to: PAY_TO.parse().unwrap(),
        amount: 3_000,
        work_seconds: 60,
    };
    let left = Payment {
        id: PaymentId::new(now, 7),
        account: AccountId::parse(&payer(&shop.app).await).unwrap(),
        key: key(&message),
        protocol: PaymentProtocol::V2,
        amount: 3_000,
        request_digest: request_digest(),
        payment_digest: message.digest(),
        identifier: None,
        state: PaymentState::Reserved,
        settle_request: message.facilitator_request(&demand, &resource).to_string(),
        valid_before: Timestamp::from_millis(ends * 1_000),
        round: None,
        answer: None,
        transaction: None,
        reason: None,
        attempts: 0,
        created_at: now,
        updated_at: now,
    };
    let behalf = Behalf::from(&left.account);
    let new = NewPayment { payment: left.clone(), most_open: 8, young_since: now, good_since: now };
    shop.app.store.payments().reserve(&behalf, &new, None).await.unwrap();
    left
}

#[tokio::test]
async fn an_authorization_that_has_ended_is_not_worked_for() {
    let shop = Shop::open().await;
    expect(&shop.pay(&shop.payment(1)).await, 200);
    let payment = shop.payment(2);
    for (seconds, problem) in [
        (150, "the authorization ends before the work can be done and settled"),
        (100, "the authorization has expired"),
    ] {
        let left = reserved(&shop, &payment).await;
        shop.app.clock.advance_ms(seconds * 1_000);
        let reply = shop.pay(&payment).await;
        expect(&reply, 402);
        assert_eq!(reply.json()["detail"], problem);
        let stored = shop.app.store.payments().get(&Behalf::Platform, &left.id).await.unwrap();
        assert_eq!(stored, None);
    }
    assert_eq!(shop.executors.iter().map(verified).sum::<usize>(), 3, "of the first payment");
}

/// A request that waits for another one and leaves takes what it holds along.
#[tokio::test]
async fn a_repeated_request_that_leaves_leaves_nothing_behind() {
    let says = [gated(says_valid()), gated(says_valid()), gated(says_valid())];
    let shop = Shop::of(says, |_| {}).await;
    let (payment, encoder) = (shop.payment(1), encoder());
    let engine = &shop.app.engine;
    let memory = Arc::new(engine.visitor_memory());
    let first = PurchaseOrder { memory: Some(Arc::clone(&memory)), ..order(&payment, &encoder) };
    tokio::select! {
        _ = engine.purchase(first) => panic!("it waits for the executors"),
        () = shop.executors[0].wait_for_calls(1) => {}
    }
    // The work goes on, and its memory is still counted.
    assert_eq!((Arc::strong_count(&memory), Arc::strong_count(&encoder)), (2, 2));
    for _ in 0..5 {
        let again = engine.purchase(order(&payment, &encoder));
        let left = tokio::time::timeout(Duration::from_millis(50), again).await;
        assert!(left.is_err(), "it waits for the first one");
    }
    assert_eq!(Arc::strong_count(&encoder), 2, "only that of the first one is left");
    shop.executors.iter().for_each(FakeExecutor::release);
    let bought = engine.purchase(order(&payment, &encoder)).await.unwrap();
    assert!(matches!(bought, PurchaseOutcome::Delivered(_)), "{bought:?}");
    assert_eq!((Arc::strong_count(&memory), Arc::strong_count(&encoder)), (1, 1));
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn the_log_does_not_name_the_secret_ids_of_payments() {
    let (log, _guard) = LogCapture::start();
    let shop = Shop::open().await;
    let settled = shop.pay(&shop.payment(1)).await;
    expect(&settled, 200);
    shop.facilitator.set(FacilitatorMode::RefusesToSettle);
    let unknown = shop.pay(&shop.payment(2)).await;
    expect(&unknown, 202);
    let text = log.text();
    assert!(text.contains("settled a payment"), "{text}");
    assert!(text.contains("a payment was not settled"), "{text}");
    for reply in [settled, unknown] {
        let id = reply.headers["x-jurat-payment"].to_str().unwrap();
        assert!(!text.contains(id), "{text}");
    }
    assert!(!text.contains(PAYER) && !text.contains(&nonce_of(1)), "{text}");
}
