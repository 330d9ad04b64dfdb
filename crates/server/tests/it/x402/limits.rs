//! The limits of a payer.

use std::sync::Arc;

use jurat_engine::{EngineLimits, PayerLimits};
use jurat_testkit::{
    fake_executor::{FakeExecutor, gated, says_valid, status},
    fake_facilitator::{FacilitatorMode, NodeFault},
};
use serde_json::{Value, json};

use super::{PAYER, Shop, claim, expect, nonce_of, verified};

/// The same payment of another payer.
fn of_another(payment: Value) -> Value {
    of("ab", payment)
}

/// The same payment of a payer whose address repeats these digits.
fn of(digits: &str, mut payment: Value) -> Value {
    payment["payload"]["authorization"]["from"] = json!(format!("0x{}", digits.repeat(20)));
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

/// Visitors run published verifiers, and take nothing from payers.
#[tokio::test]
async fn visitors_and_payers_do_not_share_their_capacity() {
    let limits = EngineLimits { bytes_per_account: 200_000, ..EngineLimits::default() };
    let shop = Shop::limited(limits, [says_valid(), says_valid(), says_valid()]).await;
    let visit = shop.app.engine.visitor_memory();
    visit.hold(200_000).unwrap();
    expect(&shop.app.anonymous().get("/v1/templates").await, 200);
    let body = json!({ "text": "x" });
    expect(&shop.app.anonymous().post("/v1/verifiers/cites/runs", &body).await, 429);
    expect(&shop.pay(&shop.payment(1)).await, 200);
}

#[tokio::test]
async fn a_payer_cannot_make_executors_work_for_nothing_for_long() {
    let shop = Shop::of([status(500), status(500), status(500)], |_| {}).await;
    for nonce in 1..=3 {
        let reply = shop.pay(&shop.payment(nonce)).await;
        expect(&reply, 200);
        assert!(!reply.headers.contains_key("payment-response"));
    }
    let asked = shop.executors.iter().map(verified).sum::<usize>();
    let refused = shop.pay(&shop.payment(4)).await;
    expect(&refused, 429);
    assert_eq!(refused.json()["code"], "rate_limited");
    assert_eq!(refused.headers["retry-after"], "600");
    assert_eq!(shop.executors.iter().map(verified).sum::<usize>(), asked);
    // Others still may, and so may this one later.
    expect(&shop.pay(&of_another(shop.payment(5))).await, 200);
    shop.executors.iter().for_each(|it| it.set(says_valid()));
    shop.app.clock.advance_ms(600_000);
    expect(&shop.pay(&shop.payment(6)).await, 200);
}

/// A payment that turns out to be worth nothing has cost a round, too.
#[tokio::test]
async fn payments_that_fail_for_good_count_as_work_for_nothing() {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::RefusesToSettle);
    let first = shop.payment(1);
    for nonce in 1..=3 {
        expect(&shop.pay(&shop.payment(nonce)).await, 202);
        shop.facilitator.cancel(PAYER, &nonce_of(nonce));
    }
    shop.reconcile_after(200).await;
    expect(&shop.pay(&first).await, 402);
    expect(&shop.pay(&shop.payment(4)).await, 429);
}

/// The number of addresses is no limit here either.
#[tokio::test]
async fn new_payers_wait_after_much_work_for_nothing() {
    let limits = PayerLimits { uncharged_of_all: 2, ..PayerLimits::default() };
    let shop = Shop::with(|it| it.limits = limits).await;
    expect(&shop.pay(&shop.payment(1)).await, 200);
    shop.executors.iter().for_each(|it| it.set(status(500)));
    for payer in ["ab", "cd"] {
        expect(&shop.pay(&of(payer, shop.payment(2))).await, 200);
    }
    shop.executors.iter().for_each(|it| it.set(says_valid()));
    let refused = shop.pay(&of("ef", shop.payment(3))).await;
    expect(&refused, 429);
    assert_eq!(refused.headers["retry-after"], "600");
    // Whoever has paid before is not affected.
    expect(&shop.pay(&shop.payment(3)).await, 200);
}

/// A shop in which nothing is settled any more, and the usual payer has paid once.
async fn unsettling(uncharged_rounds: u32, uncharged_of_all: u32) -> Shop {
    let limits = PayerLimits { uncharged_rounds, uncharged_of_all, ..PayerLimits::default() };
    let shop = Shop::with(|it| it.limits = limits).await;
    expect(&shop.pay(&shop.payment(1)).await, 200);
    shop.facilitator.set(FacilitatorMode::RefusesToSettle);
    shop
}

/// A payer can spend its balance between the verification and the settlement.
#[tokio::test]
async fn new_payers_wait_after_many_unknown_settlements() {
    let shop = unsettling(3, 4).await;
    let payers = ["a1", "a2", "a3", "a4"];
    for payer in payers {
        expect(&shop.pay(&of(payer, shop.payment(2))).await, 202);
    }
    let asked = shop.executors.iter().map(verified).sum::<usize>();
    let refused = shop.pay(&of("ef", shop.payment(2))).await;
    expect(&refused, 429);
    assert_eq!(refused.headers["retry-after"], "600");
    assert_eq!(shop.executors.iter().map(verified).sum::<usize>(), asked);
    // A payer who has paid before may have as many as ever.
    for nonce in 2..=9 {
        expect(&shop.pay(&shop.payment(nonce)).await, 202);
    }
    // Another attempt is not another round.
    shop.reconcile_after(300).await;
    shop.app.clock.advance_ms(300_000);
    expect(&shop.pay(&of("ef", shop.payment(2))).await, 202);
}

#[tokio::test]
async fn a_new_payer_waits_after_a_few_unknown_settlements() {
    let shop = unsettling(2, 9).await;
    for nonce in [1, 2] {
        expect(&shop.pay(&of("ab", shop.payment(nonce))).await, 202);
    }
    let next = of("ab", shop.payment(3));
    expect(&shop.pay(&next).await, 429);
    expect(&shop.pay(&of("cd", shop.payment(1))).await, 202);
    // Settled after all, they were not in vain.
    shop.facilitator.set(FacilitatorMode::Honest);
    shop.reconcile_after(10).await;
    expect(&shop.pay(&next).await, 200);
}

/// The facilitator names each transaction, and the node shows it a moment later.
#[tokio::test]
async fn a_late_node_makes_no_new_payer_wait() {
    let shop = Shop::open().await;
    shop.facilitator.set_node(NodeFault::Late(60));
    for nonce in 1..=4 {
        expect(&shop.pay(&shop.payment(nonce)).await, 202);
    }
    assert_eq!(shop.facilitator.transfers().len(), 4);
}

#[tokio::test]
async fn settlements_that_become_known_no_longer_keep_new_payers_out() {
    let shop = unsettling(9, 2).await;
    for nonce in [1, 2] {
        expect(&shop.pay(&of("ab", shop.payment(nonce))).await, 202);
    }
    let next = of("cd", shop.payment(1));
    expect(&shop.pay(&next).await, 429);
    shop.facilitator.set(FacilitatorMode::Honest);
    shop.reconcile_after(10).await;
    expect(&shop.pay(&next).await, 200);
    assert_eq!(shop.facilitator.transfers().len(), 4);
}

#[tokio::test]
async fn an_unknown_settlement_that_fails_for_good_counts_once() {
    let shop = unsettling(9, 2).await;
    let failing = of("ab", shop.payment(1));
    expect(&shop.pay(&failing).await, 202);
    shop.reconcile_after(400).await;
    expect(&shop.pay(&failing).await, 402);
    expect(&shop.pay(&of("cd", shop.payment(1))).await, 202);
    expect(&shop.pay(&of("ef", shop.payment(1))).await, 429);
}

#[tokio::test]
async fn a_paid_request_gives_the_executors_time() {
    let shop = Shop::open().await;
    for timeout_ms in [4_999, 5_000] {
        let mut body = claim("x");
        body["execution"] = json!({ "timeout_ms": timeout_ms });
        let reply = shop.buy(&body, &shop.payment(1)).await;
        expect(&reply, if timeout_ms < 5_000 { 400 } else { 200 });
        if timeout_ms < 5_000 {
            assert_eq!(reply.json()["field"], "execution.timeout_ms");
        }
    }
}

#[tokio::test]
async fn failing_requests_of_payers_pause_no_executor_for_others() {
    let limits = PayerLimits { uncharged_rounds: 9, ..PayerLimits::default() };
    let failing = [status(500), status(500), status(500)];
    let shop = Shop::of(failing, |it| it.limits = limits).await;
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

/// Without a node of the chain, nothing ever proves what became of them.
#[tokio::test]
async fn unknown_settlements_block_no_payer_when_their_authorizations_are_long_over() {
    let limits = PayerLimits { rounds: 2, ..PayerLimits::default() };
    let shop = Shop::with(|it| (it.limits, it.rpc) = (limits, None)).await;
    shop.facilitator.set(FacilitatorMode::RefusesToSettle);
    let first = shop.payment(1);
    expect(&shop.pay(&first).await, 202);
    expect(&shop.pay(&shop.payment(2)).await, 202);
    // The authorizations are good for 200 s, and the payments count for a day more.
    for (seconds, status) in [(600, 429), (86_400 + 200 - 600 - 1, 429), (1, 202)] {
        shop.reconcile_after(seconds).await;
        expect(&shop.pay(&shop.payment(3)).await, status);
    }
    expect(&shop.pay(&first).await, 202);
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
