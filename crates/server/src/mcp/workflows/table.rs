//! The table of the tools for workflows.

use jurat_wire::api::{
    kit::page::PageBody,
    mcp::workflows::{
        GrantWorkflowArguments, ListWorkflowsArguments, RevokeWorkflowGrantArguments,
        TransferWorkflowArguments, WorkflowArguments, WorkflowFileArguments,
        WorkflowFilesArguments, WorkflowVersionArguments,
    },
    workflows::{
        ArchivedWorkflow, DeletedWorkflow, DeletedWorkflowVersion, GrantedWorkflow, LeftWorkflow,
        LineageBody, ListedWorkflow, OfferedWorkflow, RevokedWorkflowGrant, SaveWorkflowRequest,
        SavedWorkflowBody, SearchWorkflowsRequest, WorkflowBody, WorkflowFileEnvelope,
        WorkflowFilesBody, WorkflowGrantList, WorkflowSearchBody,
    },
};
use serde_json::Value;

use crate::mcp::{
    schema,
    tools::{TextAuthor, ToolEffect, ToolEntry},
};

/// One tool under the names of two eras, then the next.
macro_rules! of_both_eras {
    ($($names:tt, $title:literal, $text:literal, $effect:ident, $input:ty => $output:ty,
        $run:ident, $summary:ident, $author:ident;)+) => {
        &[$(entry!($names, 0, $title, $text, $effect, $input => $output, $run, $summary, $author),
            entry!($names, 1, $title, $text, $effect, $input => $output, $run, $summary, $author),
        )+
            entry!(
                ("lookup_fork_lineage", ""), 0, "Show the origin of a workflow",
                "Returns the template that a workflow was forked from, and its current state.",
                Reads, WorkflowArguments => LineageBody<'static>, lineage, done, Others
            ),
        ]
    };
}

macro_rules! entry {
    ($names:tt, $era:tt, $title:literal, $text:literal, $effect:ident, $input:ty => $output:ty,
        $run:ident, $summary:ident, $author:ident) => {
        ToolEntry {
            name: $names.$era,
            scopes: ToolEffect::$effect.of_workflows(),
            title: $title,
            text: $text,
            effect: ToolEffect::$effect,
            input: schema::input::<$input>,
            output: schema::output::<$output>,
            run: super::$run,
            summary: $summary,
            author: TextAuthor::$author,
        }
    };
}

pub(in crate::mcp) static ENTRIES: &[ToolEntry] = of_both_eras! {
    ("save_skill", "save_workflow"), "Save a workflow",
    "Stores a version of a workflow: a runbook in Markdown, with files and the verifiers that it names. A new name creates a workflow; the next version needs the current `version_token` as `expected_version_token`.",
    Adds, SaveWorkflowRequest => SavedWorkflowBody<'static>, save, saved, Caller;
    ("list_skills", "list_workflows"), "List workflows",
    "Lists the workflows that the account owns or that are shared with it, one page at a time.",
    Reads, ListWorkflowsArguments => PageBody<'static, ListedWorkflow<'static>>, list, counted, Others;
    ("search_skills", "search_workflows"), "Search workflows",
    "Finds workflows by words in their names, tags, descriptions, outcomes and bodies.",
    Reads, SearchWorkflowsRequest => WorkflowSearchBody<'static>, search, counted, Others;
    ("get_skill", "get_workflow"), "Read a workflow",
    "Returns a full version of a workflow: its body, the verifiers that it names, and its files without their contents.",
    Reads, WorkflowVersionArguments => WorkflowBody<'static>, get, read, Others;
    ("get_skill_file", "get_workflow_file"), "Read a workflow file",
    "Returns one attached file of a workflow.",
    Reads, WorkflowFileArguments => WorkflowFileEnvelope<'static>, file, done, Others;
    ("get_skill_files", "get_workflow_files"), "Read workflow files",
    "Returns several attached files of a workflow.",
    Reads, WorkflowFilesArguments => WorkflowFilesBody<'static>, files, done, Others;
    ("archive_skill", "archive_workflow"), "Archive a workflow",
    "Archives a workflow: others lose access to it and its verifiers until it is unarchived.",
    Changes, WorkflowArguments => ArchivedWorkflow<'static>, archive, done, Caller;
    ("unarchive_skill", "unarchive_workflow"), "Unarchive a workflow",
    "Restores an archived workflow with its grants.",
    Changes, WorkflowArguments => ArchivedWorkflow<'static>, unarchive, done, Caller;
    ("delete_skill", "delete_workflow"), "Delete a workflow",
    "Permanently deletes a workflow with all its versions, files and grants. This cannot be undone; prefer archiving.",
    Ends, WorkflowArguments => DeletedWorkflow<'static>, delete, done, Caller;
    ("delete_skill_version", "delete_workflow_version"), "Delete a workflow version",
    "Permanently deletes a version other than the current one.",
    Ends, WorkflowVersionArguments => DeletedWorkflowVersion<'static>, delete_version, done, Caller;
    ("grant_skill", "grant_workflow"), "Grant a workflow",
    "Grants a user or team access to a workflow and the verifiers that it names.",
    Adds, GrantWorkflowArguments => GrantedWorkflow<'static>, grant, done, Caller;
    ("revoke_skill_grant", "revoke_workflow_grant"), "Revoke a grant",
    "Revokes a grant of a workflow and access to its verifiers.",
    Changes, RevokeWorkflowGrantArguments => RevokedWorkflowGrant<'static>, revoke, done, Caller;
    ("list_skill_grants", "list_workflow_grants"), "List grants",
    "Lists the users and teams with access to a workflow.",
    Reads, WorkflowArguments => WorkflowGrantList<'static>, grants, counted, Others;
    ("leave_shared_skill", "leave_shared_workflow"), "Leave a workflow",
    "Ends the account's own grant; team grants stay.",
    Changes, WorkflowArguments => LeftWorkflow<'static>, leave, done, Caller;
    ("transfer_skill_ownership", "transfer_workflow_ownership"), "Transfer a workflow",
    "Offers a workflow with its verifiers to a new owner; ownership changes when the invitation is accepted.",
    Adds, TransferWorkflowArguments => OfferedWorkflow<'static>, transfer, done, Caller;
};

fn saved(body: &Value) -> String {
    let (slug, id) = (text(&body["slug"]), text(&body["workflow_id"]));
    let (version, token) = (&body["version"], text(&body["version_token"]));
    format!(
        "Saved `{slug}` version {version} as `{id}`; its next version needs the token `{token}`."
    )
}

fn counted(body: &Value) -> String {
    let count = body["items"].as_array().map_or(0, Vec::len);
    let more = match body["next_cursor"].as_str() {
        Some(_) => "; use `next_cursor` to get more",
        None => "",
    };
    format!("{count} found{more}.")
}

fn read(body: &Value) -> String {
    let (slug, version) = (text(&body["slug"]), &body["version"]);
    format!("Workflow `{slug}` version {version} of {}.", body["current_version"])
}

fn done(_: &Value) -> String {
    "Done.".to_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
