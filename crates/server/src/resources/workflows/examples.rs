//! Example requests and replies for workflows, which a test replays.

use serde_json::{Value, json};

pub(super) const ID: &str = "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70";
pub(super) const TOKEN: &str = "5d41402abc4b2a76b9719d911017c592";
pub(super) const AT: &str = "2026-09-21T14:13:20Z";
pub(super) const DIGEST: &str = "c98c24b677eff44860afea6f493bbaec5bb1c4cbb209c6fc2bbb47f66ff2ad31";

pub(super) fn file() -> Value {
    json!({
        "path": "short.md", "sha256": DIGEST, "size_bytes": 7, "executable": false,
        "content_kind": "text", "purpose": null, "fetchable_over_mcp": true,
        "execution_gated": false,
    })
}

pub(super) fn ids(rest: Value) -> Value {
    let mut all = json!({ "id": ID, "workflow_id": ID, "skill_id": ID });
    if let (Some(all), Value::Object(rest)) = (all.as_object_mut(), rest) {
        all.extend(rest);
    }
    all
}

pub(super) fn save_request() -> Value {
    json!({
        "name": "Incident postmortem",
        "description": "Drafts a postmortem from the log of an incident.",
        "outcome": "A postmortem within an hour of the end of an incident.",
        "tags": ["sre"],
        "body": "# Draft a postmortem\n\n1. Read the log.\n2. Write what happened, and why.\n",
        "expected_version_token": null,
        "verifiers": [],
        "files": [{ "path": "short.md", "content": "# Short" }],
    })
}

pub(super) fn summary() -> Value {
    ids(json!({
        "slug": "incident-postmortem", "name": "incident-postmortem",
        "title": "Incident postmortem",
        "description": "Drafts a postmortem from the log of an incident.",
        "outcome": "A postmortem within an hour of the end of an incident.", "tags": ["sre"],
        "current_version": 1, "version_token": TOKEN, "owner_user_id": "acct_admin",
        "owner": null, "effective_role": "owner", "parent_template_id": null,
        "parent_template_version": null,
        "created_at": AT, "updated_at": AT, "archived_at": null,
    }))
}

pub(super) fn whole() -> Value {
    ids(json!({
        "slug": "incident-postmortem", "name": "Incident postmortem",
        "description": "Drafts a postmortem from the log of an incident.",
        "outcome": "A postmortem within an hour of the end of an incident.", "tags": ["sre"],
        "version": 1, "current_version": 1, "version_token": TOKEN,
        "body": "# Draft a postmortem\n\n1. Read the log.\n2. Write what happened, and why.\n",
        "source": "manual", "verifiers": [], "image_generators": [], "files": [file()],
        "owner_user_id": "acct_admin", "owner": null, "effective_role": "owner", "shared_from_version": null,
        "parent_template_id": null, "parent_template_version": null,
        "created_by_user_id": "acct_admin", "created_at": AT, "updated_at": AT,
        "archived_at": null,
        "run_guidance": "Follow the body from the beginning. When it names a verifier, run the verifier with the inputs of its contract, and continue only if it passed.",
    }))
}

pub(super) fn named(rest: Value) -> Value {
    let mut all = ids(rest);
    all["name"] = json!("Incident postmortem");
    all
}
