//! Executors that misbehave: each ends as a replica with an exact reason, in time, and never as a
//! vote.

use http::StatusCode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{
        Behaviour, bare_hash, canary, contradicts, disconnects_before_headers,
        disconnects_mid_body, drips, duplicate_keys, endless_headers, gzipped, hangs,
        hangs_mid_body, html, huge, lies_about_length, moved_to, no_hash, placeholder_hash,
        redirects_to, replies, replies_twice, resets_mid_body, says_invalid, says_valid, status,
        truncated_json, wrong_hash, wrong_json, wrong_score,
    },
};
use serde_json::{Value, json};

/// The answer of one misbehaving replica, to `/verify` and to `/execute`.
async fn asked(behaviour: impl Fn() -> Behaviour) -> [Value; 2] {
    asked_within(20_000, behaviour).await
}

/// The same with a deadline that a silent executor misses.
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
async fn an_ambiguous_document_is_not_json() {
    ended_as(&asked(duplicate_keys).await, "ERROR", "not_json");
}

#[tokio::test]
async fn a_500_is_reported_with_its_status() {
    let replicas = asked(|| status(500)).await;
    ended_as(&replicas, "ERROR", "http_status");
    assert!(replicas[0]["error"]["detail"].as_str().unwrap().contains("500"));
}

#[tokio::test]
async fn ten_gigabytes_are_not_read() {
    ended_as(&asked(|| huge(10_000_000_000)).await, "ERROR", "too_large");
}

#[tokio::test]
async fn endless_headers_are_not_read() {
    ended_as(&asked(endless_headers).await, "ERROR", "disconnected");
}

#[tokio::test]
async fn half_a_body_and_then_silence_ends_at_the_deadline() {
    ended_as(&asked_within(500, hangs_mid_body).await, "TIMEOUT", "timeout");
}

#[tokio::test]
async fn a_connection_that_is_reset_is_a_disconnect() {
    ended_as(&asked(resets_mid_body).await, "ERROR", "disconnected");
}

#[tokio::test]
async fn a_body_longer_than_its_length_is_cut() {
    ended_as(&asked(lies_about_length).await, "ERROR", "not_json");
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
    for redirect in [redirects_to, moved_to] {
        ended_as(&asked(|| redirect(&url)).await, "ERROR", "redirect");
    }
    assert!(!canary.was_touched());
}

#[tokio::test]
async fn html_400_is_blamed_on_a_proxy() {
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
async fn one_faulty_executor_among_three_honest_ones_changes_nothing() {
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

/// Hostile executors, with the reported failure of each.
fn every_kind() -> Vec<(Behaviour, &'static str)> {
    vec![
        (hangs(), "timeout"),
        (hangs_mid_body(), "timeout"),
        (drips(), "timeout"),
        (resets_mid_body(), "disconnected"),
        (disconnects_mid_body(), "disconnected"),
        (disconnects_before_headers(), "disconnected"),
        (endless_headers(), "disconnected"),
        (lies_about_length(), "not_json"),
        (html(), "not_json"),
        (truncated_json(), "not_json"),
        (huge(10_000_000_000), "too_large"),
        (wrong_hash(), "hash_mismatch"),
        (moved_to("http://127.0.0.1:1/"), "redirect"),
        (status(500), "http_status"),
    ]
}

#[tokio::test]
async fn two_honest_executors_decide_in_time_whatever_the_third_does() {
    // The honest ones answer in time however busy the machine is.
    const DEADLINE_MS: u64 = 2_000;
    let app = TestApp::new().await;
    let [_left, _right, evil] = app.executors([says_valid(), says_valid(), says_valid()]).await;
    let body = json!({ "claim": "x", "execution": { "timeout_ms": DEADLINE_MS },
                       "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3"] } });
    for (behaviour, code) in every_kind() {
        evil.set(behaviour);
        let begun = tokio::time::Instant::now();
        let reply = app.admin().post("/api/v3/validate", &body).await.json();
        // A busy machine may be late, but nothing here waits for an executor past the deadline.
        let took = begun.elapsed().as_millis();
        assert!(took < u128::from(DEADLINE_MS) + 15_000, "{code} took {took} ms");
        assert_eq!(reply["verdict"], "VALID", "{reply}");
        assert_eq!(reply["consensus"]["agreement"], json!(0.6667), "{reply}");
        assert_eq!(reply["replicas"][2]["error"]["code"], code, "{reply}");
        // A valid answer between two invalid ones keeps the executor from being paused.
        evil.set(says_valid());
        app.admin().post("/api/v3/validate", &body).await;
    }
}

#[tokio::test]
async fn a_second_answer_is_not_mistaken_for_the_next_one() {
    let app = TestApp::new().await;
    let [fake] = app.executors([replies_twice(says_valid())]).await;
    let body = json!({ "claim": "x" });
    for _ in 0..3 {
        let reply = app.admin().post("/api/v3/validate", &body).await.json();
        assert_eq!(reply["verdict"], "VALID", "{reply}");
    }
    fake.set(says_invalid());
    assert_eq!(app.admin().post("/api/v3/validate", &body).await.json()["verdict"], "INVALID");
}

#[tokio::test]
async fn a_failing_executor_is_paused_within_ten_failures_and_recovers_with_one_answer() {
    for behaviour in [status(500), disconnects_mid_body(), html(), endless_headers()] {
        let app = TestApp::new().await;
        let [fake] = app.executors([behaviour]).await;
        let body = json!({ "claim": "x" });
        let mut failures = 0;
        while app.admin().get("/v1/executors/s1").await.json()["status"] != "resting" {
            app.admin().post("/api/v3/validate", &body).await;
            failures += 1;
            assert!(failures <= 10, "it is still asked");
        }
        let refused = app.admin().post("/api/v3/validate", &body).await.json();
        assert_eq!(refused["code"], "sessions_unavailable");
        app.clock.advance_ms(5_000);
        fake.set(says_valid());
        for _ in 0..2 {
            let reply = app.admin().post("/api/v3/validate", &body).await.json();
            assert_eq!(reply["verdict"], "VALID", "{reply}");
        }
        assert_ne!(app.admin().get("/v1/executors/s1").await.json()["status"], "resting");
    }
}

#[tokio::test]
async fn an_executor_that_fails_every_other_time_votes_every_other_time() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    for turn in 0..12 {
        let fails = turn % 2 == 1;
        fake.set(if fails { status(503) } else { says_valid() });
        let reply = app.admin().post("/api/v3/validate", &json!({ "claim": "x" })).await.json();
        let expected = if fails { json!("http_status") } else { Value::Null };
        assert_eq!(reply["replicas"][0]["error"]["code"], expected, "{reply}");
        assert_eq!(reply["verdict"] == "VALID", !fails);
    }
}

/// The peak memory of this process, in KiB. Each test is a process of its own.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn many_concurrent_endless_answers_take_little_memory() {
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
    // Two answers of at most 2 MiB are held for each of the five, and the buffers of twenty.
    let grown = peak_kib() - before;
    assert!(grown < 64 * 1024, "grew by {grown} KiB");
}

#[tokio::test]
async fn a_verdict_of_another_model_is_not_a_vote() {
    let app = TestApp::new().await;
    let fakes = app.executors([says_valid(), says_valid(), says_valid()]).await;
    fakes[0].set(says_valid().model_id("somebody-else"));
    fakes[1].set(says_valid().provider_family("somebody-else"));
    let body = json!({
        "claim": "x", "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3"] },
    });
    let reply = app.admin().post("/api/v3/validate", &body).await.json();
    assert_eq!(reply["verdict"], Value::Null, "{reply}");
    for (index, field) in [(0, "model_id"), (1, "provider_family")] {
        let replica = &reply["replicas"][index];
        assert_eq!(replica["error"]["code"], "bad_shape", "{replica}");
        let message = replica["error"]["detail"].as_str().unwrap();
        assert!(message.contains(field) && message.contains("somebody-else"), "{message}");
    }
    assert_eq!(reply["replicas"][2]["verdict"], "VALID");
}
