//! Handles, `/v1/teams` and `/v1/invitations`.

use axum::body::Body;
use http::StatusCode;
use insta::assert_json_snapshot;
use jurat_core::account::caller::Scope;
use jurat_testkit::app::{TestApp, TestCaller, TestReply};
use serde_json::{Value, json};

const DAY_MS: i64 = 86_400_000;

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[track_caller]
fn assert_problem(reply: &TestReply, status: u16, code: &str) {
    let found = (reply.status.as_u16(), text(&reply.json()["code"]).to_owned());
    assert_eq!(found, (status, code.to_owned()), "{}", reply.text());
}

async fn claim(caller: &TestCaller<'_>, handle: &str) -> TestReply {
    let body = Body::from(json!({ "handle": handle }).to_string());
    caller.send("PATCH", "/v1/me", body, &[]).await
}

async fn rename(caller: &TestCaller<'_>, handle: &str) -> TestReply {
    caller.post("/v1/me/rename-handle", &json!({ "handle": handle })).await
}

/// A user with a handle.
async fn user<'a>(app: &'a TestApp, name: &str) -> TestCaller<'a> {
    let caller = app.caller(name, &[Scope::AccountWrite]).await;
    assert_eq!(claim(&caller, name).await.status, StatusCode::OK);
    caller
}

async fn invite(caller: &TestCaller<'_>, team: &str, whom: &str) -> TestReply {
    let body = json!({ "user_identifier": whom });
    caller.post(&format!("/v1/teams/{team}/members"), &body).await
}

async fn answer(caller: &TestCaller<'_>, invitation: &Value, word: &str) -> TestReply {
    let id = text(&invitation["invitation_id"]);
    caller.post(&format!("/v1/invitations/{id}/{word}"), &json!({})).await
}

async fn members(caller: &TestCaller<'_>, team: &str) -> Vec<(String, String)> {
    let reply = caller.get(&format!("/v1/teams/{team}/members")).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    let items = reply.json()["items"].as_array().unwrap().clone();
    let pair = |it: &Value| (text(&it["user_id"]).to_owned(), text(&it["role"]).to_owned());
    items.iter().map(pair).collect()
}

#[tokio::test]
async fn an_account_claims_a_handle_and_is_known_by_it() {
    let app = TestApp::new().await;
    let ann = app.caller("ann", &[Scope::AccountWrite]).await;
    assert_problem(&rename(&ann, "ann").await, 409, "handle_not_claimed");
    for wrong in ["an", "Ann", "-ann", "a_n", "ann smith"] {
        let reply = claim(&ann, wrong).await;
        assert_problem(&reply, 400, "handle_invalid");
        assert_eq!(reply.json()["field"], "handle");
    }
    assert_problem(&claim(&ann, "admin").await, 409, "handle_reserved");
    let claimed = claim(&ann, "ann").await;
    assert_json_snapshot!(claimed.json(), @r#"
    {
      "claimed_at": "2026-09-21T14:13:20Z",
      "handle": "ann"
    }
    "#);
    let me = ann.get("/v1/me").await.json();
    assert_eq!((text(&me["handle"]), text(&me["email"])), ("ann", "acct_ann@jurat.invalid"));
    assert_problem(&claim(&ann, "anna").await, 409, "handle_already_claimed");
    let bob = app.caller("bob", &[Scope::AccountWrite]).await;
    assert_problem(&claim(&bob, "ann").await, 409, "handle_taken");
    assert_problem(&bob.post("/v1/me/rename-handle", &json!({})).await, 400, "validation_error");
}

#[tokio::test]
async fn a_handle_is_renamed_three_times_a_year_and_not_too_soon() {
    let app = TestApp::new().await;
    let ann = user(&app, "ann").await;
    assert_eq!(rename(&ann, "anna").await.status, StatusCode::OK);
    let soon = rename(&ann, "anne").await;
    assert_problem(&soon, 429, "handle_rename_too_soon");
    assert!(text(&soon.json()["detail"]).contains("90 days"), "{}", soon.text());
    app.clock.advance_ms(120 * DAY_MS);
    for handle in ["anne", "annie", "anni"] {
        assert_eq!(rename(&ann, handle).await.status, StatusCode::OK, "{handle}");
        app.clock.advance_ms(91 * DAY_MS);
    }
    assert_problem(&rename(&ann, "annika").await, 429, "handle_rename_limit_exceeded");
}

#[tokio::test]
async fn a_team_is_made_joined_and_left() {
    let app = TestApp::new().await;
    let (ann, bob) = (user(&app, "ann").await, user(&app, "bob").await);
    let nameless = app.caller("nameless", &[Scope::AccountWrite]).await;
    let crew = json!({ "handle": "crew" });
    assert_problem(&nameless.post("/v1/teams", &crew).await, 409, "handle_not_claimed");
    let made = ann.post("/v1/teams", &crew).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text());
    let mut team = made.json();
    assert!(text(&team["team_id"].take()).starts_with("acct_"));
    assert_json_snapshot!(team, @r#"
    {
      "created_at": "2026-09-21T14:13:20Z",
      "handle": "crew",
      "owner_user_id": "acct_ann",
      "role": "owner",
      "team_id": null
    }
    "#);
    assert_problem(&bob.post("/v1/teams", &crew).await, 409, "handle_taken");

    let mut offer = invite(&ann, "crew", "bob").await.json();
    assert_problem(&invite(&ann, "@crew", "@bob").await, 409, "invitation_already_pending");
    let listed = bob.get("/v1/invitations").await.json();
    assert_eq!(listed["items"][0]["id"], offer["invitation_id"]);
    assert_eq!(listed["items"][0]["proposed_by_handle"], "ann");
    assert_eq!(listed["items"][0]["proposed_to_handle"], "bob");
    assert_problem(&answer(&ann, &offer, "accept").await, 403, "forbidden");
    let accepted = answer(&bob, &offer, "accept").await;
    assert_eq!(accepted.json()["resolution"], "accepted", "{}", accepted.text());
    assert_problem(&answer(&bob, &offer, "accept").await, 409, "invitation_already_resolved");
    assert!(offer["target_id"].take().is_string() && offer["invitation_id"].take().is_string());
    assert_json_snapshot!(offer, @r#"
    {
      "expires_at": "2026-10-05T14:13:20Z",
      "invitation_id": null,
      "kind": "team_membership",
      "target_id": null,
      "target_label": "@crew"
    }
    "#);

    let both = [("acct_ann", "owner"), ("acct_bob", "member")]
        .map(|(id, role)| (id.to_owned(), role.to_owned()));
    assert_eq!(members(&bob, "crew").await, both);
    assert_problem(&invite(&bob, "crew", "ann").await, 403, "forbidden");
    assert_problem(&ann.delete("/v1/teams/crew/members/@ann").await, 409, "conflict");
    let left = bob.delete("/v1/teams/crew/members/acct_bob").await;
    assert_eq!(left.json()["removed"], true, "{}", left.text());
    assert_problem(&ann.delete("/v1/teams/crew/members/bob").await, 404, "not_found");
    assert_problem(&bob.get("/v1/teams/crew/members").await, 404, "not_found");
}

#[tokio::test]
async fn teams_are_listed_by_role() {
    let app = TestApp::new().await;
    let (ann, bob) = (user(&app, "ann").await, user(&app, "bob").await);
    ann.post("/v1/teams", &json!({ "handle": "crew" })).await;
    bob.post("/v1/teams", &json!({ "handle": "band" })).await;
    let offer = invite(&ann, "crew", "@bob").await.json();
    answer(&bob, &offer, "accept").await;
    let handles = async |filter: &str| {
        let listed = bob.get(&format!("/v1/teams{filter}")).await.json();
        let items = listed["items"].as_array().unwrap().clone();
        items.iter().map(|it| text(&it["handle"]).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(handles("").await, ["band", "crew"]);
    assert_eq!(handles("?filter=all").await, ["band", "crew"]);
    assert_eq!(handles("?filter=mine").await, ["band"]);
    assert_eq!(handles("?filter=member").await, ["crew"]);
    assert_problem(&bob.get("/v1/teams?filter=x").await, 400, "validation_error");
}

#[tokio::test]
async fn a_stranger_gets_the_same_answer_for_a_team_and_for_none() {
    let app = TestApp::new().await;
    let (ann, eve) = (user(&app, "ann").await, user(&app, "eve").await);
    ann.post("/v1/teams", &json!({ "handle": "crew" })).await;
    let offer = invite(&ann, "crew", "new@example.com").await.json();
    let replies = [
        (eve.get("/v1/teams/crew/members").await, eve.get("/v1/teams/none/members").await),
        (invite(&eve, "crew", "@ann").await, invite(&eve, "none", "@ann").await),
        (eve.delete("/v1/teams/crew").await, eve.delete("/v1/teams/none").await),
        (
            eve.delete("/v1/teams/crew/members/@ann").await,
            eve.delete("/v1/teams/none/members/@ann").await,
        ),
    ];
    for (there, none) in replies {
        assert_problem(&there, 404, "not_found");
        assert_eq!(there.text().replace("crew", "none"), none.text());
    }
    for word in ["accept", "decline", "cancel"] {
        assert_problem(&answer(&eve, &offer, word).await, 404, "not_found");
    }
}

#[tokio::test]
async fn an_address_is_invited_in_the_same_words_whether_or_not_it_is_known() {
    let app = TestApp::new().await;
    let ann = user(&app, "ann").await;
    ann.post("/v1/teams", &json!({ "handle": "crew" })).await;
    let first = invite(&ann, "crew", "New@Example.com").await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text());
    let again = invite(&ann, "crew", "new@example.com").await;
    assert_problem(&again, 409, "invitation_already_pending");
    let sent = ann.get("/v1/invitations?filter=sent").await.json();
    assert_eq!(sent["items"][0]["proposed_to_handle"], "new@example.com");
    assert_problem(&invite(&ann, "crew", "@nobody").await, 404, "not_found");
    assert_problem(&invite(&ann, "crew", "no one").await, 404, "not_found");
    assert_problem(&invite(&ann, "crew", "@ann").await, 409, "conflict");
}

#[tokio::test]
async fn an_unanswered_invitation_expires() {
    let app = TestApp::new().await;
    let (ann, bob) = (user(&app, "ann").await, user(&app, "bob").await);
    ann.post("/v1/teams", &json!({ "handle": "crew" })).await;
    let offer = invite(&ann, "crew", "bob").await.json();
    app.clock.advance_ms(14 * DAY_MS);
    assert_problem(&answer(&bob, &offer, "accept").await, 410, "invitation_expired");
    assert!(bob.get("/v1/invitations").await.json()["items"].as_array().unwrap().is_empty());
    let all = bob.get("/v1/invitations?state=all").await.json();
    assert_eq!(all["items"][0]["resolution"], "expired");
    let second = invite(&ann, "crew", "bob").await;
    assert_eq!(second.status, StatusCode::CREATED, "{}", second.text());
    assert_eq!(answer(&bob, &second.json(), "decline").await.json()["resolution"], "declined");
    let third = invite(&ann, "crew", "bob").await.json();
    assert_problem(&answer(&bob, &third, "cancel").await, 403, "forbidden");
    assert_eq!(answer(&ann, &third, "cancel").await.json()["resolution"], "cancelled");
}

#[tokio::test]
async fn a_team_is_transferred_and_deleted_by_its_owner() {
    let app = TestApp::new().await;
    let (ann, bob) = (user(&app, "ann").await, user(&app, "bob").await);
    ann.post("/v1/teams", &json!({ "handle": "crew" })).await;
    let path = "/v1/teams/crew/transfer-ownership";
    let to = |whom: &str| json!({ "new_owner_user_identifier": whom });
    assert_problem(&ann.post(path, &to("@ann")).await, 409, "conflict");
    let offer = ann.post(path, &to("@bob")).await;
    assert_eq!((offer.status, &offer.json()["kind"]), (StatusCode::OK, &json!("team_ownership")));
    answer(&bob, &offer.json(), "accept").await;
    let now = [("acct_ann", "member"), ("acct_bob", "owner")]
        .map(|(id, role)| (id.to_owned(), role.to_owned()));
    assert_eq!(members(&ann, "crew").await, now);
    assert_problem(&ann.delete("/v1/teams/crew").await, 403, "forbidden");
    let gone = bob.delete("/v1/teams/crew").await.json();
    assert_eq!((&gone["deleted"], text(&gone["handle"])), (&json!(true), "crew"));
    assert_problem(&bob.get("/v1/teams/crew/members").await, 404, "not_found");
    assert!(ann.get("/v1/teams").await.json()["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_repeated_request_makes_one_team() {
    let app = TestApp::new().await;
    let ann = user(&app, "ann").await;
    let make = || async {
        let body = json!({ "handle": "crew" });
        ann.post_with("/v1/teams", &body, &[("idempotency-key", "k")]).await
    };
    let (first, second) = (make().await, make().await);
    assert_eq!((first.status, second.status), (StatusCode::CREATED, StatusCode::CREATED));
    assert_eq!(first.json(), second.json());
    assert_eq!(second.headers["idempotent-replayed"], "true");
}

#[tokio::test]
async fn people_need_the_scope_of_their_account() {
    let app = TestApp::new().await;
    let reader = app.caller("reader", &[Scope::RoundsRead]).await;
    let named = json!({ "handle": "crew" });
    let replies = [
        claim(&reader, "crew").await,
        rename(&reader, "crew").await,
        reader.post("/v1/teams", &named).await,
        reader.get("/v1/teams").await,
        reader.get("/v1/teams/crew/members").await,
        reader.delete("/v1/teams/crew").await,
        reader.delete("/v1/teams/crew/members/x").await,
        invite(&reader, "crew", "x@example.com").await,
        reader.get("/v1/invitations").await,
        reader.post("/v1/invitations/x/accept", &json!({})).await,
    ];
    for reply in replies {
        assert_problem(&reply, 403, "forbidden");
        assert!(text(&reply.json()["detail"]).contains("account:write"), "{}", reply.text());
    }
}
