//! `/v1/executors`.

use http::StatusCode;
use insta::assert_json_snapshot;
use jurat_testkit::{
    app::TestApp,
    fake_documents::{FakeDocument, FakeDocuments},
    fake_executor::{ExecutorFault, FakeExecutor, FakeHealth, says_valid},
};
use serde_json::{Value, json};

#[tokio::test]
async fn adding_an_executor_checks_it_and_makes_a_session_of_the_same_name() {
    let app = TestApp::new().await;
    let fake = FakeExecutor::start(says_valid()).await;
    let body = json!({ "name": "gpt-agent", "url": format!("{}/", fake.url()) });
    let reply = app.admin().post("/v1/executors", &body).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    let mut added = reply.json();
    assert_eq!(added["url"], fake.url());
    added["url"] = json!("[url]");
    assert_json_snapshot!(added);
    assert_eq!(app.admin().get("/v1/sessions/gpt-agent").await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_executor_that_is_down_is_added_and_reported() {
    let app = TestApp::new().await;
    let body = json!({ "name": "nobody", "url": "http://127.0.0.1:1" });
    let reply = app.admin().post("/v1/executors", &body).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    let added = reply.json();
    assert_eq!(added["status"], "down");
    assert_eq!(added["probe"]["health"]["ok"], false);
    assert_eq!(added["probe"]["health"]["error"], "no connection");
}

#[tokio::test]
async fn a_required_executor_is_not_registered_while_it_is_down() {
    let app = TestApp::new().await;
    let body = json!({ "name": "a", "url": "http://127.0.0.1:1", "must_answer": true });
    let reply = app.admin().post("/v1/executors", &body).await;
    assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
    let problem = reply.json();
    assert_eq!(
        (&problem["code"], &problem["field"]),
        (&json!("executor_unavailable"), &json!("url"))
    );
    assert!(problem["detail"].as_str().unwrap().contains("no connection"), "{problem}");
    for path in ["/v1/executors/a", "/v1/sessions/a"] {
        assert_eq!(app.admin().get(path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    // Nothing prevents another try.
    let fake = FakeExecutor::start(says_valid()).await;
    let body = json!({ "name": "a", "url": fake.url(), "must_answer": true });
    let reply = app.admin().post("/v1/executors", &body).await;
    assert_eq!((reply.status, &reply.json()["status"]), (StatusCode::CREATED, &json!("up")));
}

#[tokio::test]
async fn one_address_under_several_names_is_reported() {
    let app = TestApp::new().await;
    let fake = FakeExecutor::start(says_valid()).await;
    let add = async |name: &str, url: &str| {
        let body = json!({ "name": name, "url": url });
        app.admin().post("/v1/executors", &body).await.json()
    };
    assert!(add("one", &fake.url()).await.get("same_url").is_none());
    assert_eq!(add("two", &format!("{}/", fake.url())).await["same_url"], json!(["one"]));
    assert_eq!(add("three", &fake.url()).await["same_url"], json!(["one", "two"]));
    let other = FakeExecutor::start(says_valid()).await;
    assert!(add("four", &other.url()).await.get("same_url").is_none());
    let doctor = app.admin().get("/v1/doctor").await.json();
    let found = findings(&doctor, "executors");
    let expected = format!("`one`, `three`, `two` share the address `{}`", fake.url());
    assert!(found.contains(&expected), "{doctor}");
}

#[tokio::test]
async fn a_check_reports_whether_events_are_received() {
    let app = TestApp::new().await;
    let (fake, web) = (FakeExecutor::start(says_valid()).await, FakeDocuments::start().await);
    // An endpoint for events answers a `GET` like this.
    web.put("/agent-events", FakeDocument::Status(405));
    let hearing = web.reference("", b"")["uri"].as_str().unwrap().to_owned();
    let dead = "http://127.0.0.1:1";
    for (name, events) in [
        ("hears", Some(hearing.clone())),
        ("away", Some(fake.url())),
        ("deaf", Some(dead.to_owned())),
        ("s", None),
    ] {
        let mut body = json!({ "name": name, "url": fake.url() });
        if let Some(events) = events {
            body["agent_events_url"] = json!(events);
        }
        app.admin().post("/v1/executors", &body).await;
    }
    let check = async |name: &str| {
        let at = format!("/v1/executors/{name}/check");
        app.admin().post(&at, &json!({})).await.json()
    };
    let hears = check("hears").await;
    assert_eq!(hears["agent_events"], json!({ "url": hearing, "ok": true, "error": null }));
    let deaf = check("deaf").await;
    // The executor itself is healthy.
    assert_eq!((&deaf["ok"], &deaf["agent_events"]["ok"]), (&json!(true), &json!(false)), "{deaf}");
    assert!(deaf["agent_events"]["error"].is_string(), "{deaf}");
    assert!(check("s").await.get("agent_events").is_none());
    let away = check("away").await["agent_events"]["error"].to_string();
    assert!(away.contains("/agent-events answered 404"), "{away}");
    let doctor = app.admin().get("/v1/doctor").await.json();
    let found = findings(&doctor, "agent-events");
    assert!(found.iter().any(|it| it.contains("`deaf` does not receive events")), "{doctor}");
    assert!(!found.iter().any(|it| it.contains("`hears`")), "{doctor}");
}

/// The warnings of a check-up.
fn findings(doctor: &Value, check: &str) -> Vec<String> {
    let checks = doctor["checks"].as_array().unwrap().iter();
    let warnings = checks.filter(|it| it["check"] == check && it["status"] == "warning");
    warnings.map(|it| it["detail"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_check_up_finds_stalled_work() {
    let app = TestApp::new().await;
    let fake = FakeExecutor::start(says_valid().task_types(&["swarm"])).await;
    let web = FakeDocuments::start().await;
    web.put("/agent-events", FakeDocument::Status(405));
    let hears = &web.reference("", b"")["uri"];
    let body = json!({ "name": "e", "url": fake.url(), "agent_events_url": hears });
    app.admin().post("/v1/executors", &body).await;
    let contract = app.admin().get("/v1/tasks/sample?task_id=t1").await.json();
    let order = json!({ "contract": contract, "executors": ["e"] });
    let reply = app.admin().post("/v1/tasks", &order).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let agent = json!({ "agent_id": "a", "executor": "e", "prompt": "x" });
    let order = json!({ "kickoff": true, "spec": { "run_id": "r1", "agents": [agent] } });
    let reply = app.admin().post("/v1/runs", &order).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let event = json!({ "event_type": "dm_received", "target_executor": "e", "payload": "hello" });
    app.admin().post("/v1/agent-events", &event).await;
    let all = ["tasks", "runs", "agent-events"];
    let doctor = async || app.admin().get("/v1/doctor").await.json();
    let now = doctor().await;
    assert!(all.iter().all(|it| findings(&now, it).is_empty()), "{now}");
    // No node is started, so nobody works on it.
    app.clock.advance_ms(400_000);
    let later = doctor().await;
    let [tasks, runs, events] = all.map(|it| findings(&later, it).join("; "));
    assert!(tasks.contains("`t1` for 400 s"), "{tasks}");
    assert!(runs.contains("steps waiting for a worker: 1, the oldest for 400 s"), "{runs}");
    assert!(events.contains("waiting for delivery: 1, the oldest for 400 s"), "{events}");
    app.clock.advance_ms(40 * 24 * 3_600_000);
    let tasks = findings(&doctor().await, "tasks").join("; ");
    assert!(tasks.contains("expired but still open: `t1`"), "{tasks}");
}

#[tokio::test]
async fn a_check_reports_health_and_capabilities_both() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    fake.set(says_valid().health(FakeHealth::Status(503)));
    let checked = app.admin().post("/v1/executors/s1/check", &json!({})).await.json();
    assert_eq!(checked["ok"], false);
    assert_eq!(checked["health"]["ok"], false);
    assert_eq!(checked["capabilities"]["ok"], true);
    fake.set(says_valid().capabilities_fault(ExecutorFault::TruncatedJson));
    let checked = app.admin().post("/v1/executors/s1/check", &json!({})).await.json();
    assert_eq!(checked["health"]["ok"], true);
    assert!(checked["capabilities"]["error"].as_str().unwrap().contains("JSON"), "{checked}");
}

#[tokio::test]
async fn bad_registrations_name_the_field() {
    let app = TestApp::new().await;
    let url = "http://127.0.0.1:9";
    let cases = [
        (json!({}), "name"),
        (json!({ "name": "a/b", "url": url }), "name"),
        (json!({ "name": "-rf", "url": url }), "name"),
        (json!({ "name": "a" }), "url"),
        (json!({ "name": "a", "url": "127.0.0.1:9" }), "url"),
        (json!({ "name": "a", "url": "ftp://127.0.0.1" }), "url"),
        (json!({ "name": "a", "url": "http://u:p@127.0.0.1" }), "url"),
        (json!({ "name": "a", "url": "http://127.0.0.1?x=1" }), "url"),
        (json!({ "name": "a", "url": url, "token_env": "not a name" }), "token_env"),
        (json!({ "name": "a", "url": url, "token_env": "JURAT_UNSET" }), "token_env"),
        (json!({ "name": "a", "url": url, "colour": "red" }), "colour"),
        (json!({ "name": "a", "url": url, "agent_events_url": "nowhere" }), "agent_events_url"),
        (
            json!({
                "name": "a", "url": url, "agent_events_url": url,
                "agent_event_callback_base_url": "http://127.0.0.1:10",
            }),
            "agent_event_callback_base_url",
        ),
        (json!({ "name": "a", "url": url, "session": { "tier": "gold" } }), "session.tier"),
    ];
    for (body, field) in cases {
        let reply = app.admin().post("/v1/executors", &body).await;
        let problem = reply.json();
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{body} → {problem}");
        assert_eq!(problem["field"], field, "{body} → {problem}");
        assert_eq!(problem["code"], "validation_error");
    }
    let node = "ab".repeat(32);
    let cases = [
        (json!({ "target_node": node }), "validation_error", "target_node"),
        (json!({ "scope": "region:x" }), "validation_error", "scope"),
        (json!({ "remote": "yes" }), "validation_error", "remote"),
        (json!({ "remote": true }), "not_supported", "target_node"),
        (json!({ "remote": true, "scope": "global" }), "not_supported", "target_node"),
        (json!({ "remote": true, "target_node": "n" }), "validation_error", "target_node"),
        (
            json!({ "remote": true, "target_node": node, "scope": "zone:x" }),
            "validation_error",
            "scope",
        ),
        (
            json!({ "remote": true, "target_node": node, "token_env": "JURAT_TEST_TOKEN" }),
            "validation_error",
            "token_env",
        ),
    ];
    for (more, code, field) in cases {
        let mut body = json!({ "name": "a", "url": url });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let problem = app.admin().post("/v1/executors", &body).await.json();
        assert_eq!((&problem["code"], &problem["field"]), (&json!(code), &json!(field)), "{more}");
    }
    assert_eq!(app.admin().get("/v1/executors").await.json()["items"], json!([]));
}

#[tokio::test]
async fn a_name_is_taken_once_and_free_after_removal() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let body = json!({ "name": "s1", "url": fake.url() });
    let again = app.admin().post("/v1/executors", &body).await;
    assert_eq!(again.status, StatusCode::CONFLICT);
    let removed = app.admin().delete("/v1/executors/s1").await;
    assert_eq!(removed.json(), json!({ "removed": "s1", "sessions": ["s1"] }));
    assert_eq!(app.admin().get("/v1/sessions/s1").await.status, StatusCode::NOT_FOUND);
    assert_eq!(app.admin().delete("/v1/executors/s1").await.status, StatusCode::NOT_FOUND);
    assert_eq!(app.admin().post("/v1/executors", &body).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn lists_come_in_pages_that_lose_nothing() {
    let app = TestApp::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        app.register(name, "http://127.0.0.1:1").await;
    }
    let mut names = Vec::new();
    let mut path = "/v1/executors?limit=2".to_owned();
    loop {
        let page = app.admin().get(&path).await.json();
        names.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|i| i["name"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/executors?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    for query in ["limit=0", "limit=201", "limit=x", "colour=red", "limit=1&limit=2"] {
        let reply = app.admin().get(&format!("/v1/executors?{query}")).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{query}");
    }
}
