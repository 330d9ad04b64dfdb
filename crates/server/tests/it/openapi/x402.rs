//! The examples of paid requests.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jurat_store::StoreLocation;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{Behaviour, FakeExecutor, answers, fact, says_valid},
    fake_facilitator::{FakeFacilitator, PAY_TO},
};
use serde_json::{Value, json};

use super::Story;

/// Each paid request, and the reply of one that is fetched again.
pub(super) async fn purchases() -> BTreeSet<String> {
    let mut played = BTreeSet::new();
    for (kind, behaviour) in [
        ("delegate", answers(json!({ "answer": 144 }))),
        ("validate", says_valid()),
        ("factcheck", fact("TRUE")),
    ] {
        let facilitator = FakeFacilitator::start().await;
        let (app, _fakes) = shop(&facilitator, &behaviour).await;
        let mut story = Story::new(app);
        for (nonce, version) in ["v2", "v3", "v4"].into_iter().enumerate() {
            let path = format!("/api/{version}/x402/{kind}");
            if story.document["paths"].get(&path).is_none() {
                continue;
            }
            let request = story.request("POST", &path);
            let payment: &'static str = payment(&story.app, &path, &request, nonce).await.leak();
            story.headers = vec![("PAYMENT-SIGNATURE", payment)].leak();
            let reply = story.play("POST", &path, &path, &request).await;
            story.headers = &[];
            if kind == "validate" && version != "v2" {
                let id = reply.headers["x-jurat-payment"].to_str().unwrap();
                let at = format!("/api/{version}/x402/payments");
                let template = format!("{at}/{{payment_id}}");
                story.play("GET", &template, &format!("{at}/{id}"), &Value::Null).await;
            }
        }
        played.extend(story.played);
    }
    played
}

async fn shop(
    facilitator: &FakeFacilitator,
    behaviour: &Behaviour,
) -> (TestApp, Vec<FakeExecutor>) {
    let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
    let app = TestApp::selling(store, facilitator.settings()).await;
    let mut fakes = Vec::new();
    for name in ["alpha", "beta", "gamma"] {
        let behaviour = behaviour.clone().provider_family(name).model_id("small");
        let fake = FakeExecutor::start(behaviour).await;
        app.register(name, &fake.url()).await;
        fakes.push(fake);
    }
    (app, fakes)
}

/// A payment for what the server demands.
async fn payment(app: &TestApp, path: &str, request: &Value, nonce: usize) -> String {
    let demand = app.anonymous().post(path, request).await;
    let required = STANDARD.decode(demand.headers["payment-required"].as_bytes()).unwrap();
    let required: Value = serde_json::from_slice(&required).unwrap();
    let accepted = &required["accepts"][0];
    let now = app.engine.clock().now().millis() / 1_000;
    let until = now + accepted["maxTimeoutSeconds"].as_i64().unwrap();
    let payment = json!({
        "x402Version": 2,
        "accepted": accepted,
        "payload": {
            "signature": format!("0x{}", "2d".repeat(65)),
            "authorization": {
                "from": "0x857b06519e91e3a54538791bdbb0e22373e36b66",
                "to": PAY_TO,
                "value": accepted["amount"],
                "validAfter": "0",
                "validBefore": until.to_string(),
                "nonce": format!("0x{nonce:064x}"),
            },
        },
    });
    STANDARD.encode(payment.to_string())
}
