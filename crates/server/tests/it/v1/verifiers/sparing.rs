//! Measurements with little credit, or with a key that may do one thing at a time.

use http::StatusCode;
use jurat_core::judge::Price;
use jurat_engine::{JudgesConfig, ProviderKind, ProviderSettings};
use jurat_testkit::{
    app::TestApp,
    fake_provider::{FakeProvider, ProviderReply, verdict},
};
use serde_json::{Value, json};

use super::{assert_problem, claims_with, deploy, owner, text};

const TESTS: &str = "/v1/verifiers/claims-cite-source/tests";

/// An application whose one judge has a price.
async fn app(fake: &FakeProvider) -> TestApp {
    let mut settings = ProviderSettings::new(ProviderKind::OpenAi, fake.url());
    let price = Price { input_micros_per_million: 1_000_000, output_micros_per_million: 5_000_000 };
    settings.prices.insert("*".to_owned(), price);
    let mut judges = JudgesConfig::default();
    judges.providers.insert("p1".to_owned(), settings);
    TestApp::with_judges(judges).await
}

/// Six cases that cost the same.
fn cases() -> Value {
    let case = |number: u32| {
        let inputs = json!({ "response": format!("It rains {number}."), "source": "Rain." });
        json!({ "id": number.to_string(), "inputs": inputs, "passed": number.is_multiple_of(2) })
    };
    json!({ "cases": (0..6).map(case).collect::<Vec<_>>() })
}

async fn grant(app: &TestApp, micros: u64) {
    let amount = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let grants = "/v1/accounts/acct_alice/grants";
    let reply = app.admin().post(grants, &json!({ "amount_usd": amount })).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
}

#[tokio::test]
async fn credit_for_one_case_at_a_time_is_enough_for_all() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = app(&fake).await;
    let alice = owner(&app).await;
    deploy(&alice, &claims_with("model_settings", json!({ "model": "p1/m" }))).await;
    let refused = alice.post(TESTS, &cases()).await;
    assert_problem(&refused, StatusCode::PAYMENT_REQUIRED, "budget_exhausted");
    assert_eq!(fake.asked().len(), 0);
    // A prompt is taken for a few hundred tokens until one is known; each case costs 200 millionths.
    grant(&app, 5_000).await;
    let report = alice.post(TESTS, &cases()).await;
    assert_eq!(report.status, StatusCode::CREATED, "{}", report.text());
    let report = report.json();
    assert_eq!((&report["figures"]["judged"], &report["shown"]), (&json!(6), &json!(true)));
    assert_eq!((text(&report["cost_usd"]), fake.asked().len()), ("0.0012", 6));
}

#[tokio::test]
async fn a_measurement_that_runs_out_of_credit_reports_what_was_paid_for() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = app(&fake).await;
    let alice = owner(&app).await;
    deploy(&alice, &claims_with("model_settings", json!({ "model": "p1/m" }))).await;
    // What one costs is known from before, when there was enough.
    grant(&app, 5_000).await;
    let inputs = json!({ "response": "It pours.", "source": "Rain." });
    let runs = "/v1/verifiers/claims-cite-source/runs";
    assert_eq!(alice.post(runs, &json!({ "inputs": inputs })).await.status, StatusCode::CREATED);
    let back = json!({ "amount_usd": "-0.00448" });
    app.admin().post("/v1/accounts/acct_alice/grants", &back).await;
    // The 320 that are left pay for one case, and for a part of another one.
    let report = alice.post(TESTS, &cases()).await;
    assert_eq!(report.status, StatusCode::CREATED, "{}", report.text());
    let report = report.json();
    let figures = &report["figures"];
    assert_eq!((&figures["judged"], &figures["inconclusive"]), (&json!(2), &json!(4)));
    assert_eq!((text(&report["cost_usd"]), fake.asked().len()), ("0.0004", 3));
    let last = &report["cases"][5];
    assert_eq!((&last["got"], &last["verifier_run_id"]), (&Value::Null, &Value::Null));
    let why = text(&last["error"]["message"]);
    assert!(why.starts_with("it was not judged: the account's credit is too low"), "{why}");
    // A part of the cases does not speak for the version.
    assert_eq!(report["shown"], json!(false));
    let shown = alice.get("/v1/verifiers/claims-cite-source").await.json();
    assert_eq!(shown["measured"], Value::Null);
}

#[tokio::test]
async fn a_key_with_one_round_at_a_time_measures_one_case_at_a_time() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = app(&fake).await;
    let one = json!({ "name": "one", "concurrent_rounds": 1, "scopes": ["admin"] });
    let one = app.admin().post("/v1/api-keys", &one).await.json();
    let one = app.with_key(text(&one["key"]));
    deploy(&one, &claims_with("model_settings", json!({ "model": "p1/m" }))).await;
    let report = one.post(TESTS, &cases()).await;
    assert_eq!(report.status, StatusCode::CREATED, "{}", report.text());
    assert_eq!(report.json()["figures"]["judged"], json!(6));
}

#[tokio::test]
async fn a_judge_that_passes_everything_on_one_label_stays_at_the_prior() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = app(&fake).await;
    deploy(&app.admin(), &claims_with("model_settings", json!({ "model": "p1/m" }))).await;
    let mut all_pass = cases();
    for case in all_pass["cases"].as_array_mut().unwrap() {
        case["passed"] = json!(true);
    }
    let report = app.admin().post(TESTS, &all_pass).await.json();
    assert_eq!(report["figures"]["accuracy"]["value"], json!(1.0));
    assert_eq!((&report["figures"]["kappa"], &report["reliability"]), (&Value::Null, &json!({})));
    let inputs = json!({ "response": "It rains.", "source": "Rain." });
    let runs = "/v1/verifiers/claims-cite-source/runs";
    let run = app.admin().post(runs, &json!({ "inputs": inputs })).await.json();
    assert_eq!(run["confidence"], json!(0.75));
}
