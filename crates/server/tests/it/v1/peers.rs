//! `/v1/node` and `/v1/peers`: nodes invite, trust and block each other, and compare their books.

use axum::body::Body;
use http::{Method, StatusCode};
use jurat_core::account::caller::Scope;
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{FakeExecutor, says_valid},
};
use serde_json::{Value, json};

/// Every operation, with a body that it takes.
fn operations(id: &str) -> Vec<(Method, String, Value)> {
    vec![
        (Method::GET, "/v1/node".to_owned(), Value::Null),
        (Method::POST, "/v1/node/invitations".to_owned(), json!({})),
        (Method::POST, "/v1/node/join".to_owned(), json!({ "ticket": "jurata" })),
        (Method::GET, "/v1/peers".to_owned(), Value::Null),
        (Method::GET, format!("/v1/peers/{id}"), Value::Null),
        (Method::PUT, format!("/v1/peers/{id}"), json!({})),
        (Method::POST, format!("/v1/peers/{id}/block"), Value::Null),
        (Method::DELETE, format!("/v1/peers/{id}"), Value::Null),
        (Method::GET, format!("/v1/peers/{id}/offers"), Value::Null),
        (Method::GET, format!("/v1/peers/{id}/bookings"), Value::Null),
        (Method::GET, format!("/v1/peers/{id}/statement"), Value::Null),
    ]
}

fn body(value: &Value) -> Body {
    if value.is_null() { Body::empty() } else { Body::from(value.to_string()) }
}

async fn put(app: &TestApp, id: &str, given: &Value) -> TestReply {
    app.admin().send("PUT", &format!("/v1/peers/{id}"), body(given), &[]).await
}

async fn ticket(app: &TestApp, order: &Value) -> String {
    let reply = app.admin().post("/v1/node/invitations", order).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    assert_eq!(reply.headers["cache-control"], "no-store");
    reply.json()["ticket"].as_str().unwrap().to_owned()
}

async fn own_id(app: &TestApp) -> String {
    app.admin().get("/v1/node").await.json()["id"].as_str().unwrap().to_owned()
}

/// Two nodes that trust each other, the second with an executor that the first has registered, and
/// the id of the second.
async fn neighbours() -> (TestApp, TestApp, FakeExecutor, String) {
    let (left, right) = (TestApp::node(21).await, TestApp::node(22).await);
    let fake = FakeExecutor::start(says_valid()).await;
    right.register("own", &fake.url()).await;
    let ticket = ticket(&right, &json!({ "name": "left" })).await;
    let joined = left.admin().post("/v1/node/join", &json!({ "ticket": ticket })).await;
    assert_eq!(joined.status, StatusCode::OK, "{}", joined.text());
    let id = joined.json()["id"].as_str().unwrap().to_owned();
    let far = json!({
        "name": "far", "url": fake.url(), "remote": true, "target_node": id, "must_answer": true,
    });
    let added = left.admin().post("/v1/executors", &far).await;
    assert_eq!(added.status, StatusCode::CREATED, "{}", added.text());
    (left, right, fake, id)
}

#[tokio::test]
async fn only_operators_manage_other_nodes() {
    let app = TestApp::node(21).await;
    let id = "ab".repeat(32);
    let stranger = app.caller("stranger", &Scope::OWN).await;
    for (method, path, given) in operations(&id) {
        let sent = app.anonymous().send(method.as_str(), &path, body(&given), &[]).await;
        assert_eq!(sent.status, StatusCode::UNAUTHORIZED, "{method} {path}");
        let sent = stranger.send(method.as_str(), &path, body(&given), &[]).await;
        assert_eq!(sent.status, StatusCode::FORBIDDEN, "{method} {path}: {}", sent.text());
    }
    assert_eq!(app.admin().get("/v1/peers").await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_server_without_an_endpoint_says_so() {
    let app = TestApp::new().await;
    let node = app.admin().get("/v1/node").await.json();
    assert_eq!((&node["enabled"], &node["addresses"]), (&json!(false), &json!([])));
    assert_eq!(node["id"].as_str().unwrap().len(), 64);
    let id = "ab".repeat(32);
    for (method, path, given) in operations(&id) {
        let is_write = method != Method::GET && method != Method::DELETE;
        if is_write || path.ends_with("/offers") {
            let reply = app.admin().send(method.as_str(), &path, body(&given), &[]).await;
            assert_eq!(reply.json()["code"], "not_supported", "{method} {path}");
            assert!(reply.text().contains("`node.listen`"), "{}", reply.text());
        }
    }
}

#[tokio::test]
async fn an_unknown_node_is_not_found_and_an_invalid_id_is_named() {
    let app = TestApp::node(21).await;
    let (id, short) = ("ab".repeat(32), "ab".repeat(31));
    for (method, path, given) in operations(&id) {
        let finds = ["", "/offers", "/statement"].map(|end| format!("/v1/peers/{id}{end}"));
        if method != Method::PUT && finds.contains(&path) {
            let reply = app.admin().send(method.as_str(), &path, body(&given), &[]).await;
            assert_eq!(reply.status, StatusCode::NOT_FOUND, "{method} {path}: {}", reply.text());
        }
    }
    for (method, path, given) in operations(&short) {
        if path.contains(&short) {
            let reply = app.admin().send(method.as_str(), &path, body(&given), &[]).await;
            assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{method} {path}");
            assert_eq!(reply.json()["field"], "id", "{method} {path}: {}", reply.text());
        }
    }
    // The books of a node that was a peer can still be read.
    let bookings = app.admin().get(&format!("/v1/peers/{id}/bookings")).await;
    assert_eq!(bookings.json()["items"], json!([]));
}

#[tokio::test]
async fn a_wrong_field_is_named() {
    let app = TestApp::node(21).await;
    let own = own_id(&app).await;
    let (invite, join) = ("/v1/node/invitations", "/v1/node/join");
    for (path, given, field) in [
        (invite, json!({ "valid_seconds": 0 }), "valid_seconds"),
        (invite, json!({ "valid_seconds": 2_592_001 }), "valid_seconds"),
        (invite, json!({ "name": "a\nb" }), "name"),
        (invite, json!({ "terms": { "concurrent_jobs": 0 } }), "terms.concurrent_jobs"),
        (invite, json!({ "terms": { "task_types": "x" } }), "terms.task_types"),
        (invite, json!({ "terms": { "work_for": true } }), "terms.work_for"),
        (join, json!({}), "ticket"),
        (join, json!({ "ticket": "nonsense" }), "ticket"),
        (join, json!({ "ticket": ticket(&app, &json!({})).await }), "ticket"),
    ] {
        let reply = app.admin().post(path, &given).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{given}: {}", reply.text());
        assert_eq!(reply.json()["field"], field, "{given}: {}", reply.text());
    }
    let id = "ab".repeat(32);
    for (id, given, field) in [
        (&id, json!({ "addresses": ["nowhere"] }), "addresses"),
        (&id, json!({ "relays": ["nowhere"] }), "relays"),
        (&id, json!({ "terms": { "payload_bytes": -1 } }), "terms.payload_bytes"),
        (&own, json!({}), "id"),
    ] {
        let reply = put(&app, id, &given).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{given}: {}", reply.text());
        assert_eq!(reply.json()["field"], field, "{given}: {}", reply.text());
    }
}

#[tokio::test]
async fn an_invitation_makes_two_nodes_peers_once() {
    let (left, right) = (TestApp::node(21).await, TestApp::node(22).await);
    let terms = json!({ "concurrent_jobs": 2, "task_types": ["validate"] });
    let text = ticket(&right, &json!({ "name": "left", "terms": terms })).await;
    let taken = json!({ "ticket": text, "terms": { "hires": true, "works_for": false } });
    let joined = left.admin().post("/v1/node/join", &taken).await.json();
    // Without a name of our own, it has the one that it proposes.
    assert_eq!((&joined["name"], &joined["standing"]), (&json!("node 22"), &json!("trusted")));
    assert_eq!(joined["terms"]["works_for"], false);
    assert_eq!(joined["id"], own_id(&right).await);

    let seen = right.admin().get(&format!("/v1/peers/{}", own_id(&left).await)).await.json();
    assert_eq!((&seen["name"], &seen["standing"]), (&json!("left"), &json!("trusted")));
    assert_eq!(seen["terms"]["concurrent_jobs"], 2);
    assert_eq!(seen["terms"]["task_types"], json!(["validate"]));
    assert_eq!(right.admin().get("/v1/node").await.json()["trusted_peers"], 1);

    // The same node may take it again, and no other.
    let again = left.admin().post("/v1/node/join", &taken).await;
    assert_eq!(again.status, StatusCode::OK, "{}", again.text());
    let third = TestApp::node(23).await;
    let refused = third.admin().post("/v1/node/join", &taken).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let problem = refused.json();
    assert_eq!(
        (&problem["code"], &problem["field"]),
        (&json!("peer_unavailable"), &json!("ticket"))
    );
    assert!(!refused.text().contains(&text), "the ticket is a secret");
}

#[tokio::test]
async fn an_expired_invitation_is_refused() {
    let (left, right) = (TestApp::node(21).await, TestApp::node(22).await);
    let text = ticket(&right, &json!({ "valid_seconds": 1 })).await;
    right.clock.advance_ms(1_000);
    let refused = left.admin().post("/v1/node/join", &json!({ "ticket": text })).await;
    assert!(refused.text().contains("bad_invitation"), "{}", refused.text());
    assert_eq!(left.admin().get("/v1/peers").await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_remote_executor_answers_and_both_books_agree() {
    let (left, right, fake, id) = neighbours().await;
    let offers = left.admin().get(&format!("/v1/peers/{id}/offers")).await.json();
    assert_eq!(offers["offers"][0]["executor"], fake.url());
    assert_eq!(offers["offers"][0]["capabilities"]["ok"], true);
    let shown = left.admin().get("/v1/executors/far").await.json();
    assert_eq!((&shown["remote"], &shown["target_node"]), (&json!(true), &json!(id)));
    assert_eq!((&shown["scope"], &shown["status"]), (&Value::Null, &json!("up")));

    for claim in ["1 = 1", "2 = 2", "3 = 3"] {
        let asked = json!({ "claim": claim, "consensus": { "session_pool": ["far"] } });
        let reply = left.admin().post("/api/v3/validate", &asked).await.json();
        assert_eq!(reply["verdict"], "VALID", "{reply}");
    }
    let statement = left.admin().get(&format!("/v1/peers/{id}/statement")).await.json();
    assert_eq!(statement["agrees"], true, "{statement}");
    assert_eq!(
        (&statement["ours"]["owed_jobs"], &statement["theirs"]["earned_jobs"]),
        (&json!(3), &json!(3))
    );
    assert!(statement["signed"].as_str().unwrap().contains("signature"), "{statement}");

    // The list continues after its cursor, and loses nothing.
    let mut seen = Vec::new();
    let at = format!("/v1/peers/{id}/bookings?limit=2");
    let mut path = at.clone();
    loop {
        let page = left.admin().get(&path).await.json();
        seen.extend(page["items"].as_array().unwrap().iter().map(|it| it["execution_id"].clone()));
        assert!(page["items"].as_array().unwrap().iter().all(|it| it["side"] == "owed"), "{page}");
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("{at}&cursor={cursor}");
    }
    let of_peer = format!("/v1/peers/{}/bookings", own_id(&left).await);
    let earned = right.admin().get(&of_peer).await.json();
    let earned: Vec<Value> =
        earned["items"].as_array().unwrap().iter().map(|it| it["execution_id"].clone()).collect();
    assert_eq!((seen.len(), &seen), (3, &earned), "newest first on both sides");
}

#[tokio::test]
async fn a_blocked_node_is_not_asked_until_it_is_trusted_again() {
    let (left, _right, _fake, id) = neighbours().await;
    let (at, asked) = (
        format!("/v1/peers/{id}/block"),
        json!({ "claim": "1 = 1", "consensus": { "session_pool": ["far"] } }),
    );
    let terms = json!({ "concurrent_jobs": 3 });
    assert_eq!(put(&left, &id, &json!({ "terms": terms })).await.status, StatusCode::OK);
    let blocked = left.admin().post(&at, &json!({})).await.json();
    assert_eq!((&blocked["standing"], &blocked["connected"]), (&json!("blocked"), &json!(false)));
    assert_eq!(blocked["terms"]["concurrent_jobs"], 3, "its terms stay");
    let again = left.admin().post(&at, &json!({})).await;
    assert_eq!(again.status, StatusCode::OK, "{}", again.text());
    let reply = left.admin().post("/api/v3/validate", &asked).await.json();
    assert_eq!(reply["replicas"][0]["error"]["code"], "unavailable", "{reply}");
    let text = reply["replicas"][0]["error"].to_string();
    assert!(text.contains("not trusted"), "{reply}");

    let trusted = put(&left, &id, &Value::Null).await.json();
    assert_eq!((&trusted["standing"], &trusted["name"]), (&json!("trusted"), &json!("node 22")));
    assert_eq!(trusted["terms"]["concurrent_jobs"], 8, "terms that are left out are the defaults");
    assert!(!trusted["addresses"].as_array().unwrap().is_empty(), "{trusted}");
    let checked = left.admin().post("/v1/executors/far/check", &json!({})).await.json();
    assert_eq!(checked["ok"], true, "{checked}");
    let reply = left.admin().post("/api/v3/validate", &asked).await.json();
    assert_eq!(reply["verdict"], "VALID", "{reply}");
}

#[tokio::test]
async fn a_removed_node_is_a_stranger_and_its_bookings_stay() {
    let (left, right, _fake, id) = neighbours().await;
    let asked = json!({ "claim": "1 = 1", "consensus": { "session_pool": ["far"] } });
    left.admin().post("/api/v3/validate", &asked).await;
    let at = format!("/v1/peers/{}", own_id(&left).await);
    let removed = right.admin().delete(&at).await;
    assert_eq!((removed.status, removed.text().as_str()), (StatusCode::NO_CONTENT, ""));
    assert_eq!(right.admin().delete(&at).await.status, StatusCode::NOT_FOUND);
    let bookings = right.admin().get(&format!("{at}/bookings")).await.json();
    assert_eq!(bookings["items"][0]["side"], "earned", "{bookings}");
    let statement = left.admin().get(&format!("/v1/peers/{id}/statement")).await.json();
    assert_eq!((&statement["agrees"], &statement["theirs"]), (&Value::Null, &Value::Null));
    assert!(statement["problem"].is_string(), "{statement}");
    let offers = left.admin().get(&format!("/v1/peers/{id}/offers")).await;
    assert_eq!(offers.json()["code"], "peer_unavailable", "{}", offers.text());
}

#[tokio::test]
async fn peers_come_in_pages_by_their_ids() {
    let app = TestApp::node(21).await;
    for digits in ["cc", "aa", "bb"] {
        let id = digits.repeat(32);
        let given = json!({ "name": digits, "addresses": ["192.0.2.7:5873"] });
        assert_eq!(put(&app, &id, &given).await.status, StatusCode::OK);
    }
    let (mut names, mut path) = (Vec::new(), "/v1/peers?limit=2".to_owned());
    loop {
        let page = app.admin().get(&path).await.json();
        names.extend(page["items"].as_array().unwrap().iter().map(|it| it["name"].clone()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/peers?limit=2&cursor={cursor}");
    }
    assert_eq!(names, [json!("aa"), json!("bb"), json!("cc")]);
}

#[tokio::test]
async fn a_peer_without_trust_is_no_place_for_an_executor_that_must_answer() {
    let app = TestApp::node(21).await;
    let (id, url) = ("ab".repeat(32), "http://127.0.0.1:1");
    let far = json!({ "name": "far", "url": url, "remote": true, "target_node": id });
    let mut strict = far.clone();
    strict["must_answer"] = json!(true);
    let refused = app.admin().post("/v1/executors", &strict).await;
    assert_eq!(refused.json()["code"], "executor_unavailable", "{}", refused.text());
    assert!(refused.text().contains("not trusted"), "{}", refused.text());
    let added = app.admin().post("/v1/executors", &far).await.json();
    assert_eq!((&added["status"], &added["target_node"]), (&json!("down"), &json!(id)));
}
