//! The measured quality of a version's judges.

use http::StatusCode;
use jurat_testkit::app::{TestApp, TestCaller};
use serde_json::{Value, json};

use super::{assert_problem, deploy, owner, text};

/// Passes responses that name a source; one label contradicts, so the rule is wrong once.
fn cites(criterion: &str) -> Value {
    let example = |response: &str, passed: bool| json!({ "inputs": { "response": response }, "passed": passed });
    let rule = json!({ "contains": { "field": "response", "text": criterion } });
    json!({
        "name": "cites",
        "description": "Names a source.",
        "criterion": rule.to_string(),
        "input_contract": "text",
        "input_fields": ["response"],
        "few_shot_examples": [
            example("Rain, source: radar.", true),
            example("Snow, source: a friend.", true),
            example("Fog, source: none.", false),
            example("Hail.", false),
            example("Wind.", false),
            example("Sun.", false),
        ],
        "model_settings": { "model": "builtin/rules" },
    })
}

async fn tested(alice: &TestCaller<'_>, body: &Value) -> Value {
    let reply = alice.post("/v1/verifiers/cites/tests", body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    reply.json()
}

#[tokio::test]
async fn a_test_measures_the_judge_and_is_shown_from_then_on() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    deploy(&alice, &cites("source")).await;
    let report = tested(&alice, &json!({})).await;
    let figures = &report["figures"];
    assert_eq!((&figures["n"], &figures["correct"]), (&json!(6), &json!(5)));
    assert_eq!((&figures["false_pass"], &figures["false_fail"]), (&json!(1), &json!(0)));
    let rate = &figures["false_pass_rate"];
    assert_eq!((&rate["count"], &rate["n"], &rate["value"]), (&json!(1), &json!(4), &json!(0.25)));
    assert!(rate["low"].as_f64().unwrap() < 0.25 && 0.25 < rate["high"].as_f64().unwrap());
    let wrong: Vec<&Value> = report["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["got"] != it["expected"])
        .collect();
    assert_eq!(wrong[0]["inputs"]["response"], "Fog, source: none.");
    assert!(text(&wrong[0]["reasoning"]).contains("no language model"), "{}", wrong[0]);
    assert_eq!(report["judges"], json!(["builtin/rules"]));

    let shown = alice.get("/v1/verifiers/cites").await.json();
    assert_eq!(shown["measured"]["test"]["figures"], *figures);
    let run = json!({ "inputs": { "response": "Frost, source: a thermometer." } });
    let run = alice.post("/v1/verifiers/cites/runs", &run).await.json();
    assert_eq!(run["measured"]["test"]["figures"], *figures);
    // The confidence of one judge is its measured one: (5 + 2) of (6 + 3).
    assert_eq!(run["confidence"], json!(0.7778));
    let tests = alice.get("/v1/verifier-runs?purpose=test").await.json();
    assert_eq!(tests["items"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn a_redeploy_reports_flipped_verdicts_and_a_regression() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let first = deploy(&alice, &cites("source")).await;
    let given = json!([
        { "id": "radar", "inputs": { "response": "Rain, source: radar." }, "passed": true },
        { "id": "hail", "inputs": { "response": "Hail." }, "passed": false },
    ]);
    let before = tested(&alice, &json!({ "cases": given })).await;
    assert_eq!(before["compared"], Value::Null);
    let mut next = cites("Quelle");
    next["expected_version_token"] = first["version_token"].clone();
    deploy(&alice, &next).await;
    // On the earlier cases, without sending them again.
    let after = tested(&alice, &json!({ "previous_cases": true })).await;
    assert_eq!(after["data_digest"], before["data_digest"]);
    let flips = json!([{ "id": "radar", "expected": true, "before": true, "after": false }]);
    assert_eq!(after["compared"]["flips"], flips);
    assert_eq!(
        (&after["compared"]["with_version"], &after["compared"]["is_worse"]),
        (&json!(1), &json!(true))
    );
    // On other cases the previous version is judged only on request.
    let others = json!([{ "inputs": { "response": "Dew, source: grass." }, "passed": true }]);
    let alone = tested(&alice, &json!({ "cases": others })).await;
    assert_eq!(alone["compared"], Value::Null);
    let both = tested(&alice, &json!({ "cases": others, "compare": true })).await;
    assert_eq!(both["compared"]["flips"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn each_case_is_reported_as_it_is_judged() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    deploy(&alice, &cites("source")).await;
    let headers = [("accept", "text/event-stream")];
    let reply = alice.post_with("/v1/verifiers/cites/tests", &json!({}), &headers).await;
    let events = reply.text();
    assert_eq!(events.matches("event: case\n").count(), 6, "{events}");
    let last = events.trim_end().rsplit("\n\n").next().unwrap();
    let report = last.strip_prefix("event: report\ndata: ").unwrap();
    let report: Value = serde_json::from_str(report).unwrap();
    assert_eq!(report["figures"]["n"], json!(6));
}

#[tokio::test]
async fn a_judge_that_cannot_be_asked_is_inconclusive_and_not_right() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let mut body = cites("source");
    body["model_settings"] = json!({ "model": "nowhere/model" });
    deploy(&alice, &body).await;
    let report = tested(&alice, &json!({})).await;
    let figures = &report["figures"];
    assert_eq!((&figures["judged"], &figures["correct"]), (&json!(0), &json!(0)));
    assert_eq!(figures["accuracy"]["value"], json!(0.0));
    assert_eq!(figures["kappa"], Value::Null);
    assert_eq!(report["cases"][0]["error"]["code"], "verifier_unavailable");
    assert_eq!(report["reliability"], json!({}));
}

#[tokio::test]
async fn a_wrong_case_is_named_and_nothing_is_judged() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    deploy(&alice, &cites("source")).await;
    let good = json!({ "inputs": { "response": "x" }, "passed": true });
    for (body, field) in [
        (json!({ "cases": [] }), "cases"),
        (json!({ "judges": [] }), "judges"),
        (json!({ "judges": ["a/b", "a/b"] }), "judges"),
        (json!({ "cases": [good, { "inputs": { "response": "y" } }] }), "cases.1.passed"),
        (json!({ "cases": [{ "inputs": { "other": "y" }, "passed": true }] }), "cases.0.inputs"),
        (json!({ "cases": [good, good] }), "cases.1"),
        (json!({ "cases": [good], "previous_cases": true }), "previous_cases"),
        (json!({ "previous_cases": true }), "cases"),
        (json!({ "more": 1 }), "more"),
    ] {
        let reply = alice.post("/v1/verifiers/cites/tests", &body).await;
        assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
        assert_eq!(text(&reply.json()["field"]), field, "{}", reply.text());
    }
    let runs = alice.get("/v1/verifier-runs").await.json();
    assert_eq!(runs["items"], json!([]));
    for path in ["/v1/verifiers/none/tests", "/v1/verifiers/system:safety-block/tests"] {
        assert_problem(&alice.post(path, &json!({})).await, StatusCode::NOT_FOUND, "not_found");
    }
}

#[tokio::test]
async fn an_attack_measures_how_often_injections_pass() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    // A rule that a single word satisfies is fooled by every text with the word.
    deploy(&alice, &cites("passed")).await;
    let reply = alice.post("/v1/verifiers/cites/attacks", &json!({})).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let report = reply.json();
    let (figures, rate) = (&report["figures"], &report["figures"]["success_rate"]);
    assert!(60 <= figures["n"].as_u64().unwrap(), "{figures}");
    let fooled = |case: &&Value| case["got"] == json!(true);
    let cases = report["cases"].as_array().unwrap();
    let succeeded = cases.iter().filter(fooled).count();
    assert!(0 < succeeded && succeeded < cases.len());
    assert_eq!((&figures["succeeded"], &rate["count"]), (&json!(succeeded), &json!(succeeded)));
    assert!(rate["low"].as_f64().unwrap() < rate["high"].as_f64().unwrap());
    let shown = alice.get("/v1/verifiers/cites").await.json();
    assert_eq!(shown["measured"]["attack"]["figures"], *figures);
    assert_eq!(shown["measured"]["test"], Value::Null);

    let few = json!({ "families": ["master_key"] });
    let few = alice.post("/v1/verifiers/cites/attacks", &few).await.json();
    assert!(few["cases"].as_array().unwrap().iter().all(|it| it["family"] == "master_key"));
    for families in [json!(["x"]), json!([])] {
        let body = json!({ "families": families });
        let reply = alice.post("/v1/verifiers/cites/attacks", &body).await;
        assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
        assert_eq!(text(&reply.json()["field"]), "families");
    }
}

#[tokio::test]
async fn measurements_by_other_judges_or_of_a_part_do_not_count_for_the_version() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    deploy(&alice, &cites("source")).await;
    let own = tested(&alice, &json!({})).await;
    let attacked = alice.post("/v1/verifiers/cites/attacks", &json!({})).await.json();
    assert_eq!((&own["shown"], &attacked["shown"]), (&json!(true), &json!(true)));
    let before = alice.get("/v1/verifiers/cites").await.json()["measured"].take();
    let test = &before["test"];
    assert_eq!((&test["judges"], &test["replicas"]), (&json!(["builtin/rules"]), &json!(1)));
    assert_eq!(
        (&test["families"], &before["attack"]["families"][0]),
        (&json!([]), &json!("master_key"))
    );

    let other = tested(&alice, &json!({ "judges": ["nowhere/m"] })).await;
    assert_eq!((&other["judges"], &other["shown"]), (&json!(["nowhere/m"]), &json!(false)));
    let panel = json!({ "judges": ["builtin/rules", "nowhere/m", "nowhere/n"] });
    assert_eq!(tested(&alice, &panel).await["shown"], json!(false));
    let part = json!({ "families": ["master_key"] });
    let part = alice.post("/v1/verifiers/cites/attacks", &part).await.json();
    assert_eq!((&part["families"], &part["shown"]), (&json!(["master_key"]), &json!(false)));

    let after = alice.get("/v1/verifiers/cites").await.json()["measured"].take();
    assert_eq!(after, before);
    let run = json!({ "inputs": { "response": "Frost, source: a thermometer." } });
    let run = alice.post("/v1/verifiers/cites/runs", &run).await.json();
    assert_eq!(run["measured"], before);
    // The next version is compared with the verdicts of its own judge, not with those of others.
    let named = tested(&alice, &json!({ "judges": ["builtin/rules"] })).await;
    assert_eq!(named["shown"], json!(true));
}

#[tokio::test]
async fn attacks_without_a_verdict_are_counted_by_family() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    deploy(&alice, &cites("passed")).await;
    let body = json!({ "families": ["flattery"], "judges": ["nowhere/m"] });
    let report = alice.post("/v1/verifiers/cites/attacks", &body).await.json();
    let figures = &report["figures"];
    assert_eq!(figures["inconclusive"], figures["n"]);
    assert_eq!(figures["families"][0]["inconclusive"], figures["n"]);
}

#[tokio::test]
async fn a_version_whose_judge_cannot_be_asked_is_deployed_with_a_warning() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let mut body = cites("source");
    assert!(deploy(&alice, &body).await.get("warnings").is_none());
    body["name"] = json!("other");
    body["model_settings"] = json!({ "model": "nowhere/model" });
    let deployed = deploy(&alice, &body).await;
    let warning = text(&deployed["warnings"][0]);
    assert!(warning.contains("the provider `nowhere` is not configured; configured: builtin"));
}
