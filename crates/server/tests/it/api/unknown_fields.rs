//! Unknown fields: refused by name, or ignored with a warning.

use http::StatusCode;
use jurat_testkit::{
    app::TestApp,
    fake_executor::{answers, fact, says_valid},
};
use serde_json::{Value, json};

use crate::{
    mcp::{ERAS, call},
    x402::Shop,
};

/// The reply to each misplaced or misspelt field.
fn misplaced() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    let schema = json!({ "type": "object", "required": ["total"] });
    vec![
        (
            "validate",
            json!({ "claim": "x", "replicas": 3 }),
            "replicas",
            "it belongs in `consensus.replicas`",
        ),
        (
            "validate",
            json!({ "claim": "x", "consensu": { "replicas": 5 } }),
            "consensu",
            "did you mean `consensus`?",
        ),
        (
            "validate",
            json!({ "claim": "x", "policy": { "replicas": 3 } }),
            "policy.replicas",
            "it belongs in `consensus.replicas`",
        ),
        (
            "factcheck",
            json!({ "claim": "x", "aggregation": "mean" }),
            "aggregation",
            "it belongs in `consensus.aggregation`",
        ),
        (
            "delegate",
            json!({ "objective": "x", "output_schema": schema }),
            "output_schema",
            "it belongs in `execution.output_schema`",
        ),
        (
            "delegate",
            json!({ "objective": "x", "execution": { "max_step": 3 } }),
            "execution.max_step",
            "did you mean `execution.max_steps`?",
        ),
        (
            "delegate",
            json!({ "objective": "x", "consensus": { "min_agreements": 1 } }),
            "consensus.min_agreements",
            "did you mean `consensus.min_agreement`?",
        ),
        ("delegate", json!({ "objective": "x", "colour": "red" }), "colour", "known are "),
    ]
}

#[tokio::test]
async fn a_misplaced_field_is_refused_with_the_path_where_it_belongs() {
    let app = TestApp::new().await;
    let [fake] = app.executors([says_valid()]).await;
    let asked = fake.calls().len();
    for (work, body, field, advice) in misplaced() {
        for version in ["v3", "v4"] {
            let reply = app.admin().post(&format!("/api/{version}/{work}"), &body).await;
            assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {}", reply.text());
            let problem = reply.json();
            assert_eq!(problem["field"], field, "{problem}");
            assert!(problem["detail"].as_str().unwrap().contains(advice), "{problem}");
        }
        for era in ERAS {
            let result = call(&app.admin(), era, work, &body).await;
            assert_eq!(result["isError"], true, "{result}");
            assert_eq!(result["structuredContent"]["field"], field, "{result}");
        }
    }
    let since = fake.calls().split_off(asked);
    assert!(since.iter().all(|call| !matches!(call.endpoint(), "execute" | "verify")));
}

#[tokio::test]
async fn version_2_ignores_unknown_fields_and_warns() {
    let app = TestApp::new().await;
    let _fakes = app.executors([says_valid()]).await;
    let body = json!({
        "claim": "x", "consensus": { "replicas": 5 }, "policy": { "tier": "fast", "replicas": 3 },
        "session_idd": "s1", "x_trace": "t",
    });
    let reply = app.admin().post("/api/v2/validate", &body).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    let one = "version 2 calls one replica; use `/api/v3` with `consensus.replicas`";
    let expected = json!([
        format!("`consensus` is not a known field and was ignored; {one}"),
        format!("`policy.replicas` is not a known field and was ignored; {one}"),
        "`session_idd` is not a known field and was ignored; did you mean `session_id`?",
    ]);
    assert_eq!(reply.json()["warnings"], expected);
    let later =
        app.admin().post_with("/api/v2/validate", &body, &[("prefer", "respond-async")]).await;
    assert_eq!((later.status, &later.json()["warnings"]), (StatusCode::ACCEPTED, &expected));
    let plain = app.admin().post("/api/v2/validate", &json!({ "claim": "x" })).await.json();
    assert_eq!(plain.get("warnings"), None, "{plain}");
}

#[tokio::test]
async fn additional_members_of_a_job_reach_the_executor() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "a": 1 }))]).await;
    let beside = json!({
        "tools": ["web_search"], "workflow": { "steps": [1] }, "actor": { "id": "a" },
        "metadata": { "client_trace_id": "t-1" },
    });
    let with = |mut body: Value| {
        body.as_object_mut().unwrap().extend(beside.as_object().unwrap().clone());
        body
    };
    let body = with(json!({ "objective": "x", "input": { "tools": "mine" } }));
    for version in ["v2", "v3", "v4"] {
        let reply = app.admin().post(&format!("/api/{version}/delegate"), &body).await;
        assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
        let inputs = fake.calls().last().unwrap().body["inputs"].clone();
        assert_eq!(inputs["workflow"], beside["workflow"]);
        assert_eq!(inputs["actor"], beside["actor"]);
        assert_eq!(inputs["tools"], "mine", "the job's own word has precedence");
        assert_eq!(inputs.get("metadata"), None);
    }
    fake.set(fact("TRUE"));
    app.admin().post("/api/v3/factcheck", &with(json!({ "claim": "x" }))).await;
    let inputs = fake.calls().last().unwrap().body["inputs"].clone();
    assert_eq!((&inputs["tools"], &inputs["claim"]), (&beside["tools"], &json!("x")));
    fake.set(says_valid());
    let body = with(json!({ "claim": "x", "context": { "a": 1 } }));
    app.admin().post("/api/v3/validate", &body).await;
    let candidate = fake.calls().last().unwrap().body["candidate"].clone();
    let evidence = candidate["evidence_inline"][0]["content"].as_str().unwrap();
    let evidence: Value = serde_json::from_str(evidence).unwrap();
    assert_eq!(
        evidence,
        json!({
            "kind": "context", "context": { "a": 1 }, "tools": beside["tools"],
            "workflow": beside["workflow"], "actor": beside["actor"],
        })
    );
}

/// Routes of the registry ignore unknown fields, and so does version 2.
fn ignores(path: &str) -> bool {
    const OURS: [&str; 4] = ["/tests", "/attacks", "/rotate", "/approve"];
    const REGISTRY: [&str; 12] = [
        "/v1/verifiers",
        "/v1/workflows",
        "/v1/skills",
        "/v1/templates",
        "/v1/api-keys",
        "/v1/me",
        "/v1/teams",
        "/v1/invitations",
        "/v1/auth",
        "/v1/login",
        "/v1/register",
        "/api/v2",
    ];
    // Protocols of peers have members that we do not know.
    const PEERS: [&str; 7] =
        ["/mcp", "/a2a", "/verify", "/auth", "/api/v1", "/api/v3/completions", "/v1/chat"];
    let is_ours = OURS.iter().any(|end| path.ends_with(end));
    (REGISTRY.iter().any(|start| path.starts_with(start)) && !is_ours)
        || PEERS.iter().any(|start| path.starts_with(start))
}

#[tokio::test]
async fn every_own_route_refuses_an_unknown_field_and_every_other_one_ignores_it() {
    let shop = Shop::open().await;
    let app = &shop.app;
    let document = app.anonymous().get("/openapi.json").await.json();
    let mut tried = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let content = &operation["requestBody"]["content"]["application/json"];
            let examples = content["examples"].as_object().into_iter().flatten();
            let Some(mut body) = examples.map(|(_, it)| it["value"].clone()).next() else {
                continue;
            };
            let Some(members) = body.as_object_mut() else { continue };
            members.insert("surplus_field".to_owned(), json!(1));
            let path = path.replace(['{', '}'], "");
            let method = method.to_uppercase();
            let sent = axum::body::Body::from(body.to_string());
            let reply = app.admin().send(&method, &path, sent, &[]).await;
            let is_refused = reply.text().contains("`surplus_field` is not a known field");
            assert_eq!(is_refused, !ignores(&path), "{method} {path}: {}", reply.text());
            tried += 1;
        }
    }
    assert!(20 < tried, "only {tried} routes were tried");
}

#[tokio::test]
async fn a_typo_does_not_remove_the_limit_of_a_key() {
    let app = TestApp::new().await;
    let plain = json!({ "name": "a", "client_version": "1.2" });
    let reply = app.admin().post("/v1/api-keys", &plain).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let slip = json!({ "name": "b", "scope": ["rounds:read"] });
    let reply = app.admin().post("/v1/api-keys", &slip).await;
    assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{}", reply.text());
    assert_eq!(reply.json()["field"], "scope");
}

#[tokio::test]
async fn tools_of_the_registry_ignore_unknown_fields_and_ours_refuse_them() {
    let app = TestApp::new().await;
    for era in ERAS {
        let listed = call(&app.admin(), era, "list_verifiers", &json!({ "surplus": 1 })).await;
        assert_eq!(listed["isError"], false, "{listed}");
        let refused = call(&app.admin(), era, "list_tasks", &json!({ "stat": "failed" })).await;
        assert_eq!(refused["structuredContent"]["field"], "stat", "{refused}");
        let detail = refused["structuredContent"]["detail"].as_str().unwrap();
        assert!(detail.contains("did you mean `state`?"), "{detail}");
    }
}

#[tokio::test]
async fn requests_of_known_clients_are_accepted() {
    let app = TestApp::new().await;
    let [fake] = app.executors([answers(json!({ "total": 12.5 }))]).await;
    for session in ["18", "19", "201", "202", "203"] {
        app.admin().post("/v1/sessions", &json!({ "id": session, "executor": "s1" })).await;
    }
    let terms = json!({
        "replicas": 3, "session_pool": ["201", "202", "203"], "aggregation": "majority",
        "disagreement_policy": "return_all",
    });
    for (path, body) in [
        (
            "/api/v2/delegate",
            json!({
                "session_id": 18, "objective": "Extract", "input": {},
                "execution": { "max_steps": 4, "timeout": 120 }, "policy": { "tier": "fast" },
                "tools": ["web_search"], "workflow": {}, "metadata": {},
            }),
        ),
        (
            "/api/v3/delegate",
            json!({
                "objective": "Extract invoice total", "input": { "text": "..." },
                "execution": { "max_steps": 4, "timeout": 120 }, "policy": { "tier": "safe" },
                "tools": [], "workflow": {}, "metadata": {}, "consensus": terms,
            }),
        ),
        (
            "/api/v2/validate",
            json!({
                "session_id": 19, "claim": {}, "policy": { "tier": "safe" }, "context": {},
                "actor": {}, "metadata": {},
            }),
        ),
        (
            "/api/v3/validate",
            json!({
                "claim": { "...": "v2 claim" }, "policy": { "tier": "safe", "timeout": 120 },
                "context": {}, "actor": {}, "metadata": { "client_trace_id": "t-1" },
                "consensus": terms,
            }),
        ),
        (
            "/api/v3/factcheck",
            json!({
                "claim": "The Eiffel Tower is in Paris.", "mode": "standard",
                "policy": { "tier": "safe" }, "consensus": terms,
            }),
        ),
    ] {
        let behaviour = match path.rsplit('/').next() {
            Some("delegate") => answers(json!({ "total": 12.5 })),
            Some("factcheck") => fact("TRUE"),
            _ => says_valid(),
        };
        fake.set(behaviour);
        let reply = app.admin().post(path, &body).await;
        assert_eq!(reply.status, StatusCode::OK, "{path}: {}", reply.text());
        assert_eq!(reply.json().get("warnings"), None, "{}", reply.text());
    }
}
