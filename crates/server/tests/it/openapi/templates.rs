//! Plays the examples of templates and of instructions for agents.

use std::collections::BTreeSet;

use jurat_testkit::{app::TestApp, fake_provider::FakeProvider};
use serde_json::{Value, json};

use super::Story;
use crate::v1::templates::{author, judge, judges};

pub(super) async fn templates() -> BTreeSet<String> {
    let fake = FakeProvider::start(judge).await;
    let app = TestApp::with_judges(judges(&fake)).await;
    author(&app, "").await;
    let mut story = Story::new(app);
    instructions(&mut story).await;
    let base = "/v1/templates";
    let request = story.request("POST", base);
    story.play("POST", base, base, &request).await;
    story.play("GET", base, base, &Value::Null).await;
    for path in ["search", "fork"] {
        let path = format!("{base}/{path}");
        let request = story.request("POST", &path);
        story.play("POST", &path, &path, &request).await;
    }
    let at = |rest: &str| (format!("{base}/{{ref}}{rest}"), format!("{base}/@ann/report{rest}"));
    for (method, rest, query) in [
        ("GET", "", ""),
        ("GET", "/files", "?path=list.md"),
        ("POST", "/safety-check", ""),
        ("POST", "/transfer-ownership", ""),
        ("POST", "/archive", ""),
        ("POST", "/unarchive", ""),
    ] {
        let (path, address) = at(rest);
        let request = story.request(method, &path);
        story.play(method, &path, &format!("{address}{query}"), &request).await;
    }
    for (method, rest) in [("POST", "/deprecate"), ("DELETE", ""), ("DELETE", "/permanent")] {
        let path = format!("{base}/{{ref}}/versions/{{version}}{rest}");
        let request = story.request(method, &path);
        let address = format!("{base}/@ann/report/versions/1{rest}");
        story.play(method, &path, &address, &request).await;
    }
    let (path, address) = at("");
    story.play("DELETE", &path, &address, &Value::Null).await;
    story.played
}

async fn instructions(story: &mut Story) {
    for path in ["design/workflow", "design/skill", "audit/workflow", "audit/skill"] {
        let path = format!("/v1/{path}-prompt");
        story.play("GET", &path, &path, &Value::Null).await;
    }
    for base in ["/v1/workflows", "/v1/skills"] {
        for what in ["teach", "optimize", "optimize-description", "audit", "safety-check"] {
            let path = format!("{base}/{{ref}}/{what}");
            story.play("POST", &path, &format!("{base}/report/{what}"), &json!({})).await;
        }
    }
}
