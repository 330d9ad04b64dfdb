//! Templates: published versions of workflows, with the verifiers that they were published with.

mod anonymous;
mod change;
mod fork;
mod publish;
mod read;

use jurat_core::{
    account::AccountName,
    id::AccountId,
    time::Timestamp,
    verifier::VerifierVersion,
    workflow::{
        operation::OfferOutcome,
        template::{
            ChangedTemplate, ForkNotes, ForkedWorkflow, Template, TemplateChangeKind,
            TemplateContent, TemplateFile, TemplateFilter, TemplateLine, TemplatePublication,
            TemplateSelector, TemplateVersion, TemplateVersionSummary,
        },
    },
};

pub(crate) use self::{
    change::transfer,
    publish::verifier_lock,
    read::{SERVING, read_serving},
};
use crate::{CreditGrant, InvitationRefusal, WorkflowRefusal, db::tx::operations};

operations! {
    /// Templates, and the admission of visitors.
    pub struct TemplateOps = store.templates();
    reads {
        /// A version that the viewer may see: the requested one, or the newest.
        fn get(asked: &TemplateLookup) -> Option<TemplateVersion> = read::get;
        /// Templates that the viewer may see, newest first.
        fn list(filter: &TemplateFilter) -> Vec<TemplateLine> = read::list;
        /// Templates that the viewer may see and that contain some of the words, roughly best
        /// first, each with the words of its body.
        fn search(wanted: &TemplateWordSearch) -> Vec<(TemplateLine, String)> = read::search;
        /// The bytes of a file of a version that the viewer may see.
        fn file(asked: &TemplateFileLookup) -> Option<(TemplateFile, Vec<u8>)> = read::file;
        /// The version of an active verifier, if a live template was published with exactly that
        /// version.
        fn published_verifier(pair: &PublishedVerifierLookup) -> Option<VerifierVersion> = read::published;
        /// The version that a workflow of the account would publish, by its id or its slug.
        fn publishable(account: &AccountId, workflow: &str) -> Option<PublishableWorkflow>
            = publish::publishable;
    }
    changes {
        /// Admits a network address: creates its account, and grants it the credit of the month if
        /// it has not had it.
        fn admit_visitor(monthly: &CreditGrant)
            -> () = anonymous::admit;
    }
    writes {
        /// Adds a version, and creates the template with the first one.
        fn publish(publish: &TemplatePublish) -> TemplatePublication, or PublishRefusal = publish::publish;
        /// Changes the status of a template or of one of its versions.
        fn change(change: &TemplateChange) -> ChangedTemplate, or TemplateChangeRefusal = change::change;
        /// Creates a workflow from a version, with its own verifiers.
        fn fork(fork: &TemplateFork) -> ForkedWorkflow, or ForkRefusal = fork::fork;
        /// Offers a template of the account to another account.
        fn offer(offer: &TemplateOffer) -> OfferOutcome<Template>, or TemplateOfferRefusal
            = change::offer;
    }
}

/// The version of a template to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateLookup {
    pub which: TemplateSelector,
    /// If absent, the newest.
    pub version: Option<u32>,
    /// The account of the viewer, which also sees its own templates that are not live.
    pub viewer: Option<AccountId>,
    pub now: Timestamp,
}

/// The file of a version to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFileLookup {
    pub template: String,
    pub version: u32,
    pub path: String,
    pub viewer: Option<AccountId>,
}

/// A version of a verifier that may be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedVerifierLookup {
    pub verifier: String,
    /// If absent, the current version.
    pub version: Option<u32>,
}

/// A search for templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateWordSearch {
    pub viewer: Option<AccountId>,
    /// Only templates of the viewer.
    pub is_mine: bool,
    /// In lower case.
    pub words: Vec<String>,
    pub limit: u32,
}

/// A workflow as it can be published now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishableWorkflow {
    pub id: String,
    pub slug: String,
    pub name: String,
    pub description: String,
    pub outcome: String,
    pub tags: Vec<String>,
    pub body: String,
    pub version: u32,
    pub is_archived: bool,
    /// Name, verifier, and the pinned version if there is one.
    pub bindings: Vec<(String, String, Option<u32>)>,
    pub files: Vec<TemplateFileBytes>,
}

/// A file with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFileBytes {
    pub file: TemplateFile,
    pub content: Vec<u8>,
}

/// A version to publish.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplatePublish {
    pub account: AccountId,
    pub workflow_id: String,
    /// The version of the workflow that was screened.
    pub workflow_version: u32,
    pub slug: String,
    pub summary: TemplateVersionSummary,
    pub content: TemplateContent,
    /// Hints for its author.
    pub notes: Vec<String>,
    /// The id of a new template.
    pub new_id: String,
    pub at: Timestamp,
}

/// Why nothing was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishRefusal {
    HandleNotClaimed,
    WorkflowUnknown,
    WorkflowArchived,
    /// The workflow was saved again in the meantime.
    WorkflowChanged,
    /// A verifier with this name in the workflow can no longer be published.
    VerifierGone(String),
    /// Another workflow of the account was published under the slug.
    SlugTaken,
    Archived,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateChange {
    pub account: AccountId,
    pub which: TemplateSelector,
    pub change: TemplateChangeKind,
    pub at: Timestamp,
}

/// A template that its owner offers to another account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateOffer {
    pub account: AccountId,
    pub which: TemplateSelector,
    pub to: AccountName,
    pub invitation_id: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateOfferRefusal {
    Unknown,
    Invitation(InvitationRefusal),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateChangeRefusal {
    Unknown,
    VersionUnknown,
    /// The version is published; it must be unpublished first.
    StillPublished,
    /// The template has a published version, and is not archived.
    Live,
}

/// A workflow to create from a version.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateFork {
    pub account: AccountId,
    pub template_id: String,
    pub version: u32,
    pub name: String,
    /// Used as it is if it is free, otherwise with a number.
    pub slug: String,
    pub summary: TemplateVersionSummary,
    pub body: String,
    pub verifiers: Vec<ForkedVerifier>,
    pub workflow_id: String,
    pub workflow_token: String,
    pub notes: ForkNotes,
    pub at: Timestamp,
}

/// A verifier that a fork creates.
#[derive(Debug, Clone, PartialEq)]
pub struct ForkedVerifier {
    /// The name under which the workflow binds it.
    pub binding: String,
    /// Used as it is if it is free, otherwise with a number.
    pub name: String,
    pub description: String,
    pub config: jurat_core::verifier::VerifierConfig,
    pub id: String,
    pub token: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForkRefusal {
    /// The version is no longer visible.
    Unknown,
    /// Too many verifiers have the name.
    NoNameLeft(String),
    /// Such a workflow cannot be created.
    Workflow(WorkflowRefusal),
}
