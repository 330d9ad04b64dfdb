//! `/v1/shares`, and the effect of a grant on names, lists and searches.

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::app::{TestApp, TestCaller, TestReply};
use serde_json::{Value, json};

const RUN: &str = "/v1/verifiers/says-yes/runs";

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[track_caller]
fn assert_problem(reply: &TestReply, status: u16, code: &str) {
    let found = (reply.status.as_u16(), text(&reply.json()["code"]).to_owned());
    assert_eq!(found, (status, code.to_owned()), "{}", reply.text());
}

async fn made(caller: &TestCaller<'_>, path: &str, body: &Value) -> Value {
    let reply = caller.post(path, body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    reply.json()
}

async fn sent(caller: &TestCaller<'_>, method: &str, path: &str, body: &Value) -> TestReply {
    caller.send(method, path, Body::from(body.to_string()), &[]).await
}

/// A user with a handle.
async fn person<'a>(app: &'a TestApp, handle: &str) -> TestCaller<'a> {
    let caller = app.caller(handle, &Scope::OWN).await;
    let reply = sent(&caller, "PATCH", "/v1/me", &json!({ "handle": handle })).await;
    assert!(reply.status.is_success(), "{}", reply.text());
    caller
}

/// Requires `word` in the response, by a rule.
fn verifier(word: &str) -> Value {
    json!({
        "name": "says-yes",
        "description": "The response says it.",
        "criterion": json!({ "contains": { "field": "response", "text": word } }).to_string(),
        "input_contract": "text",
        "input_fields": ["response"],
        "model_settings": { "model": "builtin/rules" },
    })
}

/// A workflow of this owner that names its verifier; the ids of both.
async fn bound(owner: &TestCaller<'_>, word: &str) -> (String, String) {
    let verifier = made(owner, "/v1/verifiers", &verifier(word)).await;
    let saved = json!({
        "name": "My Report", "description": "Writes one.", "body": "# Do",
        "verifiers": [{ "name": "yes", "verifier_id": verifier["verifier_id"] }],
    });
    let saved = made(owner, "/v1/workflows", &saved).await;
    (text(&saved["id"]).to_owned(), text(&verifier["verifier_id"]).to_owned())
}

async fn granted(owner: &TestCaller<'_>, workflow: &str, to: &str, role: &str) -> TestReply {
    let body = json!({ "grantee_email_or_at_team_handle": to, "role": role });
    owner.post(&format!("/v1/workflows/{workflow}/grants"), &body).await
}

fn validate(verifier: &str) -> Value {
    json!({
        "claim": { "output": { "response": "yes" } },
        "policy": { "policy_id": "vp.semantic.v1", "policy_params": {
            "verifier": verifier, "inputs": { "response": "/response" },
        } },
    })
}

#[tokio::test]
async fn a_strangers_grant_takes_no_bare_name() {
    let app = TestApp::new().await;
    let (eve, ann) = (person(&app, "eve").await, person(&app, "ann").await);
    let bob = person(&app, "bob").await;
    let (workflow, cites) = bound(&eve, "no").await;
    assert_eq!(granted(&eve, &workflow, "@ann", "admin").await.status, StatusCode::CREATED);
    let run = json!({ "inputs": { "response": "yes" } });
    // Neither a run nor a policy nor a slug means a stranger's object; each says how to name it.
    for (reply, name) in [
        (ann.post(RUN, &run).await, "@eve/says-yes"),
        (ann.get("/v1/verifiers/says-yes").await, "@eve/says-yes"),
        (ann.get("/v1/workflows/my-report").await, "@eve/my-report"),
        (ann.get("/v1/skills/my-report/grants").await, "@eve/my-report"),
        (ann.post("/v1/workflows/my-report/archive", &json!({})).await, "@eve/my-report"),
        (ann.post("/v1/templates", &json!({ "workflow_id": "my-report" })).await, "@eve/my-report"),
    ] {
        assert_problem(&reply, 404, "not_found");
        assert!(text(&reply.json()["hint"]).contains(name), "{}", reply.text());
        assert!(!reply.text().contains(&workflow) && !reply.text().contains(&cites));
    }
    let judged = ann.post("/api/v3/validate", &validate("says-yes")).await;
    assert_problem(&judged, 422, "policy_invalid");
    assert!(judged.text().contains("@eve/says-yes"), "{}", judged.text());
    // An account without a grant learns nothing by any name.
    for path in ["my-report", "@eve%2Fmy-report", "@eve/my-report"] {
        let reply = bob.get(&format!("/v1/workflows/{path}")).await;
        assert_problem(&reply, 404, "not_found");
        assert!(!text(&reply.json()["hint"]).contains('@'), "{}", reply.text());
    }
    for name in ["says-yes", "@eve%2Fsays-yes", "@eve/says-yes"] {
        assert_problem(
            &bob.post(&format!("/v1/verifiers/{name}/runs"), &run).await,
            404,
            "not_found",
        );
    }
    // It runs by full name and by id, and only an own one has the bare name.
    for name in ["@eve%2Fsays-yes", "@eve/says-yes", "@EVE/says-yes", &cites] {
        let ran = made(&ann, &format!("/v1/verifiers/{name}/runs"), &run).await;
        assert_eq!((text(&ran["verifier_id"]), &ran["passed"]), (cites.as_str(), &json!(false)));
    }
    let judged = ann.post("/api/v3/validate", &validate("@eve/says-yes")).await;
    assert_eq!(judged.json()["verdict"], "INVALID", "{}", judged.text());
    let (own, own_cites) = bound(&ann, "yes").await;
    assert_eq!(made(&ann, RUN, &run).await["verifier_id"], json!(own_cites));
    assert_eq!(
        ann.post("/api/v3/validate", &validate("says-yes")).await.json()["verdict"],
        "VALID"
    );
    assert_eq!(ann.get("/v1/workflows/my-report").await.json()["id"], json!(own));
    assert_eq!(ann.get("/v1/workflows/@ann/my-report").await.json()["id"], json!(own));
}

#[tokio::test]
async fn lists_include_shares_and_searches_only_accepted_ones() {
    let app = TestApp::new().await;
    let (eve, ann) = (person(&app, "eve").await, person(&app, "ann").await);
    let (workflow, cites) = bound(&eve, "no").await;
    granted(&eve, &workflow, "@ann", "view").await;
    let listed = ann.get("/v1/verifiers").await.json();
    assert_eq!(listed["items"][0]["owner"], "@eve");
    let listed = ann.get("/v1/workflows").await.json();
    assert_eq!(
        (&listed["items"][0]["owner"], &listed["items"][0]["owner_user_id"]),
        (&json!("@eve"), &json!("acct_eve"))
    );
    let own = eve.get("/v1/workflows").await.json();
    assert_eq!(own["items"][0]["owner"], Value::Null);
    let found = async |filter: &str| {
        let order = json!({ "query": "report", "filter": filter });
        let hits = ann.post("/v1/workflows/search", &order).await.json();
        let listed = ann.get(&format!("/v1/workflows?search=report&filter={filter}")).await.json();
        [hits, listed].map(|it| it["items"].as_array().unwrap().len())
    };
    assert_eq!((found("all").await, found("shared-with-me").await), ([0, 0], [1, 1]));
    let pending = ann.get("/v1/shares?state=pending").await.json();
    let share = &pending["items"][0];
    assert_eq!(
        (&share["id"], &share["reference"], &share["role"], &share["blocked"]),
        (&json!(workflow), &json!("@eve/my-report"), &json!("view"), &json!(false))
    );
    // Running its verifier accepts it.
    let run = json!({ "inputs": { "response": "yes" } });
    made(&ann, &format!("/v1/verifiers/{cites}/runs"), &run).await;
    assert_eq!((found("all").await, found("shared-with-me").await), ([1, 1], [1, 1]));
    assert_eq!(ann.get("/v1/shares").await.json()["items"][0]["state"], "accepted");
    assert_eq!(ann.get("/v1/shares?state=pending").await.json()["items"], json!([]));
    assert_problem(&ann.get("/v1/shares?state=odd").await, 400, "validation_error");
}

#[tokio::test]
async fn a_share_is_accepted_declined_and_its_owner_blocked() {
    let app = TestApp::new().await;
    let (eve, ann) = (person(&app, "eve").await, person(&app, "ann").await);
    let (workflow, cites) = bound(&eve, "no").await;
    granted(&eve, &workflow, "@ann", "view").await;
    let at = format!("/v1/shares/{workflow}");
    assert_problem(&eve.post(&format!("{at}/accept"), &json!({})).await, 404, "not_found");
    let accepted = ann.post(&format!("{at}/accept"), &json!({})).await.json();
    assert_eq!(accepted["state"], "accepted");
    let declined = ann.post(&format!("{at}/decline"), &json!({})).await.json();
    assert_eq!(declined["state"], "declined");
    let run = json!({ "inputs": { "response": "yes" } });
    for name in [cites.as_str(), "@eve/says-yes"] {
        let ran = ann.post(&format!("/v1/verifiers/{name}/runs"), &run).await;
        assert_problem(&ran, 404, "not_found");
    }
    assert_problem(&ann.get(&format!("/v1/workflows/{workflow}")).await, 404, "not_found");
    assert_eq!(ann.get("/v1/workflows").await.json()["items"], json!([]));
    let blocked = ann.post(&format!("{at}/block"), &json!({})).await.json();
    assert_eq!((&blocked["state"], &blocked["blocked"]), (&json!("declined"), &json!(true)));
    // The owner sees no difference, and the list stays empty.
    let more = json!({ "name": "More", "description": "More.", "body": "# Do" });
    let more = made(&eve, "/v1/workflows", &more).await;
    let reply = granted(&eve, text(&more["id"]), "@ann", "view").await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    assert_eq!(ann.get("/v1/shares").await.json()["items"], json!([]));
    assert_eq!(
        ann.get("/v1/shares?state=declined").await.json()["items"].as_array().unwrap().len(),
        2
    );
    let again = ann.post(&format!("{at}/accept"), &json!({})).await.json();
    assert_eq!((&again["state"], &again["blocked"]), (&json!("accepted"), &json!(false)));
}

#[tokio::test]
async fn no_grant_links_two_names_of_a_person() {
    let app = TestApp::new().await;
    let eve = person(&app, "eve").await;
    let email = "ann@example.com";
    app.anonymous().post("/v1/register", &json!({ "email": email })).await;
    let code = app.outbox.code_to(email).await;
    let body = json!({ "email": email, "code": code });
    let entered = app.anonymous().post("/v1/register/verify", &body).await.json();
    let ann = app.with_key(text(&entered["api_key"]));
    sent(&ann, "PATCH", "/v1/me", &json!({ "handle": "ann" })).await;
    let (workflow, _) = bound(&eve, "no").await;
    let grants = format!("/v1/workflows/{workflow}/grants");
    // The same status and the same body, whoever has the address.
    let bodies = async |names: [&str; 2]| {
        let mut bodies = Vec::new();
        for name in names {
            let reply = granted(&eve, &workflow, name, "view").await;
            bodies.push((reply.status, reply.json()));
        }
        bodies
    };
    let made = bodies([email, "nobody@example.com"]).await;
    assert_eq!(made[0], made[1]);
    // Bare handles are accepted as the client offers them.
    assert_eq!(granted(&eve, &workflow, "ann", "view").await.status, StatusCode::CREATED);
    let lines = eve.get(&grants).await.json();
    let names: Vec<&str> = lines["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| text(&it["grantee_identifier"]))
        .collect();
    assert_eq!(names, ["@ann", email, "nobody@example.com"]);
    let back = |name: &str| json!({ "grantee_email_or_at_team_handle": name });
    for name in [email, "nobody@example.com"] {
        assert_eq!(sent(&eve, "DELETE", &grants, &back(name)).await.json()["revoked"], true);
        let again = sent(&eve, "DELETE", &grants, &back(name)).await;
        assert_eq!((again.status, &again.json()["revoked"]), (StatusCode::OK, &json!(false)));
    }
    let lines = eve.get(&grants).await.json();
    assert_eq!(lines["items"].as_array().unwrap().len(), 1, "the one by the handle stays");
}

#[tokio::test]
async fn an_account_without_names_is_granted_by_its_placeholder() {
    let app = TestApp::new().await;
    let eve = person(&app, "eve").await;
    let made_by_operator = app.caller("worker", &Scope::OWN).await;
    let me = made_by_operator.get("/v1/me").await.json();
    let (workflow, _) = bound(&eve, "no").await;
    for name in ["email", "id"] {
        let reply = granted(&eve, &workflow, text(&me[name]), "view").await;
        assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
        let shared = made_by_operator.get("/v1/shares").await.json();
        assert_eq!(shared["items"][0]["id"], json!(workflow), "{name}");
        let grants = format!("/v1/workflows/{workflow}/grants");
        let back = json!({ "grantee_email_or_at_team_handle": me[name] });
        assert_eq!(sent(&eve, "DELETE", &grants, &back).await.json()["revoked"], true);
    }
}
