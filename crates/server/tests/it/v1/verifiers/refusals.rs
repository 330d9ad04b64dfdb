//! Invalid deploys, and the field of each fault.

use http::StatusCode;
use insta::assert_snapshot;
use jurat_testkit::app::TestApp;
use serde_json::{Value, json};

use super::{assert_problem, claims, claims_with, deploy, owner, text};

fn example(inputs: &Value) -> Value {
    json!([{ "inputs": inputs, "passed": true }])
}

/// A member, a wrong value for it, and the field that is to blame.
type Wrong = (&'static str, Value, &'static str);

fn wrong_texts() -> Vec<Wrong> {
    vec![
        ("name", Value::Null, "name"),
        ("name", json!(""), "name"),
        ("name", json!("Claims"), "name"),
        ("name", json!("a_b"), "name"),
        ("name", json!("system:a"), "name"),
        ("name", json!("x".repeat(129)), "name"),
        ("name", json!(7), "name"),
        ("name", json!("0198c1f0-0000-7000-8000-000000000001"), "name"),
        ("description", Value::Null, "description"),
        ("description", json!(" "), "description"),
        ("description", json!("x".repeat(1_025)), "description"),
        ("description", json!("a\u{0}b"), "description"),
        ("criterion", Value::Null, "criterion"),
        ("criterion", json!("x".repeat(20_001)), "criterion"),
        ("criterion", json!(["x"]), "criterion"),
        ("input_contract", Value::Null, "input_contract"),
        ("input_contract", json!("audio"), "input_contract"),
        ("input_contract", json!("image"), "input_fields"),
        ("expected_version_token", json!(1), "expected_version_token"),
    ]
}

fn wrong_fields() -> Vec<Wrong> {
    let fields = |count: usize| -> Value { (0..count).map(|it| format!("f{it}")).collect() };
    vec![
        ("input_fields", Value::Null, "input_fields"),
        ("input_fields", json!([]), "input_fields"),
        ("input_fields", json!("response"), "input_fields"),
        ("input_fields", json!([1]), "input_fields"),
        ("input_fields", json!(["a b"]), "input_fields"),
        ("input_fields", json!(["[/x]"]), "input_fields"),
        ("input_fields", json!(["a", "a"]), "input_fields"),
        ("input_fields", fields(33), "input_fields"),
    ]
}

fn wrong_examples_and_settings() -> Vec<Wrong> {
    let both = json!({ "response": "a", "source": "b" });
    vec![
        ("few_shot_examples", json!({}), "few_shot_examples"),
        ("few_shot_examples", json!(["x"]), "few_shot_examples.0"),
        ("few_shot_examples", json!([{ "inputs": both }]), "few_shot_examples.0.passed"),
        (
            "few_shot_examples",
            json!([{ "inputs": both, "passed": "yes" }]),
            "few_shot_examples.0.passed",
        ),
        ("few_shot_examples", example(&json!({ "response": "a" })), "few_shot_examples.0.inputs"),
        (
            "few_shot_examples",
            example(&json!({ "response": "a", "source": 1 })),
            "few_shot_examples.0.inputs.source",
        ),
        (
            "few_shot_examples",
            example(&json!({ "response": "a", "source": " " })),
            "few_shot_examples.0.inputs.source",
        ),
        (
            "few_shot_examples",
            json!([{ "inputs": both, "passed": true, "media_url": "https://x/y" }]),
            "few_shot_examples.0.media_url",
        ),
        (
            "few_shot_examples",
            json!(vec![json!({ "inputs": both, "passed": true }); 51]),
            "few_shot_examples",
        ),
        ("model_settings", json!("gpt"), "model_settings"),
        ("model_settings", json!({ "model": "gpt" }), "model_settings.model"),
        (
            "model_settings",
            json!({ "model": "a/b", "reasoning_effort": "max" }),
            "model_settings.reasoning_effort",
        ),
        (
            "model_settings",
            json!({ "model": "a/b", "commit_first": "yes" }),
            "model_settings.commit_first",
        ),
    ]
}

#[tokio::test]
async fn a_bad_field_is_named() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let cases = [wrong_texts(), wrong_fields(), wrong_examples_and_settings()].concat();
    for (name, value, field) in cases {
        let reply = alice.post("/v1/verifiers", &claims_with(name, value.clone())).await;
        assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
        assert_eq!(reply.json()["field"], field, "{name} {value}: {}", reply.text());
    }
    assert_eq!(alice.get("/v1/verifiers").await.json()["items"], json!([]));
    let list = alice.post("/v1/verifiers", &json!([1])).await;
    assert_problem(&list, StatusCode::BAD_REQUEST, "validation_error");
}

#[tokio::test]
async fn a_verifier_just_within_the_limits_is_deployed() {
    limits(&TestApp::new().await).await;
}

/// The maximum of everything, on any store.
pub(crate) async fn limits(app: &TestApp) {
    let alice = owner(app).await;
    let mut body = claims();
    body["name"] = json!("x".repeat(128));
    body["description"] = json!("é".repeat(1_024));
    body["criterion"] = json!("é".repeat(20_000));
    body["input_fields"] = (0..32).map(|it| format!("f{it}-{}", "x".repeat(60))).collect();
    let inputs: serde_json::Map<String, Value> =
        (0..32).map(|it| (format!("f{it}-{}", "x".repeat(60)), json!("\u{0}a"))).collect();
    body["few_shot_examples"] = json!(vec![json!({ "inputs": inputs, "passed": true }); 50]);
    let made = deploy(&alice, &body).await;
    let shown = alice.get(&format!("/v1/verifiers/{}", text(&made["verifier_id"]))).await.json();
    for same in ["name", "description", "criterion", "input_fields"] {
        assert_eq!(shown[same], body[same], "{same}");
    }
    assert_eq!(shown["few_shot_examples"][49]["inputs"], body["few_shot_examples"][49]["inputs"]);
}

#[tokio::test]
async fn messages_give_advice_and_contain_no_markup() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let message = async |name: &str, value: Value| {
        let reply = alice.post("/v1/verifiers", &claims_with(name, value)).await;
        text(&reply.json()["message"]).to_owned()
    };
    assert_snapshot!(message("name", json!("Claims")).await, @"`name` must have 1 to 128 lowercase letters, digits and hyphens");
    assert_snapshot!(message("input_fields", json!(["[/etc/passwd]"])).await, @"`input_fields` has `(/etc/passwd)`; a name has 1 to 64 letters, digits, hyphens and underscores");
    assert_snapshot!(message("input_contract", json!("image")).await, @"`input_fields` contradicts `input_contract` `image`, which has no text fields; leave them out");
    assert_snapshot!(message("model_settings", json!({ "model": "gpt" })).await, @"`model_settings.model` must be `provider/model`, such as `anthropic/claude-sonnet-4-6`");
}

#[tokio::test]
async fn unknown_parameters_are_refused() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    for (path, field) in [
        ("/v1/verifiers?colour=red", "colour"),
        ("/v1/verifiers?limit=0", "limit"),
        ("/v1/verifiers?limit=201", "limit"),
        ("/v1/verifiers?cursor=%00", "cursor"),
        ("/v1/verifiers/a?version=0", "version"),
        ("/v1/verifiers/a?version=x", "version"),
        ("/v1/verifiers/a?version=1&version=1", "version"),
        ("/v1/verifiers/a?limit=1", "limit"),
        ("/v1/verifiers/a/runs?verifier=b", "verifier"),
        ("/v1/verifier-runs?verdict=good", "verdict"),
        ("/v1/verifier-runs?purpose=fun", "purpose"),
        ("/v1/verifier-runs?since=yesterday", "since"),
        ("/v1/verifier-runs?until=1", "until"),
        ("/v1/verifier-runs?cursor=nonsense", "cursor"),
        ("/v1/verifier-runs?verifier=a@1&version=2", "version"),
    ] {
        let reply = alice.get(path).await;
        assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
        assert_eq!(reply.json()["field"], field, "{path}");
    }
}
