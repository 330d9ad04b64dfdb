//! Payments on record: they are found whatever the settings say now, and whichever node is asked.

use std::sync::Arc;

use jurat_core::payment::network::PaymentNetwork;
use jurat_engine::PaymentSettings;
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_facilitator::FacilitatorMode,
};
use jurat_wire::x402::required::IdentifierRule;
use serde_json::{Value, json};

use super::{Shop, VALIDATE, claim, encoded, expect};

const CLAIM: &str = "Water boils at 100 °C.";

/// Another node on the store of a shop, with other settings.
async fn neighbour(shop: &Shop, change: impl FnOnce(&mut PaymentSettings)) -> TestApp {
    let mut settings = shop.facilitator.settings();
    change(&mut settings);
    TestApp::selling(Arc::clone(&shop.app.store), settings).await
}

/// Sends the usual request with a payment to another node.
async fn pay_at(node: &TestApp, payment: &Value) -> TestReply {
    let header = encoded(payment);
    let headers = [("PAYMENT-SIGNATURE", header.as_str())];
    node.anonymous().post_with(VALIDATE, &claim(CLAIM), &headers).await
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
