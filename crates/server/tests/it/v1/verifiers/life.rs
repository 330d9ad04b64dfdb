//! Verifiers from the first deploy to the deletion.

use axum::body::Body;
use http::StatusCode;
use insta::assert_json_snapshot;
use jurat_testkit::app::{TestApp, TestCaller};
use serde_json::{Value, json};

use super::{OWNER, assert_problem, claims, claims_with, deploy, owner, text};

#[tokio::test]
async fn a_verifier_is_deployed_changed_revoked_and_deleted() {
    life(&TestApp::new().await).await;
}

/// The whole life, on any store.
pub(crate) async fn life(app: &TestApp) {
    let alice = owner(app).await;
    let first = deploy(&alice, &claims()).await;
    let members: Vec<&String> = first.as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        [
            "config_hash",
            "current_version",
            "input_contract",
            "name",
            "status",
            "verifier_id",
            "version",
            "version_token",
            // The provider of its judge is not configured here.
            "warnings"
        ]
    );
    assert_eq!((&first["version"], &first["status"]), (&json!(1), &json!("active")));
    let (id, token) = (text(&first["verifier_id"]), text(&first["version_token"]));
    assert!(token.len() <= 64, "{token}");

    app.clock.advance_ms(1_000);
    let mut sharper = claims_with("criterion", json!("Be strict."));
    sharper["description"] = json!("Strictly.");
    sharper["expected_version_token"] = json!(token);
    let second = deploy(&alice, &sharper).await;
    assert_eq!(second["verifier_id"], first["verifier_id"]);
    assert_eq!((&second["version"], &second["current_version"]), (&json!(2), &json!(2)));
    assert_ne!(second["version_token"], first["version_token"]);
    assert_ne!(second["config_hash"], first["config_hash"]);

    let at = format!("/v1/verifiers/{id}");
    let current = alice.get(&at).await.json();
    assert_eq!((&current["version"], &current["criterion"]), (&json!(2), &json!("Be strict.")));
    assert_eq!(current["version_token"], second["version_token"]);
    let old = alice.get(&format!("{at}?version=1")).await.json();
    assert_eq!((&old["version"], &old["criterion"]), (&json!(1), &claims()["criterion"]));
    assert_eq!((&old["verifier_id"], &old["current_version"]), (&json!(id), &json!(2)));
    assert_eq!(old["config_hash"], first["config_hash"]);
    let versions = alice.get(&format!("{at}/versions")).await.json();
    let told: Vec<(&Value, &Value, &Value)> = versions["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["version"], &it["description"], &it["is_current"]))
        .collect();
    assert_eq!(
        told,
        [
            (&json!(2), &json!("Strictly."), &json!(true)),
            (&json!(1), &claims()["description"], &json!(false))
        ]
    );

    ends(&alice, &first, &second).await;
}

/// A verifier of two versions that is revoked, then deleted, then deployed again.
async fn ends(alice: &TestCaller<'_>, first: &Value, second: &Value) {
    let id = text(&first["verifier_id"]);
    let at = format!("/v1/verifiers/{id}");
    let revoked = alice.delete("/v1/verifiers/claims-cite-source").await;
    assert_eq!(revoked.status, StatusCode::OK);
    let gone = json!({ "verifier_id": id, "name": "claims-cite-source", "revoked": true });
    assert_eq!(revoked.json(), gone);
    assert_eq!(alice.get("/v1/verifiers").await.json()["items"], json!([]));
    for path in [&at, "/v1/verifiers/claims-cite-source", &format!("{at}/versions")] {
        assert_problem(&alice.get(path).await, StatusCode::NOT_FOUND, "not_found");
    }
    // The name stays taken, whatever token comes with it.
    for body in [claims(), claims_with("expected_version_token", second["version_token"].clone())] {
        let reply = alice.post("/v1/verifiers", &body).await;
        assert_problem(&reply, StatusCode::CONFLICT, "conflict");
        assert!(reply.text().contains("revoked"), "{}", reply.text());
    }

    let deleted = alice.delete(&format!("{at}/permanent")).await;
    let gone = json!({ "verifier_id": id, "name": "claims-cite-source", "deleted": true });
    assert_eq!((deleted.status, deleted.json()), (StatusCode::OK, gone));
    let again = alice.delete(&format!("{at}/permanent")).await;
    assert_problem(&again, StatusCode::NOT_FOUND, "not_found");
    let anew = deploy(alice, &claims()).await;
    assert_eq!(anew["version"], 1);
    assert_ne!(anew["verifier_id"], first["verifier_id"]);
    assert_eq!(anew["config_hash"], first["config_hash"]);
}

#[tokio::test]
async fn a_version_shows_all_that_was_deployed() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    deploy(&alice, &claims()).await;
    assert_json_snapshot!(alice.get("/v1/verifiers/claims-cite-source").await.json());
    assert_json_snapshot!(alice.get("/v1/verifiers").await.json());
    let image = json!({ "name": "brief", "description": "d", "criterion": "c", "input_contract": "image",
                        "few_shot_examples": [{ "media_url": "https://example.com/a.png", "passed": true }],
                        "model_settings": { "model": "openai/gpt-5.5", "commit_first": true } });
    deploy(&alice, &image).await;
    let shown = alice.get("/v1/verifiers/brief").await.json();
    assert_eq!(shown["input_fields"], json!([]));
    assert_eq!(shown["few_shot_examples"][0]["inputs"], json!({}));
    let config = json!({ "model": "openai/gpt-5.5", "commit_first": true });
    assert_eq!(shown["judge_model_config"], config);
    assert_eq!(shown["measured"], Value::Null);
}

#[tokio::test]
async fn a_pin_in_the_address_comes_back_with_the_id() {
    pins(&TestApp::new().await).await;
}

/// Pins of all kinds, on any store.
pub(crate) async fn pins(app: &TestApp) {
    let alice = owner(app).await;
    let first = deploy(&alice, &claims()).await;
    let next = claims_with("expected_version_token", first["version_token"].clone());
    deploy(&alice, &next).await;
    let id = text(&first["verifier_id"]);
    for named in [id, &id.to_uppercase(), "claims-cite-source"] {
        for (query, version, shown) in [
            ("", 2, id.to_owned()),
            ("@1", 1, format!("{id}@1")),
            ("@1?version=1", 1, format!("{id}@1")),
            ("?version=1", 1, id.to_owned()),
        ] {
            let reply = alice.get(&format!("/v1/verifiers/{named}{query}")).await.json();
            assert_eq!(reply["verifier_id"], shown, "{named}{query}");
            assert_eq!(reply["version"], version, "{named}{query}");
        }
        let twice = alice.get(&format!("/v1/verifiers/{named}@1?version=2")).await;
        assert_problem(&twice, StatusCode::BAD_REQUEST, "validation_error");
        assert_eq!(twice.json()["field"], "version");
        for missing in ["@3", "?version=3", "@4294967295"] {
            let reply = alice.get(&format!("/v1/verifiers/{named}{missing}")).await;
            assert_problem(&reply, StatusCode::NOT_FOUND, "not_found");
        }
    }
}

#[tokio::test]
async fn verifiers_come_in_pages_by_name_and_every_page_has_a_cursor_of_its_own() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    for name in ["d", "b", "e", "a", "c"] {
        deploy(&alice, &claims_with("name", json!(name))).await;
    }
    deploy(&app.caller("bob", OWNER).await, &claims_with("name", json!("bb"))).await;
    let (mut names, mut cursors) = (Vec::new(), Vec::new());
    let mut path = "/v1/verifiers?limit=2".to_owned();
    loop {
        let page = alice.get(&path).await.json();
        let items = page["items"].as_array().unwrap();
        names.extend(items.iter().map(|item| text(&item["name"]).to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        assert!(!cursors.contains(&cursor.to_owned()), "{cursors:?}");
        cursors.push(cursor.to_owned());
        path = format!("/v1/verifiers?limit=2&cursor={cursor}");
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    assert_eq!(cursors.len(), 2);
}

#[tokio::test]
async fn versions_come_in_pages_newest_first() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let mut last = deploy(&alice, &claims()).await;
    for _ in 0..4 {
        let next = claims_with("expected_version_token", last["version_token"].clone());
        last = deploy(&alice, &next).await;
    }
    let at = "/v1/verifiers/claims-cite-source/versions?limit=2";
    let (mut versions, mut path) = (Vec::new(), at.to_owned());
    loop {
        let page = alice.get(&path).await.json();
        let items = page["items"].as_array().unwrap();
        versions.extend(items.iter().map(|item| item["version"].as_u64().unwrap()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("{at}&cursor={cursor}");
    }
    assert_eq!(versions, [5, 4, 3, 2, 1]);
    let wrong = alice.get(&format!("{at}&cursor=x")).await;
    assert_eq!(wrong.json()["field"], "cursor");
}

#[tokio::test]
async fn every_write_happens_once_under_its_key() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let send = async |method: &str, path: &str, body: &Value, key: &str| {
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        alice.send(method, path, body, &[("idempotency-key", key)]).await
    };
    let id = {
        let made = send("POST", "/v1/verifiers", &claims(), "deploy").await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
        text(&made.json()["verifier_id"]).to_owned()
    };
    let erase = format!("/v1/verifiers/{id}/permanent");
    for (method, path, body, key) in [
        ("POST", "/v1/verifiers", &claims(), "deploy"),
        ("DELETE", "/v1/verifiers/claims-cite-source", &Value::Null, "revoke"),
        ("DELETE", &erase, &Value::Null, "delete"),
    ] {
        let first = send(method, path, body, key).await;
        let second = send(method, path, body, key).await;
        assert!(second.status.is_success(), "{key}: {}", second.text());
        assert_eq!((first.status, first.text()), (second.status, second.text()), "{key}");
        assert_eq!(second.headers["idempotent-replayed"], "true", "{key}");
    }
    let other = send("POST", "/v1/verifiers", &claims_with("name", json!("b")), "deploy").await;
    assert_problem(&other, StatusCode::CONFLICT, "idempotency_mismatch");
    assert_eq!(alice.get("/v1/verifiers").await.json()["items"], json!([]));
}

#[tokio::test]
async fn unknown_members_of_the_peer_are_ignored() {
    let app = TestApp::new().await;
    let alice = owner(&app).await;
    let mut body = claims();
    body["tags"] = json!(["a"]);
    body["model_settings"]["temperature"] = json!(0.3);
    body["few_shot_examples"][0]["weight"] = json!(2);
    body["reasoning_field_description"] = json!("r");
    let plain = deploy(&alice, &claims_with("name", json!("plain"))).await;
    assert_eq!(deploy(&alice, &body).await["config_hash"], plain["config_hash"]);
}
