//! Runs that models judge, from the request to the provider and back.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use jurat_core::{account::caller::Scope, judge::Price};
use jurat_engine::{EngineLimits, JudgesConfig, ProviderKind, ProviderSettings};
use jurat_store::{Store, StoreLocation};
use jurat_testkit::{
    app::{TestApp, TestCaller, TestReply},
    fake_provider::{FakeProvider, ProviderReply, commitment, verdict},
};
use serde_json::{Value, json};

use super::{assert_problem, claims_with, deploy, text};

const RUNS: &str = "/v1/verifiers/claims-cite-source/runs";

/// An application with a provider for each fake: `p1`, `p2`, …, alternating between both protocols.
async fn app(fakes: &[&FakeProvider]) -> TestApp {
    let mut judges =
        JudgesConfig { cache_for: Some(Duration::from_mins(1)), ..JudgesConfig::default() };
    for (at, fake) in fakes.iter().enumerate() {
        let kind = ProviderKind::ALL[at % 2];
        let mut settings = ProviderSettings::new(kind, fake.url());
        settings.key_env = Some("JURAT_TEST_TOKEN".to_owned());
        let price =
            Price { input_micros_per_million: 1_000_000, output_micros_per_million: 5_000_000 };
        settings.prices.insert("*".to_owned(), price);
        judges.providers.insert(format!("p{}", at + 1), settings);
        judges.panel.push(format!("p{}/m", at + 1).parse().unwrap());
    }
    let app = TestApp::with_judges(judges).await;
    deploy(&app.admin(), &claims_with("model_settings", json!({ "model": "p1/m" }))).await;
    app
}

async fn run(caller: &TestCaller<'_>, more: &Value) -> Value {
    let mut body = json!({ "inputs": { "response": "It rains.", "source": "Rain all day." } });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let reply = caller.post(RUNS, &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    reply.json()
}

#[tokio::test]
async fn a_model_judges_with_reasoning_and_cost_and_is_not_asked_twice() {
    let finding = json!({ "field": "source", "quote": "Rain all day", "says": "supports" });
    let says =
        json!({ "findings": [finding], "reasoning": "The source has it.", "verdict": "met" });
    let fake = FakeProvider::saying([ProviderReply::Answer(says)]).await;
    let app = app(&[&fake]).await;
    let first = run(&app.admin(), &json!({})).await;
    assert_eq!((&first["passed"], text(&first["reasoning"])), (&json!(true), "The source has it."));
    assert_eq!(first["judges"][0]["findings"][0]["quote"], "Rain all day");
    let again = run(&app.admin(), &json!({})).await;
    assert_eq!((&again["passed"], &again["judges"][0]["cached"]), (&json!(true), &json!(true)));
    assert_eq!((text(&first["cost_usd"]), text(&again["cost_usd"])), ("0.0002", "0.00"));
    assert_eq!(fake.asked().len(), 1);
    run(&app.admin(), &json!({ "fresh": true })).await;
    assert_eq!(fake.asked().len(), 2);
}

#[tokio::test]
async fn a_failure_of_a_judge_is_an_error_and_never_a_verdict() {
    for (says, code, message) in [
        (
            ProviderReply::Status(401),
            "verifier_unavailable",
            "the provider `p1` answered 401 Unauthorized",
        ),
        (
            ProviderReply::Text("met".to_owned()),
            "runtime_error",
            "the answer was not one JSON document",
        ),
        (ProviderReply::Refusal, "runtime_error", "the judge refused to answer"),
        (
            ProviderReply::Answer(verdict("cannot_confirm")),
            "runtime_error",
            "the judge did not decide",
        ),
    ] {
        let fake = FakeProvider::saying([says.clone()]).await;
        let app = app(&[&fake]).await;
        let run = run(&app.admin(), &json!({})).await;
        let ended = (&run["status"], &run["passed"], text(&run["error_code"]));
        assert_eq!(ended, (&json!("error"), &Value::Null, code), "{says:?}");
        assert!(text(&run["error_message"]).contains(message), "{run:#}");
    }
}

#[tokio::test]
async fn a_panel_decides_by_majority_and_keeps_each_answer() {
    let met = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let also = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let not = FakeProvider::saying([ProviderReply::Answer(verdict("not_met"))]).await;
    let app = app(&[&met, &also, &not]).await;
    let run = run(&app.admin(), &json!({ "replicas": 3 })).await;
    assert_eq!(run["passed"], true, "{run:#}");
    let said: Vec<&str> =
        run["judges"].as_array().unwrap().iter().map(|judge| text(&judge["verdict"])).collect();
    assert_eq!(said.iter().filter(|word| **word == "met").count(), 2, "{run:#}");
    assert!(said.contains(&"not_met"));
}

#[tokio::test]
async fn a_run_can_have_the_judge_commit_itself_first() {
    let fake = FakeProvider::start(|asked| {
        ProviderReply::Answer(if asked.is_commit() { commitment() } else { verdict("not_met") })
    })
    .await;
    let app = app(&[&fake]).await;
    let run = run(&app.admin(), &json!({ "commit_first": true })).await;
    assert_eq!(run["passed"], false);
    assert_eq!(fake.asked().len(), 2);
    let round = app.admin().get(&format!("/v1/rounds/{}", text(&run["round_id"]))).await;
    assert!(round.text().contains("\"commitment\""), "{}", round.text());
}

#[tokio::test]
async fn an_address_inside_is_refused_before_a_run_begins() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = app(&[&fake]).await;
    let mut body = claims_with("input_contract", json!("text_image"));
    body["name"] = json!("picture");
    body["few_shot_examples"] = json!([]);
    body["model_settings"] = json!({ "model": "p1/m" });
    deploy(&app.admin(), &body).await;
    let inputs = json!({ "response": "It rains.", "source": "Rain all day." });
    for url in ["http://example.com/a.png", "https://127.0.0.1/a.png", "https://0x7f.1/", "x"] {
        let body = json!({ "inputs": inputs, "media_url": url });
        let reply = app.admin().post("/v1/verifiers/picture/runs", &body).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{url}: {}", reply.text());
        assert!(reply.text().contains("media_url"), "{}", reply.text());
    }
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn asking_for_too_many_judges_is_a_field_error() {
    let first = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let second = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    // The first of the panel is the verifier's own judge, so there are two.
    let app = app(&[&first, &second]).await;
    let inputs = json!({ "response": "It rains.", "source": "Rain all day." });
    let body = json!({ "inputs": inputs, "replicas": 3 });
    let reply = app.admin().post(RUNS, &body).await;
    assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
    let problem = reply.json();
    assert_eq!(problem["field"], "replicas");
    let detail = text(&problem["detail"]);
    assert!(detail.contains("asks for 3 judges, with only 2 available"), "{detail}");
    assert!(detail.contains("`judges`") && detail.contains("`judges.panel`"), "{detail}");
    assert!(first.asked().is_empty() && second.asked().is_empty());
}

#[tokio::test]
async fn a_test_never_shows_the_judge_the_answer_to_its_case() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = app(&[&fake]).await;
    let reply = app.admin().post("/v1/verifiers/claims-cite-source/tests", &json!({})).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let asked = fake.asked();
    assert_eq!(asked.len(), 2);
    for asked in asked {
        let turns = asked.conversation();
        let (_, candidate) = turns.last().unwrap();
        let (own, other) =
            if candidate.contains("It rains.") { ("rains", "snows") } else { ("snows", "rains") };
        assert!(candidate.contains(own), "{candidate}");
        let before: String = turns[..turns.len() - 1].iter().map(|(_, it)| it.as_str()).collect();
        assert!(before.contains(other), "the other example is missing: {before}");
        assert!(!before.contains(own), "the answer is shown: {before}");
        assert!(!asked.system().contains(own));
    }
}

#[tokio::test]
async fn a_candidate_that_fails_its_schema_is_invalid_without_a_judge() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = app(&[&fake]).await;
    let mut body = json!({
        "claim": { "output": { "response": "It rains.", "source": "Rain all day.", "year": "now" } },
        "output_schema": { "properties": { "year": { "type": "integer" } } },
        "policy": {
            "policy_id": "vp.semantic.v1", "policy_params": { "verifier": "claims-cite-source" } },
    });
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["verdict"], "INVALID", "{reply:#}");
    assert_eq!(reply["replicas"][0]["reason_codes"], json!([101]), "{reply:#}");
    assert_eq!(reply["replicas"][0]["cost"], 0);
    assert!(fake.asked().is_empty());
    body["claim"]["output"]["year"] = json!(2026);
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["verdict"], "VALID", "{reply:#}");
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test]
async fn validate_refuses_an_address_inside_before_a_round_begins() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let app = app(&[&fake]).await;
    let mut body = claims_with("input_contract", json!("image"));
    body["name"] = json!("picture");
    body["input_fields"] = json!([]);
    body["few_shot_examples"] = json!([]);
    body["model_settings"] = json!({ "model": "p1/m" });
    deploy(&app.admin(), &body).await;
    for url in ["http://example.com/a.png", "https://127.0.0.1/a.png", "https://0x7f.1/", "x"] {
        let body = json!({
            "claim": { "output": { "at": url } },
            "policy": { "policy_id": "vp.semantic.v1",
                "policy_params": { "verifier": "picture", "media_url": "/at" } },
        });
        let reply = app.admin().post("/api/v3/validate", &body).await;
        assert_problem(&reply, StatusCode::UNPROCESSABLE_ENTITY, "policy_invalid");
        assert_eq!(reply.json()["field"], "policy.policy_params.media_url", "{url}");
    }
    assert!(fake.asked().is_empty());
    assert_eq!(app.admin().get("/v1/rounds").await.json()["items"], json!([]));
}

/// The scopes of a metered caller that names judges in every way.
const PAYING: &[Scope] =
    &[Scope::VerifiersRead, Scope::VerifiersWrite, Scope::VerifiersRun, Scope::RoundsCreate];

/// A node on this store that has a provider `p` with these prices, and keeps `p/kept` ready.
async fn priced(store: &Arc<Store>, fake: &FakeProvider, models: &[&str]) -> TestApp {
    let mut settings = ProviderSettings::new(ProviderKind::OpenAi, fake.url());
    let price = Price { input_micros_per_million: 1_000_000, output_micros_per_million: 5_000_000 };
    settings.prices = models.iter().map(|model| ((*model).to_owned(), price)).collect();
    let judges = JudgesConfig {
        providers: [("p".to_owned(), settings)].into(),
        default_model: Some("p/kept".parse().unwrap()),
        ..JudgesConfig::default()
    };
    TestApp::made_of(Arc::clone(store), EngineLimits::default(), judges).await
}

#[tokio::test]
async fn a_metered_caller_cannot_name_a_model_without_a_price() {
    let fake = FakeProvider::saying([ProviderReply::Answer(verdict("met"))]).await;
    let store = jurat_store::open(&StoreLocation::Memory).await.unwrap();
    let free = priced(&store, &fake, &[]).await;
    let alice = free.caller("alice", PAYING).await;
    let grant = json!({ "amount_usd": "1.00" });
    free.admin().post("/v1/accounts/acct_alice/grants", &grant).await;
    let named = |model: &str| claims_with("model_settings", json!({ "model": model }));
    // If no model has a price, all are free, as the operator intended.
    deploy(&alice, &named("p/other")).await;
    assert_eq!(text(&run(&alice, &json!({})).await["cost_usd"]), "0.00");
    let app = priced(&store, &fake, &["dear", "cheap"]).await;
    let alice = app.caller("alice", PAYING).await;
    let told = "the judge `p/other` has no price; metered accounts may name `p/cheap` or `p/dear` of its provider";
    let refused = |reply: &TestReply, status: StatusCode, (code, field): (&str, &str)| {
        assert_problem(reply, status, code);
        let problem = reply.json();
        assert_eq!(text(&problem["field"]), field, "{problem}");
        assert!(text(&problem["detail"]).contains(told), "{problem}");
    };
    let asked = fake.asked().len();
    let mut body = named("p/other");
    body["name"] = json!("another");
    let reply = alice.post("/v1/verifiers", &body).await;
    refused(&reply, StatusCode::BAD_REQUEST, ("validation_error", "model_settings.model"));
    let inputs = json!({ "response": "It pours.", "source": "Rain all day." });
    for more in [json!({}), json!({ "judges": ["p/other"] })] {
        let mut body = more;
        body["inputs"] = inputs.clone();
        let reply = alice.post(RUNS, &body).await;
        refused(&reply, StatusCode::BAD_REQUEST, ("validation_error", "judges"));
    }
    let policy = json!({ "policy_id": "vp.semantic.v1",
        "policy_params": { "verifier": "claims-cite-source" } });
    let mut body = json!({ "claim": inputs, "policy": policy });
    let of_verifier = ("policy_invalid", "policy.policy_params.verifier");
    let reply = alice.post("/api/v3/validate", &body).await;
    refused(&reply, StatusCode::UNPROCESSABLE_ENTITY, of_verifier);
    let reply =
        alice.post("/api/v3/delegate", &json!({ "objective": "x", "policy": policy })).await;
    refused(&reply, StatusCode::UNPROCESSABLE_ENTITY, of_verifier);
    // A spare is treated like any other.
    let told = told.replace("p/other", "p/spare");
    body["consensus"] = json!({ "session_pool": ["judge:p/dear", "judge:p/spare"] });
    let reply = alice.post("/api/v3/validate", &body).await;
    assert_problem(&reply, StatusCode::UNPROCESSABLE_ENTITY, "session_unknown");
    let problem = reply.json();
    assert_eq!(text(&problem["field"]), "consensus.session_pool", "{problem}");
    assert!(text(&problem["detail"]).contains(&told), "{problem}");
    assert_eq!(fake.asked().len(), asked);
    // A model with a price is paid, the operator's panel is free, and so are all requests of the
    // operator.
    let fresh = |judge: &str| json!({ "judges": [judge], "fresh": true });
    assert_eq!(text(&run(&alice, &fresh("p/dear")).await["cost_usd"]), "0.0002");
    assert_eq!(text(&run(&alice, &fresh("p/kept")).await["cost_usd"]), "0.00");
    deploy(&app.admin(), &named("p/other")).await;
    assert_eq!(run(&app.admin(), &json!({})).await["passed"], true);
}
