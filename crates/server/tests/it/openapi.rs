//! The OpenAPI document names every route, and its examples match the real server.

mod a2a;
mod agent_events;
mod agent_runs;
mod nodes;
mod peers;
mod people;
mod tasks;
mod templates;
mod webhooks;
mod workflows;
mod x402;

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Body;
use http::StatusCode;
use jsonschema::{Draft, Validator};
use jurat_core::code::ProblemCode;
use jurat_server::{RouteAccess, openapi, route_table};
use jurat_testkit::{
    app::{TestApp, TestReply},
    fake_executor::{Behaviour, FakeExecutor, answers, fact, hangs, says_valid},
};
use serde_json::{Value, json};

fn document() -> Value {
    serde_json::from_str(openapi()).unwrap()
}

/// Every operation of the document: method, path, and description.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let of_path = |(path, item): (&String, &Value)| {
        let path = path.clone();
        let methods = item.as_object().unwrap().clone().into_iter();
        methods.map(move |(method, it)| (method.to_uppercase(), path.clone(), it))
    };
    paths.flat_map(of_path).collect()
}

#[test]
fn the_route_table_and_the_document_name_the_same_operations() {
    let document = document();
    let described: BTreeSet<(String, String)> =
        operations(&document).into_iter().map(|(method, path, _)| (method, path)).collect();
    let routes: BTreeSet<(String, String)> = route_table()
        .iter()
        .map(|route| (route.method.to_owned(), route.path.to_owned()))
        .collect();
    assert_eq!(routes, described, "declare the operation in crates/server/src/resources");
}

#[test]
fn every_operation_is_fully_described() {
    let document = document();
    let tags: BTreeSet<&str> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| tag["name"].as_str().unwrap())
        .collect();
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let at = format!("{method} {path}");
        let id = operation["operationId"].as_str().unwrap().to_owned();
        assert!(ids.insert(id.clone()), "{at}: the id `{id}` is taken");
        assert!(!operation["summary"].as_str().unwrap().ends_with('.'), "{at}");
        assert!(operation["description"].as_str().unwrap().ends_with('.'), "{at}");
        assert!(tags.contains(operation["tags"][0].as_str().unwrap()), "{at}");
        let route = route_table().into_iter().find(|it| it.path == path && it.method == method);
        let route = route.unwrap();
        assert!(id.starts_with(route.operation), "{at}: the id `{id}` is not the operation's name");
        let schemes = operation["security"].as_array().map_or(0, Vec::len);
        let expected = match route.access {
            RouteAccess::Key => 2,
            // Or none.
            RouteAccess::Visitor => 3,
            RouteAccess::Anyone => 0,
        };
        assert_eq!(schemes, expected, "{at}");
        let templates = path.matches('{').count();
        let in_path = |it: &&Value| it["in"] == "path";
        assert_eq!(
            operation["parameters"].as_array().unwrap().iter().filter(in_path).count(),
            templates
        );
    }
}

#[test]
fn every_code_has_an_example_of_its_own() {
    let document = document();
    let mut found = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = resolved(&document, response);
            let Some(examples) =
                response["content"]["application/problem+json"]["examples"].as_object()
            else {
                continue;
            };
            for (code, example) in examples {
                let at = format!("{method} {path} {status} {code}");
                let example = resolved(&document, example);
                assert_eq!(example["value"]["code"], *code, "{at}");
                assert_eq!(example["value"]["status"].to_string(), *status, "{at}");
                found.insert(code.clone());
            }
        }
    }
    // The router answers this one, before any operation is reached.
    found.insert(ProblemCode::MethodNotAllowed.to_string());
    let all: BTreeSet<String> = ProblemCode::ALL.iter().map(ToString::to_string).collect();
    let missing: Vec<&String> = all.difference(&found).collect();
    assert_eq!(missing, [] as [&String; 0], "no operation says that it answers these");
}

#[test]
fn every_example_matches_its_schema() {
    let document = document();
    let mut checked = 0;
    // Few schemas have many examples.
    let mut schemas: BTreeMap<String, Validator> = BTreeMap::new();
    for (method, path, operation) in operations(&document) {
        let mut contents =
            vec![("request".to_owned(), operation["requestBody"]["content"].clone())];
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = resolved(&document, response);
            contents.push((status.clone(), response["content"].clone()));
        }
        for (part, content) in contents {
            for (mime, content) in content.as_object().into_iter().flatten() {
                let at = format!("{method} {path} {part} {mime}");
                for example in examples(&document, content) {
                    assert!(!example.is_null(), "{at}: the example is missing");
                    let schema =
                        schemas.entry(content["schema"].to_string()).or_insert_with(|| {
                            let mut schema = content["schema"].clone();
                            schema["components"] = document["components"].clone();
                            let options = jsonschema::options().with_draft(Draft::Draft202012);
                            options.build(&schema).unwrap()
                        });
                    let errors: Vec<String> = schema
                        .iter_errors(example)
                        .map(|error| format!("{}: {error}", error.instance_path()))
                        .collect();
                    assert!(errors.is_empty(), "{at}: {errors:?}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 100, "only {checked} examples were found");
}

fn examples<'a>(document: &'a Value, content: &'a Value) -> Vec<&'a Value> {
    let named = content["examples"].as_object().into_iter().flatten();
    let named = named.map(|(_, example)| &resolved(document, example)["value"]);
    named.chain(content.get("example")).collect()
}

/// The target of a reference, or the value itself.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => value,
    }
}

#[tokio::test]
async fn the_document_and_its_page_need_no_key_and_no_other_host() {
    let app = TestApp::new().await;
    let reply = app.anonymous().get("/openapi.json").await;
    assert_eq!(reply.json()["openapi"], "3.1.0");
    let page = app.anonymous().get("/docs").await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("http"), "{policy}");
    let text = page.text();
    assert!(!text.contains("//"), "the page names a host: {text}");
    for part in text.split('"').filter(|part| part.starts_with("docs/")) {
        let reply = app.anonymous().get(&format!("/{part}")).await;
        assert_eq!(reply.status, StatusCode::OK, "{part}");
    }
    let reply = app.anonymous().get("/docs/other.js").await;
    assert_eq!(reply.json()["code"], "not_found");
}

#[tokio::test]
async fn the_root_page_guides_people_and_programs() {
    let app = TestApp::new().await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let page = app.anonymous().send("GET", "/", Body::empty(), &[("accept", browser)]).await;
    assert_eq!(page.status, StatusCode::OK);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    assert!(page.headers["content-security-policy"].to_str().unwrap().starts_with("default-src"));
    let text = page.text();
    assert!(!text.contains("//"), "the page names a host: {text}");
    let links: Vec<&str> =
        text.split("<a href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(links, ["docs", "openapi.json", "health", "ready"]);
    for link in links {
        let reply = app.anonymous().get(&format!("/{link}")).await;
        assert_eq!(reply.status, StatusCode::OK, "{link}");
    }
    for accept in [&[][..], &[("accept", "*/*")], &[("accept", "application/json")]] {
        let reply = app.anonymous().send("GET", "/", Body::empty(), accept).await;
        assert_eq!(reply.status, StatusCode::OK, "{accept:?}");
        assert_eq!(reply.json()["docs"], "/docs", "{accept:?}");
    }
}

/// A story in which each example of the document is sent and answered.
struct Story {
    app: TestApp,
    document: Value,
    played: BTreeSet<String>,
    /// Additional headers of a request.
    headers: &'static [(&'static str, &'static str)],
}

impl Story {
    fn new(app: TestApp) -> Self {
        Self { app, document: document(), played: BTreeSet::new(), headers: &[] }
    }

    fn operation(&self, method: &str, path: &str) -> &Value {
        &self.document["paths"][path][method.to_lowercase()]
    }

    /// The example request of the document.
    fn request(&self, method: &str, path: &str) -> Value {
        let content = &self.operation(method, path)["requestBody"]["content"];
        content["application/json"]["examples"]["plain"]["value"].clone()
    }

    /// Sends a request and compares the reply with the example of the document.
    async fn play(&mut self, method: &str, path: &str, at: &str, body: &Value) -> TestReply {
        // Rounds are listed by their time.
        self.app.clock.advance_ms(1_000);
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let reply = self.app.admin().send(method, at, body, self.headers).await;
        let status = reply.status.as_u16().to_string();
        let example = &self.operation(method, path)["responses"][&status]["content"]["application/json"]
            ["example"];
        assert!(reply.status.is_success(), "{method} {path}: {}", reply.text());
        assert_eq!(
            shape(example),
            shape(&reply.json()),
            "{method} {path}: the example must be like\n{}",
            serde_json::to_string_pretty(&reply.json()).unwrap()
        );
        self.played.insert(format!("{method} {path}"));
        reply
    }
}

/// A value with its members and without parts that differ from day to day.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), shape(value))).collect()
        }
        Value::Array(items) => items.iter().map(shape).collect(),
        // Labels are in capitals; other text may differ.
        Value::String(text) if !text.chars().all(|c| c.is_ascii_uppercase() || c == '_') => {
            json!("text")
        }
        Value::Number(_) => json!("number"),
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    }
}

/// An application with the executors `alpha`, `beta` and `gamma`.
async fn app_of(behaviours: [Behaviour; 3]) -> (TestApp, Vec<FakeExecutor>) {
    let app = TestApp::new().await;
    let mut fakes = Vec::new();
    for (name, behaviour) in ["alpha", "beta", "gamma"].into_iter().zip(behaviours) {
        let behaviour = behaviour.provider_family(name).model_id("small");
        let fake = FakeExecutor::start(behaviour).await;
        app.register(name, &fake.url()).await;
        fakes.push(fake);
    }
    (app, fakes)
}

#[tokio::test]
async fn the_examples_match_the_real_server() {
    let mut played = BTreeSet::new();
    let kinds = [
        ("delegate", answers(json!({ "answer": 144 }))),
        ("validate", says_valid()),
        ("factcheck", fact("TRUE")),
    ];
    for (kind, behaviour) in kinds {
        let [a, b, c] = [behaviour.clone(), behaviour.clone(), behaviour];
        let (app, _fakes) = app_of([a, b, c]).await;
        let mut story = Story::new(app);
        for version in ["v2", "v3", "v4"] {
            let path = format!("/api/{version}/{kind}");
            if story.document["paths"].get(&path).is_some() {
                let request = story.request("POST", &path);
                story.play("POST", &path, &path, &request).await;
            }
        }
        if kind == "delegate" {
            resources(&mut story).await;
            chat(&mut story).await;
        }
        played.extend(story.played);
    }
    played.extend(called_off().await);
    played.extend(registry().await);
    played.extend(people::people().await);
    played.extend(agent_runs::runs().await);
    played.extend(workflows::workflows().await);
    played.extend(templates::templates().await);
    played.extend(people::logins().await);
    played.extend(tasks::tasks().await);
    played.extend(agent_events::agent_events().await);
    played.extend(a2a::a2a().await);
    played.extend(peers::prompts().await);
    played.extend(peers::claims().await);
    played.extend(webhooks::webhooks().await);
    played.extend(nodes::nodes().await);
    played.extend(x402::purchases().await);
    let all: BTreeSet<String> = operations(&document())
        .into_iter()
        .filter(|(_, _, operation)| {
            let replies = operation["responses"].as_object().unwrap();
            let ok = replies.iter().find(|(status, _)| status.starts_with('2')).unwrap().1;
            ok["content"].get("application/json").is_some()
        })
        .map(|(method, path, _)| format!("{method} {path}"))
        .collect();
    let missing: Vec<&String> = all.difference(&played).collect();
    assert_eq!(missing, ["GET /openapi.json"], "play these examples in the story");
}

/// A verifier from its first deploy to its deletion.
async fn registry() -> BTreeSet<String> {
    let mut story = Story::new(TestApp::new().await);
    let request = story.request("POST", "/verify");
    story.play("POST", "/verify", "/verify", &request).await;
    let at = "/v1/verifiers";
    let request = story.request("POST", at);
    let deployed = story.play("POST", at, at, &request).await.json();
    story.play("GET", at, "/v1/verifiers?limit=1", &Value::Null).await;
    let name = format!("{at}/{}", deployed["name"].as_str().unwrap());
    story.play("GET", "/v1/verifiers/{ref}", &name, &Value::Null).await;
    let path = "/v1/verifiers/{ref}/versions";
    story.play("GET", path, &format!("{name}/versions"), &Value::Null).await;
    let path = "/v1/verifiers/{ref}/runs";
    let request = story.request("POST", path);
    let run = story.play("POST", path, &format!("{name}/runs"), &request).await.json();
    story.play("GET", path, &format!("{name}/runs"), &Value::Null).await;
    story.play("GET", "/v1/verifier-runs", "/v1/verifier-runs", &Value::Null).await;
    let shown = format!("/v1/verifier-runs/{}", run["verifier_run_id"].as_str().unwrap());
    story.play("GET", "/v1/verifier-runs/{id}", &shown, &Value::Null).await;
    for measured in ["tests", "attacks"] {
        let path = format!("/v1/verifiers/{{ref}}/{measured}");
        let request = story.request("POST", &path);
        story.play("POST", &path, &format!("{name}/{measured}"), &request).await;
    }
    story.play("DELETE", "/v1/verifiers/{ref}", &name, &Value::Null).await;
    let id = format!("{at}/{}/permanent", deployed["verifier_id"].as_str().unwrap());
    story.play("DELETE", "/v1/verifiers/{ref}/permanent", &id, &Value::Null).await;
    story.played
}

/// A round that nobody waits for, and that is cancelled.
async fn called_off() -> BTreeSet<String> {
    let (app, _fakes) = app_of([hangs(), hangs(), hangs()]).await;
    let mut story = Story::new(app);
    let path = "/api/v3/delegate";
    let request = story.request("POST", path);
    story.headers = &[("prefer", "respond-async")];
    let round = story.play("POST", path, path, &request).await;
    assert_eq!(round.status, StatusCode::ACCEPTED);
    let at = format!("{}/cancel", round.headers["location"].to_str().unwrap());
    story.play("POST", "/v1/rounds/{id}/cancel", &at, &Value::Null).await;
    story.played
}

async fn chat(story: &mut Story) {
    let path = "/v1/chat/completions";
    let request = story.request("POST", path);
    story.play("POST", path, path, &request).await;
    story.play("GET", "/v1/models", "/v1/models", &Value::Null).await;
    story.play("GET", "/v1/models/{model}", "/v1/models/jurat%2Fsafe", &Value::Null).await;
}

async fn resources(story: &mut Story) {
    for path in ["/", "/health", "/healthz", "/ready"] {
        story.play("GET", path, path, &Value::Null).await;
    }
    story.play("GET", "/capabilities", "/capabilities", &Value::Null).await;
    let request = story.request("POST", "/mcp");
    story.play("POST", "/mcp", "/mcp", &request).await;
    // One round of each version was asked; the last is of version 4.
    let page = story.play("GET", "/v1/rounds", "/v1/rounds?limit=1", &Value::Null).await.json();
    let round = page["items"][0]["round_id"].as_str().unwrap();
    let at = format!("/v1/rounds/{round}");
    story.play("GET", "/v1/rounds/{id}", &at, &Value::Null).await;
    let payload = format!("{at}/payload");
    story.play("DELETE", "/v1/rounds/{id}/payload", &payload, &Value::Null).await;
    let request = story.request("POST", "/v1/prune");
    story.play("POST", "/v1/prune", "/v1/prune", &request).await;

    let fake = FakeExecutor::start(says_valid()).await;
    let mut request = story.request("POST", "/v1/executors");
    request["url"] = json!(fake.url());
    story.play("POST", "/v1/executors", "/v1/executors", &request).await;
    story.play("GET", "/v1/executors", "/v1/executors?limit=1", &Value::Null).await;
    let name = request["name"].as_str().unwrap().to_owned();
    let at = format!("/v1/executors/{name}");
    story.play("POST", "/v1/executors/{name}/check", &format!("{at}/check"), &Value::Null).await;
    story.play("GET", "/v1/executors/{name}", &at, &Value::Null).await;

    let request = story.request("POST", "/v1/sessions");
    story.play("POST", "/v1/sessions", "/v1/sessions", &request).await;
    story.play("GET", "/v1/sessions", "/v1/sessions?limit=1", &Value::Null).await;
    let session = format!("/v1/sessions/{}", request["id"].as_str().unwrap());
    story.play("GET", "/v1/sessions/{id}", &session, &Value::Null).await;
    story.play("DELETE", "/v1/sessions/{id}", &session, &Value::Null).await;
    story.play("DELETE", "/v1/executors/{name}", &at, &Value::Null).await;

    story.play("GET", "/v1/doctor", "/v1/doctor", &Value::Null).await;
    story.play("GET", "/v1/doctor/entries", "/v1/doctor/entries", &Value::Null).await;

    accounts(story).await;

    let request = story.request("POST", "/v1/api-keys");
    let made = story.play("POST", "/v1/api-keys", "/v1/api-keys", &request).await.json();
    story.play("GET", "/v1/api-keys", "/v1/api-keys?limit=1", &Value::Null).await;
    let at = format!("/v1/api-keys/{}/rotate", made["id"].as_str().unwrap());
    let request = story.request("POST", "/v1/api-keys/{id}/rotate");
    story.play("POST", "/v1/api-keys/{id}/rotate", &at, &request).await;
}

async fn accounts(story: &mut Story) {
    for path in ["/v1/me", "/v1/me/usage"] {
        story.play("GET", path, path, &Value::Null).await;
    }
    story.app.caller("team", &[]).await;
    let request = story.request("POST", "/v1/accounts/{id}/grants");
    let at = "/v1/accounts/acct_team";
    story.play("POST", "/v1/accounts/{id}/grants", &format!("{at}/grants"), &request).await;
    story.play("GET", "/v1/accounts", "/v1/accounts?limit=1", &Value::Null).await;
    story.play("GET", "/v1/accounts/{id}", at, &Value::Null).await;
    for change in ["suspend", "resume"] {
        let path = format!("/v1/accounts/{{id}}/{change}");
        story.play("POST", &path, &format!("{at}/{change}"), &Value::Null).await;
    }
    let own = json!({ "amount_usd": "5.00", "note": "for tests" });
    story.app.admin().post("/v1/accounts/acct_admin/grants", &own).await;
    story.play("GET", "/v1/me/transfers", "/v1/me/transfers", &Value::Null).await;
    let path = "/v1/accounts/{id}/transfers";
    story.play("GET", path, "/v1/accounts/acct_admin/transfers", &Value::Null).await;
}

#[tokio::test]
async fn the_example_of_a_disagreement_is_real() {
    let outputs = [1, 2, 3].map(|number| answers(json!({ "answer": number })));
    let (app, _fakes) = app_of(outputs).await;
    let story = Story::new(app);
    let mut request = story.request("POST", "/api/v3/delegate");
    request["consensus"]["disagreement_policy"] = json!("fail_hard");
    let reply = story.app.admin().post("/api/v3/delegate", &request).await;
    assert_eq!(reply.status, StatusCode::CONFLICT);
    let response = &story.operation("POST", "/api/v3/delegate")["responses"]["409"];
    let response = resolved(&story.document, response);
    let examples = &response["content"]["application/problem+json"]["examples"];
    let example = &resolved(&story.document, &examples["consensus_disagreement"])["value"];
    assert_eq!(shape(example), shape(&reply.json()), "{}", reply.text());
}

#[tokio::test]
async fn the_example_of_a_stream_is_real() {
    let output = answers(json!({ "answer": 144 }));
    let (app, _fakes) = app_of([output.clone(), output.clone(), output]).await;
    let story = Story::new(app);
    let body = Body::from(story.request("POST", "/api/v3/delegate").to_string());
    let accept = [("accept", "text/event-stream")];
    let reply = story.app.admin().send("POST", "/api/v3/delegate", body, &accept).await;
    let content = &story.operation("POST", "/api/v3/delegate")["responses"]["200"]["content"];
    let example = content["text/event-stream"]["example"].as_str().unwrap();
    let names = |text: &str| -> BTreeSet<String> {
        text.lines().filter_map(|line| line.strip_prefix("event: ")).map(str::to_owned).collect()
    };
    assert_eq!(names(example), names(&reply.text()), "{}", reply.text());
}
