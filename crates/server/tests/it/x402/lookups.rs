//! What the id of a payment leads to: the reply, as long as it is kept, and never a demand.

use std::sync::Arc;

use jurat_engine::EngineLimits;
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{FakeExecutor, gated, says_valid},
    fake_facilitator::FacilitatorMode,
};

use super::{
    Shop, expect,
    identifiers::named,
    records::{reserved, stored},
};

/// The path of a payment, as its reply names it.
fn path(reply: &TestReply) -> String {
    format!("/api/v3/x402/payments/{}", reply.headers["x-jurat-payment"].to_str().unwrap())
}

#[tokio::test]
async fn an_interrupted_request_is_sent_again() {
    let shop = Shop::open().await;
    expect(&shop.pay(&shop.payment(1)).await, 200);
    let payment = shop.payment(2);
    let left = reserved(&shop, &payment).await;
    let found = shop.app.anonymous().get(&format!("/api/v4/x402/payments/{}", left.id)).await;
    expect(&found, 409);
    assert_eq!(
        found.json()["detail"],
        "the request was interrupted and nothing was paid; send the request again with the same payment"
    );
    let bought = shop.pay(&payment).await;
    expect(&bought, 200);
    expect(&shop.app.anonymous().get(&path(&bought)).await, 200);
}

#[tokio::test]
async fn a_request_in_progress_is_pending() {
    let says = [gated(says_valid()), gated(says_valid()), gated(says_valid())];
    let shop = Shop::of(says, |_| {}).await;
    let payment = shop.payment(1);
    let looks = async {
        shop.executors[0].wait_for_calls(1).await;
        let known = stored(&shop, &payment).await;
        let found = shop.app.anonymous().get(&format!("/api/v3/x402/payments/{}", known.id)).await;
        shop.executors.iter().for_each(FakeExecutor::release);
        found
    };
    let (bought, found) = tokio::join!(shop.pay(&payment), looks);
    expect(&bought, 200);
    expect(&found, 202);
}

#[tokio::test]
async fn replies_can_be_fetched_when_nothing_is_sold_any_more() {
    let shop = Shop::with(|it| it.rpc = None).await;
    let settled = shop.pay(&shop.payment(1)).await;
    expect(&settled, 200);
    shop.facilitator.set(FacilitatorMode::FailsAfterSettling);
    let unknown = shop.pay(&shop.payment(2)).await;
    expect(&unknown, 202);
    let closed = TestApp::on(Arc::clone(&shop.app.store), EngineLimits::default()).await;
    closed.clock.advance_ms(60_000);
    let found = closed.anonymous().get(&path(&settled)).await;
    expect(&found, 200);
    assert_eq!(found.body, settled.body);
    expect(&closed.anonymous().get(&path(&unknown)).await, 202);
    // Nothing is sold, and the operator is told what is open.
    let reply = closed.anonymous().post(super::VALIDATE, &super::claim("x")).await;
    expect(&reply, 404);
    let checks = closed.admin().get("/v1/doctor").await.json();
    let mut checks = checks["checks"].as_array().unwrap().iter();
    let found = checks.find(|it| it["check"] == "payments").unwrap();
    assert_eq!(found["status"], "warning");
    assert_eq!(
        found["detail"],
        "settlements that are not known: 1, the oldest for 60 s, and nothing looks for them, because nothing is sold"
    );
}

#[tokio::test]
async fn a_reply_that_was_removed_is_not_sold_again() {
    let shop = Shop::open().await;
    let payment = named(shop.payment(1));
    let bought = shop.pay(&payment).await;
    expect(&bought, 200);
    let prune_after = async |days: i64| {
        shop.app.clock.advance_ms(days * 24 * 3_600_000);
        shop.app.engine.prune_payments().await.unwrap()
    };
    assert_eq!(prune_after(7).await, 0);
    expect(&shop.pay(&payment).await, 200);
    // The authorization has been over for days, too.
    for (days, changed) in [(1, 1), (392, 0)] {
        assert_eq!(prune_after(days).await, changed);
        for reply in [
            shop.pay(&payment).await,
            shop.pay(&named(shop.payment(2))).await,
            shop.app.anonymous().get(&path(&bought)).await,
        ] {
            expect(&reply, 409);
            assert_eq!(
                reply.json()["detail"],
                "the payment was settled, and its reply was removed, because replies are kept for seven days"
            );
        }
    }
    assert_eq!(shop.facilitator.transfers().len(), 1);
    // Nothing is kept for ever.
    assert_eq!(prune_after(1).await, 1);
    expect(&shop.pay(&payment).await, 402);
}
