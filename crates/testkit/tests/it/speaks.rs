//! The correct answers: capabilities, health, verdicts, outputs, hashes, and their timing.

use jurat_core::canonical::digest;
use jurat_testkit::fake_executor::{
    ExecutorFault, FakeExecutor, FakeHealth, Gate, answers, bare_hash, contradicts, fact, gated,
    late, needs_spec, no_hash, placeholder_hash, says_inconclusive, says_invalid, says_valid,
    score, wrong_hash, wrong_score,
};
use serde_json::json;

use crate::client::{Client, WORK, ask, posted, status, verify_request};

#[tokio::test]
async fn a_real_client_reads_verdicts_over_one_connection_and_every_call_is_recorded() {
    let fake = FakeExecutor::start(says_valid()).await;
    let client = reqwest::Client::default();
    for path in ["/health", "/capabilities"] {
        assert_eq!(client.get(fake.url() + path).send().await.unwrap().status(), 200);
    }
    let sent = verify_request().to_string();
    let request = client.post(fake.url() + "/verify?a=b").header("X-Jurat-Replica", "2");
    let reply = request.body(sent.clone()).send().await.unwrap().text().await.unwrap();
    assert!(reply.contains("\"passed\":true"), "{reply}");

    fake.wait_for_calls(1).await;
    let calls = fake.calls();
    assert_eq!(calls.len(), 3);
    assert_eq!((calls[2].method.as_str(), calls[2].path.as_str()), ("POST", "/verify?a=b"));
    assert_eq!(calls[2].endpoint(), "verify");
    assert_eq!(calls[2].header("x-jurat-replica"), Some("2"));
    assert_eq!(calls[2].body, verify_request());
    assert_eq!(calls[2].raw, sent);
    assert!(calls[0].body.is_null());
}

#[tokio::test]
async fn it_declares_what_it_was_built_with() {
    let behaviour = says_valid()
        .provider_family("acme")
        .model_id("m-7")
        .task_types(&["swarm"])
        .profiles(&["careful"])
        .policies(&["vp.claim.v1"]);
    let fake = FakeExecutor::start(behaviour).await;
    let mut client = Client::connect(&fake).await;
    client.get("/capabilities").await;
    let declared = json!({
        "provider_family": "acme", "model_id": "m-7", "task_types": ["swarm"],
        "profiles": ["careful"], "policies": ["vp.claim.v1"],
    });
    assert_eq!(client.reply_json().await, (200, declared));

    client.post("/verify", &verify_request()).await;
    let (_, answer) = client.reply_json().await;
    assert_eq!((&answer["provider_family"], &answer["model_id"]), (&json!("acme"), &json!("m-7")));

    fake.set(says_valid().capabilities_fault(ExecutorFault::HangsUp));
    client.get("/capabilities").await;
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn its_health_can_change_while_it_runs() {
    let fake = FakeExecutor::start(says_valid()).await;
    let mut client = Client::connect(&fake).await;
    client.get("/health").await;
    assert_eq!(client.reply_json().await, (200, json!({ "status": "ok" })));
    fake.set(says_valid().health(FakeHealth::Status(503)));
    client.get("/health").await;
    assert_eq!(client.reply_json().await.0, 503);
    fake.set(says_valid().health(FakeHealth::HangsUp));
    client.get("/health").await;
    assert_eq!(client.rest().await, "");

    fake.set(says_valid().health(FakeHealth::Hangs));
    let mut client = Client::connect(&fake).await;
    client.get("/health").await;
    drop(client);
    fake.abandoned(1).await;
}

#[tokio::test]
async fn verdicts_are_what_their_names_say() {
    for (behaviour, passed, status, codes) in [
        (says_valid(), true, "passed", json!([])),
        (says_invalid(), false, "failed", json!([101])),
        (says_inconclusive(), false, "inconclusive", json!([200])),
        (contradicts(), true, "failed", json!([])),
        (says_invalid().reason_codes(&[1000]), false, "failed", json!([1000])),
    ] {
        let (code, answer) = ask(behaviour, "/verify").await;
        assert_eq!(code, 200);
        assert_eq!(answer["passed"], passed);
        assert_eq!(answer["verification_status"], status);
        assert_eq!(answer["reason_codes"], codes);
        assert_eq!(answer["score"], 1.0);
    }
    let refusal = (422, json!({ "error": "policy_unsupported" }));
    assert_eq!(ask(needs_spec(), "/verify").await, refusal);
    let (_, silent) = ask(says_valid().without_status(), "/verify").await;
    assert!(silent.get("verification_status").is_none());
}

#[tokio::test]
async fn scores_are_as_given() {
    assert_eq!(ask(score(0.25), "/verify").await.1["score"], 0.25);
    assert_eq!(ask(wrong_score(), "/verify").await.1["score"], 1.7);
    let fact = ask(fact("FALSE").score(0.8), "/execute").await.1;
    assert_eq!(fact["candidate_output"], json!({ "verdict": "FALSE", "confidence": 0.8 }));
}

#[tokio::test]
async fn the_hash_covers_the_eight_fields_in_order_and_keeps_a_whole_score_as_float() {
    let text = |score: &str| {
        format!(
            "{{\"candidate_id\":\"cand-1\",\"execution_id\":\"exec-1\",\"model_id\":\"fake-1\",\
             \"passed\":true,\"policy_hash\":\"sha256:abc\",\"provider_family\":\"fake\",\
             \"reason_codes\":[],\"score\":{score}}}"
        )
    };
    let right = digest(text("1.0").as_bytes());
    let hash = async |behaviour| ask(behaviour, "/verify").await.1["verifier_result_hash"].clone();
    assert_eq!(hash(says_valid()).await, right);
    assert_eq!(hash(says_valid().score_as(json!(1))).await, digest(text("1").as_bytes()));
    assert_eq!(hash(bare_hash()).await, right.trim_start_matches("sha256:"));
    assert_eq!(hash(placeholder_hash()).await, "sha256:placeholder");
    assert!(hash(no_hash()).await.is_null());
    let wrong = hash(wrong_hash()).await;
    assert_ne!(wrong, right);
    assert_eq!(wrong.as_str().unwrap().len(), right.len());
}

#[tokio::test]
async fn execute_answers_an_output_with_its_evidence() {
    let behaviour = answers(json!([1, "two"]))
        .evidence("text/plain", "seen")
        .evidence_ref(json!({ "uri": "http://127.0.0.1:1/" }));
    let body = json!({
        "candidate_output": [1, "two"],
        "evidence_inline": [{ "mime": "text/plain", "content": "seen" }],
        "evidence_refs": [{ "uri": "http://127.0.0.1:1/" }],
    });
    assert_eq!(ask(behaviour, "/execute").await, (200, body));
    assert_eq!(ask(fact("TRUE"), "/execute").await.1["candidate_output"]["verdict"], "TRUE");
}

#[tokio::test]
async fn a_gated_answer_comes_after_its_release_even_when_the_behaviour_changed_in_between() {
    for path in WORK {
        let (fake, mut waiting) = posted(gated(says_valid()), path).await;
        fake.wait_for_calls(1).await;
        fake.set(says_invalid());
        let mut other = Client::connect(&fake).await;
        other.post("/verify", &verify_request()).await;
        assert_eq!(other.reply_json().await.1["passed"], false);
        assert!(waiting.0.try_read(&mut [0; 1]).is_err(), "answered before its release");
        fake.release();
        assert_eq!(waiting.reply_json().await.0, 200);
    }
}

#[tokio::test]
async fn several_fakes_wait_at_one_gate() {
    let gate = Gate::new();
    let (one, mut first) = posted(late(&gate, says_valid()), "/verify").await;
    let (two, mut second) = posted(late(&gate, says_invalid()), "/verify").await;
    one.wait_for_calls(1).await;
    two.wait_for_calls(1).await;
    one.release();
    assert!(first.0.try_read(&mut [0; 1]).is_err(), "another gate does not count");
    gate.release();
    assert_eq!(first.reply_json().await.1["passed"], true);
    assert_eq!(second.reply_json().await.1["passed"], false);
}

#[tokio::test]
async fn a_client_that_leaves_a_gated_call_is_noticed() {
    let (fake, client) = posted(gated(says_valid()), "/execute").await;
    fake.wait_for_calls(1).await;
    drop(client);
    fake.abandoned(1).await;
}

#[tokio::test]
async fn nothing_listens_after_the_end() {
    let fake = FakeExecutor::start(says_valid()).await;
    let mut client = Client::connect(&fake).await;
    client.get("/nothing/here").await;
    assert_eq!(status(&client.reply().await.0), 404);
    let url = fake.url();
    fake.stop().await;
    assert!(reqwest::get(url + "/health").await.unwrap_err().is_connect());
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn dropping_a_fake_ends_the_calls_in_progress() {
    let (fake, mut client) = posted(gated(says_valid()), "/verify").await;
    fake.wait_for_calls(1).await;
    drop(fake);
    assert_eq!(client.rest().await, "");
}
