//! Cards and tasks of accounts: a stranger sees nothing of them, and a grantee its own runs only.

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::app::{TestApp, TestCaller};
use serde_json::{Value, json};

use super::{BINDINGS, Binding, call, data, part};

async fn person<'a>(app: &'a TestApp, handle: &str) -> TestCaller<'a> {
    let caller = app.caller(handle, &Scope::OWN).await;
    let handle = Body::from(json!({ "handle": handle }).to_string());
    assert_eq!(caller.send("PATCH", "/v1/me", handle, &[]).await.status, StatusCode::OK);
    caller
}

async fn made(caller: &TestCaller<'_>, path: &str, body: &Value) -> Value {
    let reply = caller.post(path, body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    reply.json()
}

fn ids(page: &Value) -> Vec<&Value> {
    page["tasks"].as_array().unwrap().iter().map(|task| &task["id"]).collect()
}

/// The id of a verifier of the owner, which a workflow shares with the grantee.
async fn shared_verifier(owner: &TestCaller<'_>) -> Value {
    let verifier = json!({
        "name": "sourced", "description": "The answer names its source.",
        "criterion": r#"{"contains": {"field": "answer", "text": "Source:"}}"#,
        "input_contract": "text", "input_fields": ["answer"],
        "model_settings": { "model": "builtin/rules" },
    });
    let verifier = made(owner, "/v1/verifiers", &verifier).await["verifier_id"].clone();
    let workflow = json!({
        "name": "Report", "description": "Writes one.", "body": "# Do",
        "verifiers": [{ "name": "sourced", "verifier_id": verifier }],
    });
    let workflow = made(owner, "/v1/workflows", &workflow).await["id"].clone();
    let grant = json!({ "grantee_email_or_at_team_handle": "@grantee", "role": "view" });
    let path = format!("/v1/workflows/{}/grants", workflow.as_str().unwrap());
    made(owner, &path, &grant).await;
    verifier
}

/// An owner shares a verifier with a grantee, and a stranger has every scope in its own account.
pub(crate) async fn told(app: &TestApp) {
    let (owner, grantee) = (person(app, "owner").await, person(app, "grantee").await);
    let stranger = person(app, "stranger").await;
    let verifier = shared_verifier(&owner).await;
    let run = |id: &str, verifier: &Value| {
        let inputs = json!({ "answer": "42. Source: the manual." });
        data(id, &json!({ "skill": "run-verifier", "verifier": verifier, "inputs": inputs }))
    };
    for (number, binding) in BINDINGS.into_iter().enumerate() {
        for (caller, skills) in [(&owner, 5), (&grantee, 4), (&stranger, 4)] {
            let card = call(caller, binding, "GetExtendedAgentCard", &json!({})).await.unwrap();
            assert_eq!(card["skills"].as_array().unwrap().len(), skills);
        }
        // Everybody uses the same ids for messages and contexts.
        let mut sent = run(&format!("m{number}"), &verifier);
        sent["message"]["contextId"] = json!("shared");
        let own = call(&owner, binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        let of_grantee =
            call(&grantee, binding, "SendMessage", &sent).await.unwrap()["task"].clone();
        assert_ne!(own["id"], of_grantee["id"]);
        assert_eq!(part(&of_grantee, "answer", "data")["passed"], true);
        for name in [&verifier, &json!("sourced"), &json!("@owner/sourced")] {
            let refused = call(&stranger, binding, "SendMessage", &run("m1", name)).await;
            let absent = json!("01900000-0000-7000-8000-0000000000ff");
            let unknown = call(&stranger, binding, "SendMessage", &run("m1", &absent)).await;
            let (refused, unknown) = (refused.unwrap_err(), unknown.unwrap_err());
            assert_eq!((refused.code, refused.reason), (unknown.code, unknown.reason));
        }
        for (caller, theirs) in
            [(&owner, &of_grantee), (&grantee, &own), (&stranger, &own), (&stranger, &of_grantee)]
        {
            for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
                let hidden = call(caller, binding, method, &json!({ "id": theirs["id"] })).await;
                assert_eq!(hidden.unwrap_err().reason, "TASK_NOT_FOUND", "{method}");
            }
            let mut follow_up = run("m9", &verifier);
            follow_up["message"]["taskId"] = theirs["id"].clone();
            let hidden = call(caller, binding, "SendMessage", &follow_up).await;
            assert_eq!(hidden.unwrap_err().reason, "TASK_NOT_FOUND");
        }
    }
    let mut both = json!({ "contextId": "shared", "includeArtifacts": true });
    for listed in [json!({}), both.take()] {
        for (caller, count) in [(&owner, 2), (&grantee, 2), (&stranger, 0)] {
            let page = call(caller, Binding::Http, "ListTasks", &listed).await.unwrap();
            assert_eq!((ids(&page).len(), &page["totalSize"]), (count, &json!(count)));
        }
    }
}

#[tokio::test]
async fn a_stranger_sees_no_card_or_task_of_others_and_a_grantee_its_own_runs() {
    told(&TestApp::new().await).await;
}
