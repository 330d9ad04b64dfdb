//! The examples for prompt-oriented clients, and the registration file.

use std::collections::BTreeSet;

use jurat_server::PeerOptions;
use jurat_testkit::fake_executor::{answers, fact};
use jurat_wire::api::agent_registration::{AgentProfile, AgentRegistration};
use serde_json::{Value, json};

use super::{Story, app_of};

/// Lets all executors answer for the session of the examples.
async fn answer_for_35(story: &Story) {
    for executor in ["alpha", "beta", "gamma"] {
        let body =
            json!({ "id": format!("{executor}-35"), "executor": executor, "labels": ["35"] });
        let reply = story.app.admin().post("/v1/sessions", &body).await;
        assert!(reply.status.is_success(), "{}", reply.text());
    }
}

pub(super) async fn prompts() -> BTreeSet<String> {
    let answer = || answers(json!({ "answer": "7" }));
    let (app, _fakes) = app_of([answer(), answer(), answer()]).await;
    let agent = AgentProfile {
        url: "https://jurat.example.com".to_owned(),
        name: "Jurat".to_owned(),
        description: "Judges claims.".to_owned(),
        image: None,
        registrations: vec![AgentRegistration::parse("22@eip155:1:0x742").unwrap()],
    };
    let app = app.with_peers(PeerOptions { agent: Some(agent), ..PeerOptions::default() });
    let mut story = Story::new(app);
    let path = "/.well-known/agent-registration.json";
    story.play("GET", path, path, &Value::Null).await;
    for name in ["status", "about", "info", "ping", "miners", "sessions"] {
        let path = format!("/api/v1/{name}");
        story.play("GET", &path, &path, &Value::Null).await;
    }
    let path = "/api/v1/sessions/{id}";
    story.play("GET", path, "/api/v1/sessions/alpha", &Value::Null).await;
    answer_for_35(&story).await;
    for path in ["/api/v1/create", "/api/v1/delegate", "/api/v1/validate"] {
        let request = story.request("POST", path);
        story.play("POST", path, path, &request).await;
    }
    for version in ["v1", "v2"] {
        let path = format!("/api/{version}/chat/completions");
        let request = story.request("POST", &path);
        story.play("POST", &path, &path, &request).await;
        let in_session = format!("{path}/{{id}}");
        let request = story.request("POST", &in_session);
        story.play("POST", &in_session, &format!("{path}/35"), &request).await;
    }
    let mut task = Value::Null;
    for version in ["v1", "v2", "v3"] {
        let path = format!("/api/{version}/completions");
        let request = story.request("POST", &path);
        story.play("POST", &path, &path, &request).await;
        let path = format!("/api/{version}/completions/{{id}}");
        let request = story.request("POST", &path);
        let at = format!("/api/{version}/completions/0");
        task = story.play("POST", &path, &at, &request).await.json()["task_id"].clone();
    }
    let at = format!("/api/v1/tasks/0/{}", task.as_str().unwrap());
    story.play("GET", "/api/v1/tasks/{id}/{task}", &at, &Value::Null).await;
    let path = "/api/v1/tasks/{id}";
    // A list as long as the example's.
    let (app, _fakes) = app_of([answer(), answer(), answer()]).await;
    let mut alone = Story::new(app);
    answer_for_35(&alone).await;
    let request = alone.request("POST", "/api/v1/completions");
    alone.play("POST", "/api/v1/completions", "/api/v1/completions", &request).await;
    alone.play("GET", path, "/api/v1/tasks/0", &Value::Null).await;
    story.played.into_iter().chain(alone.played).collect()
}

pub(super) async fn claims() -> BTreeSet<String> {
    let (app, _fakes) = app_of([fact("TRUE"), fact("TRUE"), fact("TRUE")]).await;
    let mut story = Story::new(app);
    answer_for_35(&story).await;
    for path in ["/api/v1/factcheck", "/api/v1/fact-check"] {
        let request = story.request("POST", path);
        story.play("POST", path, path, &request).await;
    }
    story.played
}
