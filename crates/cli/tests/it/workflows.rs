//! `jurat workflows`, as far as the command line itself decides.

use std::fs;

use serde_json::{Value, json};

use crate::{
    home::Home,
    samples::{sample, with},
    scripted::Scripted,
};

const ID: &str = "0198c1f0-0000-7000-8000-000000000001";

fn saved() -> Value {
    let members = json!({
        "workflow_id": ID, "name": "Report", "version": 1, "version_token": "t1",
        "authoring_notes": ["No outcome is stated."],
    });
    sample("SavedWorkflow", members)
}

#[test]
fn a_folder_is_sent_with_its_files_except_ignored_ones() {
    let home = Home::new();
    let folder = home.path().join("report");
    for (name, text) in [
        ("SKILL.md", "# Do"),
        ("a/short.md", "# Short"),
        (".juratignore", "secret.txt\n!keep.log\n"),
        ("secret.txt", "no"),
        ("keep.log", "yes"),
        ("other.log", "no"),
        ("node_modules/x.js", "no"),
    ] {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    fs::write(folder.join("b.bin"), [0_u8, 255]).unwrap();
    let server = Scripted::new().on("POST /v1/workflows", 201, saved());
    let arguments = ["skills", "publish", "report", "--name", "Report", "--verifier", "yes=v@2"];
    let ran = server.run(&home, &arguments).ok();
    assert!(ran.err.contains("No outcome is stated."), "{}", ran.err);
    let [(_, body)] = server.asked().try_into().unwrap();
    assert_eq!(body["body"], "# Do");
    assert_eq!(body["verifiers"], json!([{ "name": "yes", "verifier_id": "v@2" }]));
    let expected = json!([
        { "path": ".juratignore", "content": "secret.txt\n!keep.log\n" },
        { "path": "a/short.md", "content": "# Short" },
        { "path": "b.bin", "content_base64": "AP8=" },
        { "path": "keep.log", "content": "yes" },
    ]);
    assert_eq!(body["files"], expected);
}

#[test]
fn an_invalid_workflow_is_refused_before_anything_is_sent() {
    let home = Home::new();
    fs::create_dir(home.path().join("empty")).unwrap();
    fs::write(home.path().join("bytes.md"), [0xff]).unwrap();
    let server = Scripted::new();
    for (file, text) in [
        ("none.md", "`none.md` cannot be read"),
        ("empty", "`empty` has no WORKFLOW.md and no SKILL.md"),
        ("bytes.md", "`bytes.md` is not UTF-8 text"),
    ] {
        let ran = server.run(&home, &["workflows", "publish", file]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(text), "{}", ran.err);
    }
    assert_eq!(server.asked(), []);
}

const BODY: &str =
    "---\nname: Report\n---\n```checks\n{\"checks\": [{\"required\": [\"title\"]}]}\n```\n";

fn round(verdict: &str) -> Value {
    let whole = sample("VerdictReply", json!({ "verdict": verdict, "round_id": "rnd_1" }));
    let replica = with(whole["replicas"][0].clone(), json!({ "notes": ["checks.0: found"] }));
    let agreed = json!({ "outcome": "agreed", "disagreement": false });
    let consensus = with(whole["consensus"].clone(), agreed);
    let sure = json!({ "confidence": 0.9, "replicas": [replica], "consensus": consensus });
    with(whole, sure)
}

fn judged(passed: Option<bool>) -> Value {
    let why = "because";
    let members =
        json!({ "passed": passed, "reasoning": why, "error_message": why, "round_id": "rnd_2" });
    sample("VerifierRun", members)
}

#[test]
fn checks_pass_fail_or_stay_undecided() {
    let home = Home::new();
    fs::write(home.path().join("report.md"), BODY).unwrap();
    fs::write(home.path().join("out.json"), r#"{"title": "A", "response": "yes"}"#).unwrap();
    let members = json!({
        "id": ID, "version": 3, "body": BODY,
        "verifiers": [{ "name": "yes", "verifier_id": "v1", "version": 2 }],
    });
    let workflow = sample("Workflow", members);
    let verifier = sample("Verifier", json!({ "input_fields": ["response"] }));
    for (verdict, passed, code) in [
        ("VALID", Some(true), 0),
        ("INVALID", Some(true), 11),
        ("VALID", Some(false), 11),
        ("VALID", None, 12),
        ("INVALID", None, 11),
    ] {
        for named in ["report.md", "Report"] {
            let server = Scripted::new()
                .on("GET /v1/workflows/Report", 200, &workflow)
                .on("GET /v1/verifiers/v1@2", 200, &verifier)
                .on("POST /api/v3/validate", 200, round(verdict))
                .on("POST /v1/verifiers/v1@2/runs", 201, judged(passed));
            let ran = server
                .run(&home, &["workflows", "run-checks", named, "--output", "out.json", "--json"]);
            assert_eq!(ran.code, code, "{verdict} {passed:?}: {}{}", ran.out, ran.err);
            let checks = ran.json()["checks"].as_array().unwrap().len();
            assert_eq!(checks, 2);
            let sent = server.asked();
            let (_, claim) = sent.iter().find(|(at, _)| at.contains("validate")).unwrap();
            assert_eq!(claim["claim"]["output"]["title"], "A");
            assert_eq!(claim["policy"]["policy_id"], "vp.checks.v1");
            let (_, run) = sent.iter().find(|(at, _)| at.ends_with("/runs")).unwrap();
            let inputs = json!({ "response": "yes" });
            assert_eq!((&run["inputs"], &run["workflow_id"]), (&inputs, &json!(ID)));
        }
    }
}

#[test]
fn an_unsaved_file_is_checked_by_its_own_block() {
    let home = Home::new();
    fs::write(home.path().join("report.md"), BODY).unwrap();
    fs::write(home.path().join("plain.md"), "# Do").unwrap();
    fs::write(home.path().join("out.txt"), "plain").unwrap();
    let missing = json!({ "code": "not_found", "message": "there is no workflow `report`" });
    let server = Scripted::new().on("GET /v1/workflows/Report", 404, missing).on(
        "POST /api/v3/validate",
        200,
        round("VALID"),
    );
    let ran = server.run(&home, &["workflows", "run-checks", "report.md", "--output", "out.txt"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = server.run(&home, &["workflows", "run-checks", "plain.md", "--output", "out.txt"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("has nothing to check"), "{}", ran.err);
}

#[test]
fn checks_need_no_executor_and_name_what_failed() {
    let home = Home::new();
    let _server = home.serve();
    let body = "---\nname: Report\n---\n```checks\n{\"checks\": [\
        {\"name\": \"has-title\", \"required\": [\"title\"]},\
        {\"name\": \"short\", \"path\": \"/title\", \"regex\": \"^.{1,5}$\"}]}\n```\n";
    fs::write(home.path().join("report.md"), body).unwrap();
    for (output, code, said) in [
        (r#"{"title": "A"}"#, 0, "PASS"),
        (r#"{"title": "A long one"}"#, 11, "Check `short` failed"),
        (r#"{"text": "A"}"#, 11, "Check `has-title` failed"),
    ] {
        fs::write(home.path().join("out.json"), output).unwrap();
        let args = ["workflows", "run-checks", "report.md", "--output", "out.json", "--json"];
        let ran = home.run(&args);
        assert_eq!(ran.code, code, "{output}: {}{}", ran.out, ran.err);
        assert!(ran.out.contains(said), "{output}: {}", ran.out);
    }
}
