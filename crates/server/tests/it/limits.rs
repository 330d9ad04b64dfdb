//! The limits of keys: their request rate, and their rounds in progress.

use axum::body::Body;
use http::{HeaderMap, StatusCode};
use jurat_core::account::caller::Scope;
use jurat_engine::EngineLimits;
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{Behaviour, answers, gated, says_valid},
};
use serde_json::{Value, json};

use crate::inbound::{Served, patient};

async fn key(app: &TestApp, body: &Value) -> String {
    let created = app.admin().post("/v1/api-keys", body).await.json();
    created["key"].as_str().unwrap().to_owned()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

fn told(reply: &TestReply) -> (u16, &str, &str) {
    let headers = &reply.headers;
    (reply.status.as_u16(), header(headers, "ratelimit"), header(headers, "retry-after"))
}

#[tokio::test]
async fn a_key_has_a_rate_limit_and_sees_what_is_left() {
    let app = TestApp::new().await;
    let key = key(&app, &json!({ "name": "ci", "rate_per_minute": 6 })).await;
    let ask = async || app.with_key(&key).get("/v1/rounds").await;
    for left in (0..6).rev() {
        let reply = ask().await;
        assert_eq!(told(&reply), (200, format!("\"default\";r={left};t=10").as_str(), ""));
        assert_eq!(header(&reply.headers, "ratelimit-policy"), "\"default\";q=6;w=60");
    }
    let refused = ask().await;
    assert_eq!(told(&refused), (429, "\"default\";r=0;t=10", "10"));
    assert_eq!(header(&refused.headers, "ratelimit-policy"), "\"default\";q=6;w=60");
    assert_eq!(refused.json()["code"], "rate_limited");
    assert_eq!(refused.json()["detail"], "the key may send 6 requests per minute");
    // Refused requests do not count, and the allowance recovers with time.
    app.clock.advance_ms(7_500);
    assert_eq!(told(&ask().await), (429, "\"default\";r=0;t=3", "3"));
    app.clock.advance_ms(2_500);
    assert_eq!(told(&ask().await), (200, "\"default\";r=0;t=10", ""));
    assert_eq!(ask().await.status, StatusCode::TOO_MANY_REQUESTS);
    app.clock.advance_ms(60_000);
    assert_eq!(told(&ask().await), (200, "\"default\";r=5;t=10", ""));
}

#[tokio::test]
async fn every_request_with_the_key_counts_before_its_body_is_read() {
    let app = TestApp::new().await;
    let key = key(&app, &json!({ "name": "ci", "rate_per_minute": 3 })).await;
    let caller = app.with_key(&key);
    let send = async |path, body| caller.send("POST", path, Body::from(body), &[]).await;
    let broken = send("/api/v3/validate", "{").await;
    assert_eq!(told(&broken), (400, "\"default\";r=2;t=20", ""));
    let forbidden = send("/v1/executors", r#"{"name": "a", "url": "http://127.0.0.1:1"}"#).await;
    assert_eq!(told(&forbidden), (403, "\"default\";r=1;t=20", ""));
    assert_eq!(caller.get("/v1/rounds/rnd_x").await.status, StatusCode::NOT_FOUND);
    // A body that never ends is not waited for.
    let endless = Body::from_stream(futures::stream::pending::<Result<&str, std::io::Error>>());
    let refused = caller.send("POST", "/api/v3/validate", endless, &[]).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    for path in ["/health", "/ready"] {
        assert_eq!(told(&caller.get(path).await), (200, "", ""));
    }
}

#[tokio::test]
async fn two_keys_do_not_disturb_each_other() {
    let app = TestApp::new().await;
    let first = key(&app, &json!({ "name": "a", "rate_per_minute": 1 })).await;
    let second = key(&app, &json!({ "name": "b", "rate_per_minute": 1 })).await;
    let ask = async |key: &str| app.with_key(key).get("/v1/rounds").await.status.as_u16();
    assert_eq!((ask(&first).await, ask(&first).await), (200, 429));
    assert_eq!((ask(&second).await, ask(&second).await), (200, 429));
    // A key without a limit continues, and no limit is reported.
    for _ in 0..5 {
        assert_eq!(told(&app.admin().get("/v1/rounds").await), (200, "", ""));
    }
}

#[tokio::test]
async fn a_wrong_secret_uses_no_quota() {
    let app = TestApp::new().await;
    let key = key(&app, &json!({ "name": "a", "rate_per_minute": 1 })).await;
    let id = jurat_core::account::key::ApiKey::parse(&key).unwrap().id().to_owned();
    let forged = forged(&id);
    for _ in 0..3 {
        let reply = app.with_key(&forged).get("/v1/rounds").await;
        assert_eq!(told(&reply), (401, "", ""));
    }
    assert_eq!(app.with_key(&key).get("/v1/rounds").await.status, StatusCode::OK);
}

/// A well-formed key with this id and an invented secret.
fn forged(id: &str) -> String {
    let secret = "0".repeat(44);
    let mut sum = crc32fast::hash(format!("{id}_{secret}").as_bytes());
    let alphabet: Vec<char> = ('0'..='9').chain('A'..='Z').chain('a'..='z').collect();
    let mut digits = Vec::new();
    for _ in 0..6 {
        digits.insert(0, alphabet[usize::try_from(sum % 62).unwrap()]);
        sum /= 62;
    }
    let key = format!("jrt_live_{id}_{secret}{}", digits.iter().collect::<String>());
    assert!(jurat_core::account::key::ApiKey::parse(&key).is_some());
    key
}

#[tokio::test]
async fn the_installation_limits_keys_that_have_no_limit_of_their_own() {
    let limits = EngineLimits { requests_per_minute_per_key: Some(2), ..EngineLimits::default() };
    let app = TestApp::with_limits(limits).await;
    let reply = app.admin().get("/v1/rounds").await;
    assert_eq!(header(&reply.headers, "ratelimit-policy"), "\"default\";q=2;w=60");
    let own = key(&app, &json!({ "name": "a", "rate_per_minute": 100 })).await;
    let reply = app.with_key(&own).get("/v1/rounds").await;
    assert_eq!(header(&reply.headers, "ratelimit-policy"), "\"default\";q=100;w=60");
    assert_eq!(app.admin().get("/v1/rounds").await.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn each_key_has_its_own_limit_of_rounds() {
    let app = TestApp::new().await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let one = key(&app, &json!({ "name": "one", "concurrent_rounds": 1 })).await;
    let other = key(&app, &json!({ "name": "other", "concurrent_rounds": 1 })).await;
    let body = json!({ "claim": "x" });
    let (first, second) = (app.with_key(&one), app.with_key(&other));
    let (first, second, refused) = tokio::join!(
        first.post("/api/v3/validate", &body),
        second.post("/api/v3/validate", &body),
        async {
            fake.wait_for_calls(2).await;
            let refused = app.with_key(&one).post("/api/v3/validate", &body).await;
            // Reading is not a round.
            assert_eq!(app.with_key(&one).get("/v1/rounds").await.status, StatusCode::OK);
            fake.release();
            refused
        }
    );
    assert_eq!((first.status, second.status), (StatusCode::OK, StatusCode::OK));
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    let detail = "the key has reached its limit on concurrent rounds, which is 1";
    assert_eq!(refused.json()["detail"], detail);
    assert!(refused.headers.contains_key("retry-after"));
    // The permit is free again.
    assert_eq!(app.with_key(&one).post("/api/v3/validate", &body).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_round_whose_caller_left_still_counts_until_it_ends() {
    let limits = EngineLimits { rounds_per_key: 1, ..EngineLimits::default() };
    let app = TestApp::with_limits(limits).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let body = json!({ "claim": "x" });
    let caller = app.caller("alice", &[Scope::RoundsCreate]).await;
    {
        let left = caller.post("/api/v3/validate", &body);
        tokio::select! {
            reply = left => panic!("{}", reply.text()),
            () = fake.wait_for_calls(1) => {}
        }
    }
    let refused = caller.post("/api/v3/validate", &body).await;
    assert_eq!(refused.json()["code"], "rate_limited");
    fake.release();
    app.engine.drain().await;
    assert_eq!(caller.post("/api/v3/validate", &body).await.status, StatusCode::OK);
}

async fn key_of(app: &TestApp, account: &str, name: &str) -> String {
    key(app, &json!({ "account": account, "name": name })).await
}

/// Starts this many rounds with this key, and waits for none of them.
async fn begin(app: &TestApp, key: &str, rounds: usize) -> Vec<TestReply> {
    let mut replies = Vec::new();
    for _ in 0..rounds {
        let caller = app.with_key(key);
        let prefer = [("prefer", "respond-async")];
        let body = Body::from(json!({ "claim": "x" }).to_string());
        replies.push(caller.send("POST", "/api/v3/validate", body, &prefer).await);
    }
    replies
}

fn statuses(replies: &[TestReply]) -> Vec<u16> {
    replies.iter().map(|reply| reply.status.as_u16()).collect()
}

#[tokio::test]
async fn all_keys_of_an_account_share_its_rounds() {
    let limits = EngineLimits { rounds_per_account: 3, ..EngineLimits::default() };
    let app = TestApp::with_limits(limits).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let one = key_of(&app, "acct_alice", "one").await;
    let two = key_of(&app, "acct_alice", "two").await;
    let bob = key_of(&app, "acct_bob", "one").await;
    assert_eq!(statuses(&begin(&app, &one, 2).await), [202, 202]);
    let more = begin(&app, &two, 2).await;
    assert_eq!(statuses(&more), [202, 429]);
    let detail = "the account has reached its limit on concurrent rounds, which is 3";
    assert_eq!(more[1].json()["detail"], detail);
    assert_eq!(statuses(&begin(&app, &bob, 1).await), [202]);
    fake.release();
    app.engine.drain().await;
    assert_eq!(statuses(&begin(&app, &two, 1).await), [202]);
}

#[tokio::test]
async fn one_account_never_gets_all_permits_of_a_node() {
    let limits = EngineLimits { rounds: 16, ..EngineLimits::default() };
    let app = TestApp::with_limits(limits).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let mut taken = Vec::new();
    for name in ["one", "two", "three"] {
        let key = key_of(&app, "acct_alice", name).await;
        taken.extend(statuses(&begin(&app, &key, 6).await));
    }
    // Seven eighths, however many keys it has.
    assert_eq!(taken.iter().filter(|status| **status == 202).count(), 14);
    assert_eq!(taken.last(), Some(&503));
    let bob = key_of(&app, "acct_bob", "one").await;
    assert_eq!(statuses(&begin(&app, &bob, 1).await), [202]);
    let carol = key_of(&app, "acct_carol", "one").await;
    assert_eq!(statuses(&begin(&app, &carol, 1).await), [202]);
    fake.release();
    app.engine.drain().await;
}

#[tokio::test]
async fn all_keys_of_an_account_share_its_requests() {
    let limits =
        EngineLimits { requests_per_minute_per_account: Some(3), ..EngineLimits::default() };
    let app = TestApp::with_limits(limits).await;
    // The key creation counts for another account.
    let one = app.caller("alice", &[Scope::RoundsRead]).await;
    let two = app.caller("alice", &[Scope::RoundsRead]).await;
    let bob = app.caller("bob", &[Scope::RoundsRead]).await;
    for caller in [&one, &two, &one] {
        assert_eq!(caller.get("/v1/rounds").await.status, StatusCode::OK);
    }
    let refused = two.get("/v1/rounds").await;
    assert_eq!(told(&refused), (429, "\"default\";r=0;t=20", "20"));
    let detail = "the account's keys may send 3 requests per minute in total";
    assert_eq!(refused.json()["detail"], detail);
    assert_eq!(bob.get("/v1/rounds").await.status, StatusCode::OK);
    app.clock.advance_ms(20_000);
    assert_eq!(two.get("/v1/rounds").await.status, StatusCode::OK);
}

/// About a megabyte that takes a hundred when it is parsed.
fn many_objects(count: usize) -> Value {
    json!({ "objective": "x", "input": { "list": vec![json!({"": 0}); count] } })
}

#[tokio::test]
async fn a_body_with_too_many_values_is_refused() {
    let app = TestApp::new().await;
    let refused = app.admin().post("/api/v3/delegate", &many_objects(125_000)).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(refused.json()["code"], "payload_too_large");
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.starts_with("more than 50000 values"), "{detail}");
    // The limit without a key is lower.
    let visitor = app.anonymous().post("/v1/verifiers/x/runs", &many_objects(5_000)).await;
    assert_eq!(visitor.status, StatusCode::PAYLOAD_TOO_LARGE);
    let detail = visitor.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.starts_with("more than 10000 values"), "{detail}");
}

#[tokio::test]
async fn the_memory_of_rounds_in_progress_is_limited() {
    const MIB: usize = 1024 * 1024;
    let limits =
        EngineLimits { bytes: 64 * MIB, bytes_per_account: 40 * MIB, ..EngineLimits::default() };
    let app = TestApp::with_limits(limits).await;
    let [fake] = app.executors([gated(says_valid())]).await;
    let alice = key_of(&app, "acct_alice", "one").await;
    let also_alice = key_of(&app, "acct_alice", "two").await;
    let bob = key_of(&app, "acct_bob", "one").await;
    let carol = key_of(&app, "acct_carol", "one").await;
    // Fifteen megabytes when parsed, once for the round and once for its replica.
    let body = json!({ "claim": { "output": vec![json!({"": 0}); 20_000] } });
    let send = async |key: &str, body: &Value| {
        let prefer = [("prefer", "respond-async")];
        let body = Body::from(body.to_string());
        app.with_key(key).send("POST", "/api/v3/validate", body, &prefer).await
    };
    assert_eq!(send(&alice, &body).await.status, StatusCode::TOO_MANY_REQUESTS);
    let body = json!({ "claim": { "output": vec![json!({"": 0}); 15_000] } });
    assert_eq!(send(&alice, &body).await.status, StatusCode::ACCEPTED);
    let refused = send(&also_alice, &body).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.json()["detail"].as_str().unwrap().contains("use 41943040 bytes"));
    assert_eq!(send(&bob, &body).await.status, StatusCode::ACCEPTED);
    let full = send(&carol, &body).await;
    assert_eq!(
        (full.status, &full.json()["code"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("overloaded"))
    );
    // A small request is still admitted.
    assert_eq!(send(&carol, &json!({ "claim": "x" })).await.status, StatusCode::ACCEPTED);
    fake.release();
    app.engine.drain().await;
    assert_eq!(send(&also_alice, &body).await.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_request_that_waits_for_an_earlier_round_counts_meanwhile() {
    let large = vec![json!({"": 0}); 15_000];
    let job = json!({ "claim": { "output": large } });
    let prompt = json!({ "prompt": "x", "stream": true, "unknown": large });
    let chat = json!({
        "model": "jurat/fast", "stream": true, "user": large,
        "messages": [{ "role": "user", "content": "x" }],
    });
    for (path, body, says, end) in [
        ("/api/v3/validate", job, says_valid(), "event: final"),
        ("/api/v1/completions", prompt, answers(json!("yes")), "[DONE]"),
        ("/v1/chat/completions", chat, answers(json!("yes")), "[DONE]"),
    ] {
        counts_while_it_waits(path, &body.to_string(), gated(says), end).await;
    }
}

/// Sends a request that takes eleven megabytes when parsed, and again under the same key while its
/// round runs. `end` is in the end of its stream.
async fn counts_while_it_waits(path: &str, body: &str, executor: Behaviour, end: &str) {
    const MIB: usize = 1024 * 1024;
    let bytes_per_account = 40 * MIB;
    let limits = EngineLimits { bytes_per_account, ..EngineLimits::default() };
    let app = TestApp::with_limits(limits).await;
    let [fake] = app.executors([executor]).await;
    let alice = key_of(&app, "acct_alice", "one").await;
    let served = Served::on(app, patient()).await;
    let asked = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {alice}\r\n\
         content-type: application/json\r\naccept: text/event-stream\r\nidempotency-key: k\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut waiting = Vec::new();
    // The first one has its round, which counts instead.
    let refused = loop {
        let mut asking = served.says(&asked).await;
        let head = asking.until("\r\n\r\n").await;
        if !head.starts_with("HTTP/1.1 200") {
            break head;
        }
        waiting.push(asking);
        assert!(waiting.len() < 6, "{path}: its head is sent, and its request still counts");
    };
    assert!(refused.starts_with("HTTP/1.1 429"), "{path}: {refused}");
    fake.release();
    for mut asking in waiting {
        asking.until(end).await;
    }
    // The round has ended, and no memory is held for it any more.
    let replayed = served.says(&asked).await.until(end).await;
    assert!(replayed.starts_with("HTTP/1.1 200"), "{replayed}");
}
