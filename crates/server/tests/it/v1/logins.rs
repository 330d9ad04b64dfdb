//! `/v1/register`, `/v1/login`, and device logins.

use std::net::IpAddr;

use axum::body::Body;
use http::StatusCode;
use jurat_core::account::{caller::Scope, login::LoginPurpose};
use jurat_testkit::app::{TestApp, TestReply};
use serde_json::{Value, json};

const EMAIL: &str = "ann@example.com";

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[track_caller]
fn assert_problem(reply: &TestReply, status: u16, code: &str) {
    let found = (reply.status.as_u16(), text(&reply.json()["code"]).to_owned());
    assert_eq!(found, (status, code.to_owned()), "{}", reply.text());
}

async fn ask(app: &TestApp, kind: &str, email: &str) -> TestReply {
    app.anonymous().post(&format!("/v1/{kind}"), &json!({ "email": email })).await
}

async fn verify(app: &TestApp, kind: &str, email: &str, code: &str) -> TestReply {
    let body = json!({ "email": email, "code": code });
    app.anonymous().post(&format!("/v1/{kind}/verify"), &body).await
}

/// Registers an address and returns its key.
pub(crate) async fn registered(app: &TestApp, email: &str) -> String {
    assert_eq!(ask(app, "register", email).await.status, StatusCode::ACCEPTED);
    let code = app.outbox.code_to(email).await;
    let entered = verify(app, "register", email, &code).await;
    assert_eq!(entered.status, StatusCode::OK, "{}", entered.text());
    text(&entered.json()["api_key"]).to_owned()
}

#[tokio::test]
async fn a_user_registers_and_logs_in_with_mailed_codes() {
    let app = TestApp::new().await;
    let key = registered(&app, "Ann@Example.com").await;
    let me = app.with_key(&key).get("/v1/me").await.json();
    assert_eq!(text(&me["email"]), EMAIL);
    let own: Vec<&str> = Scope::OWN.iter().map(|scope| scope.as_str()).collect();
    assert_eq!(me["scopes"], json!(own));
    assert!(text(&me["key"]["name"]).starts_with("login 2026-09-21"), "{me}");
    ask(&app, "login", EMAIL).await;
    let code = app.outbox.code_to(EMAIL).await;
    let entered = verify(&app, "login", EMAIL, &code).await;
    assert_eq!(entered.headers["cache-control"], "no-store");
    let second = text(&entered.json()["api_key"]).to_owned();
    assert_ne!(second, key);
    let again = app.with_key(&second).get("/v1/me").await.json();
    assert_eq!(again["id"], me["id"], "the same account");
    assert_problem(&verify(&app, "login", EMAIL, &code).await, 401, "invalid_credentials");
}

#[tokio::test]
async fn the_answer_is_the_same_for_known_and_unknown_addresses() {
    let app = TestApp::new().await;
    registered(&app, EMAIL).await;
    for kind in ["register", "login"] {
        let known = ask(&app, kind, EMAIL).await;
        let unknown = ask(&app, kind, "nobody@example.com").await;
        assert_eq!((known.status, known.text()), (unknown.status, unknown.text()), "{kind}");
    }
    let known = verify(&app, "login", EMAIL, "00000000").await;
    let unknown = verify(&app, "login", "other@example.com", "00000000").await;
    assert_problem(&known, 401, "invalid_credentials");
    assert_eq!(known.text(), unknown.text());
    // Only known addresses, and new ones that register, get mail; the shutdown of the engine waits
    // for all of it.
    ask(&app, "login", "third@example.com").await;
    app.engine.shutdown().await;
    let mut to = app.outbox.addressees();
    to.sort();
    assert_eq!(to, [EMAIL, "nobody@example.com"], "a code that was just sent is not sent again");
}

#[tokio::test]
async fn a_code_is_tried_five_times() {
    let app = TestApp::new().await;
    ask(&app, "register", EMAIL).await;
    let code = app.outbox.code_to(EMAIL).await;
    let wrong = if code == "00000000" { "00000001" } else { "00000000" };
    for _ in 0..5 {
        assert_problem(&verify(&app, "register", EMAIL, wrong).await, 401, "invalid_credentials");
    }
    assert_problem(&verify(&app, "register", EMAIL, &code).await, 401, "invalid_credentials");
}

#[tokio::test]
async fn a_code_expires_and_can_be_typed_in_any_form() {
    let app = TestApp::new().await;
    ask(&app, "register", EMAIL).await;
    let code = app.outbox.code_to(EMAIL).await;
    app.clock.advance_ms(600_000);
    assert_problem(&verify(&app, "register", EMAIL, &code).await, 401, "invalid_credentials");
    ask(&app, "register", EMAIL).await;
    let code = app.outbox.code_to(EMAIL).await;
    let typed = format!(" {}-{} ", &code[..4], &code[4..]);
    assert_eq!(verify(&app, "register", EMAIL, &typed).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_network_address_is_limited() {
    let app = TestApp::new().await;
    let from: IpAddr = "192.0.2.7".parse().unwrap();
    let mut ends = Vec::new();
    for number in 0..61 {
        let to = format!("user{number}@example.com");
        let end = app.engine.login_begin(LoginPurpose::Login, &to, Some(from)).await;
        ends.push(end.is_ok());
    }
    assert_eq!(ends.iter().filter(|is_ok| **is_ok).count(), 60);
    let other: IpAddr = "192.0.2.8".parse().unwrap();
    let end = app.engine.login_begin(LoginPurpose::Login, "x@example.com", Some(other)).await;
    assert!(end.is_ok());
}

#[tokio::test]
async fn a_stranger_cannot_lock_anybody_out() {
    let app = TestApp::new().await;
    let stranger = || app.anonymous().at("192.0.2.7");
    let ann = || app.anonymous().at("192.0.2.8");
    let (asked, wrong) =
        (json!({ "email": EMAIL }), json!({ "email": EMAIL, "code": "0000000000" }));
    assert_eq!(ann().post("/v1/register", &asked).await.status, StatusCode::ACCEPTED);
    let code = app.outbox.code_to(EMAIL).await;
    // Neither requests for codes nor wrong codes invalidate Ann's code.
    for _ in 0..20 {
        stranger().post("/v1/login", &asked).await;
        stranger().post("/v1/register", &asked).await;
        stranger().post("/v1/register/verify", &wrong).await;
    }
    let right = json!({ "email": EMAIL, "code": code });
    let refused = stranger().post("/v1/register/verify", &right).await;
    assert!(refused.status.is_client_error(), "who tried so often tries no more");
    let entered = ann().post("/v1/register/verify", &right).await;
    assert_eq!(entered.status, StatusCode::OK, "{}", entered.text());
    app.engine.shutdown().await;
    assert_eq!(app.outbox.addressees(), Vec::<String>::new(), "she was sent one code");
}

#[tokio::test]
async fn polls_of_programs_and_visits_are_counted() {
    let app = TestApp::new().await;
    let here = || app.anonymous().at("192.0.2.7");
    let fields = "grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=unknown";
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    let mut last = String::new();
    for _ in 0..601 {
        last = here().send("POST", "/auth/device/token", Body::from(fields), &kind).await.text();
    }
    assert!(last.contains("slow_down"), "{last}");
    let search = json!({ "query": "report" });
    let mut last = here().post("/v1/templates/search", &search).await;
    for _ in 0..600 {
        last = here().post("/v1/templates/search", &search).await;
    }
    assert_problem(&last, 429, "rate_limited");
    let other = app.anonymous().at("192.0.2.8").post("/v1/templates/search", &search).await;
    assert_eq!(other.status, StatusCode::OK, "{}", other.text());
}

#[tokio::test]
async fn a_wrong_address_is_named() {
    let app = TestApp::new().await;
    for email in ["ann", "ann@", "a b@example.com"] {
        let reply = ask(&app, "register", email).await;
        assert_problem(&reply, 400, "validation_error");
        assert_eq!(reply.json()["field"], "email");
    }
    assert_problem(&app.anonymous().post("/v1/login", &json!({})).await, 400, "validation_error");
}

#[tokio::test]
async fn an_invitation_finds_the_account_that_is_made_for_its_address() {
    let app = TestApp::new().await;
    let ann = app.with_key(&registered(&app, EMAIL).await);
    let body = Body::from(json!({ "handle": "ann" }).to_string());
    ann.send("PATCH", "/v1/me", body, &[]).await;
    ann.post("/v1/teams", &json!({ "handle": "crew" })).await;
    let bob = json!({ "user_identifier": "bob@example.com" });
    let offer = ann.post("/v1/teams/crew/members", &bob).await.json();
    app.outbox.next_to("bob@example.com").await;
    let bob = app.with_key(&registered(&app, "bob@example.com").await);
    let listed = bob.get("/v1/invitations").await.json();
    assert_eq!(listed["items"][0]["id"], offer["invitation_id"]);
    let path = format!("/v1/invitations/{}/accept", text(&offer["invitation_id"]));
    app.clock.advance_ms(1_000);
    assert_eq!(bob.post(&path, &json!({})).await.status, StatusCode::OK);
    let members = bob.get("/v1/teams/crew/members").await.json();
    assert_eq!(members["items"][1]["email"], "bob@example.com");
}

const FORM: [(&str, &str); 1] = [("content-type", "application/x-www-form-urlencoded")];

async fn form(app: &TestApp, path: &str, fields: &str) -> TestReply {
    app.anonymous().send("POST", path, Body::from(fields.to_owned()), &FORM).await
}

async fn poll(app: &TestApp, device: &Value) -> TestReply {
    app.clock.advance_ms(5_000);
    let code = text(&device["device_code"]);
    let grant = "urn:ietf:params:oauth:grant-type:device_code";
    let fields = format!("grant_type={grant}&client_id=jurat&device_code={code}");
    form(app, "/auth/device/token", &fields).await
}

async fn begun(app: &TestApp) -> Value {
    form(app, "/auth/device/authorize", "client_id=jurat").await.json()
}

#[tokio::test]
async fn a_program_is_approved_with_a_key_and_gets_its_own() {
    let app = TestApp::new().await;
    let ann = app.with_key(&registered(&app, EMAIL).await);
    let device = begun(&app).await;
    let pending = poll(&app, &device).await;
    assert_eq!(pending.status, StatusCode::BAD_REQUEST);
    assert_eq!(pending.json()["error"], "authorization_pending");
    let approval = json!({ "user_code": device["user_code"] });
    let few = app.caller("few", &[Scope::KeysWrite]).await;
    assert_problem(&few.post("/v1/auth/approve", &approval).await, 403, "forbidden");
    assert_eq!(ann.post("/v1/auth/approve", &approval).await.json()["approved"], true);
    assert_problem(&ann.post("/v1/auth/approve", &approval).await, 404, "not_found");
    let token = poll(&app, &device).await.json();
    let bearer = app.with_key(text(&token["access_token"]));
    let exchange = json!({ "hostname": "my laptop/[1]" });
    let made = bearer.post("/v1/auth/exchange", &exchange).await.json();
    let me = app.with_key(text(&made["api_key"])).get("/v1/me").await.json();
    assert_eq!(text(&me["email"]), EMAIL);
    assert_eq!(me["key"]["id"], made["key_id"]);
    assert!(text(&me["key"]["name"]).starts_with("login mylaptop1 2026-09-21"), "{me}");
    let again = bearer.post("/v1/auth/exchange", &exchange).await;
    assert_problem(&again, 401, "invalid_credentials");
    assert_eq!(poll(&app, &device).await.json()["error"], "expired_token");
    let none = app.anonymous().post("/v1/auth/exchange", &exchange).await;
    assert_problem(&none, 401, "auth_required");
}

#[tokio::test]
async fn a_program_is_denied() {
    let app = TestApp::new().await;
    let device = begun(&app).await;
    let answer = json!({ "user_code": device["user_code"], "approve": false });
    assert_eq!(app.admin().post("/v1/auth/approve", &answer).await.json()["approved"], false);
    assert_eq!(poll(&app, &device).await.json()["error"], "access_denied");
}

#[tokio::test]
async fn the_page_approves_a_program_with_a_key_or_a_code() {
    let app = TestApp::new().await;
    let key = registered(&app, EMAIL).await;
    let device = begun(&app).await;
    let user_code = text(&device["user_code"]).to_owned();
    let page = app.anonymous().get(&format!("/auth/device?user_code={user_code}")).await;
    assert!(page.text().contains(&user_code) && !page.text().contains("<script"));
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert_eq!(page.headers["x-frame-options"], "DENY");
    let wrong = format!("user_code={user_code}&key=x&decision=approve");
    let refused = form(&app, "/auth/device", &wrong).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    // The new key may do everything, so a key that may not cannot approve it.
    let few = json!({ "name": "few", "scopes": ["rounds:read"] });
    let few = app.with_key(&key).post("/v1/api-keys", &few).await.json();
    let few = format!("user_code={user_code}&key={}&decision=approve", text(&few["key"]));
    let refused = form(&app, "/auth/device", &few).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
    let fields = format!("user_code={user_code}&key={key}&decision=approve");
    let cross = [FORM[0], ("origin", "https://evil.example"), ("host", "localhost")];
    let body = Body::from(fields.clone());
    let refused = app.anonymous().send("POST", "/auth/device", body, &cross).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(poll(&app, &device).await.json()["error"], "authorization_pending");
    let done = form(&app, "/auth/device", &fields).await;
    assert!(done.text().contains("is approved"), "{}", done.text());
    assert!(poll(&app, &device).await.json()["access_token"].is_string());

    let device = begun(&app).await;
    let user_code = text(&device["user_code"]).to_owned();
    let address = "ann%40example.com";
    let asked = form(&app, "/auth/device", &format!("user_code={user_code}&email={address}")).await;
    assert!(asked.text().contains("we have sent it a code"), "{}", asked.text());
    let code = app.outbox.code_to(EMAIL).await;
    let fields = format!("user_code={user_code}&email={address}&code={code}&decision=approve");
    let done = form(&app, "/auth/device", &fields).await;
    assert!(done.text().contains("is approved"), "{}", done.text());
    assert!(poll(&app, &device).await.json()["access_token"].is_string());
}

#[tokio::test]
async fn the_page_echoes_nothing_executable() {
    let app = TestApp::new().await;
    let hostile = "%22%3E%3Cscript%3Ealert(1)%3C/script%3E";
    let page = app.anonymous().get(&format!("/auth/device?user_code={hostile}")).await;
    assert!(!page.text().contains("<script"), "{}", page.text());
    let fields = format!("user_code={hostile}&email={hostile}&key={hostile}&decision=approve");
    let page = form(&app, "/auth/device", &fields).await;
    assert!(!page.text().contains("<script"), "{}", page.text());
}

#[tokio::test]
async fn clients_find_the_login_endpoints_where_they_called() {
    let app = TestApp::new().await;
    let path = "/.well-known/goodeye-client-config";
    let host = [("host", "jurat.example:5872")];
    let config = app.anonymous().send("GET", path, Body::empty(), &host).await.json();
    let uri = text(&config["workos_device_authorization_uri"]);
    assert_eq!(uri, "http://jurat.example:5872/auth/device/authorize");
    let hostile = [("host", "a/b?c")];
    let config = app.anonymous().send("GET", path, Body::empty(), &hostile).await.json();
    assert_eq!(text(&config["workos_token_uri"]), "http://localhost/auth/device/token");
}

#[tokio::test]
async fn an_invited_person_gets_a_mail_with_or_without_an_account() {
    let app = TestApp::new().await;
    let key = registered(&app, EMAIL).await;
    registered(&app, "bob@example.com").await;
    let ann = app.with_key(&key);
    let claim = Body::from(json!({ "handle": "ann" }).to_string());
    ann.send("PATCH", "/v1/me", claim, &[]).await;
    ann.post("/v1/teams", &json!({ "handle": "crew" })).await;
    for whom in ["bob@example.com", "new@example.com"] {
        let body = json!({ "user_identifier": whom });
        let headers = [("idempotency-key", whom)];
        let sent = ann.post_with("/v1/teams/crew/members", &body, &headers).await.json();
        let mail = app.outbox.next_to(whom).await;
        assert!(
            mail.text.contains("@ann offers you membership in the team @crew"),
            "{}",
            mail.text
        );
        let accept = format!("jurat invitations accept {}", text(&sent["invitation_id"]));
        assert!(mail.text.contains(&accept), "{}", mail.text);
        assert!(mail.text.contains("until 2026-10-05"), "{}", mail.text);
        ann.post_with("/v1/teams/crew/members", &body, &headers).await;
    }
    // The name of a workflow is not mailed to anybody; a repeated request mails nothing.
    let workflow = json!({ "name": "Buy at evil.example", "description": "d", "body": "b" });
    ann.post("/v1/workflows", &workflow).await;
    let to = json!({ "new_owner_user_id_or_email": "new@example.com" });
    ann.post("/v1/workflows/buy-at-evil-example/transfer-ownership", &to).await;
    let mail = app.outbox.next_to("new@example.com").await;
    assert!(mail.text.contains("offers you the workflow"), "{}", mail.text);
    assert!(!mail.text.contains("evil"), "{}", mail.text);
}

#[tokio::test]
async fn only_the_key_of_a_login_can_revoke_itself() {
    let app = TestApp::new().await;
    let key = registered(&app, EMAIL).await;
    let ann = app.with_key(&key);
    let made = ann.post("/v1/api-keys", &json!({ "name": "laptop" })).await.json();
    let laptop = app.with_key(text(&made["key"]));
    let own = laptop.delete(&format!("/v1/api-keys/{}", text(&made["id"]))).await;
    assert_problem(&own, 409, "conflict");
    let id = text(&ann.get("/v1/me").await.json()["key"]["id"]).to_owned();
    let ended = ann.delete(&format!("/v1/api-keys/{id}")).await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.text());
    assert_problem(&ann.get("/v1/me").await, 401, "auth_required");
    assert_eq!(laptop.get("/v1/me").await.status, StatusCode::OK);
}
