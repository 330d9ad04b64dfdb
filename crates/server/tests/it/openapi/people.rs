//! The examples of handles, teams and invitations.

use std::collections::BTreeSet;

use axum::body::Body;
use jurat_core::account::caller::Scope;
use jurat_testkit::app::{TestApp, TestCaller, TestReply};
use serde_json::{Value, json};

use super::{Story, shape};

/// The admin claims a handle, creates a team and answers the offer of another user.
pub(super) async fn people() -> BTreeSet<String> {
    let mut story = Story::new(TestApp::new().await);
    let me = "/v1/me";
    let request = story.request("PATCH", me);
    story.play("PATCH", me, me, &request).await;
    let path = "/v1/me/rename-handle";
    let request = story.request("POST", path);
    story.play("POST", path, path, &request).await;
    teams(&mut story).await;
    let path = "/v1/invitations";
    for (word, handle) in [("accept", "one"), ("decline", "two"), ("cancel", "three")] {
        let id = if word == "cancel" {
            offered_by_me(&story, handle).await
        } else {
            offered_by_another(&story, handle).await
        };
        if word == "accept" {
            story.play("GET", path, path, &Value::Null).await;
        }
        let of = format!("/v1/invitations/{{id}}/{word}");
        story.play("POST", &of, &format!("{path}/{id}/{word}"), &json!({})).await;
    }
    story.played
}

async fn teams(story: &mut Story) {
    let at = "/v1/teams";
    let request = story.request("POST", at);
    story.play("POST", at, at, &request).await;
    story.play("GET", at, at, &Value::Null).await;
    let path = "/v1/teams/{team}/members";
    story.play("GET", path, "/v1/teams/crew/members", &Value::Null).await;
    let request = story.request("POST", path);
    story.play("POST", path, "/v1/teams/crew/members", &request).await;
    let path = "/v1/teams/{team}/transfer-ownership";
    let request = story.request("POST", path);
    story.play("POST", path, "/v1/teams/crew/transfer-ownership", &request).await;
    let bob = another(story, "bob").await;
    let admin = story.app.admin();
    let id = offered(&admin, "crew", "bob").await;
    bob.post(&format!("/v1/invitations/{id}/accept"), &json!({})).await;
    let path = "/v1/teams/{team}/members/{user}";
    story.play("DELETE", path, "/v1/teams/crew/members/bob", &Value::Null).await;
    story.play("DELETE", "/v1/teams/{team}", "/v1/teams/crew", &Value::Null).await;
}

async fn another<'a>(story: &'a Story, name: &str) -> TestCaller<'a> {
    let caller = story.app.caller(name, &[Scope::AccountWrite]).await;
    let body = Body::from(json!({ "handle": name }).to_string());
    caller.send("PATCH", "/v1/me", body, &[]).await;
    caller
}

async fn offered(caller: &TestCaller<'_>, team: &str, to: &str) -> String {
    let path = format!("/v1/teams/{team}/members");
    let made = caller.post(&path, &json!({ "user_identifier": to })).await.json();
    made["invitation_id"].as_str().unwrap().to_owned()
}

async fn offered_by_another(story: &Story, handle: &str) -> String {
    let caller = another(story, &format!("user{handle}")).await;
    caller.post("/v1/teams", &json!({ "handle": handle })).await;
    offered(&caller, handle, "acct_admin").await
}

async fn offered_by_me(story: &Story, handle: &str) -> String {
    let admin = story.app.admin();
    admin.post("/v1/teams", &json!({ "handle": handle })).await;
    offered(&admin, handle, "bob").await
}

/// Compares a reply with the example of the document.
fn hold(story: &mut Story, method: &str, path: &str, reply: &TestReply) {
    let status = reply.status.as_u16().to_string();
    let responses = &story.operation(method, path)["responses"];
    let example = &responses[&status]["content"]["application/json"]["example"];
    assert_eq!(shape(example), shape(&reply.json()), "{method} {path}: {}", reply.text());
    story.played.insert(format!("{method} {path}"));
}

/// A user registers, logs in, and approves a program.
pub(super) async fn logins() -> BTreeSet<String> {
    let mut story = Story::new(TestApp::new().await);
    for kind in ["register", "login"] {
        let path = format!("/v1/{kind}");
        let request = story.request("POST", &path);
        let sent = story.app.anonymous().post(&path, &request).await;
        hold(&mut story, "POST", &path, &sent);
        let path = format!("/v1/{kind}/verify");
        let mut request = story.request("POST", &path);
        let email = request["email"].as_str().unwrap().to_owned();
        request["code"] = json!(story.app.outbox.code_to(&email).await);
        let entered = story.app.anonymous().post(&path, &request).await;
        hold(&mut story, "POST", &path, &entered);
    }
    for path in [
        "/.well-known/goodeye-client-config",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let config = story.app.anonymous().get(path).await;
        hold(&mut story, "GET", path, &config);
    }
    device(&mut story).await;
    story.played
}

async fn device(story: &mut Story) {
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let path = "/auth/device/authorize";
    let body = Body::from("client_id=jurat");
    let begun = story.app.anonymous().send("POST", path, body, &form).await;
    hold(story, "POST", path, &begun);
    let begun = begun.json();
    let path = "/auth/device/token";
    let ask = format!(
        "grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code={}",
        begun["device_code"].as_str().unwrap()
    );
    let pending = story.app.anonymous().send("POST", path, Body::from(ask.clone()), &form).await;
    hold(story, "POST", path, &pending);
    let at = "/v1/auth/approve";
    let approval = json!({ "user_code": begun["user_code"] });
    story.play("POST", at, at, &approval).await;
    let token = story.app.anonymous().send("POST", path, Body::from(ask), &form).await;
    hold(story, "POST", path, &token);
    let token = token.json()["access_token"].as_str().unwrap().to_owned();
    let at = "/v1/auth/exchange";
    let request = story.request("POST", at);
    let key = story.app.with_key(&token).post(at, &request).await;
    hold(story, "POST", at, &key);
}
