//! Rounds that cost nothing, and give nothing away.

use jurat_core::round::job::FactcheckMode;
use jurat_testkit::fake_executor::{
    answers, fact, needs_spec, replies, says_invalid, says_valid, status,
};
use serde_json::{Value, json};

use super::{Shop, VALIDATE, claim, encoded, expect, verified};

const SECRET: &str = "THE-ANSWER";

/// Sends a request with a payment of one replica, and sees that it was not charged.
async fn buys_nothing(shop: &Shop, path: &str, body: &Value, status: u16) -> Value {
    let mut payment = shop.payment(1);
    payment["accepted"]["amount"] = json!("1000");
    payment["payload"]["authorization"]["value"] = json!("1000");
    let header = encoded(&payment);
    let headers = [("PAYMENT-SIGNATURE", header.as_str())];
    let reply = shop.app.anonymous().post_with(path, body, &headers).await;
    expect(&reply, status);
    assert!(!reply.headers.contains_key("payment-response"), "{path}");
    assert!(!reply.headers.contains_key("x-jurat-payment"), "{path}");
    assert!(!reply.text().contains(SECRET), "{path}: {}", reply.text());
    assert_eq!(shop.facilitator.asked("/settle"), 0, "{path}");
    reply.json()
}

/// An answer in the wrong form is the executor's fault, and is not charged.
#[tokio::test]
async fn an_output_that_is_not_charged_is_not_handed_over() {
    let says = || answers(json!({ "verdict": SECRET })).score(0.9).evidence("text/plain", SECRET);
    let shop = Shop::of([says(), says(), says()], |_| {}).await;
    let relaxed = json!({
        "claim": "x", "consensus": { "replicas": 1, "include": ["traces"] },
    });
    let mut strict = relaxed.clone();
    strict["consensus"]["disagreement_policy"] = json!("fail_hard");
    for (path, body, status) in [
        ("/api/v3/x402/factcheck", &relaxed, 200),
        ("/api/v4/x402/factcheck", &relaxed, 200),
        ("/api/v4/x402/factcheck", &strict, 409),
    ] {
        let reply = buys_nothing(&shop, path, body, status).await;
        let replica = &reply["replicas"][0];
        assert_eq!(replica["verdict"], "ERROR", "{path}: {reply}");
        assert_eq!(replica["score"], Value::Null, "{path}");
        assert_eq!(replica["notes"], json!([]), "{path}");
        assert_eq!(replica["error"]["code"], "bad_shape", "{path}");
        assert!(replica["latency_ms"].is_u64(), "{path}");
    }
}

/// Otherwise a schema that refuses everything would buy outputs for nothing.
#[tokio::test]
async fn an_output_that_only_the_request_refuses_is_charged_and_handed_over() {
    let says = || answers(json!({ "answer": SECRET }));
    let shop = Shop::of([says(), status(500), says()], |_| {}).await;
    let policy = json!({
        "policy_id": "vp.schema_thresholds.v1",
        "policy_params": { "thresholds": [{ "path": "/answer", "op": "==", "value": "another" }] },
    });
    let schema = json!({ "not": {} });
    for (nonce, body) in [
        (1, json!({ "objective": "x", "input": {}, "execution": { "output_schema": schema } })),
        (2, json!({ "objective": "x", "input": {}, "policy": policy })),
    ] {
        let mut body = body;
        body["consensus"] = json!({ "replicas": 3 });
        let header = encoded(&shop.payment(nonce));
        let headers = [("PAYMENT-SIGNATURE", header.as_str())];
        let reply = shop.app.anonymous().post_with("/api/v3/x402/delegate", &body, &headers).await;
        expect(&reply, 200);
        assert!(reply.headers.contains_key("payment-response"));
        assert_eq!(reply.json()["replicas"][0]["status"], "INVALID_OUTPUT");
        assert!(reply.text().contains(SECRET), "{}", reply.text());
    }
    assert_eq!(shop.facilitator.transfers().len(), 2);
}

#[tokio::test]
async fn the_text_of_a_failure_is_not_handed_over() {
    let fails = || replies(500, "text/plain", SECRET);
    let shop = Shop::of([fails(), fails(), fails()], |_| {}).await;
    let body = json!({ "claim": "x", "consensus": { "replicas": 1 } });
    let reply = buys_nothing(&shop, VALIDATE, &body, 200).await;
    assert_eq!(reply["replicas"][0]["error"]["code"], "http_status");
    // A caller with a key sees it.
    let shown = shop.app.admin().post("/api/v3/validate", &body).await;
    assert!(shown.text().contains(SECRET), "{}", shown.text());
}

#[tokio::test]
async fn a_round_without_any_vote_costs_nothing() {
    let shop = Shop::of([status(500), status(500), status(500)], |_| {}).await;
    let payment = shop.payment(1);
    let reply = shop.pay(&payment).await;
    expect(&reply, 200);
    assert_eq!(reply.json()["consensus"]["outcome"], "failed");
    assert!(!reply.headers.contains_key("payment-response"));
    assert_eq!(shop.facilitator.asked("/settle"), 0);
    // The payment is still good.
    shop.executors.iter().for_each(|it| it.set(says_valid()));
    let reply = shop.pay(&payment).await;
    expect(&reply, 200);
    assert_eq!(reply.json()["verdict"], "VALID");
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn a_round_in_which_everybody_abstains_costs_nothing() {
    let shop = Shop::of([needs_spec(), needs_spec(), needs_spec()], |_| {}).await;
    let reply = shop.pay(&shop.payment(1)).await;
    expect(&reply, 200);
    assert_eq!(reply.json()["consensus"]["outcome"], "abstained");
    // What an executor declined to decide is part of its work.
    assert_eq!(reply.json()["replicas"][0]["verdict"], "RETRY");
    assert!(!reply.headers.contains_key("payment-response"));
    assert_eq!(shop.facilitator.asked("/settle"), 0);
}

#[tokio::test]
async fn a_round_in_which_nobody_was_asked_costs_nothing() {
    let knows = || fact("TRUE").task_types(&["factcheck"]);
    let shop = Shop::of([knows(), knows(), knows()], |_| {}).await;
    let body = json!({
        "claim": "x", "mode": FactcheckMode::Realtime.as_str(), "consensus": { "replicas": 1 },
    });
    let reply = buys_nothing(&shop, "/api/v3/x402/factcheck", &body, 200).await;
    assert_eq!(reply["consensus"]["outcome"], "abstained");
    assert!(shop.executors.iter().all(|it| it.calls().iter().all(|it| it.endpoint() != "execute")));
}

/// One vote is enough, also if most replicas failed.
#[tokio::test]
async fn a_round_with_a_vote_is_charged_and_whole() {
    let shop = Shop::of([says_invalid(), status(500), needs_spec()], |_| {}).await;
    let reply = shop.buy(&claim("x"), &shop.payment(1)).await;
    expect(&reply, 200);
    assert!(reply.headers.contains_key("payment-response"));
    assert_eq!(shop.facilitator.transfers().len(), 1);
    let replicas = reply.json()["replicas"].clone();
    let failed = replicas.as_array().unwrap().iter().find(|it| it["error"].is_object()).unwrap();
    assert!(failed["error"]["detail"].as_str().unwrap().contains("answered 500"), "{failed}");
    assert_eq!(shop.executors.iter().map(verified).sum::<usize>(), 3);
}
