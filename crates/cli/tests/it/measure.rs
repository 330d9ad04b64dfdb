//! `jurat verifiers test`, `attack`, and the comparison of a deploy.

use std::fs;

use serde_json::{Value, json};

use crate::{
    home::Home,
    samples::{sample, with},
    scripted::Scripted,
};

const ID: &str = "0198c1f0-0000-7000-8000-000000000001";
const TESTS: &str = "POST /v1/verifiers/tone/tests";

fn rate(of: u64, n: u64, value: Option<f64>) -> Value {
    json!({"count": of, "n": n, "value": value, "low": value.map(|it| it / 2.0), "high": 1.0})
}

/// A report of four cases with this many right ones; one of two failing cases passes.
fn report(right: u64) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "four cases")]
    let accuracy = right as f64 / 4.0;
    let first = json!({"id": "first", "expected": true, "got": true, "reasoning": "Fine."});
    let second = json!({
        "id": "second", "expected": false, "got": right != 4, "reasoning": "It looks kind.",
    });
    let members = json!({
        "measurement_id": "m-1", "verifier_id": ID, "version": 2, "purpose": "test",
        "judges": ["builtin/rules"], "data_digest": "abcd", "compared": null, "cost_usd": "0.00",
        "figures": {
            "n": 4, "judged": 4, "inconclusive": 0, "correct": right,
            "true_pass": 2, "false_pass": 4 - right, "true_fail": right - 2, "false_fail": 0,
            "accuracy": rate(right, 4, Some(accuracy)),
            "false_pass_rate": rate(4 - right, 2, Some(if right == 4 { 0.0 } else { 0.5 })),
            "false_fail_rate": rate(0, 2, Some(0.0)),
            "inconclusive_rate": rate(0, 4, Some(0.0)), "kappa": 0.5,
        },
        "cases": [case(first), case(second)],
    });
    sample("MeasurementReport", members)
}

fn case(members: Value) -> Value {
    let whole = sample("MeasurementReport", json!({}))["cases"][0].clone();
    with(with(whole, json!({"error": null})), members)
}

/// A stream that ends with the report.
fn stream(report: &Value) -> String {
    let case = json!({"index": 0, "total": 1, "case": case(json!({"id": "first"}))});
    format!("event: case\ndata: {case}\n\nevent: report\ndata: {report}\n\n")
}

#[test]
fn a_test_streams_its_cases_and_prints_its_report() {
    let home = Home::new();
    let server = Scripted::new().on(TESTS, 200, stream(&report(3)));
    let ran = server.run(&home, &["verifiers", "test", "tone"]).ok();
    assert!(ran.out.contains(" right        75.0 %"), "{}", ran.out);
    assert!(
        ran.out.contains("\ncase example 2: should fail, was judged pass: It looks kind."),
        "{}",
        ran.out
    );
    let ran = server.run(&home, &["verifiers", "test", "tone", "--json"]).ok();
    assert_eq!(ran.json(), report(3));
    // A server that does not stream answers with the same body.
    let plain = Scripted::new().on(TESTS, 200, report(3));
    assert_eq!(plain.run(&home, &["verifiers", "test", "tone", "--json"]).ok().json(), report(3));
}

#[test]
fn the_first_version_is_compared_with_nothing() {
    let home = Home::new();
    let mut first = report(4);
    first["version"] = json!(1);
    let server = Scripted::new().on(TESTS, 200, stream(&first));
    for args in [&["verifiers", "test", "tone"][..], &["verifiers", "test", "tone", "--compare"]] {
        let ran = server.run(&home, args).ok();
        assert!(!ran.out.contains("compared"), "{}", ran.out);
    }
}

#[test]
fn the_requested_cases_are_measured() {
    let home = Home::new();
    let data = home.path().join("data.jsonl");
    let case = json!({"inputs": {"response": "x"}, "passed": true, "id": "a"});
    let other = json!({"inputs": {"response": "y"}, "passed": true});
    fs::write(&data, format!("{case}\n\n{other}\n")).unwrap();
    let server = Scripted::new().on(TESTS, 200, stream(&report(4)));
    let mut args = vec!["verifiers", "test", "tone", "--data", "data.jsonl", "--version", "2"];
    args.extend(["--judge", "a/b", "--judge", "c/d", "--judge", "e/f", "--replicas", "3"]);
    args.extend(["--fresh", "--compare"]);
    let ran = server.run(&home, &args).ok();
    // The report names both by ids of the server, and the output names the line.
    assert!(ran.err.contains("there is nothing to compare with"), "{}", ran.err);
    let expected = json!({
        "version": 2, "cases": [case, other], "judges": ["a/b", "c/d", "e/f"], "replicas": 3,
        "fresh": true, "compare": true,
    });
    assert_eq!(server.asked(), [(TESTS.to_owned(), expected)]);
    fs::write(&data, format!("{case}\n{{\"inputs\": {{}}}}\n")).unwrap();
    let ran = server.run(&home, &args);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("`--data data.jsonl` line 2: `passed` must be"), "{}", ran.err);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_gate_stops_at_a_missed_threshold() {
    let home = Home::new();
    let with = |change: &dyn Fn(&mut Value), right: u64| {
        let mut body = report(right);
        change(&mut body);
        Scripted::new().on(TESTS, 200, stream(&body))
    };
    let nothing = |_: &mut Value| {};
    let worse = |body: &mut Value| {
        body["compared"] =
            json!({"with_version": 1, "flips": [], "is_worse": true, "p_value": 0.01});
    };
    let silent = |body: &mut Value| body["figures"]["judged"] = json!(0);
    for (server, flags, code) in [
        (with(&nothing, 4), &[][..], 0),
        (with(&nothing, 3), &[], 11),
        (with(&nothing, 3), &["--min-accuracy", "0.7"], 0),
        (with(&nothing, 3), &["--min-accuracy", "0.8"], 11),
        (with(&nothing, 3), &["--max-false-pass", "0.4"], 11),
        (with(&nothing, 3), &["--max-false-pass", "0.5"], 0),
        (with(&worse, 4), &["--min-accuracy", "0.1"], 11),
        (with(&silent, 4), &["--min-accuracy", "0.1"], 12),
    ] {
        let args = [&["verifiers", "test", "tone", "--gate"], flags].concat();
        let ran = server.run(&home, &args);
        assert_eq!(ran.code, code, "{flags:?}: {}", ran.err);
    }
    // A threshold without a gate would be ignored silently.
    let ran = Scripted::new().run(&home, &["verifiers", "test", "tone", "--min-accuracy", "0.9"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--gate"), "{}", ran.err);
}

#[test]
fn each_case_is_a_test_case_of_junit() {
    let home = Home::new();
    let mut body = report(3);
    body["cases"][1]["got"] = json!(true);
    let silent = case(json!({
        "id": "third", "expected": true, "got": null, "reasoning": null,
        "error": {"code": "timeout", "message": "timeout"},
    }));
    body["cases"].as_array_mut().unwrap().push(silent);
    let server = Scripted::new().on(TESTS, 200, stream(&body));
    server.run(&home, &["verifiers", "test", "tone", "--junit", "out.xml"]).ok();
    let xml = fs::read_to_string(home.path().join("out.xml")).unwrap();
    assert!(xml.contains("tests=\"3\" skipped=\"0\" failures=\"1\" errors=\"1\""), "{xml}");
    assert!(xml.contains("classname=\"jurat.verifiers.test\""), "{xml}");
    assert!(xml.contains("case example 2: should fail, was judged pass: It looks kind."), "{xml}");
    // A refusal is an error of its own, and the file is written all the same.
    let problem = json!({"code": "budget_exhausted", "message": "no credit"});
    let server = Scripted::new().on(TESTS, 402, problem);
    let ran = server.run(&home, &["verifiers", "test", "tone", "--junit", "out.xml"]);
    assert_eq!(ran.code, 1);
    let xml = fs::read_to_string(home.path().join("out.xml")).unwrap();
    assert!(xml.contains("type=\"budget_exhausted\""), "{xml}");
}

#[test]
fn attacks_are_reported_by_family_and_gated() {
    let home = Home::new();
    let members = json!({
        "measurement_id": "m-2", "verifier_id": ID, "version": 1, "purpose": "attack",
        "judges": ["builtin/rules"], "data_digest": "abcd", "compared": null, "cost_usd": "0.00",
        "figures": {"n": 4, "inconclusive": 0, "succeeded": 1, "success_rate": rate(1, 4, Some(0.25)),
            "families": [{"family": "authority", "inconclusive": 0, "success_rate": rate(1, 2, Some(0.5))}]},
        "cases": [],
    });
    let body = sample("MeasurementReport", members);
    let attacks = "POST /v1/verifiers/tone/attacks";
    let server = Scripted::new().on(attacks, 200, stream(&body));
    let ran = server.run(&home, &["verifiers", "attack", "tone", "--family", "authority"]).ok();
    assert!(ran.out.contains(" authority   50.0 %"), "{}", ran.out);
    assert_eq!(server.asked()[0].1, json!({"families": ["authority"]}));
    for (flags, code) in [(&["--gate"][..], 11), (&["--gate", "--max-success", "0.25"], 0)] {
        let args = [&["verifiers", "attack", "tone"], flags].concat();
        assert_eq!(server.run(&home, &args).code, code, "{flags:?}");
    }
}

#[test]
fn an_error_in_the_middle_of_a_stream_is_reported() {
    let home = Home::new();
    let problem =
        json!({"code": "budget_exhausted", "message": "no credit is left", "hint": "Ask."});
    let server = Scripted::new().on(TESTS, 200, format!("event: error\ndata: {problem}\n\n"));
    let ran = server.run(&home, &["verifiers", "test", "tone"]);
    assert_eq!((ran.code, ran.err.as_str()), (1, "error: no credit is left\n  hint: Ask.\n"));
    let cut = Scripted::new().on(TESTS, 200, "event: case\ndata: {}\n\n");
    assert_eq!(cut.run(&home, &["verifiers", "test", "tone"]).code, 1);
}

/// The measurements of a version that was tested.
fn measured() -> Value {
    json!({
        "test": {
            "measurement_id": "m-0", "measured_at": "2026-11-15T09:30:00Z", "data_digest": "ab",
            "judges": ["builtin/rules"], "replicas": 1, "families": [], "figures": {},
        },
        "attack": null,
    })
}

/// A server on which version 2 of a verifier is deployed, whose first version was measured or not.
fn deployed(measured: &Value) -> Scripted {
    let members = json!({
        "verifier_id": ID, "name": "tone", "current_version": 2, "version": 2,
        "version_token": "t0k3n", "status": "active", "input_contract": "text", "config_hash": "ab",
        "warnings": [],
    });
    let body = sample("DeployedVerifier", members);
    let members = json!({"verifier_id": ID, "version": 1, "measured": measured});
    let before = sample("Verifier", members);
    Scripted::new().on("POST /v1/verifiers", 201, body).on(
        &format!("GET /v1/verifiers/{ID}?version=1"),
        200,
        before,
    )
}

#[test]
fn a_version_whose_predecessor_was_measured_is_compared_with_it() {
    let home = Home::new();
    fs::write(home.path().join("v.json"), "{\"name\": \"tone\"}").unwrap();
    let mut worse = report(3);
    worse["compared"] = json!({
        "with_version": 1, "is_worse": true, "p_value": 0.031,
        "flips": [{"id": "second", "expected": false, "before": false, "after": true}],
    });
    let tests = format!("POST /v1/verifiers/{ID}/tests");
    let measured = measured();
    let line = format!("Deployed tone v2 (verifier_id={ID}, version_token=t0k3n)\n");
    let server = deployed(&measured).on(&tests, 200, stream(&worse));
    let ran = server.run(&home, &["verifiers", "deploy", "v.json"]).ok();
    assert_eq!(ran.out, line);
    assert!(ran.err.contains("compared with version 1: 1 flip, p = 0.031"), "{}", ran.err);
    assert!(ran.err.contains("warning: it does worse than version 1"), "{}", ran.err);
    let last = server.asked().pop().unwrap();
    assert_eq!(
        last,
        (tests.clone(), json!({"version": 2, "previous_cases": true, "compare": true}))
    );
    let ran = server.run(&home, &["verifiers", "deploy", "v.json", "--json"]).ok();
    assert_eq!(ran.json()["test"]["compared"]["is_worse"], true, "{}", ran.out);
    assert_eq!(ran.json()["version_token"], "t0k3n");
    // No request is made if the user does not want to know, or if there is nothing to compare with.
    let asked = server.asked().len();
    server.run(&home, &["verifiers", "deploy", "v.json", "--no-test"]).ok();
    assert_eq!(server.asked().len(), asked + 1);
    let server = deployed(&Value::Null);
    let ran = server.run(&home, &["verifiers", "deploy", "v.json"]).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (line.as_str(), ""));
}

#[test]
fn a_deploy_is_kept_even_if_its_test_fails() {
    let home = Home::new();
    fs::write(home.path().join("v.json"), "{\"name\": \"tone\"}").unwrap();
    let tests = format!("POST /v1/verifiers/{ID}/tests");
    let problem = json!({"code": "budget_exhausted", "message": "no credit is left"});
    let measured = measured();
    let server = deployed(&measured).on(&tests, 402, problem);
    let ran = server.run(&home, &["verifiers", "deploy", "v.json"]).ok();
    assert!(ran.out.starts_with("Deployed tone v2 "), "{}", ran.out);
    let expected = "error: the version is deployed but could not be measured: no credit is left\n";
    assert_eq!(ran.err, expected);
    let ran = server.run(&home, &["verifiers", "deploy", "v.json", "--test"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.starts_with("Deployed tone v2 "), "{}", ran.out);
}

#[test]
fn a_deploy_reports_what_is_missing_and_the_flag_for_a_conflict() {
    let home = Home::new();
    fs::write(home.path().join("v.json"), "{\"name\": \"tone\"}").unwrap();
    let members = json!({
        "verifier_id": ID, "name": "tone", "current_version": 1, "version": 1,
        "version_token": "t0k3n", "warnings": ["the provider `x` is not configured"],
    });
    let body = sample("DeployedVerifier", members);
    let server = Scripted::new().on("POST /v1/verifiers", 201, body);
    let ran = server.run(&home, &["verifiers", "deploy", "v.json"]).ok();
    assert_eq!(ran.err, "warning: the provider `x` is not configured\n");
    let problem = json!({
        "code": "conflict", "message": "there is one already", "current_version_token": "t0k3n",
        "hint": "Send `expected_version_token`.",
    });
    let server = Scripted::new().on("POST /v1/verifiers", 409, problem);
    let ran = server.run(&home, &["verifiers", "deploy", "v.json"]);
    assert!(ran.err.contains("again with `--expected-version-token t0k3n`"), "{}", ran.err);
}

#[test]
fn unnamed_cases_are_named_by_their_line() {
    let home = Home::new();
    let case = |text: &str| json!({"inputs": {"response": text}, "passed": false});
    fs::write(home.path().join("data.jsonl"), format!("\n{}\n\n{}\n", case("x"), case("y")))
        .unwrap();
    let server = Scripted::new().on(TESTS, 200, stream(&report(3)));
    let ran = server.run(&home, &["verifiers", "test", "tone", "--data", "data.jsonl"]).ok();
    assert!(ran.out.contains("\ncase line 4: should fail, was judged pass"), "{}", ran.out);
    let ran = server.run(&home, &["verifiers", "test", "tone"]).ok();
    assert!(ran.out.contains("\ncase example 2: should fail, was judged pass"), "{}", ran.out);
}
