//! Inputs and results of the operations on workflows.

use super::{AccessRole, FileEntry, ReachableWorkflow, VerifierBinding, Workflow, WorkflowVersion};
use crate::{account::team::Invitation, time::Timestamp};

/// A workflow with one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowView {
    pub reached: ReachableWorkflow,
    pub version: WorkflowVersion,
}

/// A file with what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowFileBytes {
    pub entry: FileEntry,
    pub content: Vec<u8>,
}

/// What became of the template that a workflow was forked from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkLineage {
    pub workflow: Workflow,
    /// `None` when there is no such template, or none any more.
    pub upstream: Option<UpstreamTemplate>,
}

/// The template that a workflow was forked from, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamTemplate {
    pub latest_version: u32,
    pub archived_at: Option<Timestamp>,
    pub archive_reason: Option<String>,
    /// Whether the version that was forked is still there.
    pub has_version: bool,
    pub unpublished_at: Option<Timestamp>,
    pub deprecated_at: Option<Timestamp>,
    pub deprecation_message: Option<String>,
}

/// A version that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowSaveResult {
    pub workflow: Workflow,
    pub body: String,
    pub bindings: Vec<VerifierBinding>,
    pub files: Vec<FileEntry>,
    /// Paths that are new or differ from the version before.
    pub changed: Vec<String>,
    pub deleted: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowGrantResult {
    pub workflow: Workflow,
    pub role: AccessRole,
    pub floor: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRevocationResult {
    pub workflow: Workflow,
    pub was_there: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowLeaveResult {
    pub workflow: Workflow,
    /// How many grants to the caller alone were removed; those of teams stay.
    pub removed: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferOutcome<T> {
    Invitation(Invitation),
    /// It was the caller's already.
    Own(Box<T>),
}
