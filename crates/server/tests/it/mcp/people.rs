//! The tools for handles, teams, invitations and keys.

use jurat_core::account::caller::Scope;
use jurat_testkit::app::{TestApp, TestCaller};
use serde_json::{Value, json};

use super::{MODERN, call, verifiers::done};

async fn did(caller: &TestCaller<'_>, tool: &str, arguments: Value) -> Value {
    done(caller, MODERN, tool, &arguments).await["structuredContent"].clone()
}

#[tokio::test]
async fn teams_and_workflows_work_through_tools() {
    let app = TestApp::new().await;
    let ann = app.caller("ann", &Scope::OWN).await;
    let bob = app.caller("bob", &Scope::OWN).await;
    did(&ann, "claim_handle", json!({ "handle": "ann" })).await;
    did(&bob, "claim_handle", json!({ "handle": "bob" })).await;
    did(&ann, "rename_handle", json!({ "handle": "anna" })).await;
    did(&ann, "create_team", json!({ "handle": "crew" })).await;
    let joining = json!({ "team_id": "crew", "user_identifier": "@bob" });
    let offer = did(&ann, "add_team_member", joining.clone()).await;
    let listed = did(&bob, "list_invitations", json!({ "limit": 1 })).await;
    assert_eq!(listed["items"][0]["id"], offer["invitation_id"]);
    let id = json!({ "invitation_id": offer["invitation_id"] });
    did(&bob, "accept_invitation", id.clone()).await;
    let members = did(&bob, "list_team_members", json!({ "team_id": "crew" })).await;
    assert_eq!(members["items"].as_array().unwrap().len(), 2);
    did(&ann, "remove_team_member", joining).await;
    let owning = json!({ "team_id": "crew", "new_owner_user_identifier": "@bob" });
    for (who, tool) in [(&ann, "cancel_invitation"), (&bob, "decline_invitation")] {
        let offer = did(&ann, "transfer_team_ownership", owning.clone()).await;
        did(who, tool, json!({ "invitation_id": offer["invitation_id"] })).await;
    }
    assert_eq!(did(&ann, "list_teams", json!({})).await["items"][0]["role"], "owner");
    did(&ann, "delete_team", json!({ "team_id": "crew" })).await;
    let again = call(&bob, MODERN, "accept_invitation", &id).await;
    assert_eq!(again["structuredContent"]["code"], "invitation_already_resolved", "{again}");
}

#[tokio::test]
async fn shares_are_answered_through_tools() {
    let app = TestApp::new().await;
    let (ann, bob) = (app.caller("ann", &Scope::OWN).await, app.caller("bob", &Scope::OWN).await);
    did(&ann, "claim_handle", json!({ "handle": "ann" })).await;
    let order = json!({ "name": "Report", "description": "d", "outcome": "o", "body": "b" });
    let saved = did(&ann, "save_workflow", order).await;
    let grant = json!({
        "workflow_id": "report", "grantee_email_or_at_team_handle": "acct_bob", "role": "view",
    });
    did(&ann, "grant_workflow", grant).await;
    let bare = call(&bob, MODERN, "get_workflow", &json!({ "workflow_id": "report" })).await;
    assert_eq!(bare["structuredContent"]["code"], "not_found", "{bare}");
    assert!(bare.to_string().contains("@ann/report"), "{bare}");
    let share = &did(&bob, "list_shares", json!({ "state": "pending" })).await["items"][0];
    assert_eq!((&share["id"], &share["reference"]), (&saved["id"], &json!("@ann/report")));
    let id = json!({ "share_id": share["id"] });
    for (tool, state) in
        [("accept_share", "accepted"), ("decline_share", "declined"), ("block_share", "declined")]
    {
        assert_eq!(did(&bob, tool, id.clone()).await["state"], state, "{tool}");
    }
    did(&bob, "accept_share", id).await;
    let read = did(&bob, "get_workflow", json!({ "workflow_id": "@ann/report" })).await;
    assert_eq!((&read["id"], &read["owner"]), (&saved["id"], &json!("@ann")));
}

#[tokio::test]
async fn keys_and_credit_work_through_tools() {
    let app = TestApp::new().await;
    let ann = app.caller("ann", &Scope::OWN).await;
    let made = did(&ann, "mint_api_key", json!({ "name": "laptop" })).await;
    assert!(made["key"].as_str().unwrap().starts_with("jrt_live_"));
    let listed = did(&ann, "list_api_keys", json!({ "limit": 1 })).await;
    assert!(listed["next_cursor"].is_string(), "{listed}");
    let revoked = did(&ann, "revoke_api_key", json!({ "key_id": made["id"] })).await;
    assert_eq!(revoked["revoked"], true);
    assert_eq!(did(&ann, "get_usage", json!({})).await["tier"], "metered");
}

#[tokio::test]
async fn workflows_are_designed_and_checked_under_the_names_of_both_revisions() {
    let app = TestApp::new().await;
    let ann = app.caller("ann", &Scope::OWN).await;
    let order = json!({ "name": "Report", "description": "d", "outcome": "o", "body": "b" });
    did(&ann, "save_workflow", order).await;
    assert!(did(&ann, "design_workflow", json!({})).await["skill_md"].is_string());
    for id in ["skill_id", "workflow_id"] {
        for (one, other, arguments) in [
            ("teach_skill", "teach_workflow", json!({ id: "report" })),
            ("audit_skill", "audit_workflow", json!({ id: "report" })),
            ("optimize_skill", "optimize_workflow", json!({ id: "report", "max_iterations": 3 })),
        ] {
            let told = did(&ann, one, arguments.clone()).await;
            assert_eq!(told, did(&ann, other, arguments).await);
            assert!(told["workflow_id"].is_string(), "{told}");
        }
    }
    // No judge is available here, and both tools report it.
    for tool in ["check_skill_safety", "check_workflow_safety"] {
        let checked = call(&ann, MODERN, tool, &json!({ "workflow_id": "report" })).await;
        let body = &checked["structuredContent"];
        assert!(body["status"] == "error" || body["code"].is_string(), "{checked}");
    }
    for (arguments, field) in
        [(json!({}), "skill_id"), (json!({ "skill_id": "a", "workflow_id": "b" }), "workflow_id")]
    {
        let wrong = call(&ann, MODERN, "teach_workflow", &arguments).await;
        assert_eq!(wrong["structuredContent"]["field"], field, "{wrong}");
    }
}
