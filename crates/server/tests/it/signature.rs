//! Requests to executors carry the round, the replica and a signature that anybody can check.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, SigningKey, Verifier as _};
use jurat_testkit::{
    app::TestApp,
    fake_executor::{FakeExecutor, says_valid},
};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_sdk::trace::SdkTracerProvider;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tracing_subscriber::layer::SubscriberExt as _;

#[tokio::test]
async fn the_signature_covers_method_address_body_round_and_replica() {
    let (fake, reply) = asked().await;
    check_signature(&fake, &reply);
    let calls = fake.calls();
    assert!(calls.iter().all(|call| call.header("traceparent").is_none()));
}

#[tokio::test]
async fn a_trace_is_passed_on_and_leaves_the_signature_valid() {
    let tracer = SdkTracerProvider::builder().build().tracer("test");
    let traced =
        tracing_subscriber::registry().with(tracing_opentelemetry::layer().with_tracer(tracer));
    // The test has one thread, so everything in it is traced.
    let _guard = tracing::subscriber::set_default(traced);
    let (fake, reply) = asked().await;
    check_signature(&fake, &reply);
    let calls = fake.calls();
    let call = calls.iter().find(|call| call.endpoint() == "verify").unwrap();
    let traceparent = call.header("traceparent").unwrap();
    assert!(traceparent.starts_with("00-") && traceparent.len() == 55, "{traceparent}");
    assert!(!call.header("signature-input").unwrap().contains("traceparent"));
}

async fn asked() -> (FakeExecutor, Value) {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let reply = app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await.json();
    (fake, reply)
}

#[track_caller]
fn check_signature(fake: &FakeExecutor, reply: &Value) {
    let calls = fake.calls();
    let call = calls.iter().find(|call| call.endpoint() == "verify").unwrap();
    let header = |name: &str| call.header(name).unwrap().to_owned();
    assert_eq!(header("x-jurat-round"), reply["round_id"].as_str().unwrap());
    assert_eq!(header("x-jurat-replica"), "0");
    assert!(header("x-correlation-id").starts_with("rnd_"));
    let digest = STANDARD.encode(Sha256::digest(&call.raw));
    assert_eq!(header("content-digest"), format!("sha-256=:{digest}:"));

    let input = header("signature-input");
    let params = input.strip_prefix("sig1=").unwrap();
    let authority = fake.url().strip_prefix("http://").unwrap().to_owned();
    let base = format!(
        "\"@method\": POST\n\"@authority\": {authority}\n\"@path\": /verify\n\"content-digest\": {}\n\"x-jurat-round\": {}\n\"x-jurat-replica\": 0\n\"@signature-params\": {params}",
        header("content-digest"),
        header("x-jurat-round"),
    );
    let signature = header("signature");
    let signature =
        signature.strip_prefix("sig1=:").and_then(|rest| rest.strip_suffix(':')).unwrap();
    let signature = Signature::from_slice(&STANDARD.decode(signature).unwrap()).unwrap();
    let node = SigningKey::from_bytes(&[7; 32]).verifying_key();
    node.verify(base.as_bytes(), &signature).unwrap();
    assert!(params.contains(&format!("keyid=\"{}\"", hex::encode(node.as_bytes()))));
}

#[tokio::test]
async fn an_executor_with_a_token_gets_it_and_the_callers_key_never_leaves() {
    let app = TestApp::new().await;
    let fake = FakeExecutor::start(says_valid()).await;
    let body = json!({ "name": "s1", "url": fake.url(), "token_env": "JURAT_TEST_TOKEN" });
    assert_eq!(app.admin().post("/v1/executors", &body).await.status.as_u16(), 201);
    app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await;
    for call in fake.calls() {
        assert_eq!(call.header("authorization"), Some("Bearer a-token-for-tests"));
        assert!(!String::from_utf8_lossy(&call.raw).contains("jrt_live_"));
    }
}
