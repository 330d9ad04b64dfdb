//! The examples of workflows and grants.

use std::collections::BTreeSet;

use axum::body::Body;
use jurat_core::account::caller::Scope;
use jurat_testkit::app::TestApp;
use serde_json::{Value, json};

use super::Story;

/// A workflow from its first version to its deletion, under both names.
pub(super) async fn workflows() -> BTreeSet<String> {
    let mut played = BTreeSet::new();
    for base in ["/v1/workflows", "/v1/skills"] {
        let mut story = Story::new(TestApp::new().await);
        life(&mut story, base).await;
        shared(&mut story, base).await;
        played.extend(story.played);
    }
    played
}

async fn life(story: &mut Story, base: &str) {
    let request = story.request("POST", base);
    let saved = story.play("POST", base, base, &request).await.json();
    let at = format!("{base}/{}", saved["slug"].as_str().unwrap());
    story.play("GET", base, base, &Value::Null).await;
    let path = format!("{base}/search");
    let request = story.request("POST", &path);
    story.play("POST", &path, &path, &request).await;
    story.play("GET", &format!("{base}/{{ref}}"), &at, &Value::Null).await;
    let path = format!("{base}/{{ref}}/versions/{{version}}");
    story.play("GET", &path, &format!("{at}/versions/1"), &Value::Null).await;
    story
        .play("GET", &format!("{base}/{{ref}}/lineage"), &format!("{at}/lineage"), &Value::Null)
        .await;
    let files = format!("{base}/{{ref}}/files");
    story.play("GET", &files, &format!("{at}/files?path=short.md"), &Value::Null).await;
    let mut request = story.request("PATCH", &files);
    request["expected_version_token"] = saved["version_token"].clone();
    story.play("PATCH", &files, &format!("{at}/files"), &request).await;
    story.play("DELETE", &path, &format!("{at}/versions/1"), &Value::Null).await;
    for word in ["archive", "unarchive"] {
        let path = format!("{base}/{{ref}}/{word}");
        story.play("POST", &path, &format!("{at}/{word}"), &json!({})).await;
    }
}

async fn shared(story: &mut Story, base: &str) {
    let at = format!("{base}/incident-postmortem");
    let admin = story.app.admin();
    let handle = Body::from(json!({ "handle": "boss" }).to_string());
    admin.send("PATCH", "/v1/me", handle, &[]).await;
    admin.post("/v1/teams", &json!({ "handle": "crew" })).await;
    let path = format!("{base}/{{ref}}/grants");
    for method in ["POST", "GET", "DELETE"] {
        let request = if method == "GET" { Value::Null } else { story.request(method, &path) };
        let mut request = request;
        if method == "POST" {
            request["include_history"] = json!(false);
        }
        story.play(method, &path, &format!("{at}/grants"), &request).await;
    }
    left(story, base).await;
    let path = format!("{base}/{{ref}}/transfer-ownership");
    let request = story.request("POST", &path);
    story.play("POST", &path, &format!("{at}/transfer-ownership"), &request).await;
    story.play("DELETE", &format!("{base}/{{ref}}"), &at, &Value::Null).await;
}

/// Another user grants access to the admin, who gives it up again.
async fn left(story: &mut Story, base: &str) {
    let scopes = [Scope::WorkflowsRead, Scope::WorkflowsWrite];
    let bob = story.app.caller("bob", &scopes).await;
    let body = json!({ "name": "Of bob", "description": "His own.", "body": "# Do" });
    let saved = bob.post(base, &body).await.json();
    let id = saved["id"].as_str().unwrap().to_owned();
    let grant = json!({ "grantee_email_or_at_team_handle": "acct_admin", "role": "view" });
    let body = Body::from(grant.to_string());
    let reply = bob.send("POST", &format!("{base}/{id}/grants"), body, &[]).await;
    assert!(reply.status.is_success(), "{}", reply.text());
    if base == "/v1/workflows" {
        story.play("GET", "/v1/shares", "/v1/shares", &Value::Null).await;
        for word in ["accept", "decline", "block"] {
            let path = format!("/v1/shares/{{id}}/{word}");
            story.play("POST", &path, &format!("/v1/shares/{id}/{word}"), &json!({})).await;
        }
        story.app.admin().post(&format!("/v1/shares/{id}/accept"), &json!({})).await;
    }
    let path = format!("{base}/{{ref}}/leave");
    story.play("POST", &path, &format!("{base}/{id}/leave"), &json!({})).await;
}
