//! `/api/*/x402`: rounds that are paid for one by one.

mod battery;
mod chain;
mod faults;
mod identifiers;
mod limits;
mod lookups;
mod payers;
mod races;
mod records;
mod replays;
mod uncharged;

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_engine::{EngineLimits, PaymentSettings};
use jurat_server::route_table;
use jurat_store::StoreLocation;
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{Behaviour, FakeExecutor, answers, says_valid},
    fake_facilitator::{FakeFacilitator, PAY_TO},
};
use serde_json::{Value, json};

const ASSET: &str = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
const PAYER: &str = "0x857b06519e91e3a54538791bdbb0e22373e36b66";
const VALIDATE: &str = "/api/v3/x402/validate";

/// A server that sells rounds of three executors.
pub(crate) struct Shop {
    pub(crate) app: Arc<TestApp>,
    pub(crate) facilitator: FakeFacilitator,
    pub(crate) executors: [FakeExecutor; 3],
}

impl Shop {
    pub(crate) async fn open() -> Self {
        Self::with(|_| {}).await
    }

    /// With other settings.
    pub(crate) async fn with(change: impl FnOnce(&mut PaymentSettings)) -> Self {
        let says = || [says_valid(), says_valid(), says_valid()];
        Self::of(says(), change).await
    }

    pub(crate) async fn of(
        behaviours: [Behaviour; 3],
        change: impl FnOnce(&mut PaymentSettings),
    ) -> Self {
        let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
        Self::on(store, behaviours, change).await
    }

    pub(crate) async fn on(
        store: Arc<jurat_store::Store>,
        behaviours: [Behaviour; 3],
        change: impl FnOnce(&mut PaymentSettings),
    ) -> Self {
        let facilitator = FakeFacilitator::start().await;
        let mut settings = facilitator.settings();
        change(&mut settings);
        let app = TestApp::selling(store, settings).await;
        Self::run_by(app, facilitator, behaviours).await
    }

    /// With limits of the node.
    pub(crate) async fn limited(limits: EngineLimits, behaviours: [Behaviour; 3]) -> Self {
        let facilitator = FakeFacilitator::start().await;
        let app = TestApp::selling_within(limits, facilitator.settings()).await;
        Self::run_by(app, facilitator, behaviours).await
    }

    async fn run_by(
        app: TestApp,
        facilitator: FakeFacilitator,
        behaviours: [Behaviour; 3],
    ) -> Self {
        facilitator.follow(Arc::clone(&app.clock));
        let executors = app.executors(behaviours).await;
        Self { app: Arc::new(app), facilitator, executors }
    }

    /// Seconds since 1970, as the server sees them.
    pub(crate) fn now(&self) -> u64 {
        (self.app.engine.clock().now().millis() / 1_000).unsigned_abs()
    }

    /// A payment of three replicas, in version 2 of the protocol.
    pub(crate) fn payment(&self, nonce: u8) -> Value {
        json!({
            "x402Version": 2,
            "resource": { "url": "http://localhost/api/v3/x402/validate" },
            "accepted": {
                "scheme": "exact",
                "network": "eip155:84532",
                "asset": ASSET,
                "payTo": PAY_TO,
                "amount": "3000",
                "maxTimeoutSeconds": 150,
                "extra": { "name": "USDC", "version": "2" },
            },
            "payload": self.payload(nonce),
        })
    }

    /// The same in version 1.
    pub(crate) fn payment_v1(&self, nonce: u8) -> Value {
        json!({
            "x402Version": 1,
            "scheme": "exact",
            "network": "base-sepolia",
            "payload": self.payload(nonce),
        })
    }

    fn payload(&self, nonce: u8) -> Value {
        json!({
            "signature": format!("0x{}", "2d".repeat(65)),
            "authorization": {
                "from": PAYER,
                "to": PAY_TO,
                "value": "3000",
                "validAfter": (self.now() - 600).to_string(),
                "validBefore": (self.now() + 200).to_string(),
                "nonce": nonce_of(nonce),
            },
        })
    }

    /// Sends the usual request with a payment.
    pub(crate) async fn pay(&self, payment: &Value) -> TestReply {
        self.buy(&claim("Water boils at 100 °C."), payment).await
    }

    pub(crate) async fn buy(&self, body: &Value, payment: &Value) -> TestReply {
        let name = if payment["x402Version"] == 1 { "X-PAYMENT" } else { "PAYMENT-SIGNATURE" };
        let header = encoded(payment);
        self.app.anonymous().post_with(VALIDATE, body, &[(name, &header)]).await
    }

    /// Lets the time pass, and looks for unsettled payments.
    pub(crate) async fn reconcile_after(&self, seconds: i64) {
        self.app.clock.advance_ms(seconds * 1_000);
        self.app.engine.reconcile_payments().await.unwrap();
    }
}

pub(crate) fn nonce_of(nonce: u8) -> String {
    format!("0x{}", format!("{nonce:02x}").repeat(32))
}

pub(crate) fn claim(text: &str) -> Value {
    json!({ "claim": text, "consensus": { "replicas": 3 } })
}

pub(crate) fn encoded(document: &Value) -> String {
    STANDARD.encode(document.to_string())
}

/// The document in a header.
#[track_caller]
pub(crate) fn decoded(reply: &TestReply, name: &str) -> Value {
    let text = reply.headers[name].to_str().unwrap();
    serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap()
}

/// How many verdicts an executor was asked for.
pub(crate) fn verified(fake: &FakeExecutor) -> usize {
    fake.calls().iter().filter(|call| call.endpoint() == "verify").count()
}

#[track_caller]
pub(crate) fn expect(reply: &TestReply, status: u16) {
    assert_eq!(reply.status.as_u16(), status, "{}", reply.text());
}

#[tokio::test]
async fn without_an_address_to_pay_the_routes_do_not_exist() {
    let app = TestApp::new().await;
    for path in ["/api/v2/x402/delegate", "/api/v3/x402/factcheck", "/api/v4/x402/validate"] {
        let reply = app.anonymous().post(path, &claim("x")).await;
        expect(&reply, 404);
        assert_eq!(reply.json()["detail"], format!("there is nothing at `{path}`"));
    }
    let reply = app.anonymous().get("/api/v3/x402/payments/pay_1").await;
    expect(&reply, 404);
}

#[tokio::test]
async fn a_request_without_a_payment_gets_the_demand_in_both_versions() {
    let shop = Shop::open().await;
    let body = json!({ "claim": "x", "consensus": { "replicas": 3, "spares": 2 } });
    let host = [("host", "jurat.example.com")];
    let reply = shop.app.anonymous().post_with(VALIDATE, &body, &host).await;
    expect(&reply, 402);
    assert_eq!(reply.headers["cache-control"], "no-store");
    let v1 = reply.json();
    assert_eq!((&v1["code"], &v1["x402Version"]), (&json!("payment_required"), &json!(1)));
    assert_eq!(v1["accepts"][0]["maxAmountRequired"], "5000");
    assert_eq!(v1["accepts"][0]["network"], "base-sepolia");
    assert_eq!(v1["accepts"][0]["mimeType"], "application/json");
    assert_eq!(v1["accepts"][0]["resource"], "http://jurat.example.com/api/v3/x402/validate");
    let v2 = decoded(&reply, "payment-required");
    assert_eq!(v2["x402Version"], 2);
    assert_eq!(v2["accepts"][0]["amount"], "5000");
    assert_eq!(v2["accepts"][0]["network"], "eip155:84532");
    assert_eq!(v2["accepts"][0]["payTo"], PAY_TO);
    assert_eq!(v2["accepts"][0]["extra"], json!({ "name": "USDC", "version": "2" }));
    assert_eq!(v2["extensions"]["payment-identifier"]["info"]["required"], false);
    assert_eq!(shop.facilitator.asked("/verify"), 0);
    assert!(shop.executors.iter().all(|it| verified(it) == 0));
}

#[tokio::test]
async fn the_price_counts_replicas_and_the_spares_that_are_asked_for() {
    let shop = Shop::open().await;
    for (path, body, amount) in [
        ("/api/v2/x402/validate", json!({ "claim": "x" }), "1000"),
        (VALIDATE, json!({ "claim": "x", "consensus": { "replicas": 1 } }), "1000"),
        ("/api/v4/x402/validate", json!({ "claim": "x", "consensus": { "replicas": 5 } }), "5000"),
        (
            "/api/v3/x402/factcheck",
            json!({ "claim": "x", "consensus": { "replicas": 3, "spares": 1 } }),
            "4000",
        ),
    ] {
        let reply = shop.app.anonymous().post(path, &body).await;
        expect(&reply, 402);
        assert_eq!(reply.json()["accepts"][0]["maxAmountRequired"], amount, "{path}");
    }
}

#[tokio::test]
async fn a_payment_in_version_2_buys_the_reply() {
    let shop = Shop::open().await;
    let reply = shop.pay(&shop.payment(1)).await;
    expect(&reply, 200);
    assert_eq!(reply.json()["verdict"], "VALID");
    let receipt = decoded(&reply, "payment-response");
    assert_eq!(receipt["success"], true);
    assert_eq!((&receipt["network"], &receipt["payer"]), (&json!("eip155:84532"), &json!(PAYER)));
    assert!(!reply.headers.contains_key("x-payment-response"));
    let transfers = shop.facilitator.transfers();
    assert_eq!(transfers.len(), 1);
    assert_eq!((transfers[0].to.as_str(), transfers[0].value), (PAY_TO, 3_000));
}

#[tokio::test]
async fn a_payment_in_version_1_buys_the_reply() {
    let shop = Shop::open().await;
    let reply = shop.pay(&shop.payment_v1(1)).await;
    expect(&reply, 200);
    let receipt = decoded(&reply, "x-payment-response");
    assert_eq!((&receipt["success"], &receipt["network"]), (&json!(true), &json!("base-sepolia")));
    assert!(!reply.headers.contains_key("payment-response"));
    assert_eq!(shop.facilitator.transfers().len(), 1);
}

#[tokio::test]
async fn every_paid_route_sells() {
    let says = || answers(json!({ "verdict": "TRUE" })).task_types(&["*"]);
    let shop = Shop::of([says(), says(), says()], |_| {}).await;
    let one = |value: &str| {
        let mut payment = shop.payment(1);
        payment["accepted"]["amount"] = json!(value);
        payment["payload"]["authorization"]["value"] = json!(value);
        payment
    };
    let verdict = json!({ "claim": "x", "consensus": { "replicas": 1 } });
    let job = json!({ "objective": "x", "input": {}, "consensus": { "replicas": 1 } });
    for (nonce, (path, body)) in [
        ("/api/v2/x402/validate", json!({ "claim": "x" })),
        ("/api/v2/x402/delegate", json!({ "objective": "x", "input": {} })),
        ("/api/v3/x402/validate", verdict.clone()),
        ("/api/v4/x402/validate", verdict.clone()),
        ("/api/v3/x402/delegate", job.clone()),
        ("/api/v4/x402/delegate", job),
        ("/api/v3/x402/factcheck", verdict.clone()),
        ("/api/v4/x402/factcheck", verdict),
    ]
    .into_iter()
    .enumerate()
    {
        let mut payment = one("1000");
        let nonce = nonce_of(u8::try_from(nonce).unwrap());
        payment["payload"]["authorization"]["nonce"] = json!(nonce);
        let header = encoded(&payment);
        let headers = [("PAYMENT-SIGNATURE", header.as_str())];
        let reply = shop.app.anonymous().post_with(path, &body, &headers).await;
        expect(&reply, 200);
        assert!(reply.headers.contains_key("payment-response"), "{path}: {}", reply.text());
    }
    assert_eq!(shop.facilitator.transfers().len(), 8);
    let routes = route_table().into_iter();
    let sold = routes.filter(|it| it.method == "POST" && it.path.contains("/x402/"));
    assert_eq!(sold.count(), 8, "each is tried above");
}
