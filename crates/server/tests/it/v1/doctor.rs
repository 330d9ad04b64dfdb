//! `/v1/doctor`.

use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::{app::TestApp, fake_executor::says_valid};
use serde_json::{Value, json};

async fn validate(app: &TestApp, replicas: u8) -> Value {
    let body = json!({"claim": "2 + 2 = 4", "consensus": {"replicas": replicas}});
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()
}

/// The details of the failed checks.
fn unwell(body: &Value) -> Vec<&str> {
    let checks = body["checks"].as_array().unwrap().iter();
    checks.filter(|it| it["status"] != "ok").filter_map(|it| it["detail"].as_str()).collect()
}

#[tokio::test]
async fn a_sound_installation_passes_every_check() {
    let app = TestApp::new().await;
    let _executors = app.executors([(); 3].map(|()| says_valid())).await;
    validate(&app, 3).await;
    let body = app.admin().get("/v1/doctor").await.json();
    assert_eq!((&body["status"], &body["ended_rounds"]), (&json!("ok"), &json!(1)), "{body}");
    let checks = body["checks"].as_array().unwrap().iter();
    let checks: Vec<&str> = checks.filter_map(|it| it["check"].as_str()).collect();
    let executors = ["executors"; 3];
    let work = ["sessions", "judges", "tasks", "runs", "agent-events", "webhooks"];
    let expected = [&["store", "store", "ledger", "clock"], &executors[..], &work].concat();
    assert_eq!(checks, expected);
}

#[tokio::test]
async fn sessions_are_not_counted_as_providers() {
    let app = TestApp::new().await;
    let _executors = app.executors([(); 3].map(|()| says_valid())).await;
    for id in ["s1-careful", "s1-quick"] {
        let lane = json!({"id": id, "executor": "s1"});
        assert_eq!(app.admin().post("/v1/sessions", &lane).await.status, StatusCode::CREATED);
    }
    let body = app.admin().get("/v1/doctor").await.json();
    let mut checks = body["checks"].as_array().unwrap().iter();
    let sessions = checks.find(|it| it["check"] == "sessions").unwrap();
    let expected = "5 sessions of 3 providers can answer now, which is enough for three replicas";
    assert_eq!(sessions["detail"], expected);
}

#[tokio::test]
async fn a_fault_comes_with_advice() {
    let app = TestApp::new().await;
    let body = app.admin().get("/v1/doctor").await.json();
    assert_eq!(unwell(&body), ["there are none, so no round can run"]);
    let [_one, two] = app.executors([(); 2].map(|()| says_valid())).await;
    app.register("gone", "http://127.0.0.1:1").await;
    let lane = json!({"name": "idle", "url": two.url(), "session": false});
    app.admin().post("/v1/executors", &lane).await;
    let body = app.admin().get("/v1/doctor").await.json();
    assert_eq!(body["status"], "warning", "{body}");
    let found = unwell(&body);
    assert!(found[0].starts_with("`gone` is down: "), "{found:?}");
    assert_eq!(found[1], format!("`idle`, `s2` share the address `{}`", two.url()));
    assert_eq!(found[2], "no session uses `idle`, so it is never called");
    assert_eq!(found[3], "2 sessions can answer now, but a round with three replicas needs 3");
    for check in body["checks"].as_array().unwrap() {
        assert_eq!(check["advice"].is_null(), check["status"] == "ok", "{check}");
    }
}

#[tokio::test]
async fn a_clock_that_went_back_is_found() {
    let app = TestApp::new().await;
    let _executor = app.executors([says_valid()]).await;
    validate(&app, 1).await;
    app.clock.advance_ms(-90_000);
    let body = app.admin().get("/v1/doctor").await.json();
    assert_eq!(body["status"], "problem");
    assert!(unwell(&body).contains(&"the newest round was opened 90 s in the future"), "{body}");
}

#[tokio::test]
async fn decisions_are_checked_in_pages() {
    let app = TestApp::new().await;
    let _executor = app.executors([says_valid()]).await;
    for _ in 0..5 {
        app.clock.advance_ms(1_000);
        validate(&app, 1).await;
    }
    let mut path = "/v1/doctor/entries?limit=2".to_owned();
    let mut checked = Vec::new();
    loop {
        let page = app.admin().get(&path).await.json();
        assert_eq!(page["problems"], json!([]));
        checked.push(page["checked"].as_u64().unwrap());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/doctor/entries?limit=2&cursor={cursor}");
    }
    assert_eq!(checked, [2, 2, 1]);
    let first = app.admin().get("/v1/doctor/entries?newest=3&limit=2").await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = app.admin().get(&format!("/v1/doctor/entries?limit=2&cursor={cursor}")).await;
    assert_eq!((&first["checked"], &second.json()["checked"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn only_an_admin_may_ask_and_wrong_parameters_are_named() {
    let app = TestApp::new().await;
    let reader = app.caller("alice", &[Scope::RoundsRead, Scope::MetricsRead]).await;
    for path in ["/v1/doctor", "/v1/doctor/entries", "/v1/doctor/entries?newest=3"] {
        assert_eq!(reader.get(path).await.status, StatusCode::FORBIDDEN, "{path}");
    }
    for (query, field) in [
        ("newest=0", "newest"),
        ("newest=many", "newest"),
        ("cursor=x", "cursor"),
        ("cursor=acct_a.rnd_1.&newest=2", "newest"),
        ("limit=1001", "limit"),
        ("other=1", "other"),
    ] {
        let reply = app.admin().get(&format!("/v1/doctor/entries?{query}")).await;
        assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(reply.json()["field"], field, "{query}");
    }
}
