//! Payments that their payers name (the extension `payment-identifier`).

use jurat_wire::x402::required::IdentifierRule;
use serde_json::{Value, json};

use super::{Shop, claim, decoded, expect, verified};

const NAME: &str = "pay_7d5d747be160e280504c099d984bcfe0";

pub(super) fn named(mut payment: Value) -> Value {
    payment["extensions"] =
        json!({ "payment-identifier": { "info": { "required": false, "id": NAME } } });
    payment
}

/// With a signature that the facilitator refuses.
fn forged(mut payment: Value) -> Value {
    payment["payload"]["signature"] = json!(format!("0x00{}", "2d".repeat(64)));
    payment
}

#[tokio::test]
async fn the_same_name_and_request_get_the_stored_reply_for_another_authorization() {
    let shop = Shop::open().await;
    let first = shop.pay(&named(shop.payment(1))).await;
    expect(&first, 200);
    let again = shop.pay(&named(shop.payment(2))).await;
    expect(&again, 200);
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.body, first.body);
    assert_eq!(shop.facilitator.transfers().len(), 1, "the second authorization is not used");
}

#[tokio::test]
async fn the_same_name_for_another_request_is_a_conflict() {
    let shop = Shop::open().await;
    expect(&shop.pay(&named(shop.payment(1))).await, 200);
    let other = shop.buy(&claim("Water boils at 90 °C."), &named(shop.payment(2))).await;
    expect(&other, 409);
    assert_eq!(other.json()["code"], "idempotency_mismatch");
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

/// A payer that lost the reply signs again, and has not enough left for a second payment.
#[tokio::test]
async fn a_name_with_a_payment_is_never_asked_to_pay_again() {
    let shop = Shop::open().await;
    expect(&shop.pay(&named(shop.payment(1))).await, 200);
    let mut cheap = named(shop.payment(3));
    cheap["payload"]["authorization"]["value"] = json!("2999");
    for payment in [forged(named(shop.payment(2))), cheap] {
        let reply = shop.pay(&payment).await;
        expect(&reply, 409);
        assert_eq!(reply.json()["code"], "idempotency_mismatch");
        assert!(!reply.headers.contains_key("payment-required"));
    }
    // The first payment still leads to its reply, and another name to a demand.
    expect(&shop.pay(&named(shop.payment(1))).await, 200);
    expect(&shop.pay(&forged(shop.payment(4))).await, 402);
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

/// A client that signs again instead of repeating its request, while the first one is in progress.
#[tokio::test]
async fn one_name_with_two_concurrent_authorizations_is_one_purchase() {
    let shop = Shop::open().await;
    let (first, second) = (named(shop.payment(1)), named(shop.payment(2)));
    let (first, second) = tokio::join!(shop.pay(&first), shop.pay(&second));
    expect(&first, 200);
    expect(&second, 200);
    assert_eq!(first.body, second.body);
    assert_eq!(shop.facilitator.tried().len(), 1);
    assert_eq!(shop.executors.iter().map(verified).sum::<usize>(), 3);
}

#[tokio::test]
async fn another_payers_name_leads_to_nothing_of_theirs() {
    let shop = Shop::open().await;
    let first = shop.pay(&named(shop.payment(1))).await;
    expect(&first, 200);
    let mut other = named(shop.payment(2));
    other["payload"]["authorization"]["from"] = json!(format!("0x{}", "ab".repeat(20)));
    let second = shop.pay(&other).await;
    expect(&second, 200);
    assert!(!second.headers.contains_key("idempotent-replayed"));
    assert_ne!(second.json()["round_id"], first.json()["round_id"]);
    assert_eq!(shop.facilitator.transfers().len(), 2);
    // Without a valid signature, the name alone leads to nothing either.
    let forged = shop.pay(&forged(named(shop.payment(3)))).await;
    expect(&forged, 409);
    assert!(!forged.text().contains(first.json()["round_id"].as_str().unwrap()));
    // The name is not the id of the payment.
    let path = format!("/api/v3/x402/payments/{NAME}");
    expect(&shop.app.anonymous().get(&path).await, 404);
}

#[tokio::test]
async fn a_required_name_that_is_missing_is_refused() {
    let shop = Shop::with(|it| it.identifier = IdentifierRule::Required).await;
    let demand = shop.app.anonymous().post(super::VALIDATE, &claim("x")).await;
    let info = &decoded(&demand, "payment-required")["extensions"]["payment-identifier"]["info"];
    assert_eq!(info["required"], true);
    for payment in [shop.payment(1), shop.payment_v1(1)] {
        let reply = shop.pay(&payment).await;
        expect(&reply, 400);
        assert_eq!(reply.json()["field"], "extensions.payment-identifier.info.id");
    }
    expect(&shop.pay(&named(shop.payment(1))).await, 200);
}
