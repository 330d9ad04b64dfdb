//! The limits of a payer.

use std::sync::Arc;

use jurat_engine::{EngineLimits, PayerLimits};
use jurat_testkit::{
    fake_executor::{FakeExecutor, gated, says_valid, status},
    fake_facilitator::FacilitatorMode,
};
use serde_json::{Value, json};

use super::{Shop, expect};

/// The same payment of another payer.
fn of_another(mut payment: Value) -> Value {
    payment["payload"]["authorization"]["from"] = json!(format!("0x{}", "ab".repeat(20)));
    payment
}

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
    expect(&shop.pay(&of_another(shop.payment(4))).await, 200);
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

/// The number of addresses is no limit: anybody can make as many as they like.
#[tokio::test]
async fn all_payers_together_have_the_capacity_of_one_account() {
    let says = [gated(says_valid()), gated(says_valid()), gated(says_valid())];
    let limits = EngineLimits { rounds_per_account: 1, ..EngineLimits::default() };
    let shop = Arc::new(Shop::limited(limits, says).await);
    let (first, other) = (shop.payment(1), of_another(shop.payment(2)));
    let buying = Arc::clone(&shop);
    let (bought, refused) = tokio::join!(buying.pay(&first), async {
        shop.executors[0].wait_for_calls(1).await;
        let refused = shop.pay(&other).await;
        // A tenant is not affected.
        let body = json!({ "claim": "x", "consensus": { "replicas": 1 } });
        let tenant = shop.app.admin();
        let headers = [("prefer", "respond-async")];
        expect(&tenant.post_with("/api/v3/validate", &body, &headers).await, 202);
        shop.executors.iter().for_each(FakeExecutor::release);
        refused
    });
    expect(&bought, 200);
    expect(&refused, 429);
    expect(&shop.pay(&other).await, 200);
}

#[tokio::test]
async fn failing_requests_of_payers_pause_no_executor_for_others() {
    let shop = Shop::of([status(500), status(500), status(500)], |_| {}).await;
    for nonce in 1..=6 {
        expect(&shop.pay(&shop.payment(nonce)).await, if nonce <= 5 { 200 } else { 503 });
        expect(
            &shop.pay(&of_another(shop.payment(nonce))).await,
            if nonce <= 5 { 200 } else { 503 },
        );
    }
    // Each of the two is paused, and neither a third one nor anybody with a key.
    shop.executors.iter().for_each(|it| it.set(says_valid()));
    let mut third = shop.payment(1);
    third["payload"]["authorization"]["from"] = json!(format!("0x{}", "cd".repeat(20)));
    expect(&shop.pay(&third).await, 200);
    let body = json!({ "claim": "x", "consensus": { "replicas": 3 } });
    let reply = shop.app.admin().post("/api/v3/validate", &body).await;
    expect(&reply, 200);
    assert_eq!(reply.json()["verdict"], "VALID");
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
