//! Facilitators that fail, lie, hang and vanish: each purchase is settled once, and each settled
//! payment has its reply.

use std::time::Duration;

use jurat_testkit::fake_facilitator::FacilitatorMode;
use serde_json::json;

use super::{PAYER, Shop, decoded, expect, nonce_of, verified};

/// A shop that asks no chain.
async fn trusting() -> Shop {
    Shop::with(|it| it.rpc = None).await
}

/// Sees that a payment is neither demanded again nor settled again, and has no reply yet.
async fn stays_unknown(shop: &Shop, nonce: u8) {
    let payment = shop.payment(nonce);
    let first = shop.pay(&payment).await;
    expect(&first, 202);
    assert_eq!(first.headers["retry-after"], "5");
    assert!(!first.headers.contains_key("payment-required"));
    let id = first.json()["payment_id"].clone();
    assert_eq!(first.json()["state"], "settlement_pending");
    for seconds in [10, 400, 86_400] {
        shop.reconcile_after(seconds).await;
        let again = shop.pay(&payment).await;
        expect(&again, 202);
        assert_eq!(again.json()["payment_id"], id);
        let path = again.headers["location"].to_str().unwrap().to_owned();
        expect(&shop.app.anonymous().get(&path).await, 202);
    }
}

#[tokio::test]
async fn an_answer_of_500_after_settling_is_unknown_and_never_a_new_demand() {
    let shop = trusting().await;
    shop.facilitator.set(FacilitatorMode::FailsAfterSettling);
    stays_unknown(&shop, 1).await;
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn a_refusal_after_settling_is_unknown_and_never_a_new_demand() {
    let shop = trusting().await;
    shop.facilitator.set(FacilitatorMode::RefusesAfterSettling);
    stays_unknown(&shop, 1).await;
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn a_nonce_that_was_used_is_no_proof_that_nothing_was_paid() {
    let shop = trusting().await;
    shop.facilitator.set(FacilitatorMode::HangsUpAfterSettling);
    let payment = shop.payment(1);
    expect(&shop.pay(&payment).await, 202);
    // From now on it says, truly, that the nonce was used.
    shop.facilitator.set(FacilitatorMode::Honest);
    for _ in 0..3 {
        shop.reconcile_after(600).await;
        expect(&shop.pay(&payment).await, 202);
    }
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn a_facilitator_that_names_other_terms_is_not_believed() {
    for mode in [
        FacilitatorMode::NamesOtherPayer,
        FacilitatorMode::NamesOtherAmount,
        FacilitatorMode::NamesOtherPayee,
        FacilitatorMode::NamesOtherNetwork,
    ] {
        let shop = trusting().await;
        shop.facilitator.set(mode);
        expect(&shop.pay(&shop.payment(1)).await, 202);
        assert_eq!(shop.facilitator.transfers().len(), 1, "{mode:?}");
    }
}

#[tokio::test]
async fn a_facilitator_need_not_name_the_payer() {
    let shop = trusting().await;
    shop.facilitator.set(FacilitatorMode::NamesNobody);
    let reply = shop.pay(&shop.payment(1)).await;
    expect(&reply, 200);
    assert_eq!(decoded(&reply, "payment-response")["payer"], PAYER);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

/// A status that says no, and a body that says yes.
#[tokio::test]
async fn a_success_with_another_status_is_not_believed() {
    let shop = trusting().await;
    shop.facilitator.set(FacilitatorMode::AnswersWith402);
    let payment = shop.payment(1);
    let reply = shop.pay(&payment).await;
    expect(&reply, 503);
    assert_eq!(reply.json()["code"], "payment_unavailable");
    assert!(shop.executors.iter().all(|it| verified(it) == 0));
    shop.facilitator.set(FacilitatorMode::WaitsToSettle);
    let (reply, ()) = tokio::join!(shop.pay(&payment), async {
        shop.facilitator.was_asked_to_settle(1).await;
        shop.facilitator.set(FacilitatorMode::AnswersWith402);
        shop.facilitator.go_on();
    });
    expect(&reply, 202);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_unknown() {
    let shop = trusting().await;
    shop.facilitator.set(FacilitatorMode::AnswersTooMuch);
    stays_unknown(&shop, 1).await;
    // With a chain to ask, it is settled.
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::AnswersTooMuch);
    expect(&shop.pay(&shop.payment(1)).await, 200);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn a_payer_with_too_little_buys_nothing() {
    let shop = Shop::open().await;
    shop.facilitator.fund(PAYER, 3_000 + 2_999);
    expect(&shop.pay(&shop.payment(1)).await, 200);
    let reply = shop.pay(&shop.payment(2)).await;
    expect(&reply, 402);
    let problem = "the facilitator does not accept the payment: insufficient_funds";
    assert_eq!(reply.json()["detail"], problem);
    assert_eq!(shop.executors.iter().map(verified).sum::<usize>(), 3);
}

/// Both payments are covered when they are verified, and only one when they are settled.
#[tokio::test]
async fn a_payer_that_spends_its_balance_twice_gets_one_reply() {
    let shop = Shop::open().await;
    shop.facilitator.fund(PAYER, 3_000);
    shop.facilitator.set(FacilitatorMode::WaitsToSettle);
    let (first, second) = (shop.payment(1), shop.payment(2));
    let (one, two, ()) = tokio::join!(shop.pay(&first), shop.pay(&second), async {
        shop.facilitator.was_asked_to_settle(2).await;
        shop.facilitator.set(FacilitatorMode::Honest);
        shop.facilitator.go_on();
    });
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 202]);
    // The authorization ends unused, so nothing was paid.
    shop.reconcile_after(400).await;
    let unpaid = if one.status == 202 { &first } else { &second };
    expect(&shop.pay(unpaid).await, 402);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

/// The operator may find a node of the chain months later.
#[tokio::test]
async fn an_old_unknown_settlement_is_tried_once_a_day() {
    let shop = trusting().await;
    shop.facilitator.set(FacilitatorMode::FailsBeforeSettling);
    expect(&shop.pay(&shop.payment(1)).await, 202);
    shop.reconcile_after(31 * 86_400).await;
    let asked = shop.facilitator.asked("/settle");
    shop.reconcile_after(86_000).await;
    assert_eq!(shop.facilitator.asked("/settle"), asked);
    shop.reconcile_after(1_000).await;
    assert_eq!(shop.facilitator.asked("/settle"), asked + 1);
}

/// With a chain to ask, money that moved buys the reply, whatever the facilitator says.
#[tokio::test]
async fn the_chain_proves_what_the_facilitator_does_not_say() {
    for mode in [
        FacilitatorMode::FailsAfterSettling,
        FacilitatorMode::RefusesAfterSettling,
        FacilitatorMode::HangsUpAfterSettling,
        FacilitatorMode::NamesOtherPayer,
        FacilitatorMode::NamesOtherAmount,
        FacilitatorMode::NamesOtherPayee,
        FacilitatorMode::NamesOtherNetwork,
    ] {
        let shop = Shop::open().await;
        shop.facilitator.set(mode);
        let reply = shop.pay(&shop.payment(1)).await;
        expect(&reply, 200);
        let receipt = decoded(&reply, "payment-response");
        assert_eq!(receipt["transaction"], format!("0x{:064x}", 1), "{mode:?}");
        assert_eq!(shop.facilitator.transfers().len(), 1, "{mode:?}");
        assert_eq!(shop.facilitator.asked("/settle"), 1, "{mode:?}");
    }
}

#[tokio::test]
async fn a_facilitator_that_says_yes_to_everything_sells_nothing() {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::SaysYes);
    let payment = shop.payment(1);
    let reply = shop.pay(&payment).await;
    expect(&reply, 202);
    shop.reconcile_after(100).await;
    expect(&shop.pay(&payment).await, 202);
    // When the authorization is over and the chain does not show it, nothing was paid for good.
    shop.reconcile_after(400).await;
    let reply = shop.pay(&payment).await;
    expect(&reply, 402);
    assert_eq!(decoded(&reply, "payment-response")["success"], false);
    assert!(reply.headers.contains_key("payment-required"));
    assert_eq!(shop.facilitator.transfers(), []);
    let id = shop.pay(&payment).await;
    expect(&id, 402);
    // A new payment buys the reply.
    shop.facilitator.set(FacilitatorMode::Honest);
    expect(&shop.pay(&shop.payment(2)).await, 200);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn a_settlement_that_failed_before_money_moved_is_tried_again() {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::FailsBeforeSettling);
    let payment = shop.payment(1);
    let pending = shop.pay(&payment).await;
    expect(&pending, 202);
    assert_eq!(shop.facilitator.transfers(), []);
    shop.facilitator.set(FacilitatorMode::Honest);
    shop.reconcile_after(10).await;
    let reply = shop.pay(&payment).await;
    expect(&reply, 200);
    assert_eq!(reply.json()["verdict"], "VALID");
    assert_eq!(shop.facilitator.transfers().len(), 1);
    // Both requests to settle were the same.
    let bodies = shop.facilitator.bodies("/settle");
    assert_eq!(bodies.len(), 2);
    assert_eq!(bodies[0], bodies[1]);
    // It can be fetched by the id of the earlier answer, too.
    let path = pending.headers["location"].to_str().unwrap();
    expect(&shop.app.anonymous().get(path).await, 200);
}

#[tokio::test]
async fn a_cancelled_authorization_ends_in_a_new_demand() {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::RefusesToSettle);
    let payment = shop.payment(1);
    expect(&shop.pay(&payment).await, 202);
    shop.facilitator.cancel(PAYER, &nonce_of(1));
    shop.reconcile_after(10).await;
    expect(&shop.pay(&payment).await, 202);
    // The block with the cancellation is final.
    shop.reconcile_after(200).await;
    let reply = shop.pay(&payment).await;
    expect(&reply, 402);
    assert_eq!(reply.json()["detail"], "the payment could not be settled, and nothing was paid");
    let path = format!("/api/v3/x402/payments/{}", "pay_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    expect(&shop.app.anonymous().get(&path).await, 404);
}

#[tokio::test]
async fn a_facilitator_that_hangs_while_it_settles_is_not_waited_for() {
    let shop = Shop::with(|it| {
        it.rpc = None;
        it.timeouts.settle = Duration::from_millis(100);
    })
    .await;
    shop.facilitator.set(FacilitatorMode::HangsAfterSettling);
    stays_unknown(&shop, 1).await;
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn a_facilitator_that_does_not_verify_costs_nothing() {
    for mode in [FacilitatorMode::HangsVerifying, FacilitatorMode::FailsVerifying] {
        let shop = Shop::with(|it| it.timeouts.verify = Duration::from_millis(100)).await;
        shop.facilitator.set(mode);
        let payment = shop.payment(1);
        let reply = shop.pay(&payment).await;
        expect(&reply, 503);
        assert_eq!(reply.json()["code"], "payment_unavailable");
        assert!(!reply.headers.contains_key("payment-required"));
        assert!(shop.executors.iter().all(|it| verified(it) == 0));
        // The same payment works when the facilitator is back.
        shop.facilitator.set(FacilitatorMode::Honest);
        expect(&shop.pay(&payment).await, 200);
        assert_eq!(shop.facilitator.transfers().len(), 1);
    }
}

#[tokio::test]
async fn a_facilitator_that_is_down_costs_nothing() {
    let shop = Shop::with(|it| it.facilitator = "http://127.0.0.1:1".parse().unwrap()).await;
    let reply = shop.pay(&shop.payment(1)).await;
    expect(&reply, 503);
    assert_eq!(reply.json()["code"], "payment_unavailable");
}

#[tokio::test]
async fn a_caller_that_leaves_while_it_settles_finds_its_reply() {
    let shop = Shop::open().await;
    shop.facilitator.set(FacilitatorMode::WaitsToSettle);
    let payment = shop.payment(1);
    tokio::select! {
        _ = shop.pay(&payment) => panic!("it waits"),
        () = shop.facilitator.was_asked_to_settle(1) => {}
    }
    shop.facilitator.go_on();
    let reply = shop.pay(&payment).await;
    expect(&reply, 200);
    assert_eq!(shop.facilitator.transfers().len(), 1);
    assert_eq!(shop.facilitator.asked("/settle"), 1);
}

#[tokio::test]
async fn doctor_reports_payments_whose_settlement_is_not_known() {
    let shop = trusting().await;
    shop.facilitator.set(FacilitatorMode::FailsAfterSettling);
    expect(&shop.pay(&shop.payment(1)).await, 202);
    // Each attempt in the meantime leaves it as old as it is.
    shop.reconcile_after(700).await;
    shop.reconcile_after(200).await;
    let findings = shop.app.admin().get("/v1/doctor").await.json();
    let found: Vec<&str> = findings["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["check"] == "payments")
        .map(|it| it["detail"].as_str().unwrap())
        .collect();
    assert_eq!(
        found,
        [
            "settlements that are not known: 1, the oldest for 900 s",
            "the facilitator's word is the only proof of a payment",
        ],
        "{}",
        json!(findings)
    );
}
