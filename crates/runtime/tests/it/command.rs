//! The executor that runs a local program.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use jurat_runtime::engines::CommandExecutor;
use jurat_runtime::{Capabilities, ExecutorOptions};

use crate::server::{Reply, Server, execute_request, verify_request};

fn shell(script: &str) -> CommandExecutor {
    let capabilities = Capabilities {
        task_types: vec!["*".to_owned()],
        profiles: vec!["*".to_owned()],
        provider_family: "shell".to_owned(),
        model_id: "sh".to_owned(),
        policies: vec!["vp.claim.v1".to_owned(), "vp.house.v1".to_owned()],
    };
    let arguments = vec!["-c".to_owned(), script.to_owned()];
    CommandExecutor::new(capabilities, PathBuf::from("/bin/sh"), arguments)
}

async fn execute(executor: CommandExecutor) -> Reply {
    let server = Server::start(executor, ExecutorOptions::default()).await;
    server.post("/execute", &execute_request("e", "swarm", &json!({"prompt": "hello"}))).await
}

#[tokio::test]
async fn the_program_reads_the_request_and_writes_the_answer() {
    let script = r#"
        read -r request
        case "$request" in
            *'"endpoint":"execute"'*'"prompt":"hello"'*) echo '{"candidate_output": {"answer": "seen"}}' ;;
        esac"#;
    let reply = execute(shell(script)).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.json["candidate_output"], json!({"answer": "seen"}));
    assert_eq!(reply.json["evidence_refs"], json!([]));
}

#[tokio::test]
async fn the_program_judges_claims_and_policies_of_its_own() {
    let script = r#"
        case "$(cat)" in
            *'"endpoint":"judge"'*good*) echo '{"passed": true, "score": 0.8, "reason_codes": []}' ;;
            *) echo '{"passed": false, "score": 0.7, "reason_codes": [4711]}' ;;
        esac"#;
    let server = Server::start(shell(script), ExecutorOptions::default()).await;
    for (policy, output, passed) in [
        ("vp.claim.v1", "good", true),
        ("vp.house.v1", "good", true),
        ("vp.house.v1", "bad", false),
    ] {
        let request = verify_request(&json!(output), &json!({}), policy, &json!({"a": 1}));
        let reply = server.post("/verify", &request).await;
        assert_eq!(reply.json["passed"], passed, "{reply:?}");
    }
}

#[tokio::test]
async fn the_program_sees_only_the_environment_that_was_listed() {
    let mut executor =
        shell(r#"printf '{"candidate_output": "%s|%s|%s"}' "$GIVEN" "$HOME" "$CARGO_PKG_NAME""#);
    executor.environment.insert("GIVEN".to_owned(), "yes".to_owned());
    assert_eq!(execute(executor).await.json["candidate_output"], "yes||");
}

#[tokio::test]
async fn a_program_that_takes_too_long_times_out() {
    let mut executor = shell("exec tail -f /dev/null");
    executor.timeout = Duration::from_millis(50);
    let reply = execute(executor).await;
    assert_eq!((reply.status, &reply.json["error"]), (504, &json!("timeout")));
}

#[tokio::test]
async fn a_program_that_writes_too_much_is_stopped() {
    let mut executor = shell("exec yes");
    executor.output_bytes = 1_000;
    let reply = execute(executor).await;
    assert_eq!((reply.status, &reply.json["error"]), (502, &json!("upstream_failed")));
    assert_eq!(reply.json["message"], "the program wrote more than 1000 bytes");
}

#[tokio::test]
async fn the_error_output_of_a_program_is_only_for_its_operator() {
    let reply = execute(shell("echo 'no disk at /secret' >&2; exit 3")).await;
    assert_eq!((reply.status, &reply.json["error"]), (502, &json!("upstream_failed")));
    assert_eq!(reply.json["message"], "the program ended with exit status: 3");
}

#[tokio::test]
async fn stopping_a_program_stops_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // The grandchild holds the pipe open, so its reader waits until the grandchild is gone.
    let script = r#"exec 3>"$PIPE"; tail -f /dev/null >/dev/null & exec 3>&-; exec yes"#;
    let mut executor = shell(script);
    executor.environment.insert("PIPE".to_owned(), pipe.display().to_string());
    executor.output_bytes = 1_000;
    let reading = tokio::task::spawn_blocking(move || std::fs::read(pipe).unwrap());
    assert_eq!(execute(executor).await.status, 502);
    assert_eq!(reading.await.unwrap(), b"");
}

#[tokio::test]
async fn an_answer_without_output_is_an_error() {
    let reply = execute(shell(r#"echo '{"output": 1}'"#)).await;
    assert_eq!(reply.status, 502);
    assert_eq!(reply.json["message"], "the program's answer: candidate_output: is missing");
    let mut missing = shell("");
    missing.program = PathBuf::from("/no/such/program");
    let reply = execute(missing).await;
    assert_eq!((reply.status, &reply.json["message"]), (500, &json!("the program did not start")));
}

#[tokio::test]
async fn integers_of_64_bits_pass_unchanged_under_a_fixed_hash() {
    let script = r#"sed -n 's/.*"inputs":{"id":\([0-9]*\)}.*/{"candidate_output":{"id":\1}}/p'"#;
    let server = Server::start(shell(script), ExecutorOptions::default()).await;
    let mut request: serde_json::Value =
        serde_json::from_str(include_str!("golden/wattswarm-execute.json")).unwrap();
    for (number, id) in [("1", 9_007_199_254_740_993_u64), ("2", u64::MAX)] {
        request["execution_id"] = json!(format!("e{number}"));
        request["inputs"] = json!({ "id": id });
        request["task_contract"]["inputs"] = json!({});
        let reply = server.post("/execute", &request).await;
        assert_eq!(reply.json["candidate_output"], json!({ "id": id }), "{reply:?}");
    }
    // Another number under the same id is another request.
    request["inputs"] = json!({ "id": u64::MAX - 1 });
    assert_eq!(server.post("/execute", &request).await.status, 409);
    request["execution_id"] = json!("e3");
    request["task_contract"]["acceptance"]["verifier_policy"]["policy_hash"] = json!("sha256:0");
    let reply = server.post("/execute", &request).await;
    assert_eq!((reply.status, &reply.json["error"]), (400, &json!("invalid_json")), "{reply:?}");
}
