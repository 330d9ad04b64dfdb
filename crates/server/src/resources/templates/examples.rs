//! Examples of templates.

use jurat_engine::{InstructionKind, instructions_for};
use serde_json::{Map, Value, json};

pub(in crate::resources) const ID: &str = "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70";
const RUN: &str = "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f71";

/// The first lines of real instructions.
pub(in crate::resources) fn pack(kind: InstructionKind, workflow: Option<&str>) -> Value {
    let begin = |text: &str| format!("{}\n…", text.lines().next().unwrap_or_default());
    let pack = instructions_for(kind, workflow.map(|id| (id, "Report")), None);
    let references: Map<String, Value> = pack
        .references
        .iter()
        .map(|(path, text)| ((*path).to_owned(), json!(begin(text))))
        .collect();
    let mut example = json!({ "skill_md": begin(&pack.text), "references": references });
    if let Some(turns) = pack.max_iterations {
        example["max_iterations"] = json!(turns);
    }
    if let Some(id) = workflow {
        for name in ["id", "skill_id", "workflow_id"] {
            example[name] = json!(id);
        }
    }
    example
}

pub(in crate::resources) fn publish_request() -> Value {
    json!({ "workflow_id": "report", "release_notes": "the first version" })
}

fn checks() -> Value {
    json!({
        "outcome": "met", "runnable": "met", "well_formed": "met",
        "criteria": [
            { "criterion": "The outcome is one observable result.", "passed": true, "reason": "" },
            { "criterion": "The steps lead to it and can be done in order.", "passed": true, "reason": "" },
            { "criterion": "Each check says what a pass and a fail look like.", "passed": true, "reason": "" },
            { "criterion": "It says what to do when a check or a step fails.", "passed": true, "reason": "" },
            { "criterion": "The name and description match what the body does.", "passed": true, "reason": "" },
        ],
        "guidance": null,
    })
}

fn safety() -> Value {
    json!({ "status": "clean", "advisory_run_id": RUN, "advisory_reasoning": "No warnings." })
}

pub(in crate::resources) fn published() -> Value {
    json!({
        "template_id": ID, "version": 1, "publishing_handle": "ann", "slug": "report",
        "safety_verification": safety(), "design_checks": checks(), "authoring_notes": [],
        "verifier_exposure_notice": "Anyone can now read the criterion …",
    })
}

pub(in crate::resources) fn summary() -> Value {
    json!({
        "id": ID, "slug": "report", "name": "Report", "handle": "ann",
        "owner_user_id": "acct_01KHG5YN40MXBR5YWT0Q2YFEDS", "latest_version": 1,
        "description": "Creates the weekly report.",
        "outcome": "A file `report.md` whose numbers name their rows.", "tags": ["sales"],
        "publishing_handle": "ann", "safety_verification_status": "clean",
        "design_checks": checks(), "published_at": "2026-11-15T09:30:00Z", "archived_at": null,
    })
}

pub(in crate::resources) fn searched() -> Value {
    json!({
        "items": [{
            "id": ID, "rank": 1, "match_reason": "has the words: report, sales", "slug": "report",
            "name": "Report", "handle": "ann", "description": "Creates the weekly report.",
            "outcome": "A file `report.md` whose numbers name their rows.", "tags": ["sales"],
        }],
        "query": "weekly sales report", "limit": 10, "search_mode": "words",
    })
}

pub(in crate::resources) fn template() -> Value {
    json!({
        "id": ID, "slug": "report", "name": "Report", "handle": "ann",
        "owner_user_id": "acct_01KHG5YN40MXBR5YWT0Q2YFEDS", "version": 1,
        "body": "> This is version 1 of the public template @ann/report …\n\n# Report\n…",
        "description": "Creates the weekly report.",
        "outcome": "A file `report.md` whose numbers name their rows.", "tags": ["sales"],
        "release_notes": "the first version", "publishing_handle": "ann",
        "safety_verification_status": "clean", "safety_verification": safety(),
        "design_checks": checks(), "published_at": "2026-11-15T09:30:00Z",
        "unpublished_at": null, "archived_at": null, "deprecated_at": null,
        "deprecation_message": null,
        "verifier_snapshots": [{
            "name": "cites", "verifier_id": RUN, "verifier_version": 1, "config_hash": "5d41…",
            "criterion": "Return passed=true when …", "input_contract": "text",
            "input_fields": ["text"], "few_shot_examples": [],
            "judge_model_config": { "model": "openai/gpt-5.4-mini", "commit_first": false },
            "reasoning_field_description": "Why the criterion is met or not met.",
            "revoked": false,
        }],
        "image_generator_snapshots": [],
        "files": [{
            "path": "list.md", "sha256": "2cf24dba…", "size_bytes": 5, "executable": false,
            "content_kind": "text", "purpose": "", "fetchable_over_mcp": true,
        }],
        "run_guidance": "Run these checks where the body asks for them …",
    })
}

pub(in crate::resources) fn file() -> Value {
    json!({
        "path": "notes.md", "sha256": "2cf24dba…", "size_bytes": 5, "executable": false,
        "content_kind": "text", "purpose": "", "content": "hello",
    })
}

pub(in crate::resources) fn forked() -> Value {
    json!({
        "workflow_id": RUN, "skill_id": RUN, "id": RUN, "slug": "report-2", "name": "Report",
        "parent_template_id": ID, "parent_template_version": 1, "version_token": "5d41402a",
        "redirected": false, "redirected_from_handle": null, "redirected_to_handle": null,
        "deprecation_warning": null,
        "verifiers": [{ "name": "cites", "verifier_id": ID, "version": null }],
        "next_step": "Read the workflow …",
    })
}

/// The result of screening a workflow or a template.
pub(in crate::resources) fn checked(what: &str) -> Value {
    let run = |name: &str| {
        json!({
            "verifier_id": name, "verifier_version": 1, "verifier_run_id": RUN,
            "verdict": "passed", "reasoning": "The criterion is not met at all.",
        })
    };
    json!({
        "resource_type": what, "resource_id": ID, "resource_version": 1, "status": "clean",
        "block": run("system:safety-block"), "advisory": run("system:safety-advisory"),
        "truncated": false, "truncated_fields": [],
    })
}
