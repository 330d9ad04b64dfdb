//! Runs the examples of the guide as a reader would.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use jurat_core::policy::{HashCheck, ResultFields, check_result_hash};

use crate::server::{Server, execute_request, verify_request};

/// An example on a free port; it ends with the test.
struct Example {
    server: Server,
    family: &'static str,
    _process: Child,
}

impl Example {
    async fn python() -> Self {
        Self::interpreted("python3", "executor.py", "my-python").await
    }

    async fn typescript() -> Self {
        Self::interpreted("node", "executor.ts", "my-typescript").await
    }

    async fn interpreted(program: &str, file: &str, family: &'static str) -> Self {
        let path = format!("{}/../../docs/examples/{file}", env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(program);
        command.args([path.as_str(), "0", "model-of-the-test"]);
        Self::start(command, family).await
    }

    /// Cargo builds the examples of a crate with its tests.
    async fn rust() -> Self {
        let tests = std::env::current_exe().unwrap();
        let built = tests.parent().unwrap().parent().unwrap().join("examples/shout");
        let mut command = Command::new(built);
        command.arg("0");
        Self::start(command, "shout").await
    }

    async fn start(mut command: Command, family: &'static str) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut process = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let ready = lines.next_line().await.unwrap();
        let ready = ready.unwrap_or_else(|| {
            panic!("{command:?} ended at once; Node must be version 24 or newer, which scripts/test installs")
        });
        let address = ready.strip_prefix("listening on http://").unwrap().parse().unwrap();
        Self { server: Server::at(address), family, _process: process }
    }

    async fn judge(&self, claim: &str) -> (Value, HashCheck) {
        let request = verify_request(&json!(claim), &json!({}), "vp.claim.v1", &json!({"a": 1.0}));
        let reply = self.server.post("/verify", &request).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let hash = check(&request, &reply.json);
        (reply.json, hash)
    }
}

/// Jurat's own check of the hash.
fn check(request: &Value, reply: &Value) -> HashCheck {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let codes = reply["reason_codes"].as_array().unwrap().iter();
    let codes: Vec<u16> =
        codes.map(|code| u16::try_from(code.as_u64().unwrap()).unwrap()).collect();
    let fields = ResultFields {
        candidate_id: &text(&request["candidate"]["candidate_id"]),
        execution_id: &text(&request["candidate"]["execution_id"]),
        passed: reply["passed"].as_bool().unwrap(),
        score: reply["score"].as_f64().unwrap(),
        reason_codes: &codes,
        provider_family: &text(&reply["provider_family"]),
        model_id: &text(&reply["model_id"]),
        policy_hash: &text(&request["policy"]["policy_hash"]),
    };
    check_result_hash(&text(&reply["verifier_result_hash"]), &fields)
}

/// The tests of every example that has a file of its own.
macro_rules! stories {
    ($($story:ident),+ $(,)?) => {
        mod python {
            $(#[tokio::test]
            async fn $story() {
                super::$story(super::Example::python().await).await;
            })+
        }

        mod typescript {
            $(#[tokio::test]
            async fn $story() {
                super::$story(super::Example::typescript().await).await;
            })+
        }
    };
}

stories!(
    it_says_that_it_is_well_and_what_it_can_do,
    it_answers_and_the_same_execution_gets_the_same_answer,
    it_checks_facts,
    its_verdicts_carry_the_hash_that_jurat_expects,
    it_refuses_a_binding_whose_hash_is_wrong,
    it_gives_no_verdict_under_a_policy_that_it_cannot_evaluate,
    a_request_of_another_shape_is_a_422,
);

async fn it_says_that_it_is_well_and_what_it_can_do(example: Example) {
    assert_eq!(example.server.get("/health").await.json, json!({"status": "ok"}));
    let capabilities = example.server.get("/capabilities").await.json;
    let expected = json!({
        "task_types": ["*"], "profiles": ["default"], "provider_family": example.family,
        "model_id": "model-of-the-test", "policies": ["vp.claim.v1"],
    });
    assert_eq!(capabilities, expected);
}

async fn it_answers_and_the_same_execution_gets_the_same_answer(example: Example) {
    let request = execute_request("exec-1", "delegate", &json!({"prompt": "Say hello"}));
    let first = example.server.post("/execute", &request).await;
    let expected = json!({
        "candidate_output": {"answer": "Say hello", "confidence": 0.9},
        "evidence_inline": [], "evidence_refs": [],
    });
    assert_eq!((first.status, &first.json), (200, &expected));
    assert_eq!(example.server.post("/execute", &request).await, first);
    let other = execute_request("exec-1", "delegate", &json!({"prompt": "Say goodbye"}));
    let refused = example.server.post("/execute", &other).await;
    assert_eq!((refused.status, &refused.json["error"]), (409, &json!("execution_id_reused")));
}

async fn it_checks_facts(example: Example) {
    for (claim, expected) in [("2 + 2 = 4", "TRUE"), ("2 + 2 = 5", "FALSE"), ("Hm", "UNSURE")] {
        let request = execute_request(claim, "factcheck", &json!({"claim": claim}));
        let reply = example.server.post("/execute", &request).await;
        assert_eq!(reply.json["candidate_output"]["verdict"], expected, "{claim}");
    }
}

async fn its_verdicts_carry_the_hash_that_jurat_expects(example: Example) {
    for (claim, status, codes) in [
        ("2 + 2 = 4", "passed", json!([])),
        ("2 + 2 = 5", "failed", json!([1020])),
        ("The moon is made of cheese", "inconclusive", json!([1021])),
    ] {
        let (verdict, hash) = example.judge(claim).await;
        assert_eq!(verdict["verification_status"], status, "{claim}");
        assert_eq!(verdict["reason_codes"], codes, "{claim}");
        assert_eq!(hash, HashCheck::Right, "{claim}");
    }
}

async fn it_refuses_a_binding_whose_hash_is_wrong(example: Example) {
    let mut request = verify_request(&json!("2 + 2 = 4"), &json!({}), "vp.claim.v1", &json!({}));
    request["policy"]["policy_params"] = json!({"changed": true});
    let reply = example.server.post("/verify", &request).await;
    assert_eq!((reply.status, &reply.json["error"]), (400, &json!("policy_invalid")));
}

async fn it_gives_no_verdict_under_a_policy_that_it_cannot_evaluate(example: Example) {
    let schema = json!({"type": "object"});
    let request = verify_request(&json!({}), &schema, "vp.schema_only.v1", &json!({}));
    let reply = example.server.post("/verify", &request).await;
    assert_eq!((reply.status, &reply.json["error"]), (422, &json!("policy_unsupported")));
}

async fn a_request_of_another_shape_is_a_422(example: Example) {
    for body in [json!([]), json!({"execution_id": "e", "task_contract": 5})] {
        let reply = example.server.post("/execute", &body).await;
        assert_eq!((reply.status, &reply.json["error"]), (422, &json!("request_invalid")));
    }
}

#[tokio::test]
async fn the_rust_example_answers_with_policies_of_the_library() {
    let example = Example::rust().await;
    let capabilities = example.server.get("/capabilities").await.json;
    assert_eq!(capabilities["provider_family"], example.family);
    let request = execute_request("exec-1", "delegate", &json!({"prompt": "Say hello"}));
    let reply = example.server.post("/execute", &request).await;
    assert_eq!(reply.json["candidate_output"], json!({"answer": "SAY HELLO"}));
    let schema = json!({"type": "object"});
    for (output, passed) in [(json!({}), true), (json!(1), false)] {
        let request = verify_request(&output, &schema, "vp.schema_only.v1", &json!({}));
        let verdict = example.server.post("/verify", &request).await.json;
        assert_eq!(verdict["passed"], passed);
        assert_eq!(check(&request, &verdict), HashCheck::Right);
    }
}
