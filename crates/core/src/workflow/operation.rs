//! Defines the inputs and results of operations on workflows.

use super::{
    AccessRole, FileEntry, OwnershipFilter, ReachableWorkflow, VerifierBinding, Workflow,
    WorkflowVersion,
};
use crate::{account::team::Invitation, time::Timestamp};

/// Selects workflows for a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowFilter {
    pub whose: OwnershipFilter,
    /// Includes the caller's own archived workflows.
    pub with_archived: bool,
    pub tag: Option<String>,
    /// A text in the name, the description, the outcome or the tags.
    pub search: Option<String>,
    /// Starts after this workflow, towards older ones.
    pub before: Option<String>,
    pub limit: u32,
}

/// A workflow with one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowView {
    pub reached: ReachableWorkflow,
    pub version: WorkflowVersion,
}

/// A file with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowFileBytes {
    pub entry: FileEntry,
    pub content: Vec<u8>,
}

/// A fork, and the present state of its template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkLineage {
    pub workflow: Workflow,
    /// `None` if the workflow is not a fork, or its template was deleted.
    pub upstream: Option<UpstreamTemplate>,
}

/// The present state of the template that a workflow was forked from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamTemplate {
    pub latest_version: u32,
    pub archived_at: Option<Timestamp>,
    pub archive_reason: Option<String>,
    /// Whether the forked version still exists.
    pub has_version: bool,
    pub unpublished_at: Option<Timestamp>,
    pub deprecated_at: Option<Timestamp>,
    pub deprecation_message: Option<String>,
}

/// A saved version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowSaveResult {
    pub workflow: Workflow,
    pub body: String,
    pub bindings: Vec<VerifierBinding>,
    pub files: Vec<FileEntry>,
    /// The paths that are new or differ from the previous version.
    pub changed: Vec<String>,
    pub deleted: Vec<String>,
}

/// A granted role, with the first version that it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowGrantResult {
    pub workflow: Workflow,
    pub role: AccessRole,
    pub floor: u32,
}

/// A revoked grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRevocationResult {
    pub workflow: Workflow,
    pub was_there: bool,
}

/// A workflow that the caller has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowLeaveResult {
    pub workflow: Workflow,
    /// The number of removed grants to the caller alone; grants to teams stay.
    pub removed: u32,
}

/// The outcome of an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferOutcome<T> {
    Invitation(Invitation),
    /// The caller already owns it.
    Own(Box<T>),
}
