//! Executors that misbehave: each ends as a replica with an exact reason, in time, and never as a vote.

use http::StatusCode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{
        Behaviour, bare_hash, canary, contradicts, disconnects_before_headers,
        disconnects_mid_body, drips, duplicate_keys, endless_headers, gzipped, hangs, html, huge,
        no_hash, placeholder_hash, redirects_to, replies, says_valid, status, truncated_json,
        wrong_hash, wrong_json, wrong_score,
    },
};
use serde_json::{Value, json};

/// What one misbehaving replica says, asked by `/verify` and by `/execute`.
async fn asked(behaviour: impl Fn() -> Behaviour) -> [Value; 2] {
    asked_within(20_000, behaviour).await
}

/// The same with a deadline that a silent executor runs into.
async fn asked_within(timeout_ms: u64, behaviour: impl Fn() -> Behaviour) -> [Value; 2] {
    let app = TestApp::new().await;
    let _fakes = app.executors([behaviour(), behaviour()]).await;
    let timeout = json!({ "timeout_ms": timeout_ms });
    let validate =
        json!({ "claim": "x", "execution": timeout, "consensus": { "session_pool": ["s1"] } });
    let delegate =
        json!({ "objective": "x", "execution": timeout, "consensus": { "session_pool": ["s2"] } });
    let validated = app.admin().post("/api/v3/validate", &validate).await;
    let delegated = app.admin().post("/api/v3/delegate", &delegate).await;
    [validated, delegated].map(|reply| {
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
        let body = reply.json();
        assert_eq!(body["consensus"]["outcome"], "failed");
        assert_eq!(body["confidence"], 0.0);
        assert_eq!(body["consensus"]["groups"], json!([null]));
        body["replicas"][0].clone()
    })
}

#[track_caller]
fn ended_as(replicas: &[Value], label: &str, code: &str) {
    for replica in replicas {
        let said = replica.get("verdict").or_else(|| replica.get("status")).unwrap();
        assert_eq!(said, label, "{replica}");
        assert_eq!(replica["error"]["code"], code, "{replica}");
        assert!(!replica["error"]["detail"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    ended_as(&asked_within(500, hangs).await, "TIMEOUT", "timeout");
}

#[tokio::test]
async fn a_drip_ends_at_the_deadline() {
    ended_as(&asked_within(500, drips).await, "TIMEOUT", "timeout");
}

#[tokio::test]
async fn a_connection_that_closes_before_the_headers_is_a_disconnect() {
    ended_as(&asked(disconnects_before_headers).await, "ERROR", "disconnected");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_disconnect() {
    ended_as(&asked(disconnects_mid_body).await, "ERROR", "disconnected");
}

#[tokio::test]
async fn html_is_not_json() {
    ended_as(&asked(html).await, "ERROR", "not_json");
}

#[tokio::test]
async fn half_a_document_is_not_json() {
    ended_as(&asked(truncated_json).await, "ERROR", "not_json");
}

#[tokio::test]
async fn a_document_with_two_readings_is_not_json() {
    ended_as(&asked(duplicate_keys).await, "ERROR", "not_json");
}

#[tokio::test]
async fn a_500_is_said_with_its_status() {
    let replicas = asked(|| status(500)).await;
    ended_as(&replicas, "ERROR", "http_status");
    assert!(replicas[0]["error"]["detail"].as_str().unwrap().contains("500"));
}

#[tokio::test]
async fn ten_gigabytes_are_not_read() {
    ended_as(&asked(|| huge(10_000_000_000)).await, "ERROR", "too_large");
}

#[tokio::test]
async fn headers_without_end_are_not_read() {
    let replicas = asked_within(2_000, endless_headers).await;
    for replica in &replicas {
        let code = replica["error"]["code"].as_str().unwrap();
        assert!(matches!(code, "disconnected" | "timeout"), "{replica}");
    }
}

#[tokio::test]
async fn json_of_another_shape_names_the_field() {
    let replicas = asked(wrong_json).await;
    ended_as(&replicas, "ERROR", "bad_shape");
}

#[tokio::test]
async fn a_compressed_reply_is_refused() {
    ended_as(&asked(gzipped).await, "ERROR", "encoded_reply");
}

#[tokio::test]
async fn a_redirect_is_never_followed() {
    let canary = canary();
    let url = canary.url();
    ended_as(&asked(move || redirects_to(&url)).await, "ERROR", "redirect");
    assert!(!canary.was_touched());
}

#[tokio::test]
async fn a_400_in_html_comes_from_something_in_between() {
    let page = || replies(400, "text/html; charset=utf-8", "<html>bad gateway</html>");
    ended_as(&asked(page).await, "ERROR", "http_status");
}

/// The replica of one `/verify` round.
async fn verified(behaviour: Behaviour) -> Value {
    let app = TestApp::new().await;
    let _fakes = app.executors([behaviour]).await;
    app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await.json()["replicas"][0]
        .clone()
}

#[tokio::test]
async fn a_wrong_hash_is_an_error_and_a_missing_one_is_computed_and_flagged() {
    let wrong = verified(wrong_hash()).await;
    assert_eq!(
        (&wrong["verdict"], &wrong["error"]["code"]),
        (&json!("ERROR"), &json!("hash_mismatch"))
    );
    for behaviour in [placeholder_hash(), no_hash()] {
        let replica = verified(behaviour).await;
        assert_eq!(replica["verdict"], "VALID");
        assert!(replica["verifier_result_hash"].as_str().unwrap().starts_with("sha256:"));
        assert_eq!(replica["notes"].as_array().unwrap().len(), 1);
    }
    let bare = verified(bare_hash()).await;
    assert_eq!(bare["verdict"], "VALID");
    assert_eq!(bare["notes"], json!([]));
}

#[tokio::test]
async fn a_status_that_contradicts_passed_is_an_error() {
    let replica = verified(contradicts()).await;
    assert_eq!(replica["error"]["code"], "status_contradicts");
}

#[tokio::test]
async fn a_score_beyond_one_is_an_error() {
    let replica = verified(wrong_score()).await;
    assert_eq!(replica["error"]["code"], "bad_shape");
}

#[tokio::test]
async fn one_of_each_beside_three_honest_ones_changes_nothing() {
    let app = TestApp::new().await;
    let _fakes = app
        .executors([says_valid(), hangs(), says_valid(), huge(10_000_000_000), says_valid()])
        .await;
    let body = json!({ "claim": "x", "execution": { "timeout_ms": 2_000 }, "consensus": { "replicas": 5 } });
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["verdict"], "VALID");
    assert_eq!(reply["consensus"]["agreement"], 0.6);
    assert_eq!(reply["replicas"].as_array().unwrap().len(), 5);
}

/// The most memory this process ever had, in KiB. Each test is a process of its own.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn many_endless_answers_at_once_take_little_memory() {
    let app = TestApp::new().await;
    let endless = || huge(10_000_000_000);
    let _fakes = app.executors([endless(), endless(), endless(), endless(), endless()]).await;
    let before = peak_kib();
    let body = json!({ "objective": "x", "consensus": { "replicas": 5 } });
    let caller = app.admin();
    let rounds = (0..4).map(|_| caller.post("/api/v3/delegate", &body));
    for reply in futures::future::join_all(rounds).await {
        let reply = reply.json();
        let codes: Vec<&Value> =
            reply["replicas"].as_array().unwrap().iter().map(|r| &r["error"]["code"]).collect();
        assert_eq!(codes, ["too_large"; 5], "{reply}");
    }
    // Twenty answers of at most 2 MiB each are held at once, and some of it twice.
    let grown = peak_kib() - before;
    assert!(grown < 160 * 1024, "grew by {grown} KiB");
}
