//! Defines the inputs and results of operations on templates.

use super::{Template, TemplateVersionSummary};
use crate::{id::AccountId, time::Timestamp};

/// Selects templates for a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TemplateFilter {
    pub viewer: Option<AccountId>,
    /// Lists only templates of the viewer.
    pub is_mine: bool,
    /// Includes archived templates, which only their owner sees.
    pub with_archived: bool,
    /// Lists only templates with this text in a listed field or in a word of the body.
    pub search: Option<String>,
    /// Starts after this template, towards older ones.
    pub before: Option<String>,
    pub limit: u32,
}

/// A published version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplatePublication {
    pub template: Template,
    pub version: u32,
    pub summary: TemplateVersionSummary,
    pub notes: Vec<String>,
    /// The names of the verifiers that everybody can now see and run.
    pub exposed: Vec<String>,
}

/// A change to a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateChangeKind {
    Unpublish(u32),
    Deprecate(u32, Option<String>),
    DeleteVersion(u32),
    Archive(Option<String>),
    Unarchive,
    Delete,
}

/// The template before its change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedTemplate {
    pub template: Template,
    pub at: Timestamp,
}

/// A workflow that was forked from a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkedWorkflow {
    pub workflow_id: String,
    pub slug: String,
    pub name: String,
    pub version_token: String,
    pub template_id: String,
    pub template_version: u32,
    /// The names in the workflow, each with its verifier.
    pub verifiers: Vec<(String, String)>,
    pub notes: ForkNotes,
}

/// Notes for the owner of a fork.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ForkNotes {
    /// The handle in the request, and the present one.
    pub moved: Option<(String, String)>,
    pub deprecation: Option<String>,
}
