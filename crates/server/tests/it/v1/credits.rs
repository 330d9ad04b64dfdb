//! `/v1/me` and `/v1/accounts`: credit, and suspended accounts.

use http::StatusCode;
use insta::{assert_json_snapshot, assert_snapshot};
use jurat_core::account::caller::Scope;
use jurat_testkit::{
    app::{TestApp, TestCaller, TestReply},
    fake_executor::{says_valid, status},
};
use serde_json::{Value, json};

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[track_caller]
fn assert_problem(reply: &TestReply, status: StatusCode, code: &str) {
    assert_eq!((reply.status, text(&reply.json()["code"])), (status, code), "{}", reply.text());
}

async fn grant(app: &TestApp, account: &str, amount: &str) -> TestReply {
    let path = format!("/v1/accounts/{account}/grants");
    app.admin().post(&path, &json!({ "amount_usd": amount })).await
}

/// The available, held and spent credit of the caller's account.
async fn credit(caller: &TestCaller<'_>) -> [String; 3] {
    let usage = caller.get("/v1/me/usage").await.json();
    ["available_usd", "held_usd", "spent_usd"].map(|name| text(&usage[name]).to_owned())
}

/// A session of this price, at an executor of its own.
async fn session_of(app: &TestApp, id: &str, url: &str, price_micros: u64) {
    let session = json!({ "id": id, "price_micros": price_micros });
    let body = json!({ "name": format!("{id}-executor"), "url": url, "session": session });
    let reply = app.admin().post("/v1/executors", &body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
}

fn validate(pool: &[&str]) -> Value {
    json!({ "claim": "x", "consensus": { "replicas": pool.len(), "session_pool": pool } })
}

#[tokio::test]
async fn the_caller_sees_its_identity() {
    let app = TestApp::new().await;
    let team = app.caller("team", &[Scope::RoundsRead, Scope::UsageRead]).await;
    let mut me = team.get("/v1/me").await.json();
    assert!(me["key"]["id"].take().is_string());
    assert_json_snapshot!(me, @r#"
    {
      "email": "acct_team@jurat.invalid",
      "handle": null,
      "handle_claimed_at": null,
      "id": "acct_team",
      "key": {
        "id": null,
        "name": "acct_team"
      },
      "scopes": [
        "rounds:read",
        "usage:read"
      ],
      "suspended": false
    }
    "#);
}

#[tokio::test]
async fn usage_has_the_fields_of_both_kinds_of_clients() {
    let app = TestApp::new().await;
    // Any key may ask for the usage of its account.
    let team = app.caller("team", &[]).await;
    assert_eq!(grant(&app, "acct_team", "12.5").await.status, StatusCode::CREATED);
    let usage = team.get("/v1/me/usage").await.json();
    assert_json_snapshot!(usage);
    let admin = app.admin().get("/v1/me/usage").await.json();
    assert_eq!((&admin["metered"], text(&admin["tier"])), (&json!(false), "unmetered"));
}

#[tokio::test]
async fn a_round_holds_its_price_and_pays_for_answers_only() {
    let app = TestApp::new().await;
    let [well, ill] = app.executors([says_valid(), status(500)]).await;
    session_of(&app, "well", &well.url(), 300_000).await;
    session_of(&app, "also", &well.url(), 300_000).await;
    session_of(&app, "ill", &ill.url(), 300_000).await;
    let team = app.caller("team", &[Scope::RoundsCreate, Scope::UsageRead]).await;
    let refused = team.post("/api/v3/validate", &validate(&["well"])).await;
    assert_problem(&refused, StatusCode::PAYMENT_REQUIRED, "budget_exhausted");
    grant(&app, "acct_team", "1.00").await;
    let asked = team.post("/api/v3/validate", &validate(&["well", "also", "ill"])).await;
    assert_eq!(asked.json()["verdict"], "VALID", "{}", asked.text());
    // Two answered; the third failed, and is not paid.
    assert_eq!(credit(&team).await, ["0.40", "0.00", "0.60"]);
    let lines = team.get("/v1/me/transfers").await.json();
    let shown: Vec<String> = lines["items"].as_array().unwrap().iter().map(line).collect();
    assert_eq!(
        shown,
        [
            "release 0.30 held available",
            "capture 0.60 held spent",
            "hold 0.90 available held",
            "grant 1.00 source available",
        ]
    );
    assert_eq!(lines["items"][0]["round_id"], asked.json()["round_id"]);
    // The rest does not cover the maximum cost of the same request.
    let refused = team.post("/api/v3/validate", &validate(&["well", "also", "ill"])).await;
    assert_problem(&refused, StatusCode::PAYMENT_REQUIRED, "budget_exhausted");
    assert_eq!(credit(&team).await, ["0.40", "0.00", "0.60"]);
    let state = app.admin().get("/v1/accounts/acct_team").await.json();
    assert_eq!(state["granted_usd"], "1.00");
}

fn line(item: &Value) -> String {
    ["movement", "amount_usd", "from", "to"].map(|name| text(&item[name])).join(" ")
}

#[tokio::test]
async fn the_operator_is_counted_and_never_refused() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    session_of(&app, "dear", &fake.url(), 2_000_000).await;
    let asked = app.admin().post("/api/v3/validate", &validate(&["dear"])).await;
    assert_eq!(asked.status, StatusCode::OK, "{}", asked.text());
    let usage = app.admin().get("/v1/me/usage").await.json();
    assert_eq!((text(&usage["available_usd"]), text(&usage["used_usd"])), ("-2.00", "2.00"));
    assert_eq!(text(&usage["unpaid_balance_usd"]), "2.00");
    assert_eq!((text(&usage["granted_usd"]), &usage["charged_rounds"]), ("0.00", &json!(1)));
}

#[tokio::test]
async fn usage_is_counted_by_month() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    session_of(&app, "dear", &fake.url(), 250_000).await;
    let team = app.caller("team", &[Scope::RoundsCreate]).await;
    grant(&app, "acct_team", "10").await;
    team.post("/api/v3/validate", &validate(&["dear"])).await;
    app.clock.advance_ms(31 * 86_400_000);
    team.post("/api/v3/validate", &validate(&["dear"])).await;
    let usage = team.get("/v1/me/usage").await.json();
    let amounts = ["used_usd", "granted_usd", "remaining_usd", "spent_usd"];
    assert_eq!(amounts.map(|name| text(&usage[name])), ["0.25", "9.75", "9.50", "0.50"]);
}

#[tokio::test]
async fn credit_is_granted_and_taken_back_within_what_is_available() {
    let app = TestApp::new().await;
    app.caller("team", &[]).await;
    let body = json!({ "amount_usd": "5.00", "note": "September" });
    let granted = app.admin().post("/v1/accounts/acct_team/grants", &body).await;
    assert_eq!(granted.status, StatusCode::CREATED);
    assert_json_snapshot!(granted.json(), @r#"
    {
      "amount_usd": "5.00",
      "available_usd": "5.00",
      "granted_usd": "5.00",
      "held_usd": "0.00",
      "id": "acct_team",
      "note": "September",
      "spent_usd": "0.00"
    }
    "#);
    let taken = grant(&app, "acct_team", "-1.5").await;
    assert_eq!(taken.json()["available_usd"], "3.50");
    let refused = grant(&app, "acct_team", "-3.500001").await;
    assert_problem(&refused, StatusCode::BAD_REQUEST, "validation_error");
    assert_snapshot!(text(&refused.json()["detail"]), @"`amount_usd` takes back more than the available credit, which is 3.50");
    let unknown = grant(&app, "acct_nobody", "1").await;
    assert_problem(&unknown, StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn a_bad_grant_names_the_field() {
    let app = TestApp::new().await;
    for (body, field) in [
        (json!({}), "amount_usd"),
        (json!({ "amount_usd": 5 }), "amount_usd"),
        (json!({ "amount_usd": "0.00" }), "amount_usd"),
        (json!({ "amount_usd": "five" }), "amount_usd"),
        (json!({ "amount_usd": "1e3" }), "amount_usd"),
        (json!({ "amount_usd": "0.0000001" }), "amount_usd"),
        (json!({ "amount_usd": "1000000000" }), "amount_usd"),
        (json!({ "amount_usd": "1", "note": 7 }), "note"),
        (json!({ "amount_usd": "1", "note": "x".repeat(501) }), "note"),
        (json!({ "amount_usd": "1", "amount": "1" }), "amount"),
    ] {
        let reply = app.admin().post("/v1/accounts/acct_admin/grants", &body).await;
        assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
        assert_eq!(reply.json()["field"], field, "{body}");
        assert!(!text(&reply.json()["detail"]).contains(['[', ']']), "{}", reply.text());
    }
}

#[tokio::test]
async fn a_grant_under_a_key_happens_once() {
    let app = TestApp::new().await;
    let team = app.caller("team", &[]).await;
    let path = "/v1/accounts/acct_team/grants";
    let once = [("idempotency-key", "september")];
    let body = json!({ "amount_usd": "5.00" });
    let first = app.admin().post_with(path, &body, &once).await;
    let again = app.admin().post_with(path, &body, &once).await;
    assert_eq!((first.status, again.status), (StatusCode::CREATED, StatusCode::CREATED));
    assert_eq!(
        (first.json(), &again.headers["idempotent-replayed"]),
        (again.json(), &"true".parse().unwrap())
    );
    assert_eq!(credit(&team).await[0], "5.00");
    let other = app.admin().post_with(path, &json!({ "amount_usd": "6.00" }), &once).await;
    assert_problem(&other, StatusCode::CONFLICT, "idempotency_mismatch");
}

#[tokio::test]
async fn a_suspended_account_is_refused_from_the_next_request_on() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let all = [Scope::RoundsCreate, Scope::RoundsRead, Scope::UsageRead];
    let team = app.caller("team", &all).await;
    let ask = async || team.post("/api/v3/validate", &validate(&["s1"])).await;
    assert_eq!(ask().await.status, StatusCode::OK);
    let suspend = async |what: &str, headers: &[(&str, &str)]| {
        let path = format!("/v1/accounts/acct_team/{what}");
        app.admin().post_with(&path, &json!({}), headers).await
    };
    let suspended = suspend("suspend", &[("idempotency-key", "one")]).await;
    assert!(suspended.json()["suspended_at"].is_string(), "{}", suspended.text());
    assert_problem(&ask().await, StatusCode::FORBIDDEN, "account_suspended");
    assert_eq!(team.get("/v1/me").await.json()["suspended"], true);
    // Reading still works.
    assert_eq!(team.get("/v1/rounds").await.status, StatusCode::OK);
    // It stays suspended since the first time.
    app.clock.advance_ms(1_000);
    let again = suspend("suspend", &[]).await.json();
    assert_eq!(again["suspended_at"], suspended.json()["suspended_at"]);
    assert_eq!(suspend("resume", &[]).await.json()["suspended_at"], json!(null));
    assert_eq!(ask().await.status, StatusCode::OK);
    // A repeated request does not suspend it again.
    let replayed = suspend("suspend", &[("idempotency-key", "one")]).await;
    assert_eq!(replayed.json(), suspended.json());
    assert_eq!(ask().await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_operator_cannot_be_suspended() {
    let app = TestApp::new().await;
    let reply = app.admin().post("/v1/accounts/acct_admin/suspend", &json!({})).await;
    assert_problem(&reply, StatusCode::CONFLICT, "conflict");
    for id in ["acct_nobody", "nobody"] {
        for what in ["suspend", "resume"] {
            let path = format!("/v1/accounts/{id}/{what}");
            let reply = app.admin().post(&path, &json!({})).await;
            assert_problem(&reply, StatusCode::NOT_FOUND, "not_found");
        }
        let reply = app.admin().get(&format!("/v1/accounts/{id}")).await;
        assert_problem(&reply, StatusCode::NOT_FOUND, "not_found");
    }
}

#[tokio::test]
async fn accounts_and_transfers_come_in_pages_that_lose_nothing() {
    let app = TestApp::new().await;
    for name in ["c", "a", "b"] {
        app.caller(name, &[]).await;
    }
    for amount in ["1", "2", "3"] {
        grant(&app, "acct_admin", amount).await;
    }
    for (list, member, expected) in [
        ("/v1/accounts", "id", &["acct_a", "acct_admin", "acct_b", "acct_c"][..]),
        ("/v1/me/transfers", "amount_usd", &["3.00", "2.00", "1.00"][..]),
        ("/v1/accounts/acct_admin/transfers", "amount_usd", &["3.00", "2.00", "1.00"][..]),
    ] {
        let mut found = Vec::new();
        let mut path = format!("{list}?limit=2");
        loop {
            let page = app.admin().get(&path).await.json();
            let items = page["items"].as_array().unwrap();
            found.extend(items.iter().map(|item| text(&item[member]).to_owned()));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            path = format!("{list}?limit=2&cursor={cursor}");
        }
        assert_eq!(found, expected);
        let wrong = app.admin().get(&format!("{list}?colour=red")).await;
        assert_eq!(wrong.json()["field"], "colour");
    }
}

#[tokio::test]
async fn only_an_admin_manages_accounts() {
    let app = TestApp::new().await;
    let own: Vec<Scope> = Scope::OWN.into();
    let team = app.caller("team", &own).await;
    for path in ["/v1/accounts", "/v1/accounts/acct_team", "/v1/accounts/acct_team/transfers"] {
        assert_problem(&team.get(path).await, StatusCode::FORBIDDEN, "forbidden");
    }
    for path in ["grants", "suspend", "resume"] {
        let body = json!({ "amount_usd": "1.00" });
        let reply = team.post(&format!("/v1/accounts/acct_team/{path}"), &body).await;
        assert_problem(&reply, StatusCode::FORBIDDEN, "forbidden");
    }
    let reader = app.caller("other", &[Scope::RoundsRead]).await;
    let reply = reader.get("/v1/me/transfers").await;
    assert_problem(&reply, StatusCode::FORBIDDEN, "forbidden");
}
