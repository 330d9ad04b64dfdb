//! Payments that their payers name (the extension `payment-identifier`).

use jurat_wire::x402::required::IdentifierRule;
use serde_json::{Value, json};

use super::{Shop, claim, decoded, expect};

const NAME: &str = "pay_7d5d747be160e280504c099d984bcfe0";

fn named(mut payment: Value) -> Value {
    payment["extensions"] =
        json!({ "payment-identifier": { "info": { "required": false, "id": NAME } } });
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
    let mut forged = named(shop.payment(3));
    forged["payload"]["signature"] = json!(format!("0x00{}", "2d".repeat(64)));
    expect(&shop.pay(&forged).await, 402);
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
