//! Workflows, who may use them, and what is kept of each version.

mod change;
mod files;
mod grants;
mod reach;
mod read;
mod rows;
mod save;
mod transfer;

use jurat_core::{
    account::AccountName,
    id::AccountId,
    team::Invitation,
    time::Timestamp,
    workflow::{
        Binding, FileEntry, GrantLine, NewBinding, NewFile, Reached, Role, Slug, Source, Whose,
        Workflow, WorkflowVersion, WorkflowWhich,
    },
};

pub(crate) use self::{
    files::Kept,
    grants::grants_adopt,
    reach::{is_accepted, lock, of_owner, principals},
    rows::{label, role_of_rank},
    save::{Content, add_new},
    transfer::transfer,
};
use crate::{InvitationRefused, StorageFull, both::operations};

operations! {
    /// Workflows, who may use them, and what is kept of each version.
    pub trait Workflows;
    reads {
        /// A workflow that the caller reaches. With a version, that one must be seen too.
        fn workflow_find(asked: &WorkflowAsked) -> Found<Reached> = read::find;
        /// The same with the version that is asked for, or the current one.
        fn workflow_get(asked: &WorkflowAsked) -> Found<WorkflowView> = read::get;
        /// What the caller reaches, newest first.
        fn workflow_list(query: &WorkflowQuery) -> Vec<Reached> = read::list;
        /// What the caller reaches that has some of the words, roughly best first, each with the
        /// words of its body.
        fn workflow_search(wanted: &WorkflowWords) -> Vec<(Reached, String)> = read::search;
        /// Files of a version with what is in them. A path that is not there is left out.
        fn workflow_files(asked: &FilesAsked) -> Found<FilesFound> = files::read;
        /// Who may use a workflow. Only those who may share it see others than themselves.
        fn workflow_grants(asked: &WorkflowAsked) -> Found<Vec<GrantLine>> = grants::list;
        /// A workflow with what became of the template that it was forked from.
        fn workflow_lineage(asked: &WorkflowAsked) -> Found<Lineage> = read::lineage;
    }
    writes {
        /// Makes a workflow, or adds a version to one.
        fn workflow_save(save: &WorkflowSave) -> Saved, or WorkflowRefused = save::save;
        /// Adds a version that differs in its files, or in its body, only.
        fn workflow_patch_files(patch: &FilesPatch) -> Saved, or WorkflowRefused = save::patch;
        /// Puts a workflow away, or back; what is away already stays so.
        fn workflow_archive(change: &WorkflowChange) -> Workflow, or WorkflowRefused
            = change::archive;
        fn workflow_unarchive(change: &WorkflowChange) -> Workflow, or WorkflowRefused
            = change::unarchive;
        /// Erases a workflow with all its versions, files and grants.
        fn workflow_delete(change: &WorkflowChange) -> Workflow, or WorkflowRefused
            = change::delete;
        /// Erases one version, which is not the current one.
        fn workflow_version_delete(change: &WorkflowChange) -> Workflow, or WorkflowRefused
            = change::delete_version;
        /// Lets somebody use a workflow, or changes what they may do.
        fn workflow_grant(order: &GrantOrder) -> Granting, or WorkflowRefused = grants::grant;
        /// Takes a grant back; the flag says whether there was one.
        fn workflow_revoke(order: &RevokeOrder) -> Revoking, or WorkflowRefused = grants::revoke;
        /// Takes the caller's own grant back.
        fn workflow_leave(change: &WorkflowChange) -> Left, or WorkflowRefused = grants::leave;
        /// Asks somebody to own a workflow.
        fn workflow_offer(offer: &WorkflowOffer) -> Offered<Workflow>, or OfferRefused = transfer::offer;
        /// Gives a workflow to another owner, who agreed; the refusal says in words why not.
        fn workflow_give(giving: &Giving) -> (), or String = transfer::give;
    }
}

/// What came of looking for something by a name that may mean several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<T> {
    One(Box<T>),
    /// There is none, or none that the caller reaches.
    Nothing,
    /// The caller has none with the name, and reaches those of others by these full names.
    Elsewhere(Vec<String>),
}

impl<T> Found<T> {
    pub(crate) fn one(found: Option<T>) -> Self {
        found.map_or(Self::Nothing, |it| Self::One(Box::new(it)))
    }

    pub(crate) fn named_elsewhere(names: Vec<String>) -> Self {
        if names.is_empty() { Self::Nothing } else { Self::Elsewhere(names) }
    }
}

/// Which workflow somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowAsked {
    pub caller: AccountId,
    pub which: WorkflowWhich,
    pub version: Option<u32>,
}

/// A workflow with one of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowView {
    pub reached: Reached,
    pub version: WorkflowVersion,
}

/// Which files of a version to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesAsked {
    pub asked: WorkflowAsked,
    pub paths: Vec<String>,
}

/// The files that are there, and the workflow that they are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesFound {
    pub reached: Reached,
    pub files: Vec<FileRead>,
}

/// A file with what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRead {
    pub entry: FileEntry,
    pub content: Vec<u8>,
}

/// Which workflows have some words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowWords {
    pub caller: AccountId,
    pub whose: Whose,
    pub tag: Option<String>,
    /// In small letters.
    pub words: Vec<String>,
    pub limit: u32,
}

/// Which workflows to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowQuery {
    pub caller: AccountId,
    pub whose: Whose,
    /// The caller's own that are put away too.
    pub with_archived: bool,
    pub tag: Option<String>,
    /// A text that stands in the name, the description, the outcome or the tags.
    pub search: Option<String>,
    /// Starts behind this id, towards older ones.
    pub before: Option<String>,
    pub limit: u32,
}

/// What became of the template that a workflow was forked from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    pub workflow: Workflow,
    /// `None` when there is no such template, or none any more.
    pub upstream: Option<Upstream>,
}

/// The template that a workflow was forked from, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    pub latest_version: u32,
    pub archived_at: Option<Timestamp>,
    pub archive_reason: Option<String>,
    /// Whether the version that was forked is still there.
    pub has_version: bool,
    pub unpublished_at: Option<Timestamp>,
    pub deprecated_at: Option<Timestamp>,
    pub deprecation_message: Option<String>,
}

/// Where a version is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveTarget {
    Id(String),
    /// The caller's own with the slug, or a new one. With a token it may be one of another.
    Slug(Slug),
}

/// A version to be saved. What is left out is carried forward from the version before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowSave {
    pub caller: AccountId,
    pub target: SaveTarget,
    /// Must be the current token of a workflow that is there, and left out for a new one.
    pub expected_token: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub outcome: Option<String>,
    pub tags: Option<Vec<String>>,
    pub body: String,
    pub source: Source,
    pub bindings: Option<Vec<NewBinding>>,
    pub files: Option<Vec<NewFile>>,
    /// The identifier of a new workflow.
    pub new_id: String,
    pub new_token: String,
    /// How many bytes its owner may have stored, who need not be the caller.
    pub quota_bytes: u64,
    pub at: Timestamp,
}

/// A change of files alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesPatch {
    pub caller: AccountId,
    pub which: WorkflowWhich,
    pub expected_token: Option<String>,
    /// Added, or put in the place of those with the same path.
    pub files: Vec<NewFile>,
    pub delete_paths: Vec<String>,
    /// Put in the place of the one before.
    pub body: Option<String>,
    pub source: Source,
    pub new_token: String,
    /// How many bytes its owner may have stored, who need not be the caller.
    pub quota_bytes: u64,
    pub at: Timestamp,
}

/// A version that was added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    pub workflow: Workflow,
    pub body: String,
    pub bindings: Vec<Binding>,
    pub files: Vec<FileEntry>,
    /// Paths that are new or differ from the version before.
    pub changed: Vec<String>,
    pub deleted: Vec<String>,
}

/// A workflow to be changed as a whole, or the version of it that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowChange {
    pub caller: AccountId,
    pub which: WorkflowWhich,
    pub version: Option<u32>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantOrder {
    pub caller: AccountId,
    pub which: WorkflowWhich,
    pub grantee: AccountName,
    pub role: Role,
    pub with_history: bool,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granting {
    pub workflow: Workflow,
    pub role: Role,
    pub floor: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokeOrder {
    pub caller: AccountId,
    pub which: WorkflowWhich,
    pub grantee: AccountName,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoking {
    pub workflow: Workflow,
    pub was_there: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub workflow: Workflow,
    /// How many grants to the caller alone were removed; those of teams stay.
    pub removed: u32,
}

/// A workflow that is offered to another owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowOffer {
    pub caller: AccountId,
    pub which: WorkflowWhich,
    pub to: AccountName,
    pub invitation_id: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offered<T> {
    Invitation(Invitation),
    /// It was the caller's already.
    Own(Box<T>),
}

/// Why a workflow was not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferRefused {
    Workflow(WorkflowRefused),
    Invitation(InvitationRefused),
}

/// A workflow to be given to another owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Giving {
    pub workflow_id: String,
    pub from: AccountId,
    pub to: AccountId,
    pub at: Timestamp,
}

/// Why a workflow was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowRefused {
    /// Its owner has stored as much as it may.
    Full(StorageFull),
    /// There is none, or none that the caller reaches.
    NotFound,
    /// The caller has none with the slug, and reaches those of others by these full names.
    Elsewhere(Vec<String>),
    RoleTooLow {
        has: Role,
        needs: Role,
    },
    /// There is such a workflow, and no token was given.
    TokenMissing {
        current: String,
    },
    /// Somebody else saved meanwhile.
    TokenStale {
        current: String,
    },
    /// A token was given, and there is no such workflow.
    TokenUnexpected,
    /// It is put away.
    Archived,
    /// Only the owner decides which verifiers it names.
    BindingsAreOwners,
    /// The current version can be replaced, not deleted.
    VersionIsCurrent,
    /// Nobody that the caller may know of has the name.
    GranteeUnknown,
    /// Nobody gives more than they have.
    RoleAboveOwn {
        has: Role,
    },
    TooManyGrants,
    /// The caller made as many grants today as it may.
    GrantedTooOften,
    /// As many grants of the owner wait for the one person as may.
    TooManyWaiting,
    /// The token is that of no workflow with the slug that the caller accepted; these full names lead
    /// to those of others.
    TokenOfNone(Vec<String>),
    /// Who owns a workflow gives it away instead.
    OwnerStays,
    /// Something that was given cannot be.
    Field(WrongField),
}

/// What was given and cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrongField {
    /// A new workflow needs a name.
    NameMissing,
    /// A new workflow needs a description.
    DescriptionMissing,
    /// The binding at this place names no active verifier of the owner.
    BindingUnknown {
        place: usize,
    },
    /// No file that the caller sees has this content.
    ContentUnknown {
        path: String,
    },
    /// There is no file to be deleted.
    PathUnknown {
        path: String,
    },
    /// A path would be a file and a folder.
    PathIsFolder {
        path: String,
    },
    TooManyFiles,
    FilesTooLarge,
    GranteeIsOwner,
}

/// Continues with what was found, or ends the operation with why not.
macro_rules! tried {
    ($outcome:expr) => {
        match $outcome {
            Ok(value) => value,
            Err(refused) => return Ok(Err(refused)),
        }
    };
}
pub(crate) use tried;
