//! The resource `/v1/workflows`, also at `/v1/skills`: runbooks that name their verifiers.

mod files;
mod grants;
mod request;
mod show;

use jurat_core::{
    code::ProblemCode,
    workflow::{WorkflowRef, WorkflowRefError},
};

pub use self::{
    files::{
        InlineRoom, WorkflowFileBody, WorkflowFileEnvelope, WorkflowFilesBody, envelope, manifest,
        missing,
    },
    grants::{
        GrantedWorkflow, LeftWorkflow, OfferedWorkflow, RevokeWorkflowGrantDraft,
        RevokeWorkflowGrantRequest, RevokedWorkflowGrant, TransferWorkflowDraft,
        TransferWorkflowRequest, WorkflowGrantBody, WorkflowGrantDraft, WorkflowGrantList,
        WorkflowGrantRequest, already_owned, decode_grant, decode_revoke, decode_transfer,
        grant_line, granted, left, offered, revoked,
    },
    request::{
        BindingDraft, BindingRequest, FileDraft, FileRequest, NewFilesPatch,
        PatchWorkflowFilesDraft, PatchWorkflowFilesRequest, SaveWorkflowDraft, SaveWorkflowRequest,
        SearchWorkflowsDraft, SearchWorkflowsRequest, WorkflowSearchOrder, decode_patch,
        decode_save, decode_search, whose,
    },
    show::{
        ArchivedWorkflow, DeletedWorkflow, DeletedWorkflowVersion, LineageBody, ListedWorkflow,
        PatchedWorkflow, SavedWorkflowBody, UpstreamView, WorkflowBody, WorkflowHitBody,
        WorkflowSearchBody, WorkflowVersionView, archived, deleted, found, lineage, listed,
        patched, saved, shown, unarchived, version_deleted,
    },
};
use super::kit::json::short;
use crate::problem::Problem;

/// Reads a reference to a workflow. A malformed reference is a workflow that does not exist.
pub fn reference(text: &str) -> Result<WorkflowRef, Problem> {
    WorkflowRef::parse(text).map_err(|error| match error {
        WorkflowRefError::Form => {
            Problem::new(ProblemCode::NotFound, format!("there is no workflow `{}`", short(text)))
        }
        WorkflowRefError::Version => {
            let detail = format!("the workflow `{}` {error}", short(text));
            Problem::new(ProblemCode::ValidationError, detail).at("workflow_id")
        }
    })
}

/// Adds a separately given version to a reference. A pinned version must be the same.
pub fn pinned(reference: WorkflowRef, version: Option<u32>) -> Result<WorkflowRef, Problem> {
    match (reference.version, version) {
        (Some(pinned), Some(asked)) if pinned != asked => {
            let detail =
                format!("`version` {asked} contradicts the pin `@{pinned}`; leave one out");
            Err(Problem::new(ProblemCode::ValidationError, detail).at("version"))
        }
        (pinned, asked) => Ok(WorkflowRef { version: pinned.or(asked), ..reference }),
    }
}
