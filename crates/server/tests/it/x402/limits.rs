//! The limits of a payer.

use std::sync::Arc;

use jurat_engine::PayerLimits;
use jurat_testkit::{
    fake_executor::{FakeExecutor, gated, says_valid, status},
    fake_facilitator::FacilitatorMode,
};
use serde_json::json;

use super::{Shop, expect};

#[tokio::test]
async fn a_payer_has_a_limit_on_requests() {
    let limits = PayerLimits { requests_per_minute: 2, ..PayerLimits::default() };
    let shop = Shop::with(|it| it.limits = limits).await;
    for nonce in [1, 2] {
        expect(&shop.pay(&shop.payment(nonce)).await, 200);
    }
    let reply = shop.pay(&shop.payment(3)).await;
    expect(&reply, 429);
    assert_eq!(reply.json()["code"], "rate_limited");
    // Another payer is not affected, and neither is what was bought.
    let mut other = shop.payment(4);
    other["payload"]["authorization"]["from"] = json!(format!("0x{}", "ab".repeat(20)));
    expect(&shop.pay(&other).await, 200);
    expect(&shop.pay(&shop.payment(1)).await, 200);
    assert_eq!(shop.facilitator.transfers().len(), 3);
}

#[tokio::test]
async fn a_payer_has_a_limit_on_concurrent_rounds() {
    let limits = PayerLimits { rounds: 1, ..PayerLimits::default() };
    let says = [gated(says_valid()), gated(says_valid()), gated(says_valid())];
    let shop = Arc::new(Shop::of(says, |it| it.limits = limits).await);
    let (first, busy) = (shop.payment(1), shop.payment(2));
    let buying = Arc::clone(&shop);
    let (bought, refused) = tokio::join!(buying.pay(&first), async {
        shop.executors[0].wait_for_calls(1).await;
        let refused = shop.pay(&busy).await;
        shop.executors.iter().for_each(FakeExecutor::release);
        refused
    });
    expect(&bought, 200);
    expect(&refused, 429);
    // The refused payment is still good.
    expect(&shop.pay(&busy).await, 200);
    assert_eq!(shop.facilitator.transfers().len(), 2);
}

#[tokio::test]
async fn a_payer_with_unknown_settlements_has_to_wait() {
    let limits = PayerLimits { rounds: 2, ..PayerLimits::default() };
    let shop = Shop::with(|it| it.limits = limits).await;
    shop.facilitator.set(FacilitatorMode::RefusesToSettle);
    for nonce in [1, 2] {
        expect(&shop.pay(&shop.payment(nonce)).await, 202);
    }
    let reply = shop.pay(&shop.payment(3)).await;
    expect(&reply, 429);
    // Once they are known, the payer may buy again.
    shop.facilitator.set(FacilitatorMode::Honest);
    shop.reconcile_after(10).await;
    expect(&shop.pay(&shop.payment(3)).await, 200);
    assert_eq!(shop.facilitator.transfers().len(), 3);
}

#[tokio::test]
async fn a_payer_has_a_storage_quota() {
    let limits = PayerLimits { quota_bytes: 2_000, ..PayerLimits::default() };
    let shop = Shop::of([says_valid(), says_valid(), status(500)], |it| it.limits = limits).await;
    expect(&shop.pay(&shop.payment(1)).await, 200);
    shop.app.clock.advance_ms(2_000);
    let reply = shop.pay(&shop.payment(2)).await;
    expect(&reply, 422);
    assert_eq!(reply.json()["code"], "quota_exceeded");
    assert_eq!(shop.facilitator.transfers().len(), 1);
}
