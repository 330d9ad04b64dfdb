//! `vp.semantic.v1` in delegate: the judge of a verifier decides the answers of executors.

use std::time::Duration;

use http::StatusCode;
use jurat_core::{account::caller::Scope, judge::Price};
use jurat_engine::{JudgesConfig, ProviderKind, ProviderSettings};
use jurat_testkit::{
    app::{TestApp, TestCaller},
    fake_executor::{FakeExecutor, answers},
    fake_provider::{FakeProvider, ProviderReply, verdict},
};
use serde_json::{Value, json};

/// The scopes of an owner whose answers are judged.
const OWNER: &[Scope] = &[
    Scope::VerifiersRead,
    Scope::VerifiersWrite,
    Scope::VerifiersRun,
    Scope::RoundsCreate,
    Scope::RoundsRead,
    Scope::UsageRead,
];

async fn app(fake: &FakeProvider) -> TestApp {
    let mut judges =
        JudgesConfig { cache_for: Some(Duration::from_mins(1)), ..JudgesConfig::default() };
    let mut settings = ProviderSettings::new(ProviderKind::Anthropic, fake.url());
    settings.key_env = Some("JURAT_TEST_TOKEN".to_owned());
    let price = Price { input_micros_per_million: 1_000_000, output_micros_per_million: 5_000_000 };
    settings.prices.insert("*".to_owned(), price);
    judges.providers.insert("p".to_owned(), settings);
    TestApp::with_judges(judges).await
}

async fn deploy(caller: &TestCaller<'_>, judge: &str, criterion: &str) {
    let body = json!({
        "name": "polite",
        "description": "The answer is polite.",
        "criterion": criterion,
        "input_contract": "text",
        "input_fields": ["response"],
        "model_settings": { "model": judge },
    });
    let reply = caller.post("/v1/verifiers", &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
}

/// A judge that fails every answer with this word in it.
async fn judge_against(word: &'static str) -> FakeProvider {
    FakeProvider::start(move |asked| {
        let (_, candidate) = asked.conversation().pop().unwrap_or_default();
        ProviderReply::Answer(verdict(if candidate.contains(word) { "not_met" } else { "met" }))
    })
    .await
}

fn delegate(pool: &[&str]) -> Value {
    json!({
        "objective": "Answer the letter",
        "policy": { "policy_id": "vp.semantic.v1", "policy_params": {
            "verifier": "polite", "inputs": { "response": "/text" } } },
        "consensus": { "replicas": pool.len(), "session_pool": pool, "include": ["traces"] },
    })
}

const ALL: &[&str] = &["s1", "s2", "s3"];

fn letter(text: &str) -> Value {
    json!({ "text": text })
}

async fn delegated(caller: &TestCaller<'_>, body: &Value) -> Value {
    let reply = caller.post("/api/v3/delegate", body).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()
}

/// The judgment of a replica, from its evidence.
fn judgment(replica: &Value) -> Value {
    let inline = replica["evidence"]["inline"].as_array().unwrap();
    serde_json::from_str(inline.last().unwrap()["content"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn an_answer_that_the_judge_fails_is_not_a_vote() {
    let fake = judge_against("rude").await;
    let app = app(&fake).await;
    deploy(&app.admin(), "p/m", "Return passed=true when it is polite.").await;
    let _fakes = app
        .executors([answers(letter("kind")), answers(letter("rude")), answers(letter("kind"))])
        .await;
    let reply = delegated(&app.admin(), &delegate(ALL)).await;
    assert_eq!(reply["consensus"]["verdicts"], json!(["OK", "INVALID_OUTPUT", "OK"]), "{reply:#}");
    assert_eq!(reply["output"], letter("kind"));
    let [kind, rude] = [0, 1].map(|at| &reply["replicas"][at]);
    assert_eq!((&kind["reason_codes"], &rude["reason_codes"]), (&json!([]), &json!([1070])));
    assert_eq!(rude["error"], json!({ "code": "invalid_output", "detail": "It is not_met." }));
    let said = judgment(kind);
    assert_eq!((&said["kind"], &said["judge"]), (&json!("judgment"), &json!("p/m")));
    assert_eq!(said["judgment"]["reasoning"], "It is met.");
    assert_eq!(judgment(rude)["judgment"]["verdict"], "not_met");
    // The same answer is judged once, however many replicas give it concurrently.
    assert_eq!(fake.asked().len(), 2);
    delegated(&app.admin(), &delegate(ALL)).await;
    assert_eq!(fake.asked().len(), 2);
}

#[tokio::test]
async fn a_judge_that_fails_is_an_error_and_never_a_verdict() {
    for (says, code, words) in [
        (ProviderReply::Status(401), "judge_unavailable", "answered 401"),
        (ProviderReply::Text("met".to_owned()), "judge_unreadable", "cannot be used"),
        (ProviderReply::Hangs, "output_unchecked", "did not answer before the deadline"),
        (
            ProviderReply::Answer(verdict("cannot_confirm")),
            "output_unchecked",
            "It is cannot_confirm.",
        ),
    ] {
        let hostile = says.clone();
        let fake = FakeProvider::start(move |asked| {
            let (_, candidate) = asked.conversation().pop().unwrap_or_default();
            if candidate.contains("odd") {
                hostile.clone()
            } else {
                ProviderReply::Answer(verdict("met"))
            }
        })
        .await;
        let app = app(&fake).await;
        deploy(&app.admin(), "p/m", "Return passed=true when it is polite.").await;
        let _fakes = app
            .executors([answers(letter("odd")), answers(letter("kind")), answers(letter("kind"))])
            .await;
        let mut body = delegate(ALL);
        body["execution"] = json!({ "timeout_ms": 2_000 });
        let reply = delegated(&app.admin(), &body).await;
        let verdicts = &reply["consensus"]["verdicts"];
        assert_eq!(*verdicts, json!(["ERROR", "OK", "OK"]), "{says:?}: {reply:#}");
        // It stays in the denominator.
        assert_eq!(reply["consensus"]["agreement"], 0.6667);
        let error = &reply["replicas"][0]["error"];
        assert_eq!(error["code"], code, "{says:?}");
        assert!(error["detail"].as_str().unwrap().contains(words), "{says:?}: {error}");
        // The executor's answer is included, and its record does not suffer.
        assert_eq!(reply["replicas"][0]["output"], letter("odd"));
    }
}

#[tokio::test]
async fn no_judge_is_paid_for_an_invalid_answer() {
    let fake = judge_against("rude").await;
    let app = app(&fake).await;
    deploy(&app.admin(), "p/m", "Return passed=true when it is polite.").await;
    let wrong = json!({ "text": "kind", "n": "one" });
    let _fakes = app
        .executors([answers(wrong), answers(json!({ "n": 1 })), answers(json!({ "text": " " }))])
        .await;
    let mut body = delegate(ALL);
    body["execution"] =
        json!({ "output_schema": { "properties": { "n": { "type": "integer" } } } });
    let reply = delegated(&app.admin(), &body).await;
    assert_eq!(
        reply["consensus"]["verdicts"],
        json!(["INVALID_OUTPUT", "INVALID_OUTPUT", "INVALID_OUTPUT"])
    );
    let codes = [0, 1, 2].map(|at| &reply["replicas"][at]["reason_codes"]);
    assert_eq!(codes, [&json!([101]), &json!([1073]), &json!([1073])], "{reply:#}");
    let detail = reply["replicas"][1]["error"]["detail"].as_str().unwrap();
    assert!(detail.contains("points to `/text`, which the candidate does not have"), "{detail}");
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn the_hold_covers_the_maximum_of_the_judge_and_the_usage_is_paid() {
    let fake = judge_against("rude").await;
    let app = app(&fake).await;
    let alice = app.caller("alice", OWNER).await;
    deploy(&alice, "p/m", "Return passed=true when it is polite.").await;
    let _fakes = app
        .executors([answers(letter("kind")), answers(letter("x".repeat(30_000).as_str()))])
        .await;
    let refused = alice.post("/api/v3/delegate", &delegate(&["s1"])).await;
    assert_eq!(refused.json()["code"], "budget_exhausted", "{}", refused.text());
    let grant = json!({ "amount_usd": "1.00" });
    app.admin().post("/v1/accounts/acct_alice/grants", &grant).await;
    let reply = delegated(&alice, &delegate(&["s1"])).await;
    // 100 tokens in and 20 out.
    assert_eq!((&reply["status"], &reply["replicas"][0]["cost"]), (&json!("OK"), &json!(200)));
    let lines = alice.get("/v1/me/transfers").await.json();
    let amounts = |movement: &str| -> f64 {
        let lines = lines["items"].as_array().unwrap();
        let line = lines.iter().find(|line| line["movement"] == movement).unwrap();
        line["amount_usd"].as_str().unwrap().parse().unwrap()
    };
    assert!((amounts("capture") - 0.0002).abs() < 1e-9);
    // At least twice 20,000 bytes at one dollar per million.
    assert!(0.04 < amounts("hold") && amounts("hold") < 0.2, "{lines:#}");
    // A longer answer is not judged, unless more credit is held for it.
    let mut body = delegate(&["s2"]);
    let reply = delegated(&alice, &body).await;
    assert_eq!(reply["replicas"][0]["error"]["code"], "output_unchecked", "{reply:#}");
    assert_eq!(reply["replicas"][0]["reason_codes"], json!([103]));
    body["policy"]["policy_params"]["max_chars"] = json!(40_000);
    assert_eq!(delegated(&alice, &body).await["status"], "OK");
    assert_eq!(fake.asked().len(), 2);
    let usage = alice.get("/v1/me/usage").await.json();
    assert_eq!((&usage["held_usd"], &usage["spent_usd"]), (&json!("0.00"), &json!("0.0004")));
}

#[tokio::test]
async fn rules_judge_answers_for_free_and_stay_hidden_from_the_executor() {
    let fake = judge_against("rude").await;
    let app = app(&fake).await;
    let rule = json!({ "contains": { "field": "response", "text": "please" } });
    deploy(&app.admin(), "builtin/rules", &rule.to_string()).await;
    let fakes = app
        .executors([
            answers(letter("Come, please.")),
            answers(letter("Come!")),
            answers(letter("Come, please.")),
        ])
        .await;
    let reply = delegated(&app.admin(), &delegate(ALL)).await;
    assert_eq!(reply["consensus"]["verdicts"], json!(["OK", "INVALID_OUTPUT", "OK"]), "{reply:#}");
    assert_eq!(reply["replicas"][0]["cost"], 0);
    for call in fakes.iter().flat_map(FakeExecutor::calls) {
        assert!(!call.body.to_string().contains("contains"), "{}", call.body);
    }
}

#[tokio::test]
async fn parameters_that_do_not_fit_the_verifier_are_refused_early() {
    let fake = judge_against("rude").await;
    let app = app(&fake).await;
    deploy(&app.admin(), "p/m", "Return passed=true when it is polite.").await;
    let [executor] = app.executors([answers(letter("kind"))]).await;
    for (name, value, field) in [
        ("inputs", json!({ "answer": "/text" }), "policy.policy_params.inputs.answer"),
        ("media_url", json!("/image"), "policy.policy_params.media_url"),
        ("verifier", json!("nobody"), "policy.policy_params.verifier"),
        ("max_chars", json!(0), "policy.policy_params.max_chars"),
    ] {
        let mut body = delegate(&["s1"]);
        body["policy"]["policy_params"][name] = value;
        let reply = app.admin().post("/api/v3/delegate", &body).await;
        let problem = reply.json();
        assert_eq!(
            (&problem["code"], &problem["field"]),
            (&json!("policy_invalid"), &json!(field))
        );
    }
    let stranger = app.caller("bob", &[Scope::RoundsCreate]).await;
    let reply = stranger.post("/api/v3/delegate", &delegate(&["s1"])).await;
    assert_eq!(reply.status, StatusCode::FORBIDDEN, "{}", reply.text());
    assert!(executor.calls().iter().all(|call| call.endpoint() != "/execute"));
}
