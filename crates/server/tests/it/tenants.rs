//! Two tenants: whatever one requests by the names of the other, it learns nothing.
//!
//! Every route of the document is requested with every name of the other tenant, and with a similar
//! name that does not exist. Both replies must be equal, and contain nothing of the other tenant.

use std::collections::BTreeSet;

use axum::body::Body;
use http::StatusCode;
use jurat_core::{account::caller::Scope, webhook::push_id, workflow::Slug};
use jurat_engine::EngineLimits;
use jurat_testkit::{
    app::{TestApp, TestCaller, TestReply},
    fake_executor::{FakeExecutor, answers},
};
use serde_json::{Value, json};

use crate::v1::templates;

/// Calls of the Agent2Agent protocol name its version.
const VERSION: [(&str, &str); 1] = [("a2a-version", "1.0")];
/// Part of everything that the other tenant writes, and nothing else.
const MARK: &str = "canary";

/// A name of the other tenant, and a similar one that does not exist.
struct Pair {
    theirs: String,
    nobodys: String,
}

/// A route of the document, with a valid body.
struct Route {
    method: String,
    path: String,
    body: Value,
}

fn routes(document: &Value) -> Vec<Route> {
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let examples = &operation["requestBody"]["content"]["application/json"]["examples"];
            let first = examples.as_object().and_then(|it| it.values().next());
            let body = first.map_or_else(|| json!({}), |it| it["value"].clone());
            let (method, path) = (method.to_uppercase(), path.clone());
            // Not a resource: its messages may name any of them. Nor has a login names: it takes an
            // address, at a limited rate.
            let is_login = path.starts_with("/v1/login") || path.starts_with("/v1/register");
            if path != "/mcp" && !is_login {
                routes.push(Route { method, path, body });
            }
        }
    }
    // Routes that create objects come last: the stranger then has some of the same names.
    let makes = |route: &Route| {
        let is_read = route.method == "GET" || route.path.ends_with("/search");
        !route.path.contains('{') && !is_read
    };
    routes.sort_by_key(makes);
    routes
}

/// The path with the name in place of each of its parameters.
fn filled(path: &str, name: &str) -> String {
    let mut filled = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let (parameter, behind) = after.split_once('}').unwrap();
        filled.push_str(before);
        filled.push_str(if matches!(parameter, "n" | "version") { "1" } else { name });
        rest = behind;
    }
    filled + rest
}

/// A body whose names are replaced by the requested one.
fn aimed(body: &Value, name: &str) -> Value {
    const NAMES: [&str; 9] = [
        "workflow_id",
        "skill_id",
        "verifier_id",
        "verifier",
        "identifier",
        "session_id",
        "team_id",
        "account",
        "name",
    ];
    match body {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| {
                let is_name = value.is_string() && NAMES.contains(&key.as_str());
                (key.clone(), if is_name { json!(name) } else { aimed(value, name) })
            })
            .collect(),
        Value::Array(items) => items.iter().map(|item| aimed(item, name)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => body.clone(),
    }
}

/// A reply without the parts that may differ between two names.
fn shape(reply: &TestReply, name: &str) -> (StatusCode, String) {
    // A new object has an id and a token of its own.
    let is_made = reply.status.is_success();
    let text =
        if is_made { String::new() } else { without(&reply.text().replace("@v1", "@1"), name) };
    (reply.status, text)
}

/// A text without a name as it was sent, as it was read, or as a slug.
fn without(text: &str, name: &str) -> String {
    let text = text.replace(name, "NAME").replace(&name.replace("%2F", "/"), "NAME");
    match Slug::of_name(name) {
        Some(slug) => text.replace(slug.as_str(), "NAME"),
        None => text,
    }
}

fn verifier(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("{MARK} description"),
        "criterion": json!({ "contains": { "field": "response", "text": MARK } }).to_string(),
        "input_contract": "text",
        "input_fields": ["response"],
        "few_shot_examples": [
            { "inputs": { "response": format!("{MARK} example") }, "passed": true, "reasoning": MARK },
        ],
        "model_settings": { "model": "builtin/rules" },
    })
}

async fn made(caller: &TestCaller<'_>, path: &str, body: &Value) -> Value {
    let reply = caller.post_with(path, body, &[("idempotency-key", path)]).await;
    assert!(reply.status.is_success(), "{path}: {}", reply.text());
    reply.json()
}

/// Gives the caller a handle; a second one is refused from then on.
async fn known_as(caller: &TestCaller<'_>, handle: &str) {
    let body = Body::from(json!({ "handle": handle }).to_string());
    let reply = caller.send("PATCH", "/v1/me", body, &[]).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
}

/// Everything of the other tenant, by its names.
async fn names_of(tenant: &TestCaller<'_>) -> Vec<Pair> {
    let mut pairs = Vec::new();
    let mut add = |theirs: &Value, nobodys: &str| {
        let theirs = theirs.as_str().unwrap().to_owned();
        assert_ne!(theirs, nobodys);
        pairs.push(Pair { theirs, nobodys: nobodys.to_owned() });
    };
    let uuid = "01900000-0000-7000-8000-0000000000ff";
    let deployed = made(tenant, "/v1/verifiers", &verifier(&format!("{MARK}-verifier"))).await;
    add(&deployed["verifier_id"], uuid);
    add(&deployed["name"], "absent-verifier");
    let id = deployed["verifier_id"].as_str().unwrap();
    add(&json!(format!("{id}@1")), &format!("{uuid}@1"));
    let inputs = json!({ "inputs": { "response": format!("{MARK} run") }, "run_id": MARK });
    let run = made(tenant, &format!("/v1/verifiers/{id}/runs"), &inputs).await;
    add(&run["verifier_run_id"], uuid);
    add(&run["round_id"], "rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    let round = run["round_id"].as_str().unwrap();
    let push = format!("{MARK}-push");
    let config = json!({ "id": push, "url": format!("https://{MARK}.example.com/") });
    let configs = format!("/a2a/v1/tasks/{round}/pushNotificationConfigs");
    let noted = tenant.post_with(&configs, &config, &VERSION).await;
    assert_eq!(noted.status, StatusCode::OK, "{}", noted.text());
    add(&json!(push), "absent-push");
    let subject = run["verifier_run_id"].as_str().unwrap();
    add(&json!(push_id(subject, &push)), &push_id(subject, "absent-push"));
    let receiver = json!({ "url": format!("https://{MARK}.example.com/") });
    let webhook = made(tenant, "/v1/webhooks", &receiver).await;
    add(&webhook["id"], "whk_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    let test = format!("/v1/webhooks/{}/test", webhook["id"].as_str().unwrap());
    let delivery = made(tenant, &test, &json!({})).await;
    add(&delivery["id"], "dlv_00000000000000000000000000000000_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    let key = made(tenant, "/v1/api-keys", &json!({ "name": format!("{MARK}-key") })).await;
    add(&key["id"], "6vDuzADvOCQAxeMhwGVoC0");
    add(&key["name"], "absent-key");
    add(&json!("acct_tenant"), "acct_absent");
    known_as(tenant, &format!("{MARK}-tenant")).await;
    let team = made(tenant, "/v1/teams", &json!({ "handle": format!("{MARK}-team") })).await;
    add(&team["handle"], "absent-team");
    add(&team["team_id"], "acct_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    let path = format!("/v1/teams/{MARK}-team/members");
    let whom = json!({ "user_identifier": format!("{MARK}@example.com") });
    add(&made(tenant, &path, &whom).await["invitation_id"], uuid);
    let workflow = json!({
        "name": format!("{MARK}-workflow"), "description": MARK, "body": format!("# {MARK}"),
        "tags": [MARK], "files": [{ "path": format!("{MARK}.md"), "content": MARK }],
        "verifiers": [{ "name": MARK, "verifier_id": id }], "outcome": MARK,
    });
    let saved = made(tenant, "/v1/workflows", &workflow).await;
    add(&saved["workflow_id"], uuid);
    add(&saved["slug"], "absent-workflow");
    // An archived publication is private again.
    let published = json!({ "workflow_id": saved["workflow_id"] });
    let published = made(tenant, "/v1/templates", &published).await;
    let template = published["template_id"].as_str().unwrap();
    made(tenant, &format!("/v1/templates/{template}/archive"), &json!({})).await;
    add(&published["template_id"], uuid);
    add(&json!(format!("@{MARK}-tenant%2F{MARK}-workflow")), "@absent%2Fabsent-workflow");
    pairs
}

/// A task that nobody works on.
async fn task_of(tenant: &TestCaller<'_>) -> Pair {
    let theirs = format!("{MARK}-task");
    let mut contract = tenant.get(&format!("/v1/tasks/sample?task_id={theirs}")).await.json();
    contract["inputs"] = json!({ "prompt": MARK });
    made(tenant, "/v1/tasks", &contract).await;
    Pair { theirs, nobodys: "absent-task".to_owned() }
}

/// An event that is not delivered.
async fn agent_event_of(tenant: &TestCaller<'_>, executor: &str) -> Pair {
    let body = json!({
        "event_type": "dm_received", "target_executor": executor, "payload": MARK,
        "dedupe_key": MARK,
    });
    let sent = made(tenant, "/v1/agent-events", &body).await;
    let theirs = sent["event_id"].as_str().unwrap().to_owned();
    Pair { theirs, nobodys: "01900000-0000-7000-8000-0000000000ff".to_owned() }
}

/// The other tenant's view of its own objects.
async fn own_view(tenant: &TestCaller<'_>) -> Vec<Value> {
    let mut seen = Vec::new();
    for path in [
        "/v1/verifiers",
        "/v1/verifier-runs",
        "/v1/rounds",
        "/v1/api-keys",
        "/v1/teams",
        "/v1/invitations?filter=sent",
        "/v1/workflows",
        "/v1/tasks",
        "/v1/agent-events",
        "/v1/webhooks",
        "/v1/templates?filter=mine&include_archived=true",
    ] {
        let reply = tenant.get(path).await;
        assert!(reply.text().contains(MARK) || path == "/v1/rounds", "{path}");
        let mut body = reply.json();
        for item in body["items"].as_array_mut().unwrap() {
            // Its own requests change this one.
            item.as_object_mut().unwrap().remove("last_used_at");
        }
        seen.push(body);
    }
    seen
}

pub(crate) async fn crawl(app: &TestApp) {
    let tenant = app.caller("tenant", &Scope::OWN).await;
    let stranger = app.caller("stranger", &Scope::OWN).await;
    // For the judges that screen publications.
    let credit = json!({ "amount_usd": "1.00" });
    made(&app.admin(), "/v1/accounts/acct_tenant/grants", &credit).await;
    let mut pairs = names_of(&tenant).await;
    let _fake = app.executors([answers(json!({ "answer": MARK }))]).await;
    pairs.push(task_of(&tenant).await);
    let delta = FakeExecutor::start(answers(json!({}))).await;
    // The name in the example of an event, so that the stranger sends to it as well.
    let listens = json!({ "name": "delta", "url": delta.url(), "agent_events_url": delta.url() });
    made(&app.admin(), "/v1/executors", &listens).await;
    pairs.push(agent_event_of(&tenant, "delta").await);
    let before = own_view(&tenant).await;
    // Handles are public, and changes that work once are made before.
    known_as(&stranger, "stranger").await;
    made(&stranger, "/v1/me/rename-handle", &json!({ "handle": "stranger-two" })).await;
    made(&stranger, "/v1/teams", &json!({ "handle": "crew" })).await;
    let document: Value = app.anonymous().get("/openapi.json").await.json();
    let mut asked = BTreeSet::new();
    for route in routes(&document) {
        // A request with a key of its own is made once, and found again from then on.
        if (route.method.as_str(), route.path.as_str()) == ("POST", "/v1/agent-events") {
            made(&stranger, &route.path, &route.body).await;
        }
        for pair in &pairs {
            let mut shapes = Vec::new();
            for name in [&pair.theirs, &pair.nobodys] {
                let path = filled(&route.path, name);
                let body = aimed(&route.body, name).to_string();
                let reply = stranger.send(&route.method, &path, Body::from(body), &VERSION).await;
                let rest = without(&reply.text(), name);
                assert!(!rest.contains(MARK), "{} {path} tells: {rest}", route.method);
                shapes.push(shape(&reply, name));
                asked.insert((route.method.clone(), route.path.clone()));
            }
            let (theirs, nobodys) = (&shapes[0], &shapes[1]);
            // Without a name in the path, the reply is about the stranger's own objects.
            if !route.path.contains('{') {
                assert_eq!(theirs.0, nobodys.0, "{} {}", route.method, route.path);
                continue;
            }
            assert_eq!(theirs, nobodys, "{} {} of {}", route.method, route.path, pair.theirs);
            let is_refused = theirs.0.is_client_error() || theirs.0 == StatusCode::NOT_IMPLEMENTED;
            assert!(is_refused, "{} {}: {theirs:?}", route.method, route.path);
        }
    }
    assert_eq!(own_view(&tenant).await, before);
    assert!(120 <= asked.len(), "{} routes", asked.len());
}

#[tokio::test]
async fn names_of_another_tenant_reveal_nothing() {
    templates::told(EngineLimits { lag: None, ..EngineLimits::default() }, crawl).await;
}

#[tokio::test]
async fn an_idempotency_key_of_another_tenant_is_independent() {
    let app = TestApp::new().await;
    let tenant = app.caller("tenant", &Scope::OWN).await;
    let stranger = app.caller("stranger", &Scope::OWN).await;
    let body = verifier(&format!("{MARK}-verifier"));
    let theirs = made(&tenant, "/v1/verifiers", &body).await;
    let reply =
        stranger.post_with("/v1/verifiers", &body, &[("idempotency-key", "/v1/verifiers")]).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    assert!(!reply.headers.contains_key("idempotent-replayed"));
    assert_ne!(reply.json()["verifier_id"], theirs["verifier_id"]);
}
