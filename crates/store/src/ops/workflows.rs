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
    time::Timestamp,
    workflow::{
        AccessRole, GrantLine, NewBinding, NewFile, OwnershipFilter, ReachableWorkflow, Slug,
        VersionSource, Workflow, WorkflowSelector,
        operation::{
            ForkLineage, GrantRevocationResult, OfferOutcome, WorkflowFileBytes,
            WorkflowGrantResult, WorkflowLeaveResult, WorkflowSaveResult, WorkflowView,
        },
    },
};

pub(crate) use self::{
    files::VersionFiles,
    grants::grants_adopt,
    reach::{is_accepted, lock, of_owner, principals},
    rows::{label, role_of_rank},
    save::{VersionContent, add_new},
    transfer::transfer,
};
use crate::{InvitationRefusal, StorageFull, db::tx::operations};

operations! {
    /// Workflows, who may use them, and what is kept of each version.
    pub trait WorkflowOps;
    reads {
        /// A workflow that the caller reaches. With a version, that one must be seen too.
        fn workflow_find(asked: &WorkflowLookup) -> NameMatch<ReachableWorkflow> = read::find;
        /// The same with the version that is asked for, or the current one.
        fn workflow_get(asked: &WorkflowLookup) -> NameMatch<WorkflowView> = read::get;
        /// What the caller reaches, newest first.
        fn workflow_list(query: &WorkflowQuery) -> Vec<ReachableWorkflow> = read::list;
        /// What the caller reaches that has some of the words, roughly best first, each with the
        /// words of its body.
        fn workflow_search(wanted: &WorkflowWordSearch) -> Vec<(ReachableWorkflow, String)> = read::search;
        /// Files of a version with what is in them. A path that is not there is left out.
        fn workflow_files(asked: &WorkflowFilesLookup) -> NameMatch<WorkflowFileSet> = files::read;
        /// Who may use a workflow. Only those who may share it see others than themselves.
        fn workflow_grants(asked: &WorkflowLookup) -> NameMatch<Vec<GrantLine>> = grants::list;
        /// A workflow with what became of the template that it was forked from.
        fn workflow_lineage(asked: &WorkflowLookup) -> NameMatch<ForkLineage> = read::lineage;
    }
    writes {
        /// Makes a workflow, or adds a version to one.
        fn workflow_save(save: &WorkflowSave) -> WorkflowSaveResult, or WorkflowRefusal = save::save;
        /// Adds a version that differs in its files, or in its body, only.
        fn workflow_patch_files(patch: &FilesPatch) -> WorkflowSaveResult, or WorkflowRefusal = save::patch;
        /// Puts a workflow away, or back; what is away already stays so.
        fn workflow_archive(change: &WorkflowChange) -> Workflow, or WorkflowRefusal
            = change::archive;
        fn workflow_unarchive(change: &WorkflowChange) -> Workflow, or WorkflowRefusal
            = change::unarchive;
        /// Erases a workflow with all its versions, files and grants.
        fn workflow_delete(change: &WorkflowChange) -> Workflow, or WorkflowRefusal
            = change::delete;
        /// Erases one version, which is not the current one.
        fn workflow_version_delete(change: &WorkflowChange) -> Workflow, or WorkflowRefusal
            = change::delete_version;
        /// Lets somebody use a workflow, or changes what they may do.
        fn workflow_grant(order: &WorkflowGrantOrder) -> WorkflowGrantResult, or WorkflowRefusal = grants::grant;
        /// Takes a grant back; the flag says whether there was one.
        fn workflow_revoke(order: &GrantRevocation) -> GrantRevocationResult, or WorkflowRefusal = grants::revoke;
        /// Takes the caller's own grant back.
        fn workflow_leave(change: &WorkflowChange) -> WorkflowLeaveResult, or WorkflowRefusal = grants::leave;
        /// Asks somebody to own a workflow.
        fn workflow_offer(offer: &WorkflowOffer) -> OfferOutcome<Workflow>, or WorkflowOfferRefusal = transfer::offer;
        /// Gives a workflow to another owner, who agreed; the refusal says in words why not.
        fn workflow_give(giving: &OwnershipChange) -> (), or String = transfer::give;
    }
}

/// What came of looking for something by a name that may mean several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameMatch<T> {
    One(Box<T>),
    /// There is none, or none that the caller reaches.
    Nothing,
    /// The caller has none with the name, and reaches those of others by these full names.
    Elsewhere(Vec<String>),
}

impl<T> NameMatch<T> {
    pub(crate) fn one(found: Option<T>) -> Self {
        found.map_or(Self::Nothing, |it| Self::One(Box::new(it)))
    }

    pub(crate) fn named_elsewhere(names: Vec<String>) -> Self {
        if names.is_empty() { Self::Nothing } else { Self::Elsewhere(names) }
    }
}

/// Which workflow somebody asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowLookup {
    pub caller: AccountId,
    pub which: WorkflowSelector,
    pub version: Option<u32>,
}

/// Which files of a version to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowFilesLookup {
    pub asked: WorkflowLookup,
    pub paths: Vec<String>,
}

/// The files that are there, and the workflow that they are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowFileSet {
    pub reached: ReachableWorkflow,
    pub files: Vec<WorkflowFileBytes>,
}

/// Which workflows have some words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowWordSearch {
    pub caller: AccountId,
    pub whose: OwnershipFilter,
    pub tag: Option<String>,
    /// In small letters.
    pub words: Vec<String>,
    pub limit: u32,
}

/// Which workflows to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowQuery {
    pub caller: AccountId,
    pub whose: OwnershipFilter,
    /// The caller's own that are put away too.
    pub with_archived: bool,
    pub tag: Option<String>,
    /// A text that stands in the name, the description, the outcome or the tags.
    pub search: Option<String>,
    /// Starts behind this id, towards older ones.
    pub before: Option<String>,
    pub limit: u32,
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
    pub source: VersionSource,
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
    pub which: WorkflowSelector,
    pub expected_token: Option<String>,
    /// Added, or put in the place of those with the same path.
    pub files: Vec<NewFile>,
    pub delete_paths: Vec<String>,
    /// Put in the place of the one before.
    pub body: Option<String>,
    pub source: VersionSource,
    pub new_token: String,
    /// How many bytes its owner may have stored, who need not be the caller.
    pub quota_bytes: u64,
    pub at: Timestamp,
}

/// A workflow to be changed as a whole, or the version of it that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowChange {
    pub caller: AccountId,
    pub which: WorkflowSelector,
    pub version: Option<u32>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowGrantOrder {
    pub caller: AccountId,
    pub which: WorkflowSelector,
    pub grantee: AccountName,
    pub role: AccessRole,
    pub with_history: bool,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRevocation {
    pub caller: AccountId,
    pub which: WorkflowSelector,
    pub grantee: AccountName,
    pub at: Timestamp,
}

/// A workflow that is offered to another owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowOffer {
    pub caller: AccountId,
    pub which: WorkflowSelector,
    pub to: AccountName,
    pub invitation_id: String,
    pub at: Timestamp,
}

/// Why a workflow was not offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowOfferRefusal {
    Workflow(WorkflowRefusal),
    Invitation(InvitationRefusal),
}

/// A workflow to be given to another owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnershipChange {
    pub workflow_id: String,
    pub from: AccountId,
    pub to: AccountId,
    pub at: Timestamp,
}

/// Why a workflow was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkflowRefusal {
    /// Its owner has stored as much as it may.
    Full(StorageFull),
    /// There is none, or none that the caller reaches.
    NotFound,
    /// The caller has none with the slug, and reaches those of others by these full names.
    Elsewhere(Vec<String>),
    RoleTooLow {
        has: AccessRole,
        needs: AccessRole,
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
        has: AccessRole,
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
