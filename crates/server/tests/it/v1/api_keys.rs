//! `/v1/api-keys`.

use axum::body::Body;
use http::StatusCode;
use insta::{assert_json_snapshot, assert_snapshot};
use jurat_core::account::caller::Scope;
use jurat_store::Behalf;
use jurat_testkit::app::{TestApp, TestCaller, TestReply};
use serde_json::{Value, json};

async fn create(app: &TestApp, body: &Value) -> Value {
    let reply = app.admin().post("/v1/api-keys", body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    reply.json()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Whether the clear text of a key is accepted.
async fn opens(app: &TestApp, key: &Value) -> bool {
    app.with_key(text(key)).get("/v1/rounds").await.status == StatusCode::OK
}

#[track_caller]
fn assert_problem(reply: &TestReply, status: StatusCode, code: &str) {
    assert_eq!((reply.status, text(&reply.json()["code"])), (status, code), "{}", reply.text());
}

#[tokio::test]
async fn a_new_key_is_shown_once_and_opens_what_its_scopes_allow() {
    let app = TestApp::new().await;
    let reply = app.admin().post("/v1/api-keys", &json!({ "name": "ci" })).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    assert_eq!(reply.headers["cache-control"], "no-store");
    let created = reply.json();
    // No file contains a text that secret scanners take for a key.
    let mut shown = created.clone();
    shown["key"] = json!("[key]");
    assert_json_snapshot!(shown);
    let ci = app.with_key(text(&created["key"]));
    assert_eq!(ci.get("/v1/rounds").await.status, StatusCode::OK);
    assert_problem(&ci.get("/v1/executors").await, StatusCode::FORBIDDEN, "forbidden");
    let listed = app.admin().get("/v1/api-keys").await;
    let secret = text(&created["key"]).rsplit('_').next().unwrap();
    assert!(!listed.text().contains(secret), "{}", listed.text());
    assert_json_snapshot!(listed.json());
}

#[tokio::test]
async fn a_key_may_have_an_account_scopes_limits_and_an_end() {
    let app = TestApp::new().await;
    let body = json!({ "name": "nightly run", "scopes": ["metrics:read", "rounds:read", "rounds:read"],
                       "account": "acct_team", "rate_per_minute": 60, "concurrent_rounds": 4,
                       "expires_at": "2030-01-31T12:00:00+02:00" });
    let created = create(&app, &body).await;
    assert_eq!(created["account"], "acct_team");
    assert_eq!(created["scopes"], json!(["rounds:read", "metrics:read"]));
    assert_eq!(created["rate_per_minute"], 60);
    assert_eq!(created["concurrent_rounds"], 4);
    assert_eq!(created["expires_at"], "2030-01-31T10:00:00Z");
    assert!(opens(&app, &created["key"]).await);
    // The account exists now, and can have more keys.
    create(&app, &json!({ "name": "second", "account": "acct_team" })).await;
    let listed = app.admin().get("/v1/api-keys?account=acct_team").await.json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn bad_keys_name_the_field() {
    let app = TestApp::new().await;
    let long = "x".repeat(65);
    let cases = [
        (json!({}), "name"),
        (json!({ "name": " " }), "name"),
        (json!({ "name": "a/b" }), "name"),
        (json!({ "name": "-rf" }), "name"),
        (json!({ "name": ".." }), "name"),
        (json!({ "name": long }), "name"),
        (json!({ "name": "a\nb" }), "name"),
        (json!({ "name": "a", "scopes": "admin" }), "scopes"),
        (json!({ "name": "a", "scopes": [] }), "scopes"),
        (json!({ "name": "a", "scopes": ["everything"] }), "scopes"),
        (json!({ "name": "a", "account": "team" }), "account"),
        (json!({ "name": "a", "rate_per_minute": 0 }), "rate_per_minute"),
        (json!({ "name": "a", "rate_per_minute": 1_000_001 }), "rate_per_minute"),
        (json!({ "name": "a", "concurrent_rounds": 1.5 }), "concurrent_rounds"),
        (json!({ "name": "a", "expires_at": "tomorrow" }), "expires_at"),
        (json!({ "name": "a", "expires_at": "2030-01-31" }), "expires_at"),
        (json!({ "name": "a", "expires_at": "2020-01-31T12:00:00Z" }), "expires_at"),
        (json!({ "name": "a", "expire_at": "2030-01-31T12:00:00Z" }), "expire_at"),
    ];
    for (body, field) in cases {
        let reply = app.admin().post("/v1/api-keys", &body).await;
        assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
        assert_eq!(reply.json()["field"], field, "{body}");
    }
    let wrong = app.admin().post("/v1/api-keys", &json!({ "name": "a", "scopes": ["x"] })).await;
    assert_snapshot!(text(&wrong.json()["detail"]), @"`scopes` has no `x`; known are admin, rounds:create, rounds:read, metrics:read, verifiers:read, verifiers:write, verifiers:run, usage:read, keys:write, workflows:read, workflows:write, account:write, tasks:read, tasks:write");
    for path in ["/v1/api-keys?account=team", "/v1/api-keys?colour=red"] {
        assert_eq!(app.admin().get(path).await.status, StatusCode::BAD_REQUEST, "{path}");
    }
    for path in ["/v1/api-keys/x?colour=red", "/v1/api-keys/x?account=acct_a&account=acct_b"] {
        assert_eq!(app.admin().delete(path).await.status, StatusCode::BAD_REQUEST, "{path}");
    }
    let body = json!({ "grace_seconds": -1 });
    let reply = app.admin().post("/v1/api-keys/x/rotate", &body).await;
    assert_eq!(reply.json()["field"], "grace_seconds");
}

#[tokio::test]
async fn a_name_is_taken_once_in_an_account_while_its_key_lives() {
    let app = TestApp::new().await;
    create(&app, &json!({ "name": "ci" })).await;
    let again = app.admin().post("/v1/api-keys", &json!({ "name": "ci" })).await;
    assert_problem(&again, StatusCode::CONFLICT, "conflict");
    create(&app, &json!({ "name": "ci", "account": "acct_other" })).await;
    assert_eq!(app.admin().delete("/v1/api-keys/ci").await.status, StatusCode::NO_CONTENT);
    create(&app, &json!({ "name": "ci" })).await;
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_and_like_an_unknown_one() {
    let app = TestApp::new().await;
    let created = create(&app, &json!({ "name": "ci" })).await;
    // It is cached now, and still the next request is refused.
    assert!(opens(&app, &created["key"]).await);
    let path = format!("/v1/api-keys/{}", text(&created["id"]));
    let reply = app.admin().delete(&path).await;
    assert_eq!((reply.status, reply.body.len()), (StatusCode::NO_CONTENT, 0));
    let revoked = app.with_key(text(&created["key"])).get("/v1/rounds").await;
    let forged = jurat_core::account::key::ApiKey::new(99, [9, 9]).reveal();
    let unknown = app.with_key(&forged).get("/v1/rounds").await;
    assert_eq!(revoked.status, StatusCode::UNAUTHORIZED);
    assert_eq!(revoked.body, unknown.body);
    assert_eq!(app.admin().delete(&path).await.status, StatusCode::NO_CONTENT);
    let listed = app.admin().get("/v1/api-keys").await.json();
    assert!(listed["items"][1]["revoked_at"].is_string(), "{listed}");
}

#[tokio::test]
async fn a_key_ends_at_its_time() {
    let app = TestApp::new().await;
    let end = jurat_wire::api::kit::time::text(app.engine.clock().now().plus_millis(60_000));
    let created = create(&app, &json!({ "name": "ci", "expires_at": end })).await;
    app.clock.advance_ms(59_999);
    assert!(opens(&app, &created["key"]).await);
    app.clock.advance_ms(1);
    assert!(!opens(&app, &created["key"]).await);
    let rotate = app.admin().post("/v1/api-keys/ci/rotate", &json!({})).await;
    assert_problem(&rotate, StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn nobody_can_lock_themselves_out() {
    let app = TestApp::new().await;
    let own = app.admin().delete("/v1/api-keys/admin").await;
    assert_problem(&own, StatusCode::CONFLICT, "conflict");
    assert!(text(&own.json()["detail"]).contains("the key of the request itself"));
    let body = json!({ "name": "second", "scopes": ["admin"], "account": "acct_ops" });
    let second = create(&app, &body).await;
    let ops = app.with_key(text(&second["key"]));
    // Names belong to an account, and this one has no `admin`.
    let other = ops.delete("/v1/api-keys/admin").await;
    assert_problem(&other, StatusCode::NOT_FOUND, "not_found");
    let path = "/v1/api-keys/admin?account=acct_admin";
    assert_eq!(ops.delete(path).await.status, StatusCode::NO_CONTENT);
    assert_eq!(app.admin().get("/v1/api-keys").await.status, StatusCode::UNAUTHORIZED);
    // The one that is left is in use, so it stays.
    let own = ops.delete(&format!("/v1/api-keys/{}", text(&second["id"]))).await;
    assert_problem(&own, StatusCode::CONFLICT, "conflict");
}

#[tokio::test]
async fn a_rotated_key_serves_until_its_grace_is_over() {
    let app = TestApp::new().await;
    let body = json!({ "name": "ci", "account": "acct_team", "scopes": ["rounds:read"],
                       "rate_per_minute": 90, "concurrent_rounds": 2 });
    let old = create(&app, &body).await;
    let path = format!("/v1/api-keys/{}/rotate", text(&old["id"]));
    let reply = app.admin().post(&path, &json!({ "grace_seconds": 60 })).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    let new = reply.json();
    assert_eq!(new["replaces"], old["id"]);
    for same in ["name", "account", "scopes", "rate_per_minute", "concurrent_rounds"] {
        assert_eq!(new[same], old[same], "{same}");
    }
    assert_ne!(new["key"], old["key"]);
    assert!(opens(&app, &new["key"]).await && opens(&app, &old["key"]).await);
    app.clock.advance_ms(60_000);
    assert!(opens(&app, &new["key"]).await && !opens(&app, &old["key"]).await);

    // Without a body the grace period is a day, and it can be zero.
    let path = "/v1/api-keys/ci/rotate?account=acct_team";
    let last = app.admin().send("POST", path, Body::empty(), &[]).await.json();
    assert_eq!(last["replaces"], new["id"]);
    assert!(opens(&app, &new["key"]).await);
    let path = format!("/v1/api-keys/{}/rotate", text(&last["id"]));
    app.admin().post(&path, &json!({ "grace_seconds": 0 })).await;
    assert!(!opens(&app, &last["key"]).await);
    // A name means every key that has it.
    let revoked = app.admin().delete("/v1/api-keys/ci?account=acct_team").await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    assert!(!opens(&app, &new["key"]).await);
}

#[tokio::test]
async fn keys_come_in_pages_that_lose_nothing() {
    let app = TestApp::new().await;
    for name in ["e", "d", "c", "b", "a"] {
        create(&app, &json!({ "name": name })).await;
        app.clock.advance_ms(1);
    }
    let mut names = Vec::new();
    let mut path = "/v1/api-keys?limit=2".to_owned();
    loop {
        let page = app.admin().get(&path).await.json();
        let items = page["items"].as_array().unwrap();
        names.extend(items.iter().map(|item| text(&item["name"]).to_owned()));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/api-keys?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    names.sort_by_key(|name| name != "admin");
    assert_eq!(names, ["admin", "e", "d", "c", "b", "a"]);
}

#[tokio::test]
async fn the_last_use_is_noted_in_the_background() {
    let app = TestApp::new().await;
    let created = create(&app, &json!({ "name": "ci" })).await;
    let last_use = async || {
        let record =
            app.store.keys().get(&Behalf::Platform, text(&created["id"])).await.unwrap().unwrap();
        record.key.last_used_at
    };
    assert!(opens(&app, &created["key"]).await);
    let first = app.engine.clock().now();
    assert_eq!(last_use().await, None);
    app.engine.key_uses_write().await.unwrap();
    assert_eq!(last_use().await, Some(first));
    app.clock.advance_ms(59_000);
    assert!(opens(&app, &created["key"]).await);
    app.engine.key_uses_write().await.unwrap();
    assert_eq!(last_use().await, Some(first));
    app.clock.advance_ms(1_000);
    app.engine.key_uses_write().await.unwrap();
    assert_eq!(last_use().await, Some(first.plus_millis(59_000)));
}

#[tokio::test]
async fn only_an_admin_makes_keys() {
    let app = TestApp::new().await;
    let scopes = [Scope::RoundsCreate, Scope::RoundsRead, Scope::MetricsRead];
    let caller = app.caller("alice", &scopes).await;
    for (method, path) in [
        ("POST", "/v1/api-keys"),
        ("GET", "/v1/api-keys"),
        ("DELETE", "/v1/api-keys/admin"),
        ("POST", "/v1/api-keys/admin/rotate"),
    ] {
        let body = if path == "/v1/api-keys" { r#"{"name": "x"}"# } else { "{}" };
        let reply = caller.send(method, path, Body::from(body), &[]).await;
        assert_problem(&reply, StatusCode::FORBIDDEN, "forbidden");
    }
}

#[tokio::test]
async fn a_key_that_was_rotated_already_names_its_successor() {
    let app = TestApp::new().await;
    let made = app.admin().post("/v1/api-keys", &json!({ "name": "ci" })).await.json();
    let path = format!("/v1/api-keys/{}/rotate", made["id"].as_str().unwrap());
    app.clock.advance_ms(1);
    let rotated = app.admin().post(&path, &json!({})).await.json();
    let again = app.admin().post(&path, &json!({})).await;
    assert_eq!(again.json()["code"], "conflict", "{}", again.text());
    let successor = rotated["id"].as_str().unwrap();
    assert!(again.json()["detail"].as_str().unwrap().contains(successor), "{}", again.text());
    app.clock.advance_ms(1);
    let by_name = app.admin().post("/v1/api-keys/ci/rotate", &json!({})).await.json();
    assert_eq!(by_name["replaces"], rotated["id"]);
    assert_eq!(by_name["expires_at"], json!(null), "it lives as long as the first was given");
}

#[tokio::test]
async fn a_rotation_without_grace_ends_every_earlier_key_of_the_name() {
    let app = TestApp::new().await;
    let made = app.admin().post("/v1/api-keys", &json!({ "name": "ci" })).await.json();
    let mut keys = vec![made["key"].as_str().unwrap().to_owned()];
    for grace in [3_600, 0] {
        app.clock.advance_ms(1);
        let body = json!({ "grace_seconds": grace });
        let rotated = app.admin().post("/v1/api-keys/ci/rotate", &body).await.json();
        keys.push(rotated["key"].as_str().unwrap().to_owned());
    }
    let mut statuses = Vec::new();
    for key in &keys {
        statuses.push(app.with_key(key).get("/v1/rounds").await.status.as_u16());
    }
    assert_eq!(statuses, [401, 401, 200]);
}

/// A caller with a key that an admin created.
async fn member<'a>(app: &'a TestApp, body: &Value) -> (Value, TestCaller<'a>) {
    let created = create(app, body).await;
    let caller = app.with_key(text(&created["key"]));
    (created, caller)
}

#[tokio::test]
async fn an_account_makes_lists_and_revokes_keys_of_its_own() {
    let app = TestApp::new().await;
    let (first, team) = member(&app, &json!({ "name": "first", "account": "acct_team" })).await;
    let own: Vec<&str> = Scope::OWN.iter().map(|scope| scope.as_str()).collect();
    assert_eq!(first["scopes"], json!(own), "all that an account does with its own");
    // A body with only a name is enough.
    let made = team.post("/v1/api-keys", &json!({ "name": "laptop" })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let made = made.json();
    assert_eq!((&made["scopes"], text(&made["account"])), (&first["scopes"], "acct_team"));
    assert!(opens(&app, &made["key"]).await);
    let names = async || {
        let listed = team.get("/v1/api-keys").await.json();
        let items = listed["items"].as_array().unwrap().clone();
        items.iter().map(|item| text(&item["name"]).to_owned()).collect::<Vec<_>>()
    };
    let mut listed = names().await;
    listed.sort();
    assert_eq!(listed, ["first", "laptop"], "and none of another account");
    let path = format!("/v1/api-keys/{}", text(&made["id"]));
    assert_eq!(team.delete(&path).await.status, StatusCode::NO_CONTENT);
    assert!(!opens(&app, &made["key"]).await);
    assert_eq!(team.delete(&path).await.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_key_never_gives_more_than_it_has() {
    let app = TestApp::new().await;
    let body = json!({ "name": "first", "account": "acct_team",
                       "scopes": ["rounds:read", "keys:write"] });
    let (_, team) = member(&app, &body).await;
    create(&app, &json!({ "name": "strong", "account": "acct_team" })).await;
    for (body, code) in [
        (json!({ "name": "a", "scopes": ["rounds:create"] }), "forbidden"),
        (json!({ "name": "a", "scopes": ["admin"] }), "forbidden"),
        (json!({ "name": "a", "account": "acct_other" }), "forbidden"),
    ] {
        let reply = team.post("/v1/api-keys", &body).await;
        assert_problem(&reply, StatusCode::FORBIDDEN, code);
    }
    // Its own account may be named.
    let own = json!({ "name": "b", "account": "acct_team", "scopes": ["rounds:read"] });
    let weak = team.post("/v1/api-keys", &own).await;
    assert_eq!(weak.status, StatusCode::CREATED, "{}", weak.text());
    // A key cannot revoke one with more scopes.
    let reply = team.delete("/v1/api-keys/strong").await;
    assert_problem(&reply, StatusCode::FORBIDDEN, "forbidden");
    assert_eq!(team.delete("/v1/api-keys/b").await.status, StatusCode::NO_CONTENT);
    // Other accounts do not exist.
    let admin = app.admin().get("/v1/me").await.json();
    let path = format!("/v1/api-keys/{}", text(&admin["key"]["id"]));
    assert_problem(&team.delete(&path).await, StatusCode::NOT_FOUND, "not_found");
    for reply in [
        team.get("/v1/api-keys?account=acct_admin").await,
        team.delete("/v1/api-keys/admin?account=acct_admin").await,
        team.post("/v1/api-keys/b/rotate", &json!({})).await,
    ] {
        assert_problem(&reply, StatusCode::FORBIDDEN, "forbidden");
    }
    let reader = app.caller("reader", &[Scope::RoundsRead]).await;
    for reply in [
        reader.get("/v1/api-keys").await,
        reader.post("/v1/api-keys", &json!({ "name": "a" })).await,
        reader.delete("/v1/api-keys/a").await,
    ] {
        assert_problem(&reply, StatusCode::FORBIDDEN, "forbidden");
        assert!(text(&reply.json()["detail"]).contains("keys:write"), "{}", reply.text());
    }
}

#[tokio::test]
async fn a_limit_cannot_be_left_behind_by_making_another_key() {
    let app = TestApp::new().await;
    // By default an admin's key with a limit creates none.
    let limited = json!({ "name": "visitor", "account": "acct_team", "rate_per_minute": 60 });
    let (created, visitor) = member(&app, &limited).await;
    assert!(!created["scopes"].as_array().unwrap().contains(&json!("keys:write")));
    let reply = visitor.post("/v1/api-keys", &json!({ "name": "more" })).await;
    assert_problem(&reply, StatusCode::FORBIDDEN, "forbidden");

    let end = jurat_wire::api::kit::time::text(app.engine.clock().now().plus_millis(60_000));
    let body = json!({ "name": "guest", "account": "acct_team", "rate_per_minute": 60,
                       "concurrent_rounds": 2, "expires_at": end,
                       "scopes": ["rounds:read", "keys:write"] });
    let (_, guest) = member(&app, &body).await;
    let made = guest.post("/v1/api-keys", &json!({ "name": "a", "rate_per_minute": 30 })).await;
    let made = made.json();
    assert_eq!((&made["rate_per_minute"], &made["concurrent_rounds"]), (&json!(30), &json!(2)));
    assert_eq!(made["expires_at"], json!(end));
    for (field, value) in [
        ("rate_per_minute", json!(61)),
        ("concurrent_rounds", json!(3)),
        ("expires_at", json!("2030-01-31T12:00:00Z")),
    ] {
        let mut body = json!({ "name": "b" });
        body[field] = value;
        let reply = guest.post("/v1/api-keys", &body).await;
        assert_problem(&reply, StatusCode::BAD_REQUEST, "validation_error");
        assert_eq!(reply.json()["field"], field);
    }
}

#[tokio::test]
async fn the_number_of_an_accounts_keys_is_limited() {
    let app = TestApp::new().await;
    let (_, team) = member(&app, &json!({ "name": "first", "account": "acct_team" })).await;
    for number in 1..100 {
        let made = team.post("/v1/api-keys", &json!({ "name": format!("k{number}") })).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    }
    let refused = team.post("/v1/api-keys", &json!({ "name": "one more" })).await;
    assert_problem(&refused, StatusCode::FORBIDDEN, "forbidden");
    create(&app, &json!({ "name": "one more", "account": "acct_team" })).await;
}
