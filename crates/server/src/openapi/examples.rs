//! Requests and replies of a real server, which a test plays again.

pub(super) mod tasks;
pub(super) mod templates;

use serde_json::Value;

/// Each with its name: `name` is a reply, `name_request` a request.
const ALL: &[(&str, &str)] = &[
    ("account", include_str!("examples/account.json")),
    ("account_list", include_str!("examples/account_list.json")),
    ("account_suspended", include_str!("examples/account_suspended.json")),
    ("capabilities", include_str!("examples/capabilities.json")),
    ("check", include_str!("examples/check.json")),
    ("credit_grant", include_str!("examples/credit_grant.json")),
    ("credit_grant_request", include_str!("examples/credit_grant_request.json")),
    ("delegate", include_str!("examples/delegate.json")),
    ("delegate_request", include_str!("examples/delegate_request.json")),
    ("delegate_v2", include_str!("examples/delegate_v2.json")),
    ("delegate_v2_request", include_str!("examples/delegate_v2_request.json")),
    ("disagreement", include_str!("examples/disagreement.json")),
    ("doctor", include_str!("examples/doctor.json")),
    ("executor", include_str!("examples/executor.json")),
    ("executor_add", include_str!("examples/executor_add.json")),
    ("executor_add_request", include_str!("examples/executor_add_request.json")),
    ("executor_list", include_str!("examples/executor_list.json")),
    ("executor_remove", include_str!("examples/executor_remove.json")),
    ("factcheck", include_str!("examples/factcheck.json")),
    ("factcheck_request", include_str!("examples/factcheck_request.json")),
    ("key_create", include_str!("examples/key_create.json")),
    ("key_create_request", include_str!("examples/key_create_request.json")),
    ("key_list", include_str!("examples/key_list.json")),
    ("key_rotate", include_str!("examples/key_rotate.json")),
    ("me", include_str!("examples/me.json")),
    ("round", include_str!("examples/round.json")),
    ("round_cancelled", include_str!("examples/round_cancelled.json")),
    ("prune", include_str!("examples/prune.json")),
    ("prune_request", include_str!("examples/prune_request.json")),
    ("round_erase", include_str!("examples/round_erase.json")),
    ("round_list", include_str!("examples/round_list.json")),
    ("round_open", include_str!("examples/round_open.json")),
    ("run", include_str!("examples/run.json")),
    ("run_list", include_str!("examples/run_list.json")),
    ("session", include_str!("examples/session.json")),
    ("session_add_request", include_str!("examples/session_add_request.json")),
    ("session_list", include_str!("examples/session_list.json")),
    ("session_remove", include_str!("examples/session_remove.json")),
    ("transfer_list", include_str!("examples/transfer_list.json")),
    ("usage", include_str!("examples/usage.json")),
    ("validate", include_str!("examples/validate.json")),
    ("validate_request", include_str!("examples/validate_request.json")),
    ("validate_v2", include_str!("examples/validate_v2.json")),
    ("validate_v2_request", include_str!("examples/validate_v2_request.json")),
    ("verifier", include_str!("examples/verifier.json")),
    ("verifier_delete", include_str!("examples/verifier_delete.json")),
    ("verifier_deploy", include_str!("examples/verifier_deploy.json")),
    ("verifier_deploy_request", include_str!("examples/verifier_deploy_request.json")),
    ("verifier_list", include_str!("examples/verifier_list.json")),
    ("verifier_revoke", include_str!("examples/verifier_revoke.json")),
    ("verifier_run_request", include_str!("examples/verifier_run_request.json")),
    ("verifier_test_request", include_str!("examples/verifier_test_request.json")),
    ("verifier_attack_request", include_str!("examples/verifier_attack_request.json")),
    ("verifier_attack_report", include_str!("examples/verifier_attack_report.json")),
    ("verifier_report", include_str!("examples/verifier_report.json")),
    ("verifier_versions", include_str!("examples/verifier_versions.json")),
    ("verify", include_str!("examples/verify.json")),
    ("verify_request", include_str!("examples/verify_request.json")),
];

/// The example of this name; null when there is none, which a test would find.
pub(super) fn of(name: &str) -> Value {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or(Value::Null)
}

/// The example of an event stream.
pub(super) const STREAM: &str = include_str!("examples/stream.txt");
