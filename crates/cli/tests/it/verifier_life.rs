//! The life of a verifier on a real server, and without one.

use std::fs;

use serde_json::{Value, json};

use crate::home::{Home, Ran};

const GOOD: &str = r#"{"response": "The source says so."}"#;
const BAD: &str = r#"{"response": "I know."}"#;

fn verifier(name: &str, criterion: &Value, model: &str) -> Value {
    json!({
        "name": name, "description": "The response names its source.",
        "criterion": criterion.to_string(), "input_contract": "text", "input_fields": ["response"],
        "few_shot_examples": [
            {"inputs": {"response": "The source says so."}, "passed": true, "reasoning": "Cited."},
            {"inputs": {"response": "Because."}, "passed": false},
        ],
        "model_settings": {"model": model},
    })
}

fn names_source() -> Value {
    json!({"contains": {"field": "response", "text": "source"}})
}

/// Deploys this document, and returns the id and the token.
#[track_caller]
fn deploy(home: &Home, body: &Value, flags: &[&str]) -> (String, String) {
    fs::write(home.path().join("v.json"), body.to_string()).unwrap();
    let args = [&["verifiers", "deploy", "v.json", "--json"], flags].concat();
    let reply = home.run(&args).ok().json();
    let text = |name: &str| reply[name].as_str().unwrap().to_owned();
    (text("verifier_id"), text("version_token"))
}

fn run(home: &Home, args: &[&str]) -> Ran {
    home.run(&[&["verifiers", "run"], args].concat())
}

#[test]
fn a_verifier_is_deployed_run_compared_revoked_and_deleted() {
    let home = Home::new();
    let _server = home.serve();
    let body = verifier("cites", &names_source(), "builtin/rules");
    let (id, token) = deploy(&home, &body, &[]);
    // The next version needs the token, which the refusal names.
    let ran = home.run(&["verifiers", "deploy", "v.json"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("  hint: ") && ran.err.contains(&token), "{}", ran.err);
    let short = json!({"all": [names_source(), {"length": {"field": "response", "max": 10}}]});
    let body = verifier("cites", &short, "builtin/rules");
    fs::write(home.path().join("v.json"), body.to_string()).unwrap();
    let args = ["verifiers", "deploy", "v.json", "--expected-version-token", &token];
    let ran = home.run(&args).ok();
    let expected = format!("Deployed cites v2 (verifier_id={id}, version_token=");
    assert!(ran.out.starts_with(&expected) && ran.out.ends_with(")\n"), "{}", ran.out);

    let ran = run(&home, &["cites", "--inputs-json", GOOD, "--version", "1"]).ok();
    assert!(ran.out.starts_with("PASS verifier_run_id="), "{}", ran.out);
    assert_eq!(run(&home, &["cites", "--inputs-json", GOOD, "--gate"]).code, 11);
    assert_eq!(run(&home, &[&id, "--inputs-json", BAD, "-v", "1", "--gate"]).code, 11);
    let ran = run(&home, &["cites", "--input", "answer=x"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("`inputs`"), "{}", ran.err);

    let ran = home.run(&["verifiers", "diff", "cites"]).ok();
    assert!(ran.out.starts_with("cites: version 1 → version 2\n\ncriterion\n- "), "{}", ran.out);
    let ran = home.run(&["verifiers", "versions", "cites"]).ok();
    assert_eq!(ran.out.matches("current").count(), 1, "{}", ran.out);
    let shown = home.run(&["verifiers", "show", "cites", "-v", "1"]).ok().out;
    for text in ["1 (current is 2)", "builtin/rules", "Cited.", "contains"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }

    home.run(&["verifiers", "revoke", "cites"]).ok();
    let ran = home.run(&["verifiers", "show", "cites"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("error: there is no verifier `cites`"), "{}", ran.err);
    // Its runs are still recorded, under its id.
    let runs = home.run(&["verifiers", "runs", &id, "--json"]).ok().json();
    assert_eq!(runs["items"].as_array().unwrap().len(), 3, "{runs}");
    assert_eq!(home.run(&["verifiers", "delete", &id]).ok().out, "Permanently deleted cites\n");
    let runs = home.run(&["verifiers", "runs", "--json"]).ok().json();
    assert_eq!(runs["items"], json!([]));
}

#[test]
fn a_verifier_needs_no_server() {
    let home = Home::new();
    let (id, _) = deploy(&home, &verifier("cites", &names_source(), "builtin/rules"), &[]);
    let ran = run(&home, &["cites", "--inputs-json", GOOD]).ok();
    assert!(ran.out.starts_with("PASS verifier_run_id="), "{}", ran.out);
    let listed = home.run(&["verifiers", "list", "--all"]).ok().json();
    assert_eq!(listed["items"][0]["verifier_id"], *id);
}

#[test]
fn runs_are_found_by_their_result() {
    let home = Home::new();
    let _server = home.serve();
    deploy(&home, &verifier("cites", &names_source(), "builtin/rules"), &[]);
    deploy(&home, &verifier("other", &names_source(), "builtin/rules"), &[]);
    run(&home, &["cites", "--inputs-json", GOOD]).ok();
    let failed =
        run(&home, &["cites", "--inputs-json", BAD, "--run-id", "nightly", "--json"]).ok().json();
    run(&home, &["other", "--inputs-json", BAD]).ok();
    let count = |args: &[&str]| {
        let ran = home.run(&[&["verifiers", "runs"], args, &["--json"]].concat()).ok();
        ran.json()["items"].as_array().unwrap().len()
    };
    assert_eq!(count(&[]), 3);
    assert_eq!(count(&["cites"]), 2);
    assert_eq!(count(&["cites", "--verdict", "failed"]), 1);
    assert_eq!(count(&["--verdict", "failed", "--all", "--limit", "1"]), 2);
    assert_eq!(count(&["--purpose", "test"]), 0);
    assert_eq!(count(&["--until", "2020-01-01T00:00:00Z"]), 0);
    let lines = home.run(&["verifiers", "runs", "cites", "--jsonl"]).ok().out;
    assert_eq!(lines.lines().count(), 2, "{lines}");
    let id = failed["verifier_run_id"].as_str().unwrap();
    let shown = home.run(&["verifiers", "runs", "show", id]).ok().out;
    for text in ["failed", "nightly", "builtin/rules", "INVALID"] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let shown = home.run(&["verifiers", "runs", "show", id, "--json"]).ok().json();
    assert_eq!(shown["receipt_id"], failed["receipt_id"]);
    let table = home.run(&["verifiers", "runs", "cites"]).ok().out;
    assert!(table.contains(id) && table.contains("passed"), "{table}");
}

#[test]
fn a_judge_that_cannot_be_asked_gives_no_verdict() {
    let home = Home::new();
    fs::create_dir_all(home.state()).unwrap();
    let file = "[providers.dead]\nbase_url = \"http://127.0.0.1:1/v1\"\n\
                [providers.keyed]\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"KEYED\"\n";
    fs::write(home.state().join("jurat.toml"), file).unwrap();
    let _server = home.serve();
    deploy(&home, &verifier("dead", &names_source(), "dead/model"), &[]);
    deploy(&home, &verifier("keyed", &names_source(), "keyed/model"), &[]);
    for name in ["dead", "keyed"] {
        let ran = run(&home, &[name, "--inputs-json", GOOD]);
        assert_eq!(ran.code, 1, "{}", ran.err);
        assert!(ran.out.starts_with("ERROR verifier_run_id="), "{}", ran.out);
        assert!(ran.out.contains(" verifier_unavailable: "), "{}", ran.out);
    }
    let ran = run(&home, &["keyed", "--inputs-json", GOOD, "--json"]);
    assert_eq!((ran.code, &ran.json()["status"]), (1, &json!("error")));
    let ran = run(&home, &["keyed", "--inputs-json", GOOD, "--gate", "--junit", "out.xml"]);
    assert_eq!(ran.code, 12);
    let xml = fs::read_to_string(home.path().join("out.xml")).unwrap();
    assert!(xml.contains("errors=\"1\"") && xml.contains("verifier_unavailable"), "{xml}");
    // The verifier's judge is only its default.
    run(&home, &["dead", "--inputs-json", GOOD, "--judge", "builtin/rules", "--gate"]).ok();
}

#[test]
fn a_run_under_a_key_is_made_once() {
    let home = Home::new();
    let _server = home.serve();
    deploy(&home, &verifier("cites", &names_source(), "builtin/rules"), &[]);
    let args = ["cites", "--inputs-json", GOOD, "--idempotency-key", "k1", "--json"];
    let [first, again] = [(); 2].map(|()| run(&home, &args).ok().json());
    assert_eq!(first["verifier_run_id"], again["verifier_run_id"]);
    let runs = home.run(&["verifiers", "runs", "--json"]).ok().json();
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
}

#[test]
fn the_example_of_the_guides_works() {
    let home = Home::new();
    let example = include_str!("../../../../docs/examples/names-its-source.json");
    let example: Value = serde_json::from_str(example).unwrap();
    deploy(&home, &example, &[]);
    let cases = example["few_shot_examples"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases {
        let inputs = case["inputs"].to_string();
        let ran = run(&home, &["names-its-source", "--inputs-json", &inputs, "--json"]).ok();
        assert_eq!(ran.json()["passed"], case["passed"], "{inputs}");
    }
}

/// Version 1 passes responses with a source, and version 2 none: a regression.
#[test]
fn a_version_is_measured_and_a_regression_is_noticed() {
    let home = Home::new();
    let _server = home.serve();
    let (id, token) = deploy(&home, &verifier("cites", &names_source(), "builtin/rules"), &[]);
    let data = [
        json!({"id": "a", "inputs": {"response": "The source says so."}, "passed": true}),
        json!({"id": "b", "inputs": {"response": "A source."}, "passed": true}),
        json!({"id": "c", "inputs": {"response": "Because."}, "passed": false}),
        json!({"id": "d", "inputs": {"response": "No source at all."}, "passed": false}),
    ];
    let lines: Vec<String> = data.iter().map(ToString::to_string).collect();
    fs::write(home.path().join("data.jsonl"), lines.join("\n")).unwrap();
    let test = |args: &[&str]| home.run(&[&["verifiers", "test", "cites"], args].concat());
    let ran = test(&["--data", "data.jsonl"]).ok();
    assert!(ran.out.contains(" right        75.0 %"), "{}", ran.out);
    assert!(ran.out.contains("case d: should fail, was judged pass: "), "{}", ran.out);
    for (flags, code) in [
        (&[][..], 11),
        (&["--min-accuracy", "0.75"], 0),
        (&["--max-false-pass", "0.4"], 11),
        (&["--max-false-pass", "0.5"], 0),
    ] {
        let ran = test(&[&["--data", "data.jsonl", "--gate"], flags].concat());
        assert_eq!(ran.code, code, "{flags:?}: {}", ran.err);
    }
    // Its own examples are right, and it is shown from now on.
    test(&["--gate"]).ok();
    let shown = home.run(&["verifiers", "show", "cites"]).ok().out;
    assert!(shown.contains("accuracy      100.0 % ("), "{shown}");
    test(&["--data", "data.jsonl"]).ok();

    let never = json!({"contains": {"field": "response", "text": "no such text"}});
    let body = verifier("cites", &never, "builtin/rules");
    fs::write(home.path().join("v.json"), body.to_string()).unwrap();
    let args = ["verifiers", "deploy", "v.json", "--expected-version-token", &token];
    let ran = home.run(&args).ok();
    assert!(ran.out.starts_with(&format!("Deployed cites v2 (verifier_id={id}, ")), "{}", ran.out);
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    assert!(ran.err.contains("compared with version 1: 3 flips"), "{}", ran.err);
    assert!(ran.err.contains("warning: it does worse than version 1"), "{}", ran.err);
    let report = test(&["--previous-cases", "--compare", "--json"]).ok().json();
    assert_eq!(report["compared"]["is_worse"], true, "{report}");
    assert_eq!(report["figures"]["n"], 4);
}

#[test]
fn rules_ignore_injections() {
    let home = Home::new();
    let _server = home.serve();
    let word = json!({"contains": {"field": "response", "text": "xyzzy"}});
    deploy(&home, &verifier("magic", &word, "builtin/rules"), &[]);
    let ran = home.run(&["verifiers", "attack", "magic", "--gate"]).ok();
    assert!(ran.out.contains(" all "), "{}", ran.out);
    let args =
        ["verifiers", "attack", "magic", "--family", "authority", "--json", "--junit", "out.xml"];
    let body = home.run(&args).ok().json();
    assert_eq!(body["figures"]["families"].as_array().unwrap().len(), 1, "{body}");
    assert_eq!(body["figures"]["succeeded"], 0);
    let xml = fs::read_to_string(home.path().join("out.xml")).unwrap();
    assert!(xml.contains("classname=\"jurat.verifiers.attack\"") && xml.contains("failures=\"0\""));
    let ran = home.run(&["verifiers", "attack", "magic", "--family", "voodoo"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("families"), "{}", ran.err);
}
