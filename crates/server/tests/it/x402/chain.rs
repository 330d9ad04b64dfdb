//! What the chain proves: its own time counts, a node that is late or wrong proves nothing, and a
//! transfer is found however late somebody looks.

use std::sync::Arc;

use jurat_core::payment::network::PaymentNetwork;
use jurat_testkit::{
    app::TestApp,
    fake_facilitator::{FacilitatorMode, NodeFault},
};
use serde_json::{Value, json};

use super::{Shop, expect, nonce_of, verified};

/// A day, in seconds.
const DAY: i64 = 86_400;

/// A payment whose authorization is good for two months.
fn lasting(shop: &Shop, nonce: u8) -> Value {
    let mut payment = shop.payment(nonce);
    let until = shop.now() + 60 * DAY.unsigned_abs();
    payment["payload"]["authorization"]["validBefore"] = json!(until.to_string());
    payment
}

/// The findings of a check-up about payments.
async fn findings(app: &TestApp) -> Vec<String> {
    let found = app.admin().get("/v1/doctor").await.json();
    let checks = found["checks"].as_array().unwrap().iter();
    let checks = checks.filter(|it| it["check"] == "payments");
    let text = |it: &Value| format!("{}: {}", it["status"], it["detail"]).replace('"', "");
    checks.map(text).collect()
}

#[tokio::test]
async fn a_node_that_is_late_does_not_prove_that_nothing_was_paid() {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::FailsAfterSettling);
    shop.facilitator.set_node(NodeFault::Late(600));
    let payment = shop.payment(1);
    expect(&shop.pay(&payment).await, 202);
    // The authorization is over for good, but the node has not seen that yet.
    shop.reconcile_after(400).await;
    expect(&shop.pay(&payment).await, 202);
    shop.facilitator.set_node(NodeFault::None);
    shop.reconcile_after(200).await;
    expect(&shop.pay(&payment).await, 200);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn a_wrong_clock_of_ours_does_not_prove_that_nothing_was_paid() {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::RefusesToSettle);
    let payment = shop.payment(1);
    expect(&shop.pay(&payment).await, 202);
    shop.app.clock.set_by_ms(DAY * 1_000);
    shop.reconcile_after(1).await;
    expect(&shop.pay(&payment).await, 202);
    // It can still be settled, and it is.
    shop.facilitator.set(FacilitatorMode::Honest);
    shop.reconcile_after(1_000).await;
    expect(&shop.pay(&payment).await, 200);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn a_node_of_another_chain_proves_nothing_and_is_reported() {
    for fault in [NodeFault::OtherChain, NodeFault::NoToken] {
        let shop = Shop::open().await;
        shop.facilitator.set(FacilitatorMode::FailsAfterSettling);
        shop.facilitator.set_node(fault);
        let payment = shop.payment(1);
        expect(&shop.pay(&payment).await, 202);
        shop.reconcile_after(1_000).await;
        expect(&shop.pay(&payment).await, 202);
        shop.facilitator.set_node(NodeFault::None);
        shop.reconcile_after(1_000).await;
        expect(&shop.pay(&payment).await, 200);
    }
}

#[tokio::test]
async fn the_check_up_names_a_node_of_another_chain() {
    let shop = Shop::open().await;
    let ok = "ok: accepted on base-sepolia (protocols 1 and 2); settlements in progress: 0";
    assert_eq!(findings(&shop.app).await, [ok]);
    shop.facilitator.set_node(NodeFault::OtherChain);
    let wrong =
        "problem: the node of the chain is on the chain 1, and `base-sepolia` is the chain 84532";
    assert_eq!(findings(&shop.app).await, [wrong]);
    shop.facilitator.set_node(NodeFault::Down);
    let silent = "warning: the node of the chain does not answer";
    assert_eq!(findings(&shop.app).await, [silent]);
}

#[tokio::test]
async fn a_payment_on_another_network_than_the_nodes_is_not_looked_for_there() {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::RefusesToSettle);
    let payment = shop.payment(1);
    expect(&shop.pay(&payment).await, 202);
    // The operator changes the network, and the node with it, which knows nothing of the payment.
    let mut settings = shop.facilitator.settings();
    settings.network = PaymentNetwork::Base;
    shop.facilitator.set_node(NodeFault::OnBase);
    let other = TestApp::selling(Arc::clone(&shop.app.store), settings).await;
    other.clock.advance_ms(DAY * 1_000);
    shop.app.clock.advance_ms(DAY * 1_000);
    other.engine.reconcile_payments().await.unwrap();
    expect(&shop.pay(&payment).await, 202);
}

#[tokio::test]
async fn a_transfer_is_found_days_later() {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::FailsAfterSettling);
    shop.facilitator.set_node(NodeFault::Down);
    let payment = shop.payment(1);
    expect(&shop.pay(&payment).await, 202);
    shop.app.clock.advance_ms(10 * DAY * 1_000);
    shop.facilitator.set_node(NodeFault::None);
    shop.reconcile_after(1).await;
    expect(&shop.pay(&payment).await, 200);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

/// Neither near the beginning nor near the end of a long time: each look goes on where the last
/// one ended.
#[tokio::test]
async fn a_long_time_is_searched_in_several_looks() {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::FailsBeforeSettling);
    let payment = lasting(&shop, 1);
    expect(&shop.pay(&payment).await, 202);
    shop.app.clock.advance_ms(5 * DAY * 1_000);
    shop.facilitator.set(FacilitatorMode::FailsAfterSettling);
    shop.facilitator.set_node(NodeFault::Down);
    shop.reconcile_after(1).await;
    assert_eq!(shop.facilitator.transfers().len(), 1);
    shop.app.clock.advance_ms(5 * DAY * 1_000);
    shop.facilitator.set_node(NodeFault::None);
    let mut looks = 0;
    while shop.pay(&payment).await.status != 200 {
        let asked = shop.facilitator.asked("/rpc");
        shop.reconcile_after(1_000).await;
        looks += 1;
        let questions = shop.facilitator.asked("/rpc") - asked;
        assert!(questions < 20, "{questions} questions in one look");
        assert!(looks < 20, "it is not found");
    }
    assert!(1 < looks);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn a_transaction_that_the_facilitator_named_is_looked_up_again() {
    let shop = Shop::open().await;
    shop.facilitator.set_node(NodeFault::Late(60));
    let payment = shop.payment(1);
    // The facilitator names the transaction, and the node does not know it yet.
    expect(&shop.pay(&payment).await, 202);
    // Later the facilitator says only that the authorization was used, and the node finds no logs.
    shop.facilitator.set_node(NodeFault::NoLogs);
    shop.reconcile_after(100).await;
    expect(&shop.pay(&payment).await, 200);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn an_authorization_that_was_spent_elsewhere_buys_nothing() {
    let shop = Shop::open().await;
    let payment = shop.payment(1);
    shop.facilitator.spend(&payment);
    // A facilitator that does not look at the chain.
    shop.facilitator.set(FacilitatorMode::SaysYes);
    let reply = shop.pay(&payment).await;
    expect(&reply, 402);
    assert_eq!(reply.json()["detail"], "the authorization was used for another purchase");
    assert!(shop.executors.iter().all(|it| verified(it) == 0));
    assert_eq!(shop.facilitator.transfers()[0].nonce, nonce_of(1));
    // A node that does not answer stops no sale.
    shop.facilitator.set(FacilitatorMode::Honest);
    shop.facilitator.set_node(NodeFault::Down);
    expect(&shop.pay(&shop.payment(2)).await, 202);
    assert_eq!(shop.executors.iter().map(verified).sum::<usize>(), 3);
}
