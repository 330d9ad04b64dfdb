//! Sessions that are down or fail: their seats, and who takes them.

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_engine::EntryCheckQuery;
use jurat_store::Behalf;
use jurat_testkit::{
    app::{TestApp, TestCaller, admin_caller},
    fake_executor::{FakeHealth, answers, gated, says_invalid, says_valid, status},
};
use serde_json::{Value, json};

/// Three sessions for the seats, of which the second fails, and an expensive one that only a spare
/// takes.
async fn with_a_spare(app: &TestApp) -> [jurat_testkit::fake_executor::FakeExecutor; 4] {
    let fakes = app.executors([says_valid(), status(500), says_valid(), says_valid()]).await;
    let session = json!({ "id": "dear", "executor": "s4", "price_micros": 1_000 });
    assert_eq!(app.admin().post("/v1/sessions", &session).await.status, StatusCode::CREATED);
    fakes
}

fn pool(terms: &Value) -> Value {
    let mut body = json!({
        "claim": "x",
        "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3", "dear"] },
    });
    let block = body["consensus"].as_object_mut().unwrap();
    block.extend(terms.as_object().unwrap().clone());
    body
}

async fn validate(caller: &TestCaller<'_>, body: &Value) -> Value {
    let reply = caller.post("/api/v3/validate", body).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()
}

#[tokio::test]
async fn one_dead_executor_of_three_costs_its_seat_and_not_the_round() {
    let app = TestApp::new().await;
    let [_one, dead, _three] = app.executors([says_valid(), status(500), says_valid()]).await;
    let body = json!({
        "claim": "x",
        "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3"] },
    });
    // The first five try it, and then it is paused.
    for number in 0..7 {
        let reply = validate(&app.admin(), &body).await;
        let consensus = &reply["consensus"];
        assert_eq!(reply["verdict"], "VALID", "{reply:#}");
        assert_eq!(consensus["verdicts"], json!(["VALID", "ERROR", "VALID"]), "{reply:#}");
        assert_eq!((&consensus["replicas"], &consensus["agreement"]), (&json!(3), &json!(0.6667)));
        let is_tried = number < 5;
        let (code, started) = if is_tried { ("http_status", 3) } else { ("unavailable", 2) };
        assert_eq!(reply["replicas"][1]["error"]["code"], code, "{reply:#}");
        assert_eq!(consensus["started"], started, "{reply:#}");
    }
    let called = dead.calls().into_iter().filter(|call| call.endpoint() == "verify").count();
    assert_eq!(called, 5);
}

#[tokio::test]
async fn a_pool_without_a_possible_majority_is_refused_with_the_faults() {
    let app = TestApp::new().await;
    let sick = || says_valid().health(FakeHealth::Status(503));
    let [one, _two, _three] = app.executors([says_valid(), sick(), sick()]).await;
    let body = json!({
        "claim": "x",
        "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3"] },
    });
    let reply = app.admin().post("/api/v3/validate", &body).await;
    assert_eq!(reply.status, StatusCode::SERVICE_UNAVAILABLE);
    let problem = reply.json();
    assert_eq!(problem["code"], "sessions_unavailable");
    let named: Vec<&Value> =
        problem["sessions"].as_array().unwrap().iter().map(|it| &it["session_id"]).collect();
    assert_eq!(named, ["s2", "s3"]);
    assert!(one.calls().iter().all(|call| call.endpoint() != "verify"));
}

#[tokio::test]
async fn a_session_that_is_down_is_skipped_if_the_pool_has_others() {
    let app = TestApp::new().await;
    let sick = says_valid().health(FakeHealth::Status(503));
    let _fakes = app.executors([says_valid(), sick, says_valid(), says_valid()]).await;
    let body = json!({
        "claim": "x",
        "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3", "s4"] },
    });
    let reply = validate(&app.admin(), &body).await;
    let sessions: Vec<&Value> =
        reply["replicas"].as_array().unwrap().iter().map(|it| &it["session_id"]).collect();
    assert_eq!(sessions, ["s1", "s3", "s4"], "{reply:#}");
}

#[tokio::test]
async fn a_spare_takes_the_seat_of_a_session_that_fails() {
    let app = TestApp::new().await;
    let _fakes = with_a_spare(&app).await;
    let reply = validate(&app.admin(), &pool(&json!({}))).await;
    let consensus = &reply["consensus"];
    assert_eq!(consensus["verdicts"], json!(["VALID", "VALID", "VALID"]), "{reply:#}");
    assert_eq!(consensus["groups"], json!([0, 0, 0]));
    let counts = ["replicas", "asked", "started", "answered"].map(|name| &consensus[name]);
    assert_eq!(counts, [&json!(3); 4], "{reply:#}");
    assert_eq!(consensus["agreement"], 1.0);
    let told: Vec<Value> = reply["replicas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["replica_id"], it["session_id"], it["replaced_by"], it["cost"]]))
        .collect();
    let expected = [
        json!([0, "s1", null, 0]),
        json!([3, "dear", null, 1_000]),
        json!([2, "s3", null, 0]),
        json!([1, "s2", 3, 0]),
    ];
    assert_eq!(told, expected, "{reply:#}");
    assert_eq!(reply["replicas"][3]["error"]["code"], "http_status");
    assert_eq!(reply["replicas"][3]["group"], Value::Null);
    // It is recorded as it was reported, and the entry matches the store.
    let path = format!("/v1/rounds/{}", reply["round_id"].as_str().unwrap());
    let round = app.admin().get(&path).await.json();
    assert_eq!(round["replicas"], reply["replicas"]);
    assert_eq!(round["consensus"]["verdicts"], consensus["verdicts"]);
    let query = EntryCheckQuery { after: None, since: None, limit: 10 };
    let checked = app.engine.doctor_entries(&admin_caller(), query).await.unwrap();
    assert_eq!((checked.checked, checked.faults.as_slice()), (1, [].as_slice()));
}

#[tokio::test]
async fn spares_can_be_turned_off() {
    let app = TestApp::new().await;
    let [_one, _two, _three, spare] = with_a_spare(&app).await;
    let reply = validate(&app.admin(), &pool(&json!({ "spares": 0 }))).await;
    assert_eq!(reply["consensus"]["verdicts"], json!(["VALID", "ERROR", "VALID"]), "{reply:#}");
    assert_eq!(reply["replicas"].as_array().unwrap().len(), 3);
    assert!(spare.calls().iter().all(|call| call.endpoint() != "verify"));
    let wrong = app.admin().post("/api/v3/validate", &pool(&json!({ "spares": 11 }))).await;
    assert_eq!(wrong.json()["field"], "consensus.spares", "{}", wrong.text());
}

#[tokio::test]
async fn a_seat_fails_only_when_no_spare_answers_in_it() {
    let app = TestApp::new().await;
    let [_one, _two, _three, spare] = with_a_spare(&app).await;
    spare.set(status(502));
    let reply = validate(&app.admin(), &pool(&json!({}))).await;
    assert_eq!(reply["consensus"]["verdicts"], json!(["VALID", "ERROR", "VALID"]), "{reply:#}");
    assert_eq!(reply["replicas"][1]["session_id"], "dear");
    assert_eq!(reply["replicas"][3]["replaced_by"], 3);
}

#[tokio::test]
async fn an_invalid_answer_still_keeps_its_seat() {
    let app = TestApp::new().await;
    let schema = json!({ "properties": { "n": { "type": "integer" } } });
    let good = || answers(json!({ "n": 1 }));
    let bad = answers(json!({ "n": "one" }));
    let [_one, _two, _three, spare] = app.executors([good(), bad, good(), good()]).await;
    let session = json!({ "id": "dear", "executor": "s4", "price_micros": 1_000 });
    app.admin().post("/v1/sessions", &session).await;
    let mut body = pool(&json!({}));
    body["objective"] = json!("count");
    body["execution"] = json!({ "output_schema": schema });
    body.as_object_mut().unwrap().remove("claim");
    let reply = app.admin().post("/api/v3/delegate", &body).await.json();
    assert_eq!(reply["consensus"]["verdicts"], json!(["OK", "INVALID_OUTPUT", "OK"]), "{reply:#}");
    assert!(spare.calls().iter().all(|call| call.endpoint() != "execute"));
}

#[tokio::test]
async fn spares_are_in_the_hold_and_are_paid() {
    let app = TestApp::new().await;
    let _fakes = with_a_spare(&app).await;
    let team = app.caller("team", &[Scope::RoundsCreate, Scope::UsageRead]).await;
    let grant = |usd: &'static str| json!({ "amount_usd": usd });
    app.admin().post("/v1/accounts/acct_team/grants", &grant("0.0009")).await;
    let refused = team.post("/api/v3/validate", &pool(&json!({}))).await;
    assert_eq!(refused.status, StatusCode::PAYMENT_REQUIRED, "{}", refused.text());
    assert_eq!(team.post("/api/v3/validate", &pool(&json!({ "spares": 0 }))).await.status, 200);
    app.admin().post("/v1/accounts/acct_team/grants", &grant("0.0001")).await;
    assert_eq!(validate(&team, &pool(&json!({}))).await["verdict"], "VALID");
    let account = jurat_core::id::AccountId::parse("acct_team").unwrap();
    let balance =
        app.store.accounts().get(&Behalf::Platform, &account).await.unwrap().unwrap().balance;
    assert_eq!((balance.spent, balance.held), (1_000, 0));
}

#[tokio::test]
async fn a_spare_that_shares_less_with_the_others_comes_first() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid(), status(500), says_valid(), says_valid()]).await;
    // Cheaper than the unrelated one, but another session to an executor that answers already.
    for (id, executor, price) in [("copy", "s1", 10), ("stranger", "s4", 1_000)] {
        let session = json!({ "id": id, "executor": executor, "price_micros": price });
        app.admin().post("/v1/sessions", &session).await;
    }
    let body = json!({
        "claim": "x",
        "consensus": { "replicas": 3, "session_pool": ["s1", "s2", "s3", "copy", "stranger"] },
    });
    let reply = validate(&app.admin(), &body).await;
    assert_eq!(reply["consensus"]["verdicts"], json!(["VALID", "VALID", "VALID"]), "{reply:#}");
    assert_eq!(reply["replicas"][1]["session_id"], "stranger", "{reply:#}");
}

#[tokio::test]
async fn the_stream_reports_who_takes_a_seat() {
    let app = TestApp::new().await;
    let _fakes = with_a_spare(&app).await;
    let body = Body::from(pool(&json!({})).to_string());
    let heads = [("accept", "text/event-stream")];
    let reply = app.admin().send("POST", "/api/v3/validate", body, &heads).await.text();
    let data = |name: &str| -> Vec<Value> {
        let blocks = reply.split("\n\n").filter(|it| it.starts_with(&format!("event: {name}\n")));
        let data = blocks.filter_map(|it| it.lines().find_map(|line| line.strip_prefix("data: ")));
        data.map(|it| serde_json::from_str(it).unwrap()).collect()
    };
    let mut started: Vec<Value> =
        data("replica_started").into_iter().map(|it| it["replica_id"].clone()).collect();
    started.sort_by_key(Value::to_string);
    assert_eq!(started, [0, 1, 2, 3].map(Value::from));
    let replaced: Vec<Value> = data("replica_done")
        .into_iter()
        .filter(|it| !it["replaced_by"].is_null())
        .map(|it| json!([it["replica_id"], it["replaced_by"]]))
        .collect();
    assert_eq!(replaced, [json!([1, 3])], "{reply}");
}

#[tokio::test]
async fn a_majority_stops_a_spare_as_well() {
    let app = TestApp::new().await;
    let [_one, _two, _three, spare] = with_a_spare(&app).await;
    spare.set(gated(says_invalid()));
    let reply = validate(&app.admin(), &pool(&json!({ "early_stop": true }))).await;
    assert_eq!(reply["verdict"], "VALID");
    let verdicts = reply["consensus"]["verdicts"].as_array().unwrap();
    assert_eq!(verdicts.len(), 3, "{reply:#}");
    assert!(verdicts[1] == "CANCELLED" || verdicts[1] == "ERROR", "{reply:#}");
    spare.release();
}
