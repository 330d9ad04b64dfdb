//! What the chain proves: its own time counts, a node that is late or wrong proves nothing, and a
//! transfer is found however late somebody looks.

use std::sync::Arc;

use jurat_core::payment::network::PaymentNetwork;
use jurat_testkit::{
    app::TestApp,
    fake_facilitator::{FacilitatorMode, NodeFault, PAY_TO, TokenLog},
};
use serde_json::{Value, json};

use super::{PAYER, Shop, expect, nonce_of, verified};

/// A day, in seconds.
const DAY: i64 = 86_400;

/// A payment whose authorization is good for a day.
fn lasting(shop: &Shop, nonce: u8) -> Value {
    let mut payment = shop.payment(nonce);
    let until = shop.now() + DAY.unsigned_abs();
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
    shop.facilitator.set_node(NodeFault::NoLogs);
    let blind = "warning: the node of the chain finds no logs (`eth_getLogs`)";
    assert_eq!(findings(&shop.app).await, [blind]);
    shop.facilitator.set_node(NodeFault::FewBlocks(10));
    assert_eq!(findings(&shop.app).await, [ok]);
}

#[tokio::test]
async fn the_check_up_names_sessions_that_cost_more_than_the_price() {
    let shop = Shop::open().await;
    for (id, price_micros) in [("same", 1_000), ("dear", 1_001)] {
        let body = json!({
            "name": format!("{id}-executor"), "url": shop.executors[0].url(),
            "session": { "id": id, "price_micros": price_micros },
        });
        assert_eq!(shop.app.admin().post("/v1/executors", &body).await.status, 201);
    }
    let dear = "warning: sessions that cost more than a paid replica: 1";
    assert_eq!(findings(&shop.app).await, [dear]);
}

/// Nodes refuse large ranges, each with a limit and an error of its own.
#[tokio::test]
async fn a_node_that_looks_at_few_blocks_at_once_finds_the_transfer() {
    for most in [1, 100, 2_000] {
        let shop = Shop::open().await;
        shop.facilitator.set(FacilitatorMode::FailsAfterSettling);
        shop.facilitator.set_node(NodeFault::FewBlocks(most));
        let payment = shop.payment(1);
        expect(&shop.pay(&payment).await, 200);
        // Also if a few hundred blocks have passed.
        shop.facilitator.set_node(NodeFault::Down);
        let payment = shop.payment(2);
        expect(&shop.pay(&payment).await, 202);
        shop.app.clock.advance_ms(900_000);
        shop.facilitator.set_node(NodeFault::FewBlocks(most.max(100)));
        let mut looks = 0;
        while shop.pay(&payment).await.status != 200 {
            shop.reconcile_after(400).await;
            looks += 1;
            assert!(looks < 5, "it is not found {most} blocks at a time");
        }
    }
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

/// Neither at the beginning nor near the end of a long time: each look goes on where the last one
/// ended.
#[tokio::test]
async fn a_long_time_is_searched_in_several_looks() {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::FailsBeforeSettling);
    let payment = lasting(&shop, 1);
    expect(&shop.pay(&payment).await, 202);
    shop.app.clock.advance_ms((DAY - 1_000) * 1_000);
    shop.facilitator.set(FacilitatorMode::FailsAfterSettling);
    shop.facilitator.set_node(NodeFault::Down);
    shop.reconcile_after(1).await;
    assert_eq!(shop.facilitator.transfers().len(), 1);
    shop.app.clock.advance_ms(9 * DAY * 1_000);
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

/// An authorization that was spent long before its payment, so that no look finds its log.
#[tokio::test]
async fn a_node_that_falls_behind_an_earlier_look_proves_nothing() {
    let shop = Shop::open().await;
    let payment = lasting(&shop, 1);
    shop.facilitator.spend(&payment);
    shop.app.clock.advance_ms(3_600_000);
    shop.facilitator.set_node(NodeFault::Down);
    shop.facilitator.set(FacilitatorMode::SaysYes);
    expect(&shop.pay(&payment).await, 202);
    shop.app.clock.advance_ms(9 * DAY * 1_000);
    shop.facilitator.set_node(NodeFault::None);
    shop.reconcile_after(1_000).await;
    let looked = shop.facilitator.asked("/rpc");
    // The search has passed this time.
    shop.facilitator.set_node(NodeFault::Late(9 * DAY.unsigned_abs()));
    shop.reconcile_after(1_000).await;
    assert!(looked < shop.facilitator.asked("/rpc"));
    expect(&shop.pay(&payment).await, 202);
    // It goes on from there.
    let searched = || shop.facilitator.bodies("/rpc").into_iter().filter(is_search).collect();
    let before: Vec<Value> = searched();
    shop.facilitator.set_node(NodeFault::None);
    shop.reconcile_after(1_000).await;
    let after: Vec<Value> = searched();
    assert!(before.iter().all(|it| !after[before.len()..].contains(it)));
    expect(&shop.pay(&payment).await, 202);
}

/// Whether a question to the node is a search for logs.
fn is_search(question: &Value) -> bool {
    question["method"] == "eth_getLogs"
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

fn used(nonce: u8) -> TokenLog {
    TokenLog::Used(PAYER.to_owned(), nonce_of(nonce))
}

fn moved(payer: &str, to: &str, value: u128) -> TokenLog {
    TokenLog::Moved { payer: payer.to_owned(), to: to.to_owned(), value }
}

/// Two replies that the facilitator does not settle, and then a transaction of somebody else.
/// Returns the shop and both payments.
async fn after(logs: impl IntoIterator<Item = TokenLog>) -> (Shop, [Value; 2]) {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::RefusesToSettle);
    let payments = [shop.payment(1), shop.payment(2)];
    for payment in &payments {
        expect(&shop.pay(payment).await, 202);
    }
    shop.facilitator.transact(logs);
    shop.reconcile_after(10).await;
    (shop, payments)
}

/// A payer signs two authorizations with one nonce, and uses the one that pays itself.
#[tokio::test]
async fn one_transfer_pays_for_one_request() {
    let logs = [used(1), moved(PAYER, PAY_TO, 3_000), used(2), moved(PAYER, PAYER, 3_000)];
    let (shop, [first, second]) = after(logs).await;
    expect(&shop.pay(&first).await, 200);
    // Until the block is final, another one may take its place.
    expect(&shop.pay(&second).await, 202);
    shop.reconcile_after(200).await;
    let reply = shop.pay(&second).await;
    expect(&reply, 402);
    assert_eq!(reply.json()["detail"], "the payment could not be settled, and nothing was paid");
}

#[tokio::test]
async fn several_payments_of_one_transaction_are_all_found() {
    let logs = [
        moved(PAYER, PAY_TO, 3_000),
        used(2),
        moved(PAYER, PAY_TO, 3_000),
        used(1),
        moved(PAYER, PAY_TO, 3_000),
    ];
    let (shop, payments) = after(logs).await;
    for payment in &payments {
        expect(&shop.pay(payment).await, 200);
    }
}

#[tokio::test]
async fn a_transfer_that_does_not_follow_its_authorization_proves_nothing() {
    let cases = [
        vec![moved(PAYER, PAY_TO, 3_000), used(1)],
        vec![used(1), used(3), moved(PAYER, PAY_TO, 3_000)],
        vec![used(1), moved(PAY_TO, PAY_TO, 3_000)],
        vec![used(1)],
    ];
    for (index, logs) in cases.into_iter().enumerate() {
        let (shop, [payment, _]) = after(logs).await;
        for seconds in [0, 400, DAY] {
            shop.reconcile_after(seconds).await;
            let reply = shop.pay(&payment).await;
            assert_eq!(reply.status, 202, "case {index}: {}", reply.text());
        }
    }
}

#[tokio::test]
async fn another_amount_is_another_purchase() {
    let (shop, [payment, _]) = after([used(1), moved(PAYER, PAY_TO, 2_999)]).await;
    expect(&shop.pay(&payment).await, 202);
    shop.reconcile_after(200).await;
    expect(&shop.pay(&payment).await, 402);
}
