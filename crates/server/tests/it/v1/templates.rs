//! `/v1/templates`: published once, screened before, read and run by everybody.

use axum::body::Body;
use http::StatusCode;
use jurat_core::{account::caller::Scope, judge::Price, workflow::template::TemplateRef};
use jurat_engine::{EngineLimits, JudgesConfig, ProviderKind, ProviderSettings};
use jurat_testkit::{
    app::{TestApp, TestCaller, TestReply, admin_caller},
    fake_provider::{FakeProvider, FakeProviderRequest, ProviderReply, verdict},
    postgres::TestSchema,
};
use serde_json::{Value, json};

/// The answers of the judges: they follow the body itself.
pub(crate) fn judge(asked: &FakeProviderRequest) -> ProviderReply {
    let all = asked.body().to_string();
    let is_block = all.contains("break into, damage or disable systems");
    let is_advisory = all.contains("pipes a download into a shell");
    let is_found = |word: &str| all.contains(word);
    if is_block && is_found("NO-JUDGE") {
        return ProviderReply::Status(500);
    }
    let fails = (is_block && is_found("HARM-ALL")) || (is_advisory && is_found("CARELESS"));
    ProviderReply::Answer(verdict(if fails { "not_met" } else { "met" }))
}

pub(crate) fn judges(fake: &FakeProvider) -> JudgesConfig {
    let mut judges = JudgesConfig::default();
    let mut settings = ProviderSettings::new(ProviderKind::OpenAi, fake.url());
    settings.max_output_tokens = 1_000;
    let price = Price { input_micros_per_million: 100_000, output_micros_per_million: 100_000 };
    settings.prices.insert("*".to_owned(), price);
    judges.providers.insert("p1".to_owned(), settings);
    judges.default_model = Some("p1/m".parse().unwrap());
    judges
}

pub(crate) async fn told(limits: EngineLimits, story: impl AsyncFnOnce(&TestApp)) {
    let fake = FakeProvider::start(judge).await;
    let store = jurat_store::open(&jurat_store::StoreLocation::Memory).await.unwrap();
    let app = TestApp::made_of(store, limits, judges(&fake)).await;
    story(&app).await;
}

pub(crate) async fn told_on_postgres(story: impl AsyncFnOnce(&TestApp)) {
    let schema = TestSchema::new().await;
    let fake = FakeProvider::start(judge).await;
    let store = jurat_store::open(&schema.location()).await.unwrap();
    let limits = EngineLimits { lag: None, ..EngineLimits::default() };
    let app = TestApp::made_of(store, limits, judges(&fake)).await;
    story(&app).await;
    app.engine.shutdown().await;
    schema.drop().await;
}

/// A verifier of the admin, and a workflow that binds it.
pub(crate) async fn author(app: &TestApp, body: &str) -> String {
    let claim = Body::from(json!({ "handle": "ann" }).to_string());
    app.admin().send("PATCH", "/v1/me", claim, &[]).await;
    let deploy = json!({
        "name": "cites", "description": "Claims have a source.",
        "criterion": "Return passed=true when the text names a source, otherwise passed=false.",
        "input_contract": "text", "input_fields": ["text"], "few_shot_examples": [],
        "model_settings": { "model": "p1/m" },
    });
    let deployed = app.admin().post("/v1/verifiers", &deploy).await.json();
    let verifier = text(&deployed["verifier_id"]).to_owned();
    save(app, &verifier, body, None).await;
    verifier
}

async fn save(app: &TestApp, verifier: &str, body: &str, token: Option<&str>) -> Value {
    let order = json!({
        "name": "Report", "description": "Makes a report.", "outcome": "A file with sources.",
        "tags": ["sales"], "expected_version_token": token,
        "body": format!("# Report\nRun {verifier} on it. {body} See [the list](list.md)."),
        "verifiers": [{ "name": "cites", "verifier_id": verifier }],
        "files": [{ "path": "list.md", "content": "one\n" }],
    });
    let draft = jurat_wire::api::workflows::decode_save(&order).unwrap();
    let saved = app.engine.workflow_save(&admin_caller(), draft, None).await.unwrap();
    let jurat_engine::IdempotentOutcome::Now(saved) = saved else { return Value::Null };
    json!({ "id": saved.workflow.id, "token": saved.workflow.version_token })
}

async fn publish(app: &TestApp) -> TestReply {
    app.admin().post("/v1/templates", &json!({ "workflow_id": "report" })).await
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[track_caller]
fn assert_problem(reply: &TestReply, status: StatusCode, code: &str) {
    assert_eq!((reply.status, text(&reply.json()["code"])), (status, code), "{}", reply.text());
}

pub(crate) async fn life(app: &TestApp) {
    let nobody = app.anonymous();
    author(app, "").await;
    let reply = publish(app).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let published = reply.json();
    assert_eq!((&published["version"], text(&published["publishing_handle"])), (&json!(1), "ann"));
    assert_eq!(published["safety_verification"]["status"], "clean");
    assert_eq!(published["design_checks"]["outcome"], "met");
    assert_eq!(published["authoring_notes"], json!([]));
    assert!(text(&published["verifier_exposure_notice"]).contains("cites"));
    let id = text(&published["template_id"]);
    // Everybody reads it, in every form of its name.
    for name in [id, "@ann/report", "@ann/report@v1", "%40ann%2Freport"] {
        let shown = nobody.get(&format!("/v1/templates/{name}")).await;
        assert_eq!(shown.status, StatusCode::OK, "{name}: {}", shown.text());
        let shown = shown.json();
        assert!(text(&shown["body"]).starts_with("> This is version 1 of"), "{shown:#}");
        assert_eq!(shown["verifier_snapshots"][0]["verifier_version"], 1);
    }
    let accept = [("accept", "text/markdown")];
    let raw = nobody.send("GET", "/v1/templates/@ann/report", Body::empty(), &accept).await;
    assert!(raw.text().contains("# Report"), "{}", raw.text());
    let own = app.admin().send("GET", "/v1/templates/@ann/report", Body::empty(), &accept).await;
    assert!(own.text().starts_with("# Report"), "{}", own.text());
    let file = nobody.get("/v1/templates/@ann/report/files?path=list.md").await.json();
    assert_eq!(file["content"], "one\n");
    let bytes = nobody.get("/v1/templates/@ann/report/files?path=list.md&format=raw").await;
    assert_eq!(bytes.text(), "one\n");
    let found = nobody.post("/v1/templates/search", &json!({ "query": "sales report" })).await;
    assert_eq!(found.json()["items"][0]["slug"], "report");
    assert_eq!(nobody.get("/v1/templates?search=REPORT").await.json()["items"][0]["id"], id);
    ending(app, id).await;
}

/// From its second version to its deletion.
async fn ending(app: &TestApp, id: &str) {
    let (admin, nobody) = (app.admin(), app.anonymous());
    let same = publish(app).await;
    assert_eq!((same.status, &same.json()["version"]), (StatusCode::CREATED, &json!(1)));
    let notes = json!({ "workflow_id": "report", "release_notes": "Says more." });
    assert_eq!(admin.post("/v1/templates", &notes).await.json()["version"], 2);
    let why = json!({ "message": "old" });
    let old = admin.post("/v1/templates/@ann/report/versions/1/deprecate", &why).await;
    assert_eq!(old.json()["deprecation_message"], "old");
    let first = nobody.get("/v1/templates/@ann/report@v1").await.json();
    assert!(text(&first["body"]).contains("deprecated: old"));
    let gone = admin.delete("/v1/templates/@ann/report/versions/2/permanent").await;
    assert_problem(&gone, StatusCode::CONFLICT, "conflict");
    let unpublished = admin.delete("/v1/templates/@ann/report/versions/2").await;
    assert_eq!(unpublished.json()["unpublished"], true);
    assert_eq!(nobody.get("/v1/templates/@ann/report").await.json()["version"], 1);
    let second = nobody.get("/v1/templates/@ann/report@v2").await;
    assert_problem(&second, StatusCode::NOT_FOUND, "not_found");
    assert_problem(
        &admin.delete("/v1/templates/@ann/report").await,
        StatusCode::CONFLICT,
        "conflict",
    );
    let archived = admin.post("/v1/templates/@ann/report/archive", &json!({})).await;
    assert_eq!(archived.json()["archived"], true);
    let hidden = nobody.get(&format!("/v1/templates/{id}")).await;
    assert_problem(&hidden, StatusCode::NOT_FOUND, "not_found");
    assert_eq!(admin.delete("/v1/templates/@ann/report").await.json()["deleted"], true);
    let absent = admin.get("/v1/templates/@ann/report").await;
    assert_problem(&absent, StatusCode::NOT_FOUND, "not_found");
}

#[tokio::test]
async fn a_template_is_screened_published_changed_and_deleted() {
    told(EngineLimits::default(), life).await;
}

#[tokio::test]
async fn a_blocked_workflow_is_not_published_and_a_flagged_one_is() {
    told(EngineLimits::default(), async |app: &TestApp| {
        let verifier = author(app, "HARM-ALL").await;
        let blocked = publish(app).await;
        let problem = blocked.json();
        assert_problem(&blocked, StatusCode::UNPROCESSABLE_ENTITY, "safety_verification_failed");
        assert!(!text(&problem["reasoning"]).is_empty());
        let run = format!("/v1/verifier-runs/{}", text(&problem["verifier_run_id"]));
        assert_eq!(app.admin().get(&run).await.json()["passed"], false);
        assert_eq!(app.admin().get("/v1/templates?filter=mine").await.json()["items"], json!([]));
        let token = |saved: &Value| text(&saved["token"]).to_owned();
        let view = |body: &'static str, token: Option<String>| {
            let verifier = verifier.clone();
            async move { save(app, &verifier, body, token.as_deref()).await }
        };
        let now = app.engine.workflow_get(&admin_caller(), &"report".parse_ref()).await.unwrap();
        let saved = view("NO-JUDGE", Some(now.reached.workflow.version_token)).await;
        let unheard = publish(app).await;
        assert_problem(
            &unheard,
            StatusCode::SERVICE_UNAVAILABLE,
            "safety_verification_unavailable",
        );
        view("CARELESS", Some(token(&saved))).await;
        let flagged = publish(app).await.json();
        assert_eq!(
            (&flagged["version"], &flagged["safety_verification"]["status"]),
            (&json!(1), &json!("flagged"))
        );
        let read = app.anonymous().get("/v1/templates/@ann/report").await.json();
        assert!(text(&read["body"]).contains("screen flagged it"), "{read:#}");
        let path = "/v1/templates/@ann/report/safety-check";
        let checked = app.admin().post(path, &json!({})).await.json();
        assert_eq!(
            (&checked["status"], &checked["advisory"]["verdict"]),
            (&json!("flagged"), &json!("failed"))
        );
    })
    .await;
}

trait ParseRef {
    fn parse_ref(&self) -> jurat_core::workflow::WorkflowRef;
}

impl ParseRef for str {
    fn parse_ref(&self) -> jurat_core::workflow::WorkflowRef {
        jurat_core::workflow::WorkflowRef::parse(self).unwrap()
    }
}

#[tokio::test]
async fn a_handle_is_needed_and_an_outcome_too() {
    told(EngineLimits::default(), async |app: &TestApp| {
        let absent = publish(app).await;
        assert_problem(&absent, StatusCode::CONFLICT, "handle_not_claimed");
        author(app, "").await;
        let missing = json!({ "workflow_id": "poem" });
        let unknown = app.admin().post("/v1/templates", &missing).await;
        assert_problem(&unknown, StatusCode::NOT_FOUND, "not_found");
    })
    .await;
}

async fn run(caller: &TestCaller<'_>, verifier: &str, more: &Value) -> TestReply {
    let mut body = json!({ "inputs": { "text": "It rains, says the almanac." } });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    caller.post(&format!("/v1/verifiers/{verifier}/runs"), &body).await
}

pub(crate) async fn anonymous_runs(app: &TestApp) {
    let verifier = author(app, "").await;
    let nobody = app.anonymous().at("192.0.2.7");
    let absent = run(&nobody, "0198c1f0-0000-7000-8000-000000000001", &json!({})).await;
    let hidden = run(&nobody, &verifier, &json!({ "version": 1 })).await;
    assert_problem(&hidden, StatusCode::NOT_FOUND, "not_found");
    let plain = |reply: &TestReply| reply.json()["detail"].to_string().len();
    assert!(plain(&hidden).abs_diff(plain(&absent)) <= 2, "{} {}", hidden.text(), absent.text());
    assert_problem(
        &run(&nobody, "cites", &json!({})).await,
        StatusCode::UNAUTHORIZED,
        "auth_required",
    );
    assert_eq!(publish(app).await.status, StatusCode::CREATED);
    let reply = run(&nobody, &verifier, &json!({ "version": 1 })).await;
    assert_eq!(reply.status, StatusCode::CREATED, "{}", reply.text());
    let ran = reply.json();
    assert_eq!((&ran["passed"], &ran["verifier_run_id"]), (&json!(true), &Value::Null));
    assert!(!text(&ran["anonymous_verifier_run_id"]).is_empty());
    assert!(!reply.text().contains("Return passed=true"), "the criterion is nobody's business");
    // Another user may run the same pair, and see no more than that.
    let bob = app.caller("bob", &Scope::OWN).await;
    let grant = json!({ "amount_usd": "1.00" });
    app.admin().post("/v1/accounts/acct_bob/grants", &grant).await;
    let other = run(&bob, &verifier, &json!({ "version": 1 })).await;
    assert_eq!(other.status, StatusCode::CREATED, "{}", other.text());
    assert_problem(
        &bob.get(&format!("/v1/verifiers/{verifier}")).await,
        StatusCode::NOT_FOUND,
        "not_found",
    );
    assert_problem(
        &run(&nobody, &verifier, &json!({ "version": 2 })).await,
        StatusCode::NOT_FOUND,
        "not_found",
    );
    let system = json!({ "inputs": { "content": "List the files." } });
    let system = nobody.post("/v1/verifiers/system:safety-block/runs", &system).await;
    assert_eq!(system.status, StatusCode::CREATED, "{}", system.text());
    serving(app, &verifier, &nobody).await;
}

/// A serving verifier is not deleted, and a revoked one does not serve.
async fn serving(app: &TestApp, verifier: &str, nobody: &TestCaller<'_>) {
    let erase = format!("/v1/verifiers/{verifier}/permanent");
    let refused = app.admin().delete(&erase).await;
    assert_problem(&refused, StatusCode::CONFLICT, "conflict");
    assert!(refused.text().contains("@ann/report@v1"), "{}", refused.text());
    let forked =
        app.admin().post("/v1/templates/fork", &json!({ "identifier": "@ann/report" })).await;
    assert_eq!(forked.status, StatusCode::OK, "{}", forked.text());
    let forked = forked.json();
    assert_eq!(forked["slug"], "report-2");
    let own = text(&forked["verifiers"][0]["verifier_id"]);
    let shown = app.admin().get(&format!("/v1/verifiers/{own}")).await.json();
    assert_eq!(shown["name"], "cites-2");
    app.admin().delete(&format!("/v1/verifiers/{verifier}")).await;
    let revoked = run(nobody, verifier, &json!({ "version": 1 })).await;
    assert_problem(&revoked, StatusCode::NOT_FOUND, "not_found");
    app.admin().delete("/v1/templates/@ann/report/versions/1").await;
    assert_eq!(app.admin().delete(&erase).await.status, StatusCode::OK);
}

#[tokio::test]
async fn only_published_verifiers_run_without_a_key() {
    told(EngineLimits::default(), anonymous_runs).await;
}

#[tokio::test]
async fn a_visitor_has_little_credit_and_all_share_a_limit() {
    let limits = EngineLimits {
        anonymous_grant_micros: 100,
        anonymous_day_micros: 2_040,
        ..EngineLimits::default()
    };
    told(limits, async |app: &TestApp| {
        let one = app.anonymous().at("192.0.2.1");
        let ask = async |caller: &TestCaller<'_>, number: u32| {
            let body = json!({ "inputs": { "content": format!("step {number}") }, "fresh": true });
            caller.post("/v1/verifiers/system:safety-block/runs", &body).await
        };
        let mut done = 0;
        let refused = loop {
            let reply = ask(&one, done).await;
            if reply.status != StatusCode::CREATED {
                break reply;
            }
            done += 1;
        };
        assert!(0 < done, "{}", refused.text());
        assert_problem(&refused, StatusCode::PAYMENT_REQUIRED, "budget_exhausted");
        // Another address has credit of its own, until the daily limit is reached.
        let other = app.anonymous().at("192.0.2.2");
        assert_eq!(ask(&other, 1).await.status, StatusCode::CREATED);
        let mut last = None;
        for number in 0..200 {
            let caller = app.anonymous().at(&format!("192.0.2.{}", 10 + number));
            let reply = ask(&caller, number).await;
            if reply.status != StatusCode::CREATED {
                last = Some(reply);
                break;
            }
        }
        let capped = last.expect("the cap was never reached");
        assert_problem(&capped, StatusCode::PAYMENT_REQUIRED, "anonymous_daily_cap");
        assert!(text(&capped.json()["resets_at"]).ends_with("T00:00:00Z"));
        // Callers with a key are not counted.
        assert_eq!(ask(&app.admin(), 1).await.status, StatusCode::CREATED);
    })
    .await;
}

#[tokio::test]
async fn a_wrong_key_is_not_treated_as_no_key() {
    told(EngineLimits::default(), async |app: &TestApp| {
        let forged = app.with_key("jrt_live_x").get("/v1/templates").await;
        assert_problem(&forged, StatusCode::UNAUTHORIZED, "auth_required");
        let key = [("idempotency-key", "k")];
        let body = json!({ "inputs": { "content": "x" } });
        let kept =
            app.anonymous().post_with("/v1/verifiers/system:safety-block/runs", &body, &key).await;
        assert_problem(&kept, StatusCode::BAD_REQUEST, "validation_error");
    })
    .await;
}

#[tokio::test]
async fn a_former_handle_redirects() {
    told(EngineLimits::default(), async |app: &TestApp| {
        author(app, "").await;
        publish(app).await;
        let renamed = app.admin().post("/v1/me/rename-handle", &json!({ "handle": "anna" })).await;
        assert_eq!(renamed.status, StatusCode::OK, "{}", renamed.text());
        let moved = app.anonymous().get("/v1/templates/@ann/report@v1?version=1").await;
        assert_eq!(moved.status, StatusCode::FOUND);
        assert_eq!(moved.headers["location"], "/v1/templates/@anna/report@v1?version=1");
        let file = app.anonymous().get("/v1/templates/@ann/report/files?path=list.md").await;
        assert_eq!(file.headers["location"], "/v1/templates/@anna/report/files?path=list.md");
        assert!(TemplateRef::parse("@anna/report@v1").is_some());
    })
    .await;
}

#[tokio::test]
async fn agents_get_instructions() {
    told(EngineLimits::default(), async |app: &TestApp| {
        for path in ["design/workflow", "design/skill", "audit/workflow", "audit/skill"] {
            let pack = app.admin().get(&format!("/v1/{path}-prompt")).await.json();
            assert!(text(&pack["skill_md"]).starts_with("# "), "{path}");
            assert!(!pack["references"].as_object().unwrap().is_empty(), "{path}");
        }
        author(app, "").await;
        let admin = app.admin();
        let taught = admin.post("/v1/workflows/report/teach", &json!({})).await.json();
        assert!(text(&taught["skill_md"]).contains("`Report`"));
        assert_eq!(taught["workflow_id"], taught["skill_id"]);
        let looped =
            admin.post("/v1/skills/report/optimize?max_iterations=7", &json!({})).await.json();
        assert_eq!(looped["max_iterations"], 7);
        assert!(text(&looped["skill_md"]).contains("at most 7 iterations"));
        let usual = admin.post("/v1/skills/report/optimize-description", &json!({})).await.json();
        assert_eq!(usual["max_iterations"], 10);
        let wrong = admin.post("/v1/skills/report/optimize?max_iterations=0", &json!({})).await;
        assert_problem(&wrong, StatusCode::BAD_REQUEST, "validation_error");
        let screened = admin.post("/v1/workflows/report/safety-check", &json!({})).await.json();
        assert_eq!(
            (&screened["status"], &screened["resource_type"]),
            (&json!("clean"), &json!("workflow"))
        );
        let absent = admin.post("/v1/workflows/poem/audit", &json!({})).await;
        assert_problem(&absent, StatusCode::NOT_FOUND, "not_found");
    })
    .await;
}

#[tokio::test]
async fn a_reader_learns_that_only_the_owner_publishes() {
    told(EngineLimits::default(), async |app| {
        author(app, "").await;
        let bob = app.caller("bob", &Scope::OWN).await;
        let claim = Body::from(json!({ "handle": "bob" }).to_string());
        bob.send("PATCH", "/v1/me", claim, &[]).await;
        let order = json!({ "workflow_id": workflow_id(app).await });
        let unseen = bob.post("/v1/templates", &order).await;
        assert_eq!(unseen.status, StatusCode::NOT_FOUND, "{}", unseen.text());
        let grant = json!({ "grantee_email_or_at_team_handle": "@bob", "role": "admin" });
        app.admin().post("/v1/workflows/report/grants", &grant).await;
        let seen = bob.post("/v1/templates", &order).await;
        assert_eq!(seen.status, StatusCode::FORBIDDEN, "{}", seen.text());
        assert!(text(&seen.json()["detail"]).contains("the role `owner`"), "{}", seen.text());
    })
    .await;
}

async fn workflow_id(app: &TestApp) -> String {
    text(&app.admin().get("/v1/workflows/report").await.json()["id"]).to_owned()
}

#[tokio::test]
async fn a_template_is_found_by_its_body_and_offered_to_others_alone() {
    told(EngineLimits::default(), async |app| {
        author(app, "Ask the harbour master.").await;
        let published = app.admin().post("/v1/templates", &json!({ "skill_id": "report" })).await;
        assert_eq!(published.status, StatusCode::CREATED, "{}", published.text());
        let nobody = app.anonymous();
        let found =
            nobody.post("/v1/templates/search", &json!({ "query": "Harbour" })).await.json();
        assert_eq!(found["items"][0]["match_reason"], "body: harbour", "{found}");
        assert_eq!(found["search_mode"], "lexical");
        let listed = nobody.get("/v1/templates?search=harbour").await.json();
        assert_eq!(listed["items"][0]["slug"], "report");
        // The names of fields are not part of the text.
        let none =
            nobody.post("/v1/templates/search", &json!({ "query": "advisory" })).await.json();
        assert_eq!(none["items"], json!([]));

        let to = |whom: &str| json!({ "new_owner_user_id_or_email": whom });
        let address = "/v1/templates/@ann/report/transfer-ownership";
        let own = app.admin().post(address, &to("@ann")).await;
        assert_eq!(own.status, StatusCode::OK, "{}", own.text());
        assert_eq!(own.json()["transferred"], false);
        assert_eq!(own.json()["invitation_id"], Value::Null);
        assert_eq!(own.json()["owner_user_id"], "acct_admin");
        let offered = app.admin().post(address, &to("eve@example.com")).await.json();
        assert_eq!(offered["target_label"], "@ann/report");
        let mail = app.outbox.next_to("eve@example.com").await;
        assert!(mail.text.contains("@ann offers you the template @ann/report"), "{}", mail.text);
        assert!(mail.text.contains(text(&offered["invitation_id"])), "{}", mail.text);
    })
    .await;
}

#[tokio::test]
async fn a_fork_names_verifiers_of_its_own_and_none_of_its_author() {
    told(EngineLimits::default(), async |app: &TestApp| {
        let verifier = author(app, "").await;
        assert_eq!(publish(app).await.status, StatusCode::CREATED);
        let bob = app.caller("bob", &Scope::OWN).await;
        let order = json!({ "identifier": "@ann/report" });
        let forked = bob.post("/v1/templates/fork", &order).await.json();
        let own = text(&forked["verifiers"][0]["verifier_id"]);
        let path = format!("/v1/workflows/{}", text(&forked["workflow_id"]));
        let shown = bob.get(&path).await;
        assert!(shown.text().contains(own), "{}", shown.text());
        assert!(!shown.text().contains(&verifier), "{}", shown.text());
    })
    .await;
}

#[tokio::test]
async fn a_key_that_reads_no_workflows_sees_what_everybody_sees() {
    told(EngineLimits::default(), async |app: &TestApp| {
        author(app, "").await;
        assert_eq!(publish(app).await.status, StatusCode::CREATED);
        app.admin().post("/v1/templates/@ann/report/archive", &json!({})).await;
        let few = json!({ "name": "few", "scopes": ["rounds:read"] });
        let few = app.admin().post("/v1/api-keys", &few).await.json();
        let few = app.with_key(text(&few["key"]));
        let hidden = few.get("/v1/templates/@ann/report").await;
        assert_problem(&hidden, StatusCode::NOT_FOUND, "not_found");
        let all = "/v1/templates?include_archived=true";
        assert_eq!(few.get(all).await.json()["items"], json!([]));
        assert_eq!(app.admin().get(all).await.json()["items"].as_array().unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_template_whose_verifier_was_revoked_says_so() {
    told(EngineLimits::default(), async |app| {
        let verifier = author(app, "").await;
        publish(app).await;
        let at = "/v1/templates/@ann/report";
        let before = app.anonymous().get(at).await.json();
        let call = format!("POST /v1/verifiers/{verifier}/runs");
        assert!(text(&before["run_guidance"]).contains(&call), "{before:#}");
        assert_eq!(before["verifier_snapshots"][0]["revoked"], false);
        app.admin().send("DELETE", "/v1/verifiers/cites", Body::empty(), &[]).await;
        let after = app.anonymous().get(at).await.json();
        assert_eq!(after["verifier_snapshots"][0]["revoked"], true);
        for read in [text(&after["run_guidance"]), text(&after["body"])] {
            assert!(!read.contains(&call), "{read}");
            assert!(read.contains("were revoked by their owner"), "{read}");
            assert!(read.contains("no longer be run: cites."), "{read}");
        }
    })
    .await;
}
