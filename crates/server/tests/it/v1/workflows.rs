//! `/v1/workflows` and `/v1/skills`.

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::caller::Scope;
use jurat_testkit::app::{TestApp, TestCaller, TestReply};
use serde_json::{Value, json};

const OWNER: &[Scope] = &[
    Scope::VerifiersRead,
    Scope::VerifiersWrite,
    Scope::VerifiersRun,
    Scope::WorkflowsRead,
    Scope::WorkflowsWrite,
    Scope::AccountWrite,
];

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[track_caller]
fn assert_problem(reply: &TestReply, status: u16, code: &str) {
    let found = (reply.status.as_u16(), text(&reply.json()["code"]).to_owned());
    assert_eq!(found, (status, code.to_owned()), "{}", reply.text());
}

fn report() -> Value {
    json!({ "name": "My Report", "description": "Writes one.", "body": "# Do" })
}

fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

/// A verifier whose judge is a rule: the response says yes.
fn says_yes() -> Value {
    json!({
        "name": "says-yes",
        "description": "The response says yes.",
        "criterion": json!({ "contains": { "field": "response", "text": "yes" } }).to_string(),
        "input_contract": "text",
        "input_fields": ["response"],
        "model_settings": { "model": "builtin/rules" },
    })
}

async fn made(caller: &TestCaller<'_>, path: &str, body: &Value) -> Value {
    let reply = caller.post(path, body).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    reply.json()
}

async fn sent(caller: &TestCaller<'_>, method: &str, path: &str, body: &Value) -> TestReply {
    caller.send(method, path, Body::from(body.to_string()), &[]).await
}

/// A workflow of alice that names her verifier.
async fn bound(alice: &TestCaller<'_>) -> (Value, Value) {
    let verifier = made(alice, "/v1/verifiers", &says_yes()).await;
    let binding = json!([{ "name": "yes", "verifier_id": verifier["verifier_id"] }]);
    let saved = made(alice, "/v1/workflows", &with(report(), "verifiers", binding)).await;
    (saved, verifier)
}

async fn grant(owner: &TestCaller<'_>, workflow: &str, to: &str, role: &str) -> TestReply {
    let body = json!({ "grantee_email_or_at_team_handle": to, "role": role });
    owner.post(&format!("/v1/workflows/{workflow}/grants"), &body).await
}

#[tokio::test]
async fn a_workflow_is_saved_under_one_name_and_read_under_the_other() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    let saved = made(&alice, "/v1/skills", &report()).await;
    assert_eq!(saved["skill_id"], saved["workflow_id"]);
    assert_eq!((&saved["slug"], &saved["version"]), (&json!("my-report"), &json!(1)));
    assert_eq!(saved["authoring_notes"].as_array().unwrap().len(), 2);
    let shown = alice.get("/v1/workflows/my-report").await.json();
    assert_eq!(shown["body"], "# Do");
    assert_eq!(
        (&shown["effective_role"], &shown["owner_user_id"]),
        (&json!("owner"), &json!("acct_alice"))
    );
    let accept = [("accept", "text/markdown")];
    let markdown = alice.send("GET", "/v1/skills/my-report", Body::empty(), &accept).await;
    assert_eq!(markdown.headers["content-type"], "text/markdown; charset=utf-8");
    assert_eq!(markdown.text(), "# Do");
    let listed = alice.get("/v1/skills?filter=mine&search=writes").await.json();
    assert_eq!(listed["items"][0]["id"], saved["id"]);
    assert_eq!(alice.get("/v1/skills?tag=none").await.json()["items"], json!([]));
    assert_problem(&alice.get("/v1/skills?filter=theirs").await, 400, "validation_error");
    assert_problem(&alice.get("/v1/workflows/other").await, 404, "not_found");
}

#[tokio::test]
async fn a_second_version_needs_the_current_token_which_the_refusal_names() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    let saved = made(&alice, "/v1/workflows", &report()).await;
    let token = text(&saved["version_token"]);
    let again = alice.post("/v1/workflows", &report()).await;
    assert_problem(&again, 409, "conflict");
    assert_eq!(again.json()["current_version_token"], token);
    assert!(text(&again.json()["hint"]).contains(token));
    let next = with(report(), "expected_version_token", json!(token));
    assert_eq!(made(&alice, "/v1/workflows", &next).await["version"], 2);
    assert_problem(&alice.post("/v1/workflows", &next).await, 409, "conflict");
    let first = with(next, "name", json!("Another"));
    assert_problem(&alice.post("/v1/workflows", &first).await, 409, "conflict");
}

#[tokio::test]
async fn front_matter_fills_absent_members() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    let body = "---\nname: From the body\ndescription: It says so.\ntags: [a, b]\n---\n# Do\n";
    let saved = made(&alice, "/v1/workflows", &json!({ "body": body })).await;
    let shown = alice.get(&format!("/v1/workflows/{}", text(&saved["slug"]))).await.json();
    assert_eq!((&shown["name"], &shown["tags"]), (&json!("From the body"), &json!(["a", "b"])));
    // The body comes back as it was sent.
    assert_eq!(shown["body"], body);
    for (wrong, field) in [
        (json!({ "body": "---\nname: [\n---\n" }), "body"),
        (json!({ "body": "# Do" }), "name"),
        (json!({ "body": "# Do", "name": "A" }), "description"),
        (with(report(), "name", json!("search")), "name"),
        (with(report(), "files", json!([{ "path": "../a", "content": "" }])), "files.0.path"),
        (with(report(), "files", json!([{ "path": "a" }])), "files.0.path"),
        (
            with(report(), "verifiers", json!([{ "name": "a", "verifier_id": "none" }])),
            "verifiers.0.verifier_id",
        ),
        (
            with(report(), "verifiers", json!([{ "name": "a", "verifier_id": "system:qa" }])),
            "verifiers.0.verifier_id",
        ),
    ] {
        let reply = alice.post("/v1/workflows", &wrong).await;
        assert_problem(&reply, 400, "validation_error");
        assert_eq!(reply.json()["field"], field, "{}", reply.text());
    }
}

#[tokio::test]
async fn files_are_read_one_by_one_together_and_raw() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    let files = json!([
        { "path": "a.txt", "content": "text" },
        { "path": "b.bin", "content_base64": "AP8=", "executable": true, "purpose": "bytes" },
    ]);
    let saved = made(&alice, "/v1/workflows", &with(report(), "files", files)).await;
    let at = "/v1/workflows/my-report/files";
    let one = alice.get(&format!("{at}?path=a.txt")).await.json();
    assert_eq!((&one["content"], &one["content_kind"]), (&json!("text"), &json!("text")));
    let both = alice.get(&format!("{at}?paths=b.bin&paths=none&paths=a.txt")).await.json();
    let files = both["files"].as_array().unwrap();
    assert_eq!(files[0]["content"], "text");
    assert_eq!(
        (&files[1]["content_base64"], &files[1]["purpose"]),
        (&json!("AP8="), &json!("bytes"))
    );
    assert_eq!(files[2]["error"], "not_found");
    let sha256 = text(&files[1]["sha256"]);
    let raw = alice.get(&format!("{at}?path=b.bin&format=raw&sha256={sha256}")).await;
    assert_eq!(raw.headers["content-type"], "application/octet-stream");
    assert_eq!(raw.headers["content-disposition"], "attachment");
    let stale = alice.get(&format!("{at}?path=a.txt&format=raw&sha256={sha256}")).await;
    assert_problem(&stale, 404, "not_found");
    assert_problem(&alice.get(&format!("{at}?path=none")).await, 404, "not_found");
    assert_problem(&alice.get(at).await, 400, "validation_error");
    let patch = json!({
        "expected_version_token": saved["version_token"],
        "files": [{ "path": "b.bin", "content": "now text" }],
    });
    let patched = sent(&alice, "PATCH", at, &patch).await.json();
    assert_eq!((&patched["version"], &patched["changed"]), (&json!(2), &json!(["b.bin"])));
    assert_eq!(patched["carried_forward"], 1);
    let kept = alice.get("/v1/workflows/my-report").await.json()["files"][1].clone();
    assert_eq!((&kept["executable"], &kept["purpose"]), (&json!(true), &json!("bytes")));
    assert_problem(&sent(&alice, "PATCH", at, &patch).await, 409, "conflict");
}

#[tokio::test]
async fn a_grant_brings_the_verifiers_and_ends_with_them() {
    let app = TestApp::new().await;
    let (alice, bob) = (app.caller("alice", OWNER).await, app.caller("bob", OWNER).await);
    let (saved, verifier) = bound(&alice).await;
    let (workflow, id) = (text(&saved["id"]), text(&verifier["verifier_id"]));
    let run = json!({ "inputs": { "response": "yes" }, "workflow_id": workflow });
    let runs = format!("/v1/verifiers/{id}/runs");
    assert_problem(&bob.post(&runs, &run).await, 404, "not_found");
    assert_eq!(grant(&alice, workflow, "acct_bob", "view").await.status, StatusCode::CREATED);
    let listed = bob.get("/v1/verifiers").await.json()["items"][0].clone();
    assert_eq!(
        (&listed["role"], &listed["source_workflow_id"]),
        (&json!("exec"), &json!(workflow))
    );
    let done = made(&bob, &runs, &run).await;
    assert_eq!((&done["passed"], &done["workflow_id"]), (&json!(true), &json!(workflow)));
    assert_eq!(
        made(&bob, "/v1/verifiers/@acct_alice/says-yes/runs", &run).await["verifier_id"],
        id
    );
    // To run it is not to see it, and the run is one's own.
    assert_problem(&bob.get(&format!("/v1/verifiers/{id}")).await, 404, "not_found");
    assert_problem(
        &bob.post(&format!("/v1/verifiers/{id}/tests"), &json!({})).await,
        404,
        "not_found",
    );
    assert_eq!(alice.get("/v1/verifier-runs").await.json()["items"], json!([]));
    assert_eq!(bob.get("/v1/verifier-runs").await.json()["items"].as_array().unwrap().len(), 2);
    // Who may edit sees it whole and deploys its next version.
    grant(&alice, workflow, "acct_bob", "edit").await;
    let shown = bob.get(&format!("/v1/verifiers/{id}")).await.json();
    let next = with(says_yes(), "expected_version_token", shown["version_token"].clone());
    let deployed = made(&bob, "/v1/verifiers", &next).await;
    assert_eq!((&deployed["verifier_id"], &deployed["version"]), (&json!(id), &json!(2)));
    for method in ["", "/permanent"] {
        let reply = bob.delete(&format!("/v1/verifiers/{id}{method}")).await;
        assert_problem(&reply, 404, "not_found");
    }
    let archive = format!("/v1/workflows/{workflow}/archive");
    assert_problem(&bob.post(&archive, &json!({})).await, 403, "forbidden");
    alice.post(&archive, &json!({})).await;
    assert_problem(&bob.post(&runs, &run).await, 404, "not_found");
    assert_problem(&bob.get(&format!("/v1/workflows/{workflow}")).await, 404, "not_found");
    alice.post(&format!("/v1/workflows/{workflow}/unarchive"), &json!({})).await;
    made(&bob, &runs, &run).await;
    let grants = format!("/v1/workflows/{workflow}/grants");
    let body = json!({ "grantee_email_or_at_team_handle": "acct_bob" });
    assert_eq!(sent(&alice, "DELETE", &grants, &body).await.json()["revoked"], true);
    assert_eq!(sent(&alice, "DELETE", &grants, &body).await.json()["revoked"], false);
    assert_problem(&bob.post(&runs, &run).await, 404, "not_found");
}

#[tokio::test]
async fn a_run_names_only_a_workflow_that_its_caller_sees() {
    let app = TestApp::new().await;
    let (alice, bob) = (app.caller("alice", OWNER).await, app.caller("bob", OWNER).await);
    let (saved, _) = bound(&alice).await;
    let theirs = made(&bob, "/v1/workflows", &report()).await;
    let run =
        |name: &str, value: Value| with(json!({ "inputs": { "response": "no" } }), name, value);
    let at = "/v1/verifiers/says-yes/runs";
    for (name, value) in [
        ("workflow_id", theirs["id"].clone()),
        ("skill_id", json!("0198c1f0-0000-7000-8000-000000000001")),
        ("workflow_ref", json!("nothing")),
        ("skill_ref", json!("my-report@2")),
    ] {
        assert_problem(&alice.post(at, &run(name, value)).await, 404, "not_found");
    }
    let named = made(&alice, at, &run("skill_ref", json!("my-report@1"))).await;
    assert_eq!((&named["passed"], &named["skill_id"]), (&json!(false), &saved["id"]));
}

#[tokio::test]
async fn versions_before_the_grant_are_hidden_unless_the_history_is_shared() {
    let app = TestApp::new().await;
    let (alice, bob) = (app.caller("alice", OWNER).await, app.caller("bob", OWNER).await);
    let first = made(&alice, "/v1/workflows", &report()).await;
    let next = with(report(), "expected_version_token", first["version_token"].clone());
    made(&alice, "/v1/workflows", &next).await;
    grant(&alice, "my-report", "acct_bob", "view").await;
    let at = format!("/v1/workflows/{}", text(&first["id"]));
    assert_eq!(bob.get(&at).await.json()["shared_from_version"], 2);
    for old in [format!("{at}?version=1"), format!("{at}/versions/1")] {
        assert_problem(&bob.get(&old).await, 404, "not_found");
    }
    let body = json!({
        "grantee_email_or_at_team_handle": "acct_bob", "role": "view", "include_history": true,
    });
    made(&alice, "/v1/workflows/my-report/grants", &body).await;
    assert_eq!(bob.get(&format!("{at}/versions/1")).await.json()["version"], 1);
    let lines = alice.get("/v1/workflows/my-report/grants").await.json()["items"].clone();
    assert_eq!(lines.as_array().unwrap().len(), 1);
    assert_eq!(
        (&lines[0]["grantee_type"], &lines[0]["is_via_team"]),
        (&json!("user"), &json!(false))
    );
    let left = bob.post(&format!("{at}/leave"), &json!({})).await.json();
    assert_eq!(left["removed_direct_grants"], 1);
    assert_problem(&bob.get(&at).await, 404, "not_found");
    let own = alice.post("/v1/workflows/my-report/leave", &json!({})).await;
    assert_problem(&own, 409, "workflow_ownership_must_transfer");
}

#[tokio::test]
async fn nobody_grants_above_their_role_or_to_an_unknown_account() {
    let app = TestApp::new().await;
    let (alice, bob) = (app.caller("alice", OWNER).await, app.caller("bob", OWNER).await);
    let saved = made(&alice, "/v1/workflows", &report()).await;
    let workflow = text(&saved["id"]);
    for nobody in ["nobody", "@nobody", "acct_nobody", "acct_nobody@jurat.invalid"] {
        assert_problem(&grant(&alice, workflow, nobody, "view").await, 404, "user_not_found");
    }
    assert_problem(&grant(&alice, workflow, "no/body", "view").await, 400, "validation_error");
    assert_problem(&grant(&alice, workflow, "acct_bob", "owner").await, 400, "validation_error");
    grant(&alice, workflow, "acct_bob", "edit").await;
    app.caller("carol", OWNER).await;
    assert_problem(&grant(&bob, workflow, "acct_carol", "view").await, 403, "forbidden");
    sent(&bob, "PATCH", "/v1/me", &json!({ "handle": "bobby" })).await;
    let team = made(&bob, "/v1/teams", &json!({ "handle": "crew" })).await;
    assert!(team["team_id"].is_string());
    assert_problem(&grant(&alice, workflow, "@crew", "view").await, 404, "user_not_found");
}

#[tokio::test]
async fn a_name_that_only_others_have_is_explained_in_the_hint() {
    let app = TestApp::new().await;
    let carol = app.caller("carol", OWNER).await;
    for name in ["alice", "bob"] {
        let owner = app.caller(name, OWNER).await;
        bound(&owner).await;
        grant(&owner, "my-report", "acct_carol", "edit").await;
    }
    let reply = carol.get("/v1/workflows/my-report").await;
    assert_problem(&reply, 404, "not_found");
    let hint = text(&reply.json()["hint"]).to_owned();
    for owner in ["alice", "bob"] {
        assert!(hint.contains(&format!("`@acct_{owner}/my-report`")), "{hint}");
    }
    let run = json!({ "inputs": { "response": "yes" } });
    assert_problem(&carol.post("/v1/verifiers/says-yes/runs", &run).await, 404, "not_found");
    // Those with one name are listed one after the other.
    let first = carol.get("/v1/verifiers?limit=1").await.json();
    let cursor = text(&first["next_cursor"]);
    let second = carol.get(&format!("/v1/verifiers?limit=1&cursor={cursor}")).await.json();
    assert_ne!(first["items"][0]["verifier_id"], second["items"][0]["verifier_id"]);
    assert_eq!(second["next_cursor"], Value::Null);
}

#[tokio::test]
async fn a_workflow_is_transferred_when_the_offer_is_accepted() {
    let app = TestApp::new().await;
    let (alice, bob) = (app.caller("alice", OWNER).await, app.caller("bob", OWNER).await);
    let (saved, verifier) = bound(&alice).await;
    let (workflow, id) = (text(&saved["id"]), text(&verifier["verifier_id"]));
    let at = format!("/v1/skills/{workflow}/transfer-ownership");
    let own = alice.post(&at, &json!({ "new_owner_user_id_or_email": "acct_alice" })).await.json();
    assert_eq!((&own["transferred"], &own["owner_user_id"]), (&json!(false), &json!("acct_alice")));
    let offer = alice.post(&at, &json!({ "new_owner_user_id_or_email": "acct_bob" })).await;
    assert_eq!(offer.status, StatusCode::OK, "{}", offer.text());
    assert_eq!(offer.json()["kind"], "workflow_ownership_transfer");
    assert_problem(&bob.get(&format!("/v1/workflows/{workflow}")).await, 404, "not_found");
    let accept = format!("/v1/invitations/{}/accept", text(&offer.json()["invitation_id"]));
    let accepted = bob.post(&accept, &json!({})).await;
    assert_eq!(accepted.status, StatusCode::OK, "{}", accepted.text());
    let shown = bob.get(&format!("/v1/workflows/{workflow}")).await.json();
    assert_eq!(shown["effective_role"], "owner");
    assert_eq!(bob.get(&format!("/v1/verifiers/{id}")).await.status, StatusCode::OK);
    assert_problem(&alice.get(&format!("/v1/workflows/{workflow}")).await, 404, "not_found");
    assert_problem(&alice.get(&format!("/v1/verifiers/{id}")).await, 404, "not_found");
}

#[tokio::test]
async fn names_are_one_line_and_paths_are_files_or_folders() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    let file = |path: &str| json!({ "path": path, "content": "x" });
    for (name, value, field) in [
        ("name", json!("two\nlines"), "name"),
        ("name", json!("日本語"), "name"),
        ("files", json!([file("a"), file("a/b")]), "files"),
    ] {
        let refused = alice.post("/v1/workflows", &with(report(), name, value)).await;
        assert_problem(&refused, 400, "validation_error");
        assert_eq!(refused.json()["field"], field, "{}", refused.text());
    }
    let named = with(with(report(), "name", json!("日本語")), "slug", json!("nihongo"));
    let saved = made(&alice, "/v1/workflows", &named).await;
    assert_eq!((&saved["name"], &saved["slug"]), (&json!("日本語"), &json!("nihongo")));
}

#[tokio::test]
async fn a_search_explains_its_matches() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    made(&alice, "/v1/workflows", &report()).await;
    let other = with(report(), "name", json!("Other"));
    made(&alice, "/v1/workflows", &with(other, "description", json!("A report too."))).await;
    let found = alice.post("/v1/workflows/search", &json!({ "query": "report" })).await.json();
    assert_eq!(found["search_mode"], "lexical");
    let items = found["items"].as_array().unwrap();
    assert_eq!((&items[0]["rank"], &items[0]["slug"]), (&json!(1), &json!("my-report")));
    assert_eq!(items[1]["match_reason"], "description: report");
    let body = with(report(), "name", json!("Third"));
    made(&alice, "/v1/workflows", &with(body, "body", json!("# Do\n\nCheck the Tidewater."))).await;
    let found = alice.post("/v1/workflows/search", &json!({ "query": "tidewater" })).await.json();
    assert_eq!(found["items"][0]["slug"], "third");
    assert_eq!(found["items"][0]["match_reason"], "body: tidewater");
    let listed = alice.get("/v1/workflows?search=tidewater").await.json();
    assert_eq!(listed["items"][0]["slug"], "third");
    let none = alice.post("/v1/workflows/search", &json!({ "query": " " })).await;
    assert_problem(&none, 400, "validation_error");
}

#[tokio::test]
async fn a_workflow_needs_a_key_with_its_scope() {
    let app = TestApp::new().await;
    assert_problem(&app.anonymous().get("/v1/workflows").await, 401, "auth_required");
    let reader = app.caller("alice", &[Scope::WorkflowsRead]).await;
    assert_problem(&reader.post("/v1/workflows", &report()).await, 403, "forbidden");
    let other = app.caller("alice", &[Scope::VerifiersRead]).await;
    assert_problem(&other.get("/v1/skills").await, 403, "forbidden");
}

#[tokio::test]
async fn the_file_skill_md_is_the_body() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    let file = json!([{ "path": "a.txt", "content": "kept" }]);
    let saved = made(&alice, "/v1/workflows", &with(report(), "files", file)).await;
    let at = format!("/v1/skills/{}/files", text(&saved["id"]));
    let token = &saved["version_token"];
    let put = |content: Value| {
        let mut file = json!({ "path": "SKILL.md" });
        file.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
        json!({ "expected_version_token": token, "files": [file], "delete_paths": [] })
    };
    for wrong in [
        put(json!({ "content": " " })),
        put(json!({ "content_base64": "/w==" })),
        put(json!({ "sha256": "0".repeat(64) })),
        json!({ "expected_version_token": token, "files": [], "delete_paths": ["SKILL.md"] }),
    ] {
        assert_problem(&sent(&alice, "PATCH", &at, &wrong).await, 400, "validation_error");
    }
    let patched = sent(&alice, "PATCH", &at, &put(json!({ "content": "# Do it" }))).await.json();
    assert_eq!((&patched["version"], &patched["changed"]), (&json!(2), &json!(["SKILL.md"])));
    assert_eq!(patched["carried_forward"], 1);
    let shown = alice.get("/v1/workflows/my-report").await.json();
    assert_eq!((&shown["body"], &shown["name"]), (&json!("# Do it"), &json!("My Report")));
    let paths: Vec<&str> =
        shown["files"].as_array().unwrap().iter().map(|it| text(&it["path"])).collect();
    assert_eq!(paths, ["a.txt"], "it lies nowhere else");
    // It is found by its words.
    let hits = alice.post("/v1/skills/search", &json!({ "query": "it" })).await.json();
    assert_eq!(hits["items"][0]["id"], saved["id"]);
}

#[tokio::test]
async fn a_name_with_spaces_survives_a_client_that_knows_the_slug_only() {
    let app = TestApp::new().await;
    let alice = app.caller("alice", OWNER).await;
    let saved = made(&alice, "/v1/workflows", &report()).await;
    let listed = alice.get("/v1/skills?filter=mine").await.json();
    let item = &listed["items"][0];
    assert_eq!((&item["name"], &item["title"]), (&json!("my-report"), &json!("My Report")));
    // What was pulled under that name is pushed under it.
    let push = json!({
        "skill_id": saved["id"], "name": item["name"], "description": "Writes another.",
        "body": "# Do more", "expected_version_token": saved["version_token"],
    });
    let pushed = made(&alice, "/v1/skills", &push).await;
    assert_eq!((&pushed["name"], &pushed["slug"]), (&json!("My Report"), &json!("my-report")));
    let shown = alice.get("/v1/workflows/my-report").await.json();
    assert_eq!((&shown["name"], &shown["body"]), (&json!("My Report"), &json!("# Do more")));
}
