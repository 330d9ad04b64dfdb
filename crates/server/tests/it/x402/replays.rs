//! One payment, sent several times: it is settled once, and its reply can be fetched again.

use futures::future::join_all;
use jurat_testkit::{
    fake_executor::{says_invalid, says_valid, status},
    fake_facilitator::FacilitatorMode,
};
use serde_json::{Value, json};

use super::{
    Shop, claim, decoded, expect,
    records::{neighbour, pay_at},
    verified,
};

#[tokio::test]
async fn a_replayed_payment_gets_the_stored_reply() {
    let shop = Shop::open().await;
    let payment = shop.payment(1);
    let first = shop.pay(&payment).await;
    expect(&first, 200);
    assert!(!first.headers.contains_key("idempotent-replayed"));
    // A day later, when the authorization is long over.
    shop.app.clock.advance_ms(25 * 3_600_000);
    let again = shop.pay(&payment).await;
    expect(&again, 200);
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.body, first.body);
    assert_eq!(decoded(&again, "payment-response"), decoded(&first, "payment-response"));
    assert_eq!(shop.facilitator.asked("/settle"), 1);
    assert_eq!(shop.executors.iter().map(verified).sum::<usize>(), 3);
    // The same by its id, in either version of the API.
    let id = first.headers["x-jurat-payment"].to_str().unwrap();
    for version in ["v3", "v4"] {
        let path = format!("/api/{version}/x402/payments/{id}");
        let fetched = shop.app.anonymous().get(&path).await;
        expect(&fetched, 200);
        assert_eq!(fetched.body, first.body);
    }
}

#[tokio::test]
async fn a_replayed_payment_buys_nothing_else() {
    let shop = Shop::open().await;
    let payment = shop.payment(1);
    expect(&shop.pay(&payment).await, 200);
    let other = shop.buy(&claim("Water boils at 90 °C."), &payment).await;
    expect(&other, 409);
    assert_eq!(other.json()["code"], "idempotency_mismatch");
    // The nonce is public on the chain, but the signature of the payer is needed for the reply.
    let mut forged = payment.clone();
    forged["payload"]["signature"] = json!(format!("0x{}", "3e".repeat(65)));
    let reply = shop.pay(&forged).await;
    expect(&reply, 402);
    assert_eq!(reply.json()["detail"], "the authorization was used for another purchase");
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn fifty_concurrent_uses_of_one_authorization_are_one_purchase() {
    let shop = Shop::open().await;
    let payment = shop.payment(1);
    let replies = join_all((0..50).map(|_| shop.pay(&payment))).await;
    for reply in &replies {
        expect(reply, 200);
        assert_eq!(reply.body, replies[0].body);
    }
    let first =
        |reply: &&jurat_testkit::app::TestReply| !reply.headers.contains_key("idempotent-replayed");
    assert_eq!(replies.iter().filter(first).count(), 1);
    assert_eq!(shop.facilitator.asked("/verify"), 1);
    assert_eq!(shop.facilitator.asked("/settle"), 1);
    assert_eq!(shop.facilitator.transfers().len(), 1);
    assert_eq!(shop.executors.iter().map(verified).sum::<usize>(), 3);
}

/// The same signed transfer, in the words of the other version of the protocol.
#[tokio::test]
async fn a_repeated_request_is_answered_in_its_own_version() {
    let shop = Shop::open().await;
    let first = shop.pay(&shop.payment_v1(1)).await;
    expect(&first, 200);
    assert_eq!(decoded(&first, "x-payment-response")["network"], "base-sepolia");
    let again = shop.pay(&shop.payment(1)).await;
    expect(&again, 200);
    assert_eq!(again.body, first.body);
    assert_eq!(decoded(&again, "payment-response")["network"], "eip155:84532");
}

/// Two nodes get a request at the same time, and one has settled it before the other one has
/// verified it.
#[tokio::test]
async fn a_slow_twin_of_a_settled_request_is_not_asked_to_pay_again() {
    let shop = Shop::open().await;
    let payment = shop.payment(1);
    shop.facilitator.set(FacilitatorMode::WaitsToVerify);
    let node = neighbour(&shop, |_| {}).await;
    let slow = pay_at(&node, &payment);
    let fast = async {
        shop.facilitator.was_asked_to_verify(1).await;
        shop.facilitator.set(FacilitatorMode::Honest);
        let reply = shop.pay(&payment).await;
        shop.facilitator.go_on();
        reply
    };
    let (slow, fast) = tokio::join!(slow, fast);
    expect(&fast, 200);
    expect(&slow, 200);
    assert_eq!(slow.body, fast.body);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn concurrent_requests_for_different_things_are_one_purchase() {
    let shop = Shop::open().await;
    let payment = shop.payment(1);
    let bodies: Vec<Value> = (0..10).map(|it| claim(&format!("claim {it}"))).collect();
    let replies = join_all(bodies.iter().map(|body| shop.buy(body, &payment))).await;
    let sold = replies.iter().filter(|it| it.status == 200).count();
    let refused = replies.iter().filter(|it| it.status == 409).count();
    assert_eq!((sold, refused), (1, 9));
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn a_round_that_cannot_start_costs_nothing() {
    let shop = Shop::open().await;
    let payment = shop.payment(1);
    let body = json!({
        "claim": "x", "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "nobody"] },
    });
    expect(&shop.buy(&body, &payment).await, 422);
    assert_eq!(shop.facilitator.asked("/settle"), 0);
    // The payment can still be used, for another request too.
    expect(&shop.pay(&payment).await, 200);
}

#[tokio::test]
async fn a_hard_disagreement_is_paid_and_stored() {
    let shop = Shop::of([says_valid(), says_invalid(), status(500)], |_| {}).await;
    let body = json!({
        "claim": "x", "consensus": { "replicas": 3, "disagreement_policy": "fail_hard" },
    });
    let payment = shop.payment(1);
    let first = shop.buy(&body, &payment).await;
    expect(&first, 409);
    assert_eq!(first.json()["code"], "consensus_disagreement");
    assert_eq!(first.headers["content-type"], "application/problem+json");
    assert_eq!(decoded(&first, "payment-response")["success"], true);
    let again = shop.buy(&body, &payment).await;
    expect(&again, 409);
    assert_eq!(again.body, first.body);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}
