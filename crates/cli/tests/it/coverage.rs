//! Walks the operations of the API and asks the command line and the tools for models for each.
//!
//! Delegate, validate and factcheck are on every other surface too; `surfaces` compares what they
//! say there.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{home::Home, mcp::Spoken};

/// An operation, its command, and its tool. Keys, accounts and the installation itself are not for
/// models, so their operations have no tool.
const OPERATIONS: &[(&str, &str, &str)] = &[
    ("delegate", "delegate", "delegate"),
    ("validate", "validate", "validate"),
    ("factcheck", "factcheck", "factcheck"),
    ("round_list", "rounds list", "list_rounds"),
    ("round_show", "rounds show", "get_round"),
    ("round_cancel", "rounds cancel", "cancel_round"),
    ("round_erase", "rounds erase", "erase_round"),
    ("verifier_deploy", "verifiers deploy", "deploy_verifier"),
    ("verifier_list", "verifiers list", "list_verifiers"),
    ("verifier_get", "verifiers show", "get_verifier"),
    ("verifier_run", "verifiers run", "run_verifier"),
    ("run_get", "verifiers runs show", "get_verifier_run"),
    ("run_list", "verifiers runs", ""),
    ("verifier_runs", "verifiers runs", ""),
    ("verifier_revoke", "verifiers revoke", "revoke_verifier"),
    ("verifier_delete", "verifiers delete", "delete_verifier"),
    ("verifier_versions", "verifiers versions", ""),
    ("verifier_test", "verifiers test", ""),
    ("verifier_attack", "verifiers attack", ""),
    ("workflow_list", "workflows list", "list_skills"),
    ("workflow_search", "workflows search", "search_skills"),
    ("workflow_get", "workflows get", "get_skill"),
    ("workflow_version_get", "workflows get", ""),
    ("workflow_save", "workflows publish", "save_skill"),
    ("workflow_files", "workflows get", "get_skill_file"),
    ("workflow_patch_files", "workflows put-file", ""),
    ("workflow_lineage", "workflows lineage", "lookup_fork_lineage"),
    ("workflow_archive", "workflows archive", "archive_skill"),
    ("workflow_unarchive", "workflows unarchive", "unarchive_skill"),
    ("workflow_delete", "workflows delete", "delete_skill"),
    ("workflow_version_delete", "workflows delete-version", "delete_skill_version"),
    ("workflow_grant", "workflows grant", "grant_skill"),
    ("workflow_revoke", "workflows revoke-grant", "revoke_skill_grant"),
    ("workflow_grants", "workflows grants", "list_skill_grants"),
    ("workflow_leave", "workflows leave", "leave_shared_skill"),
    ("workflow_teach", "workflows teach", "teach_skill"),
    ("workflow_optimize", "workflows optimize", "optimize_skill"),
    ("workflow_optimize_description", "workflows optimize-description", "optimize_description"),
    ("workflow_audit", "workflows audit", "audit_skill"),
    ("workflow_check_safety", "workflows check-safety", "check_skill_safety"),
    ("workflow_transfer", "workflows transfer-ownership", "transfer_skill_ownership"),
    ("design_prompt", "design", "design_skill"),
    ("task_submit", "task submit", "submit_task"),
    ("task_list", "task list", "list_tasks"),
    ("task_show", "task show", "get_task"),
    ("task_sample", "task sample", "get_task_sample"),
    ("task_decision", "task decision", "get_task_decision"),
    ("task_cancel", "task cancel", "cancel_task"),
    ("task_next_epoch", "task next-epoch", "begin_task_epoch"),
    ("task_complain", "task complain", "complain_of_task"),
    ("task_events", "task events", "list_task_events"),
    ("task_run_submit", "run submit", "submit_run"),
    ("task_run_list", "run list", "list_runs"),
    ("task_run_get", "run show", "get_run"),
    ("task_run_kickoff", "run kickoff", "kickoff_run"),
    ("task_run_retry", "run retry", "retry_run"),
    ("task_run_cancel", "run cancel", "cancel_run"),
    ("task_run_result", "run result", "get_run_result"),
    ("task_run_events", "run events", "list_run_events"),
    ("agent_event_list", "agent-events list", ""),
    ("agent_event_show", "agent-events show", ""),
    ("agent_event_send", "agent-events send", ""),
    ("knowledge_list", "knowledge export", "export_knowledge"),
    ("template_list", "templates list", "list_templates"),
    ("template_search", "templates search", "search_templates"),
    ("template_get", "templates get", "get_template"),
    ("template_file", "templates get-file", "get_template_file"),
    ("template_publish", "templates publish", "publish_template_version"),
    ("template_unpublish", "templates unpublish", "unpublish_template_version"),
    ("template_fork", "templates fork", "fork_template"),
    ("template_archive", "templates archive", "archive_template"),
    ("template_unarchive", "templates unarchive", "unarchive_template"),
    ("template_delete", "templates delete", "delete_template"),
    ("template_delete_version", "templates delete-version", "delete_template_version"),
    ("template_deprecate", "templates deprecate-version", "deprecate_template_version"),
    ("template_check_safety", "templates check-safety", "check_template_safety"),
    ("template_transfer", "templates transfer-ownership", "transfer_template_ownership"),
    ("share_list", "shares list", "list_shares"),
    ("share_accept", "shares accept", "accept_share"),
    ("share_decline", "shares decline", "decline_share"),
    ("share_block", "shares block", "block_share"),
    ("team_create", "teams create", "create_team"),
    ("team_list", "teams list", "list_teams"),
    ("team_members", "teams members", "list_team_members"),
    ("team_invite", "teams add-member", "add_team_member"),
    ("team_remove", "teams remove-member", "remove_team_member"),
    ("team_transfer", "teams transfer-ownership", "transfer_team_ownership"),
    ("team_delete", "teams delete", "delete_team"),
    ("invitation_list", "invitations list", "list_invitations"),
    ("invitation_accept", "invitations accept", "accept_invitation"),
    ("invitation_decline", "invitations decline", "decline_invitation"),
    ("invitation_cancel", "invitations cancel", "cancel_invitation"),
    ("handle_claim", "me claim-handle", "claim_handle"),
    ("handle_rename", "me rename-handle", "rename_handle"),
    ("me_show", "me show", ""),
    ("usage_show", "usage", "get_usage"),
    ("transfer_list", "admin transfers", ""),
    ("key_create", "keys create", "mint_api_key"),
    ("key_list", "keys list", "list_api_keys"),
    ("key_revoke", "keys revoke", "revoke_api_key"),
    ("key_rotate", "keys rotate", ""),
    ("webhook_add", "webhooks add", ""),
    ("webhook_list", "webhooks list", "list_webhooks"),
    ("webhook_show", "webhooks show", ""),
    ("webhook_change", "webhooks enable", ""),
    ("webhook_rotate", "webhooks rotate", ""),
    ("webhook_remove", "webhooks remove", ""),
    ("webhook_test", "webhooks test", ""),
    ("webhook_deliveries", "webhooks deliveries", "list_webhook_deliveries"),
    ("webhook_delivery_show", "webhooks deliveries", ""),
    ("webhook_replay", "webhooks replay", "replay_webhook_delivery"),
    ("executor_add", "executors add", ""),
    ("executor_list", "executors list", ""),
    ("executor_show", "executors show", ""),
    ("executor_check", "executors check", ""),
    ("executor_remove", "executors remove", ""),
    ("session_add", "sessions add", ""),
    ("session_list", "sessions list", ""),
    ("session_show", "sessions show", ""),
    ("session_remove", "sessions remove", ""),
    ("account_list", "admin accounts", ""),
    ("account_show", "admin accounts", ""),
    ("account_suspend", "admin suspend", ""),
    ("account_resume", "admin resume", ""),
    ("account_transfers", "admin transfers", ""),
    ("credit_grant", "admin grant", ""),
    ("prune", "prune", ""),
    ("doctor", "doctor", ""),
    ("doctor_entries", "doctor", ""),
    ("register", "auth register", ""),
    ("register_verify", "auth register-verify", ""),
    ("login", "auth login", ""),
    ("login_verify", "auth login-verify", ""),
    ("device_answer", "auth approve", ""),
    ("openapi", "openapi", ""),
    ("mcp", "mcp", ""),
];

/// Tools that are a second way to an operation.
const SECOND_TOOLS: [&str; 2] = ["get_skill_files", "wait_round"];

/// Operations of the protocols of others, whose clients are programs, and pages of the server. They
/// have neither a command nor a tool.
const OF_OTHERS: &[&str] = &[
    "a2a",
    "agent_card",
    "agent_registration_show",
    "audit_prompt",
    "audit_skill_prompt",
    "capabilities_show",
    "chat_complete",
    "client_config",
    "design_skill_prompt",
    "device_",
    "docs",
    "front",
    "health",
    "metrics_show",
    "model_",
    "payment_show",
    "peer_",
    "protected_resource",
    "ready",
    "verify",
];

/// Second addresses of an operation: of earlier and later versions, under other words, or paid.
const SECOND_ADDRESSES: [&str; 5] = ["_v2", "_v3", "_v4", "_of_skill", "_paid"];

/// The ids of all operations in the document.
fn documented(home: &Home) -> BTreeSet<String> {
    let document: Value = serde_json::from_str(&home.run(&["openapi"]).ok().out).unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    operations.filter_map(|it| it["operationId"].as_str()).map(str::to_owned).collect()
}

fn is_of_others(operation: &str) -> bool {
    let is_second = SECOND_ADDRESSES.iter().any(|ending| operation.ends_with(ending));
    let starts = |name: &str| {
        operation.strip_prefix(name).is_some_and(|rest| {
            rest.is_empty() || rest == "z" || rest.starts_with('_') || name.ends_with('_')
        })
    };
    is_second || OF_OTHERS.iter().any(|name| starts(name))
}

#[test]
fn every_operation_has_a_command_or_is_of_another_protocol() {
    let home = Home::new();
    let documented = documented(&home);
    let listed: BTreeSet<&str> = OPERATIONS.iter().map(|(operation, _, _)| *operation).collect();
    let missing: Vec<&String> =
        documented.iter().filter(|it| !listed.contains(it.as_str()) && !is_of_others(it)).collect();
    assert!(missing.is_empty(), "add these with their commands: {missing:?}");
    let gone: Vec<&&str> = listed.iter().filter(|it| !documented.contains(**it)).collect();
    assert!(gone.is_empty(), "no longer in the document: {gone:?}");
    let commands: BTreeSet<&str> = OPERATIONS.iter().map(|(_, command, _)| *command).collect();
    for command in commands {
        let mut args: Vec<&str> = command.split(' ').collect();
        args.push("--help");
        let help = home.run(&args).ok().out;
        assert!(help.contains(&format!("Usage: jurat {command}")), "{command}: {help}");
    }
}

#[test]
fn every_tool_is_an_operation_and_every_operation_for_models_has_its_tool() {
    let home = Home::new();
    let mut spoken = Spoken::start(&home);
    spoken.initialize();
    let listed = spoken.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tools: BTreeSet<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let named = OPERATIONS.iter().map(|(_, _, tool)| *tool).filter(|tool| !tool.is_empty());
    let expected: BTreeSet<&str> = named.chain(SECOND_TOOLS).collect();
    assert_eq!(tools, expected);
    assert_eq!(spoken.end(), 0);
}
