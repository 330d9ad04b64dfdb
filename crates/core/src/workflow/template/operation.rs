//! Inputs and results of the operations on templates.

use super::{Template, TemplateVersionSummary};
use crate::{id::AccountId, time::Timestamp};

/// Which templates to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TemplateFilter {
    pub viewer: Option<AccountId>,
    /// Only those of the viewer.
    pub is_mine: bool,
    /// Also archived ones, which only their owner sees.
    pub with_archived: bool,
    /// Only those that have this text in what lists show, or in a word of the body.
    pub search: Option<String>,
    /// Starts behind this template, towards older ones.
    pub before: Option<String>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplatePublication {
    pub template: Template,
    pub version: u32,
    pub summary: TemplateVersionSummary,
    pub notes: Vec<String>,
    /// The names of the verifiers that everybody can see and run now.
    pub exposed: Vec<String>,
}

/// What is done to a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateChangeKind {
    Unpublish(u32),
    Deprecate(u32, Option<String>),
    DeleteVersion(u32),
    Archive(Option<String>),
    Unarchive,
    Delete,
}

/// A template as it was before it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedTemplate {
    pub template: Template,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkedWorkflow {
    pub workflow_id: String,
    pub slug: String,
    pub name: String,
    pub version_token: String,
    pub template_id: String,
    pub template_version: u32,
    /// The names in the workflow, and the verifiers behind them.
    pub verifiers: Vec<(String, String)>,
    pub notes: ForkNotes,
}

/// What whoever forks is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForkNotes {
    /// The handle under which the template was looked for, and the one where it is.
    pub moved: Option<(String, String)>,
    pub deprecation: Option<String>,
}
