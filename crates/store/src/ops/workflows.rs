//! Workflows, their grants, and the content of each version.

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
            ForkLineage, GrantRevocationResult, OfferOutcome, WorkflowFileBytes, WorkflowFilter,
            WorkflowGrantResult, WorkflowLeaveResult, WorkflowSaveResult, WorkflowView,
        },
    },
};

pub(crate) use self::{
    files::VersionFiles,
    grants::grants_adopt,
    reach::{IS_ACCEPTED, PRINCIPALS, lock, of_owner},
    rows::{label, role_of_rank},
    save::{VersionContent, add_new},
    transfer::transfer,
};
use crate::{InvitationRefusal, StorageFull, db::tx::operations};

operations! {
    /// Workflows, their grants, and the content of each version.
    pub struct WorkflowOps = store.workflows();
    reads {
        /// A workflow that the caller can reach. If a version is given, the caller must see that
        /// one too.
        fn find(asked: &WorkflowLookup) -> NameMatch<ReachableWorkflow> = read::find;
        /// A workflow that the caller can reach, with the requested version or the current one.
        fn get(asked: &WorkflowLookup) -> NameMatch<WorkflowView> = read::get;
        /// Workflows that the caller can reach, newest first.
        fn list(caller: &AccountId, filter: &WorkflowFilter) -> Vec<ReachableWorkflow>
            = read::list;
        /// Workflows that the caller can reach and that contain some of the words, roughly best
        /// first, each with the words of its body.
        fn search(wanted: &WorkflowWordSearch) -> Vec<(ReachableWorkflow, String)> = read::search;
        /// Files of a version with their contents. Missing paths are left out.
        fn files(asked: &WorkflowFilesLookup) -> NameMatch<WorkflowFileSet> = files::read;
        /// The grants on a workflow. Only a caller who may share it sees the grants to others.
        fn grants(asked: &WorkflowLookup) -> NameMatch<Vec<GrantLine>> = grants::list;
        /// A workflow, with the state of the template that it was forked from.
        fn lineage(asked: &WorkflowLookup) -> NameMatch<ForkLineage> = read::lineage;
    }
    writes {
        /// Creates a workflow, or adds a version to one.
        fn save(save: &WorkflowSave) -> WorkflowSaveResult, or WorkflowRefusal = save::save;
        /// Adds a version that differs only in its files and its body.
        fn patch_files(patch: &FilesPatch) -> WorkflowSaveResult, or WorkflowRefusal = save::patch;
        /// Archives a workflow; an archived one stays as it is.
        fn archive(change: &WorkflowChange) -> Workflow, or WorkflowRefusal
            = change::archive;
        fn unarchive(change: &WorkflowChange) -> Workflow, or WorkflowRefusal
            = change::unarchive;
        /// Erases a workflow with all its versions, files and grants.
        fn delete(change: &WorkflowChange) -> Workflow, or WorkflowRefusal
            = change::delete;
        /// Erases one version, which must not be the current one.
        fn delete_version(change: &WorkflowChange) -> Workflow, or WorkflowRefusal
            = change::delete_version;
        /// Grants access to a workflow, or changes the role of a grant.
        fn grant(order: &WorkflowGrantOrder) -> WorkflowGrantResult, or WorkflowRefusal = grants::grant;
        /// Revokes a grant; the flag says whether there was one.
        fn revoke(order: &GrantRevocation) -> GrantRevocationResult, or WorkflowRefusal = grants::revoke;
        /// Removes the caller's own grant.
        fn leave(change: &WorkflowChange) -> WorkflowLeaveResult, or WorkflowRefusal = grants::leave;
        /// Offers the ownership of a workflow to another account.
        fn offer(offer: &WorkflowOffer) -> OfferOutcome<Workflow>, or WorkflowOfferRefusal = transfer::offer;
        /// Transfers a workflow to another owner, who agreed; the refusal explains why it cannot be
        /// done.
        fn give(giving: &OwnershipChange) -> (), or String = transfer::give;
    }
}

/// The result of a lookup by a name that may be ambiguous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameMatch<T> {
    One(Box<T>),
    /// There is no match, or none that the caller can reach.
    Nothing,
    /// The caller has none with the name, but can reach those of other owners by these full names.
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

/// A requested workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowLookup {
    pub caller: AccountId,
    pub which: WorkflowSelector,
    pub version: Option<u32>,
}

/// The files of a version to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowFilesLookup {
    pub asked: WorkflowLookup,
    pub paths: Vec<String>,
}

/// The existing files, and their workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowFileSet {
    pub reached: ReachableWorkflow,
    pub files: Vec<WorkflowFileBytes>,
}

/// A search for workflows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowWordSearch {
    pub caller: AccountId,
    pub whose: OwnershipFilter,
    pub tag: Option<String>,
    /// In lower case.
    pub words: Vec<String>,
    pub limit: u32,
}

/// The workflow that a version is added to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveTarget {
    Id(String),
    /// The caller's own workflow with the slug, or a new one. With a token it may be a shared one.
    Slug(Slug),
}

/// A version to save. Absent members are carried forward from the previous version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowSave {
    pub caller: AccountId,
    pub target: SaveTarget,
    /// Must be the current token of an existing workflow, and absent for a new one.
    pub expected_token: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub outcome: Option<String>,
    pub tags: Option<Vec<String>>,
    pub body: String,
    pub source: VersionSource,
    pub bindings: Option<Vec<NewBinding>>,
    pub files: Option<Vec<NewFile>>,
    /// The id of a new workflow.
    pub new_id: String,
    pub new_token: String,
    /// The storage quota of its owner, who need not be the caller.
    pub quota_bytes: u64,
    pub at: Timestamp,
}

/// A change of files, and of the body if one is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesPatch {
    pub caller: AccountId,
    pub which: WorkflowSelector,
    pub expected_token: Option<String>,
    /// Added, or replacing those with the same path.
    pub files: Vec<NewFile>,
    pub delete_paths: Vec<String>,
    /// Replaces the previous body.
    pub body: Option<String>,
    pub source: VersionSource,
    pub new_token: String,
    /// The storage quota of its owner, who need not be the caller.
    pub quota_bytes: u64,
    pub at: Timestamp,
}

/// A workflow to change as a whole, or one of its versions.
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

/// A workflow to transfer to another owner.
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
    /// Its owner has reached the storage quota.
    Full(StorageFull),
    /// There is no such workflow, or none that the caller can reach.
    NotFound,
    /// The caller owns none with the slug, but can reach those of other owners by these full names.
    Elsewhere(Vec<String>),
    RoleTooLow {
        has: AccessRole,
        needs: AccessRole,
    },
    /// The workflow exists, and no token was given.
    TokenMissing {
        current: String,
    },
    /// The workflow was saved meanwhile.
    TokenStale {
        current: String,
    },
    /// A token was given, and there is no such workflow.
    TokenUnexpected,
    /// It is archived.
    Archived,
    /// Only the owner decides which verifiers it names.
    BindingsAreOwners,
    /// The current version can be replaced, not deleted.
    VersionIsCurrent,
    /// No account that the caller may know of has the name.
    GranteeUnknown,
    /// A grant cannot exceed the granter's own role.
    RoleAboveOwn {
        has: AccessRole,
    },
    TooManyGrants,
    /// The caller has reached the daily limit of grants.
    GrantedTooOften,
    /// The maximum number of the owner's grants to this recipient is waiting.
    TooManyWaiting,
    /// The token belongs to no workflow of this slug that the caller accepted; these full names
    /// lead to those of other owners.
    TokenOfNone(Vec<String>),
    /// The owner cannot leave, but may transfer the workflow.
    OwnerStays,
    /// A given value is invalid.
    Field(WrongField),
}

/// A value that is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrongField {
    /// A new workflow needs a name.
    NameMissing,
    /// A new workflow needs a description.
    DescriptionMissing,
    /// The binding at this index names no active verifier of the owner.
    BindingUnknown {
        place: usize,
    },
    /// No file that the caller can see has this content.
    ContentUnknown {
        path: String,
    },
    /// There is no file to delete.
    PathUnknown {
        path: String,
    },
    /// A path would be both a file and a folder.
    PathIsFolder {
        path: String,
    },
    TooManyFiles,
    FilesTooLarge,
    GranteeIsOwner,
}

/// Continues with the value, or ends the operation with the refusal.
macro_rules! tried {
    ($outcome:expr) => {
        match $outcome {
            Ok(value) => value,
            Err(refused) => return Ok(Err(refused)),
        }
    };
}
pub(crate) use tried;
