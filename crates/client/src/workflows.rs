//! `/v1/workflows`.

use jurat_wire::api::{
    packs::PackBody,
    templates::SafetyCheckBody,
    workflows::{
        ArchivedWorkflow, DeletedWorkflow, DeletedWorkflowVersion, GrantedWorkflow, LeftWorkflow,
        LineageBody, ListedWorkflow, OfferedWorkflow, PatchWorkflowFilesDraft, PatchedWorkflow,
        RevokeWorkflowGrantDraft, RevokedWorkflowGrant, SaveWorkflowDraft, SavedWorkflowBody,
        SearchWorkflowsDraft, TransferWorkflowDraft, WorkflowBody, WorkflowGrantDraft,
        WorkflowGrantList, WorkflowSearchBody,
    },
};

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/workflows";

/// A filter for workflows; by default it matches the caller's own.
#[derive(Debug, Clone, Default)]
pub struct WorkflowListQuery {
    pub filter: Option<String>,
    pub tag: Option<String>,
    pub search: Option<String>,
    pub include_archived: Option<bool>,
}

pub fn list(filter: &WorkflowListQuery) -> Call<Page<ListedWorkflow<'static>>> {
    Call::get(ROUTE)
        .query("filter", filter.filter.as_ref())
        .query("tag", filter.tag.as_ref())
        .query("search", filter.search.as_ref())
        .query("include_archived", filter.include_archived)
}

pub fn search(search: &SearchWorkflowsDraft) -> Call<WorkflowSearchBody<'static>> {
    Call::post("/v1/workflows/search", search)
}

/// One version, by default the current one.
pub fn show(workflow: &str, version: Option<u32>) -> Call<WorkflowBody<'static>> {
    Call::get(path(ROUTE, &[workflow])).query("version", version)
}

pub fn save(workflow: &SaveWorkflowDraft) -> Call<SavedWorkflowBody<'static>> {
    Call::post(ROUTE, workflow)
}

/// Adds, changes and deletes individual files.
pub fn patch_files(
    workflow: &str,
    change: &PatchWorkflowFilesDraft,
) -> Call<PatchedWorkflow<'static>> {
    Call::patch(path(ROUTE, &[workflow, "files"]), change)
}

pub fn lineage(workflow: &str) -> Call<LineageBody<'static>> {
    Call::get(path(ROUTE, &[workflow, "lineage"]))
}

pub fn archive(workflow: &str) -> Call<ArchivedWorkflow<'static>> {
    Call::post_empty(path(ROUTE, &[workflow, "archive"]))
}

pub fn unarchive(workflow: &str) -> Call<ArchivedWorkflow<'static>> {
    Call::post_empty(path(ROUTE, &[workflow, "unarchive"]))
}

pub fn delete(workflow: &str) -> Call<DeletedWorkflow<'static>> {
    Call::delete(path(ROUTE, &[workflow]))
}

pub fn delete_version(workflow: &str, version: u32) -> Call<DeletedWorkflowVersion<'static>> {
    Call::delete(path(ROUTE, &[workflow, "versions", &version.to_string()]))
}

pub fn grant(workflow: &str, grant: &WorkflowGrantDraft) -> Call<GrantedWorkflow<'static>> {
    Call::post(path(ROUTE, &[workflow, "grants"]), grant)
}

pub fn revoke_grant(workflow: &str, grantee: &str) -> Call<RevokedWorkflowGrant<'static>> {
    let body = RevokeWorkflowGrantDraft { grantee_email_or_at_team_handle: grantee.to_owned() };
    Call::delete(path(ROUTE, &[workflow, "grants"])).with_body(&body)
}

pub fn grants(workflow: &str) -> Call<WorkflowGrantList<'static>> {
    Call::get(path(ROUTE, &[workflow, "grants"]))
}

pub fn leave(workflow: &str) -> Call<LeftWorkflow<'static>> {
    Call::post_empty(path(ROUTE, &[workflow, "leave"]))
}

pub fn transfer_ownership(workflow: &str, new_owner: &str) -> Call<OfferedWorkflow<'static>> {
    let body = TransferWorkflowDraft { new_owner_user_id_or_email: new_owner.to_owned() };
    Call::post(path(ROUTE, &[workflow, "transfer-ownership"]), &body)
}

/// The purpose of instructions for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instructions {
    Teach,
    Audit,
    Optimize,
    OptimizeDescription,
}

/// Instructions for an agent that works on one workflow.
pub fn instructions(
    workflow: &str,
    instructions: Instructions,
    max_iterations: Option<u32>,
) -> Call<PackBody<'static>> {
    let verb = match instructions {
        Instructions::Teach => "teach",
        Instructions::Audit => "audit",
        Instructions::Optimize => "optimize",
        Instructions::OptimizeDescription => "optimize-description",
    };
    Call::post_empty(path(ROUTE, &[workflow, verb])).query("max_iterations", max_iterations)
}

pub fn check_safety(workflow: &str) -> Call<SafetyCheckBody<'static>> {
    Call::post_empty(path(ROUTE, &[workflow, "safety-check"]))
}
