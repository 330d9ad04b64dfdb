//! Payments that are not accepted: nothing is asked, done or paid.

use serde_json::{Value, json};

use super::{PAYER, Shop, VALIDATE, claim, decoded, encoded, expect, verified};

/// Changes a good payment, and sees it refused with a demand before anybody is asked.
async fn refused(change: impl FnOnce(&Shop, &mut Value), problem: &str) {
    let shop = Shop::open().await;
    let mut payment = shop.payment(1);
    change(&shop, &mut payment);
    let reply = shop.pay(&payment).await;
    expect(&reply, 402);
    assert_eq!(reply.json()["detail"], problem);
    assert_eq!(decoded(&reply, "payment-required")["error"], problem);
    assert_eq!(shop.facilitator.asked("/verify"), 0);
    assert_eq!(shop.facilitator.transfers(), []);
}

#[tokio::test]
async fn an_expired_payment_is_refused() {
    refused(
        |shop, it| it["payload"]["authorization"]["validBefore"] = json!(shop.now().to_string()),
        "the authorization has expired",
    )
    .await;
}

#[tokio::test]
async fn a_payment_that_ends_before_the_work_is_settled_is_refused() {
    refused(
        |shop, it| {
            it["payload"]["authorization"]["validBefore"] = json!((shop.now() + 61).to_string());
        },
        "the authorization ends before the work can be done and settled",
    )
    .await;
}

#[tokio::test]
async fn a_payment_that_is_not_yet_valid_is_refused() {
    refused(
        |shop, it| {
            it["payload"]["authorization"]["validAfter"] = json!((shop.now() + 1).to_string());
        },
        "the authorization is not valid yet",
    )
    .await;
}

#[tokio::test]
async fn a_payment_that_stays_valid_for_days_is_refused() {
    refused(
        |shop, it| {
            let end = shop.now() + 2 * 86_400;
            it["payload"]["authorization"]["validBefore"] = json!(end.to_string());
        },
        "the authorization is valid for too long; let it end at most a day after `maxTimeoutSeconds`",
    )
    .await;
}

#[tokio::test]
async fn an_underpaid_request_is_refused() {
    refused(
        |_, it| it["payload"]["authorization"]["value"] = json!("2999"),
        "the payment is lower than the price",
    )
    .await;
}

#[tokio::test]
async fn an_overpaid_request_is_refused() {
    refused(
        |_, it| it["payload"]["authorization"]["value"] = json!("3001"),
        "the payment is not exactly the price",
    )
    .await;
}

#[tokio::test]
async fn a_payment_on_the_wrong_network_is_refused() {
    refused(
        |_, it| it["accepted"]["network"] = json!("eip155:8453"),
        "the payment is for another network",
    )
    .await;
}

#[tokio::test]
async fn a_payment_in_the_wrong_asset_is_refused() {
    refused(|_, it| it["accepted"]["asset"] = json!(PAYER), "the payment is in another token")
        .await;
}

#[tokio::test]
async fn a_payment_to_the_wrong_address_is_refused() {
    refused(
        |_, it| it["payload"]["authorization"]["to"] = json!(PAYER),
        "the payment is for another recipient",
    )
    .await;
}

#[tokio::test]
async fn a_payment_that_the_facilitator_refuses_buys_nothing() {
    let shop = Shop::open().await;
    let mut payment = shop.payment(1);
    payment["payload"]["signature"] = json!(format!("0x00{}", "2d".repeat(64)));
    let reply = shop.pay(&payment).await;
    expect(&reply, 402);
    let problem = "the facilitator does not accept the payment: invalid_exact_evm_signature";
    assert_eq!(reply.json()["detail"], problem);
    assert_eq!(shop.facilitator.asked("/settle"), 0);
    assert!(shop.executors.iter().all(|it| verified(it) == 0));
}

#[tokio::test]
async fn a_broken_header_is_named() {
    let shop = Shop::open().await;
    let mut wrong = shop.payment(1);
    wrong["payload"]["authorization"]["nonce"] = json!("0x12");
    let broken = encoded(&wrong);
    let good = encoded(&shop.payment(1));
    let first = encoded(&shop.payment_v1(1));
    for (headers, problem) in [
        (vec![("PAYMENT-SIGNATURE", "%%%")], "the header `PAYMENT-SIGNATURE` is not base64"),
        (
            vec![("X-PAYMENT", "e30=")],
            "`x402Version` in the header `X-PAYMENT` does not name the version of the protocol that the header belongs to",
        ),
        (
            vec![("PAYMENT-SIGNATURE", broken.as_str())],
            "`payload.authorization.nonce` in the header `PAYMENT-SIGNATURE` must be `0x` and 64 hexadecimal digits",
        ),
        (
            vec![("X-PAYMENT", first.as_str()), ("PAYMENT-SIGNATURE", good.as_str())],
            "the header `PAYMENT-SIGNATURE` is the second payment of the request",
        ),
    ] {
        let reply = shop.app.anonymous().post_with(VALIDATE, &claim("x"), &headers).await;
        expect(&reply, 400);
        assert_eq!(reply.json()["code"], "validation_error");
        assert_eq!(reply.json()["detail"], problem);
    }
}

#[tokio::test]
async fn a_wrong_request_is_refused_before_it_is_priced() {
    let shop = Shop::open().await;
    let body = json!({ "claim": "x", "consensus": { "replicas": 2 } });
    expect(&shop.buy(&body, &shop.payment(1)).await, 422);
    let judged = json!({
        "claim": "x",
        "policy": { "policy_id": "vp.semantic.v1", "policy_params": { "verifier": "cites" } },
    });
    let reply = shop.buy(&judged, &shop.payment(1)).await;
    expect(&reply, 422);
    assert_eq!(reply.json()["code"], "not_supported");
    assert_eq!(shop.facilitator.asked("/verify"), 0);
}
