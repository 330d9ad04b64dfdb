//! The resource `/v1/workflows`, which is `/v1/skills` too: runbooks that name their verifiers.

mod files;
mod grants;
mod request;
mod show;

use jurat_core::{
    account::AccountName,
    code::ProblemCode,
    workflow::{WorkflowRef, WorkflowRefError},
};

pub use self::{
    files::{
        InlineRoom, WorkflowFileBody, WorkflowFileEnvelope, WorkflowFilesBody, envelope, manifest,
        missing,
    },
    grants::{
        GrantedWorkflow, LeftWorkflow, OfferedWorkflow, RevokeWorkflowGrantRequest,
        RevokedWorkflowGrant, TransferWorkflowRequest, WorkflowGrantBody, WorkflowGrantList,
        WorkflowGrantRequest, already_owned, decode_grant, decode_revoke, decode_transfer,
        grant_line, granted, left, offered, revoked,
    },
    request::{
        BindingRequest, FileRequest, NewFilesPatch, PatchWorkflowFilesRequest, SaveWorkflowRequest,
        SearchWorkflowsRequest, WorkflowSearchOrder, decode_patch, decode_save, decode_search,
        whose,
    },
    show::{
        ArchivedWorkflow, DeletedWorkflow, DeletedWorkflowVersion, LineageBody, ListedWorkflow,
        PatchedWorkflow, SavedWorkflowBody, UpstreamView, WorkflowBody, WorkflowHitBody,
        WorkflowSearchBody, WorkflowVersionView, archived, deleted, found, lineage, listed,
        patched, saved, shown, unarchived, version_deleted,
    },
};
use super::kit::fields::{RequestFields, short};
use crate::problem::Problem;

/// The workflow that an address names. What has no form of a name names nothing.
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

/// The workflow with the version that is asked for beside its name.
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

/// Somebody who is named by an e-mail address, a handle or an id.
fn person(body: &RequestFields<'_>, field: &str) -> Result<AccountName, Problem> {
    let text = body.required_text(field)?;
    AccountName::parse(text.trim())
        .ok_or_else(|| body.wrong(field, "must be an e-mail address, a handle or an account id"))
}
