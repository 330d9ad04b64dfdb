//! Walks the operations of the API and asks the other surfaces for each.
//!
//! Every operation has a command and a tool, or a reason. The jobs are on further surfaces too;
//! `surfaces` compares what they say there.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{home::Home, http::Http, mcp::Spoken};

/// The reference of the command line, which is generated from the commands.
const COMMANDS: &str = include_str!("../../../../docs/reference/cli.md");

/// How a surface has an operation.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Under this name.
    By(&'static str),
    /// Not at all, for this reason.
    Not(&'static str),
}

use Way::{By, Not};

/// An operation on the command line and among the tools for models.
struct Row {
    operation: &'static str,
    command: Way,
    tool: Way,
}

const fn both(operation: &'static str, command: &'static str, tool: &'static str) -> Row {
    Row { operation, command: By(command), tool: By(tool) }
}

const fn no_tool(operation: &'static str, command: &'static str, reason: &'static str) -> Row {
    Row { operation, command: By(command), tool: Not(reason) }
}

const fn neither(operation: &'static str, reason: &'static str) -> Row {
    Row { operation, command: Not(reason), tool: Not(reason) }
}

const OPERATOR: &str = "it is the work of an operator, who does not leave it to a model";
const PERSON: &str = "it is about the person behind an account";
const SECRET: &str = "its reply has a secret, which would stay in the context of a model";
const OUTSIDE: &str = "it changes where events of the account are sent";
const IN_LIST: &str = "the tool that lists them says the same";
const HISTORY: &str =
    "a model has the ids of its own runs and versions, and does not browse others";
const LONG: &str = "it takes longer than a call, and costs many judgments";
const BY_VERSION: &str = "`get_skill` takes a version";
const BY_SAVE: &str = "`save_skill` takes files";
const FOR_AGENTS: &str = "`workflows audit` and `audit_skill` have it for one workflow";
const ONE_SESSION: &str = "`delegate` and `validate` name one session";
const PROTOCOL: &str = "it describes or carries a protocol";
const A2A: &str = "it is for clients of the Agent2Agent protocol";
const OPENAI: &str = "it is for OpenAI's clients";
const X402: &str = "it is for payers, who have no key";
const ROUTER: &str = "it is for clients of the Cortensor router";
const EXECUTOR: &str = "it lets another node use this one as an executor";
const PAGE: &str = "it is a page for a browser";
const PROBE: &str = "it is for probes and monitoring";
const LOGIN: &str = "it is a step of the login of a program, which `auth login` takes";

/// Every operation at its first address.
const OPERATIONS: &[Row] = &[
    both("delegate", "delegate", "delegate"),
    both("validate", "validate", "validate"),
    both("factcheck", "factcheck", "factcheck"),
    both("round_list", "rounds list", "list_rounds"),
    both("round_show", "rounds show", "get_round"),
    both("round_cancel", "rounds cancel", "cancel_round"),
    both("round_erase", "rounds erase", "erase_round"),
    both("verifier_deploy", "verifiers deploy", "deploy_verifier"),
    both("verifier_list", "verifiers list", "list_verifiers"),
    both("verifier_get", "verifiers show", "get_verifier"),
    both("verifier_run", "verifiers run", "run_verifier"),
    both("run_get", "verifiers runs show", "get_verifier_run"),
    no_tool("run_list", "verifiers runs", HISTORY),
    no_tool("verifier_runs", "verifiers runs", HISTORY),
    both("verifier_revoke", "verifiers revoke", "revoke_verifier"),
    both("verifier_delete", "verifiers delete", "delete_verifier"),
    no_tool("verifier_versions", "verifiers versions", HISTORY),
    no_tool("verifier_test", "verifiers test", LONG),
    no_tool("verifier_attack", "verifiers attack", LONG),
    both("workflow_list", "workflows list", "list_skills"),
    both("workflow_search", "workflows search", "search_skills"),
    both("workflow_get", "workflows get", "get_skill"),
    no_tool("workflow_version_get", "workflows get", BY_VERSION),
    both("workflow_save", "workflows publish", "save_skill"),
    both("workflow_files", "workflows get", "get_skill_file"),
    no_tool("workflow_patch_files", "workflows put-file", BY_SAVE),
    both("workflow_lineage", "workflows lineage", "lookup_fork_lineage"),
    both("workflow_archive", "workflows archive", "archive_skill"),
    both("workflow_unarchive", "workflows unarchive", "unarchive_skill"),
    both("workflow_delete", "workflows delete", "delete_skill"),
    both("workflow_version_delete", "workflows delete-version", "delete_skill_version"),
    both("workflow_grant", "workflows grant", "grant_skill"),
    both("workflow_revoke", "workflows revoke-grant", "revoke_skill_grant"),
    both("workflow_grants", "workflows grants", "list_skill_grants"),
    both("workflow_leave", "workflows leave", "leave_shared_skill"),
    both("workflow_teach", "workflows teach", "teach_skill"),
    both("workflow_optimize", "workflows optimize", "optimize_skill"),
    both("workflow_optimize_description", "workflows optimize-description", "optimize_description"),
    both("workflow_audit", "workflows audit", "audit_skill"),
    both("workflow_check_safety", "workflows check-safety", "check_skill_safety"),
    both("workflow_transfer", "workflows transfer-ownership", "transfer_skill_ownership"),
    both("design_prompt", "design", "design_skill"),
    both("task_submit", "task submit", "submit_task"),
    both("task_list", "task list", "list_tasks"),
    both("task_show", "task show", "get_task"),
    both("task_sample", "task sample", "get_task_sample"),
    both("task_decision", "task decision", "get_task_decision"),
    both("task_cancel", "task cancel", "cancel_task"),
    both("task_next_epoch", "task next-epoch", "begin_task_epoch"),
    both("task_complain", "task complain", "complain_of_task"),
    both("task_events", "task events", "list_task_events"),
    both("task_run_submit", "run submit", "submit_run"),
    both("task_run_list", "run list", "list_runs"),
    both("task_run_get", "run show", "get_run"),
    both("task_run_kickoff", "run kickoff", "kickoff_run"),
    both("task_run_retry", "run retry", "retry_run"),
    both("task_run_cancel", "run cancel", "cancel_run"),
    both("task_run_result", "run result", "get_run_result"),
    both("task_run_events", "run events", "list_run_events"),
    no_tool("agent_event_list", "agent-events list", OPERATOR),
    no_tool("agent_event_show", "agent-events show", OPERATOR),
    no_tool("agent_event_send", "agent-events send", OPERATOR),
    both("knowledge_list", "knowledge export", "export_knowledge"),
    both("template_list", "templates list", "list_templates"),
    both("template_search", "templates search", "search_templates"),
    both("template_get", "templates get", "get_template"),
    both("template_file", "templates get-file", "get_template_file"),
    both("template_publish", "templates publish", "publish_template_version"),
    both("template_unpublish", "templates unpublish", "unpublish_template_version"),
    both("template_fork", "templates fork", "fork_template"),
    both("template_archive", "templates archive", "archive_template"),
    both("template_unarchive", "templates unarchive", "unarchive_template"),
    both("template_delete", "templates delete", "delete_template"),
    both("template_delete_version", "templates delete-version", "delete_template_version"),
    both("template_deprecate", "templates deprecate-version", "deprecate_template_version"),
    both("template_check_safety", "templates check-safety", "check_template_safety"),
    both("template_transfer", "templates transfer-ownership", "transfer_template_ownership"),
    both("share_list", "shares list", "list_shares"),
    both("share_accept", "shares accept", "accept_share"),
    both("share_decline", "shares decline", "decline_share"),
    both("share_block", "shares block", "block_share"),
    both("team_create", "teams create", "create_team"),
    both("team_list", "teams list", "list_teams"),
    both("team_members", "teams members", "list_team_members"),
    both("team_invite", "teams add-member", "add_team_member"),
    both("team_remove", "teams remove-member", "remove_team_member"),
    both("team_transfer", "teams transfer-ownership", "transfer_team_ownership"),
    both("team_delete", "teams delete", "delete_team"),
    both("invitation_list", "invitations list", "list_invitations"),
    both("invitation_accept", "invitations accept", "accept_invitation"),
    both("invitation_decline", "invitations decline", "decline_invitation"),
    both("invitation_cancel", "invitations cancel", "cancel_invitation"),
    both("handle_claim", "me claim-handle", "claim_handle"),
    both("handle_rename", "me rename-handle", "rename_handle"),
    no_tool("me_show", "me show", PERSON),
    both("usage_show", "usage", "get_usage"),
    no_tool("transfer_list", "admin transfers", OPERATOR),
    both("key_create", "keys create", "mint_api_key"),
    both("key_list", "keys list", "list_api_keys"),
    both("key_revoke", "keys revoke", "revoke_api_key"),
    no_tool("key_rotate", "keys rotate", SECRET),
    no_tool("webhook_add", "webhooks add", SECRET),
    both("webhook_list", "webhooks list", "list_webhooks"),
    no_tool("webhook_show", "webhooks show", IN_LIST),
    no_tool("webhook_change", "webhooks enable", OUTSIDE),
    no_tool("webhook_rotate", "webhooks rotate", SECRET),
    no_tool("webhook_remove", "webhooks remove", OUTSIDE),
    no_tool("webhook_test", "webhooks test", OUTSIDE),
    both("webhook_deliveries", "webhooks deliveries", "list_webhook_deliveries"),
    no_tool("webhook_delivery_show", "webhooks deliveries", IN_LIST),
    both("webhook_replay", "webhooks replay", "replay_webhook_delivery"),
    no_tool("executor_add", "executors add", OPERATOR),
    no_tool("executor_list", "executors list", OPERATOR),
    no_tool("executor_show", "executors show", OPERATOR),
    no_tool("executor_check", "executors check", OPERATOR),
    no_tool("executor_remove", "executors remove", OPERATOR),
    no_tool("session_add", "sessions add", OPERATOR),
    no_tool("session_list", "sessions list", OPERATOR),
    no_tool("session_show", "sessions show", OPERATOR),
    no_tool("session_remove", "sessions remove", OPERATOR),
    no_tool("node_show", "node status", OPERATOR),
    no_tool("node_invite", "node invite", SECRET),
    no_tool("node_join", "node join", OPERATOR),
    no_tool("peer_list", "node peers", OPERATOR),
    no_tool("peer_show", "node show", OPERATOR),
    no_tool("peer_trust", "node trust", OPERATOR),
    no_tool("peer_block", "node block", OPERATOR),
    no_tool("peer_remove", "node remove", OPERATOR),
    no_tool("peer_offers", "node offers", OPERATOR),
    no_tool("peer_bookings", "node bookings", OPERATOR),
    no_tool("peer_statement", "node statement", OPERATOR),
    no_tool("account_list", "admin accounts", OPERATOR),
    no_tool("account_show", "admin accounts", OPERATOR),
    no_tool("account_suspend", "admin suspend", OPERATOR),
    no_tool("account_resume", "admin resume", OPERATOR),
    no_tool("account_transfers", "admin transfers", OPERATOR),
    no_tool("credit_grant", "admin grant", OPERATOR),
    no_tool("prune", "prune", OPERATOR),
    no_tool("doctor", "doctor", OPERATOR),
    no_tool("doctor_entries", "doctor", OPERATOR),
    no_tool("register", "auth register", PERSON),
    no_tool("register_verify", "auth register-verify", PERSON),
    no_tool("login", "auth login", PERSON),
    no_tool("login_verify", "auth login-verify", PERSON),
    no_tool("device_answer", "auth approve", PERSON),
    no_tool("openapi", "openapi", PROTOCOL),
    no_tool("mcp", "mcp", PROTOCOL),
    neither("a2a", A2A),
    neither("a2a_cancel", A2A),
    neither("a2a_extended_card", A2A),
    neither("a2a_push_create", A2A),
    neither("a2a_push_delete", A2A),
    neither("a2a_push_get", A2A),
    neither("a2a_push_list", A2A),
    neither("a2a_send", A2A),
    neither("a2a_stream", A2A),
    neither("a2a_subscribe", A2A),
    neither("a2a_subscribe_by_get", A2A),
    neither("a2a_task", A2A),
    neither("a2a_tasks", A2A),
    neither("agent_card", A2A),
    neither("agent_registration_show", PROTOCOL),
    neither("capabilities_show", EXECUTOR),
    neither("chat_complete", OPENAI),
    neither("client_config", PROTOCOL),
    neither("device_begin", LOGIN),
    neither("device_exchange", LOGIN),
    neither("device_page", LOGIN),
    neither("device_page_answer", LOGIN),
    neither("device_poll", LOGIN),
    neither("docs", PAGE),
    neither("docs_file", PAGE),
    neither("front", PAGE),
    neither("health", PROBE),
    neither("metrics_show", PROBE),
    neither("model_list", OPENAI),
    neither("model_show", OPENAI),
    neither("payment_show", X402),
    neither("peer_chat", ROUTER),
    neither("peer_chat_in", ROUTER),
    neither("peer_completion", ROUTER),
    neither("peer_completion_in", ROUTER),
    neither("peer_create", ROUTER),
    neither("peer_delegate", ROUTER),
    neither("peer_factcheck", ROUTER),
    neither("peer_miners", ROUTER),
    neither("peer_session", ROUTER),
    neither("peer_sessions", ROUTER),
    neither("peer_status", ROUTER),
    neither("peer_task", ROUTER),
    neither("peer_task_list", ROUTER),
    neither("peer_validate", ROUTER),
    neither("protected_resource", PROTOCOL),
    neither("ready", PROBE),
    neither("verify", EXECUTOR),
    neither("audit_prompt", FOR_AGENTS),
    neither("delegate_v2", ONE_SESSION),
    neither("validate_v2", ONE_SESSION),
    neither("delegate_paid", X402),
    neither("validate_paid", X402),
    neither("factcheck_paid", X402),
    neither("delegate_paid_v2", X402),
    neither("validate_paid_v2", X402),
];

/// Tools that are a second way to an operation.
const SECOND_TOOLS: [&str; 2] = ["get_skill_files", "wait_round"];

/// Commands that are a second way to an operation, or that need no server.
const OTHER_COMMANDS: &[(&str, &str)] = &[
    ("auth create-key", "`keys create` under the name of a peer"),
    ("auth list-keys", "`keys list` under the name of a peer"),
    ("auth logout", "it forgets a key in the state folder"),
    ("auth revoke-key", "`keys revoke` under the name of a peer"),
    ("backup", "it copies the store"),
    ("backup verify", "it reads a copy"),
    ("completions", "it is for a shell"),
    ("config check", "it reads the settings"),
    ("config example", "it prints the settings"),
    ("config show", "it reads the settings"),
    ("demo", "it starts a server of its own"),
    ("node", "it reads the state folder"),
    ("node id", "it reads the state folder"),
    ("restore", "it writes the store"),
    ("run init", "it prints a spec to start from"),
    ("run watch", "`run show`, until it ends"),
    ("run worker", "it works on runs itself"),
    ("runtime", "it is an executor"),
    ("serve", "it is the server"),
    ("task run", "`task submit`, until it ends"),
    ("task run-real", "`task run` under the name of a peer"),
    ("task watch", "`task show`, until it ends"),
    ("teams leave", "`teams remove-member` of oneself"),
    ("templates lineage", "`templates get` of each version"),
    ("verifiers diff", "`verifiers show` of two versions"),
    ("webhooks disable", "`webhooks enable`, turned around"),
    ("whoami", "`me show` under the name of a peer"),
    ("workflows rm-file", "`workflows put-file` without a file"),
    ("workflows run-checks", "it runs `validate` and `verifiers run`"),
];

/// A job on the surfaces that have jobs only.
struct Job {
    operation: &'static str,
    /// The skill of the Agent2Agent protocol.
    skill: &'static str,
    /// The versions under which it can be paid for each time.
    paid: &'static [&'static str],
    /// The model of OpenAI's clients.
    models: &'static [&'static str],
}

const CHAT: &[&str] = &["jurat/fast", "jurat/oracle", "jurat/safe"];
const JOBS: [Job; 4] = [
    Job { operation: "delegate", skill: "delegate", paid: &["v2", "v3", "v4"], models: CHAT },
    // A chat is always delegated.
    Job { operation: "validate", skill: "validate", paid: &["v2", "v3", "v4"], models: &[] },
    // Version 2 has no fact check.
    Job { operation: "factcheck", skill: "factcheck", paid: &["v3", "v4"], models: &[] },
    // Judges are paid from credit, which a payer without a key does not have.
    Job { operation: "verifier_run", skill: "run-verifier", paid: &[], models: &[] },
];

/// The OpenAPI document.
fn document(home: &Home) -> Value {
    serde_json::from_str(&home.run(&["openapi"]).ok().out).unwrap()
}

/// The ids of all operations in the document at their first address.
fn documented(document: &Value) -> BTreeSet<&str> {
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    let first = operations.filter(|it| it["x-alias-of"].is_null());
    first.filter_map(|it| it["operationId"].as_str()).collect()
}

fn names(of: impl Fn(&Row) -> Way) -> BTreeSet<&'static str> {
    let by = |row| match of(row) {
        By(name) => Some(name),
        Not(_) => None,
    };
    OPERATIONS.iter().filter_map(by).collect()
}

#[test]
fn every_operation_is_listed_once_with_its_surfaces() {
    let home = Home::new();
    let document = document(&home);
    let documented = documented(&document);
    let listed: Vec<&str> = OPERATIONS.iter().map(|row| row.operation).collect();
    let known: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(known.len(), listed.len(), "an operation is listed twice");
    let missing: Vec<&&str> = documented.difference(&known).collect();
    assert!(missing.is_empty(), "add these with their surfaces: {missing:?}");
    let gone: Vec<&&str> = known.difference(&documented).collect();
    assert!(gone.is_empty(), "no longer in the document: {gone:?}");
    for row in OPERATIONS {
        for way in [row.command, row.tool] {
            let (By(text) | Not(text)) = way;
            assert!(!text.is_empty(), "{}", row.operation);
        }
    }
}

#[test]
fn every_command_is_of_an_operation_or_says_why_not() {
    let headings = COMMANDS.lines().filter_map(|line| line.strip_prefix("## `jurat "));
    let all: BTreeSet<&str> = headings.map(|rest| rest.trim_end_matches('`')).collect();
    let named = names(|row| row.command);
    let others: BTreeSet<&str> = OTHER_COMMANDS.iter().map(|(command, _)| *command).collect();
    let twice: Vec<&&str> = named.intersection(&others).collect();
    assert!(twice.is_empty(), "these need no exception: {twice:?}");
    let listed: BTreeSet<&str> = named.union(&others).copied().collect();
    // A group of commands does nothing itself.
    let is_group = |command: &str| {
        all.iter().any(|it| it.strip_prefix(command).is_some_and(|rest| rest.starts_with(' ')))
    };
    let leaves: BTreeSet<&str> =
        all.iter().copied().filter(|it| !is_group(it) || listed.contains(it)).collect();
    assert_eq!(leaves, listed);
}

#[test]
fn every_tool_is_of_an_operation_and_every_operation_for_models_has_its_tool() {
    let home = Home::new();
    let mut spoken = Spoken::start(&home);
    spoken.initialize();
    let listed = spoken.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tools: BTreeSet<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let named = names(|row| row.tool);
    let seconds = BTreeSet::from(SECOND_TOOLS);
    assert!(named.is_disjoint(&seconds), "a tool is listed twice");
    assert_eq!(tools, named.union(&seconds).copied().collect());
    assert_eq!(spoken.end(), 0);
}

#[test]
fn every_job_is_on_the_surfaces_of_other_protocols() {
    let home = Home::new();
    let server = home.serve();
    let http = Http::new(&server.url, &home.state());
    let (status, card) = http.get("/.well-known/agent-card.json");
    assert_eq!(status, 200, "{card}");
    let ids = |list: &Value| -> BTreeSet<String> {
        list.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    let skills: BTreeSet<String> = JOBS.iter().map(|job| job.skill.to_owned()).collect();
    assert_eq!(ids(&card["skills"]), skills);
    let models = JOBS.iter().flat_map(|job| job.models).map(|it| (*it).to_owned()).collect();
    let (_, listed) = http.get("/v1/models");
    assert_eq!(ids(&listed["data"]), models);
    let document = document(&home);
    let paths = document["paths"].as_object().unwrap().keys();
    let paid: BTreeSet<&str> = paths
        .filter(|path| path.contains("/x402/") && !path.contains('{'))
        .map(|it| &**it)
        .collect();
    let expected: Vec<String> = JOBS
        .iter()
        .flat_map(|job| job.paid.iter().map(|at| format!("/api/{at}/x402/{}", job.operation)))
        .collect();
    assert_eq!(paid, expected.iter().map(|it| &**it).collect());
    for job in JOBS {
        assert!(OPERATIONS.iter().any(|row| row.operation == job.operation), "{}", job.operation);
    }
}
