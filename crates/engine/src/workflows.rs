//! Operations on workflows. An unreachable workflow does not exist for a caller.

mod grants;
pub(crate) mod instructions;
mod save;
pub(crate) mod shares;
pub(crate) mod templates;

use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    verifier::{InputError, run::Provenance},
    workflow::{
        AccessRole, GRANTS_A_DAY, MOST_WAITING, OwnershipFilter, ReachableWorkflow, WorkflowRef,
        file::{ALL_FILES_BYTES, MOST_FILES},
        operation::{ForkLineage, WorkflowFileBytes, WorkflowFilter, WorkflowView},
        search::{self, MOST_CANDIDATES, SearchTexts},
    },
};
use jurat_store::{
    NameMatch, WorkflowFilesLookup, WorkflowLookup, WorkflowRefusal, WorkflowWordSearch, WrongField,
};

pub use self::{
    grants::{NewWorkflowGrant, Sharee},
    save::NewFilePatch,
};
use crate::{
    Engine, EngineError, RefusalContext,
    access::{behalf_of, require_scope},
};

/// A search for workflows.
#[derive(Debug, Clone)]
pub struct WorkflowSearch {
    pub query: String,
    pub whose: OwnershipFilter,
    pub tag: Option<String>,
    pub limit: usize,
}

/// A workflow that was found, and why.
#[derive(Debug, Clone)]
pub struct WorkflowHit {
    pub reached: ReachableWorkflow,
    pub reason: String,
}

impl Engine {
    pub async fn workflow_list(
        &self,
        caller: &Caller,
        filter: &WorkflowFilter,
    ) -> Result<Vec<ReachableWorkflow>, EngineError> {
        require_scope(caller, Scope::WorkflowsRead)?;
        Ok(self.inner.store.workflows().list(&behalf_of(caller), caller.account(), filter).await?)
    }

    /// Workflows that match some words, the best first.
    pub async fn workflow_search(
        &self,
        caller: &Caller,
        wanted: &WorkflowSearch,
    ) -> Result<Vec<WorkflowHit>, EngineError> {
        require_scope(caller, Scope::WorkflowsRead)?;
        let (query, limit) = (&wanted.query, wanted.limit);
        let wanted = WorkflowWordSearch {
            caller: caller.account().clone(),
            whose: wanted.whose,
            tag: wanted.tag.clone(),
            words: search::words(&wanted.query),
            limit: MOST_CANDIDATES,
        };
        let found = self.inner.store.workflows().search(&behalf_of(caller), &wanted).await?;
        let hits = search::best(query, found, limit, texts);
        let hits = hits.into_iter().map(|((reached, _), reason)| WorkflowHit { reached, reason });
        Ok(hits.collect())
    }

    /// A version in full: the pinned one, or the current one.
    pub async fn workflow_get(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
    ) -> Result<WorkflowView, EngineError> {
        require_scope(caller, Scope::WorkflowsRead)?;
        let asked = workflow_query(caller, reference);
        let found = self.inner.store.workflows().get(&behalf_of(caller), &asked).await?;
        let view = found_one(found, reference)?;
        self.reach_used(caller, &view.reached).await?;
        Ok(view)
    }

    /// The existing files among those requested.
    pub async fn workflow_files_found(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        paths: Vec<String>,
    ) -> Result<Vec<WorkflowFileBytes>, EngineError> {
        require_scope(caller, Scope::WorkflowsRead)?;
        let files = WorkflowFilesLookup { asked: workflow_query(caller, reference), paths };
        let found = self.inner.store.workflows().files(&behalf_of(caller), &files).await?;
        let found = found_one(found, reference)?;
        self.reach_used(caller, &found.reached).await?;
        Ok(found.files)
    }

    /// Files of a version, in the requested order; all must exist.
    pub async fn workflow_files(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        paths: Vec<String>,
    ) -> Result<Vec<WorkflowFileBytes>, EngineError> {
        let found = self.workflow_files_found(caller, reference, paths.clone()).await?;
        let is_there = |path: &&String| found.iter().any(|file| file.entry.path == **path);
        match paths.iter().find(|path| !is_there(path)) {
            None => Ok(found),
            Some(path) => {
                let id = path.chars().take(80).collect();
                Err(EngineError::NotFound { what: "file", id })
            }
        }
    }

    /// The state of the template that a workflow was forked from.
    pub async fn workflow_lineage(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
    ) -> Result<ForkLineage, EngineError> {
        require_scope(caller, Scope::WorkflowsRead)?;
        let asked = workflow_query(caller, reference);
        let found = self.inner.store.workflows().lineage(&behalf_of(caller), &asked).await?;
        found_one(found, reference)
    }

    /// Checks the provenance of a run: a workflow that the caller cannot see gives the same error
    /// as a missing one.
    pub(crate) async fn provenance_checked(
        &self,
        caller: &Caller,
        given: &Provenance,
    ) -> Result<Provenance, EngineError> {
        let id = given.workflow_id.as_deref();
        // A name that starts with `@` may be a template, which everybody can see.
        let named = given.workflow_ref.as_deref().filter(|text| !text.starts_with('@'));
        let mut checked = Provenance { workflow_id: None, ..given.clone() };
        for text in [id, named].into_iter().flatten() {
            let short: String = text.chars().take(80).collect();
            let missing = |_| EngineError::NotFound { what: "workflow", id: short };
            let mut reference = WorkflowRef::parse(text).map_err(missing)?;
            reference.version = reference.version.or(given.workflow_version);
            let asked = workflow_query(caller, &reference);
            let found = self.inner.store.workflows().find(&behalf_of(caller), &asked).await?;
            let found = found_one(found, &reference)?.workflow.id;
            if checked.workflow_id.as_ref().is_some_and(|id| *id != found) {
                return Err(EngineError::invalid(
                    "workflow_ref",
                    "names a different workflow than `workflow_id`; leave one out",
                ));
            }
            checked.workflow_id = Some(found);
        }
        Ok(checked)
    }
}

fn texts((reached, body): &(ReachableWorkflow, String)) -> SearchTexts<'_> {
    let workflow = &reached.workflow;
    SearchTexts {
        name: &workflow.name,
        slug: &workflow.slug,
        tags: &workflow.tags,
        description: &workflow.description,
        outcome: &workflow.outcome,
        body,
    }
}

pub(crate) fn workflow_query(caller: &Caller, reference: &WorkflowRef) -> WorkflowLookup {
    WorkflowLookup {
        caller: caller.account().clone(),
        which: reference.which.clone(),
        version: reference.version,
    }
}

/// The found workflow. Everything unreachable gives the same error.
fn found_one<T>(found: NameMatch<T>, reference: &WorkflowRef) -> Result<T, EngineError> {
    match found {
        NameMatch::One(it) => Ok(*it),
        NameMatch::Nothing => Err(unknown_workflow(reference)),
        NameMatch::Elsewhere(names) => {
            let id = reference.to_string();
            Err(EngineError::named_elsewhere("workflow", id, names))
        }
    }
}

fn unknown_workflow(reference: &WorkflowRef) -> EngineError {
    EngineError::NotFound { what: "workflow", id: reference.to_string() }
}

/// Refuses a pinned version if the operation concerns the whole workflow.
fn require_unpinned(reference: &WorkflowRef) -> Result<(), EngineError> {
    match reference.version {
        None => Ok(()),
        Some(version) => Err(EngineError::invalid(
            "workflow_id",
            format!("must name the whole workflow; leave `@{version}` out"),
        )),
    }
}

/// Why the store changed nothing, for a workflow under this name.
fn refusal(refused: WorkflowRefusal, named: &str) -> EngineError {
    let token = |problem: String, current| EngineError::token_conflict("save", problem, current);
    match refused {
        WorkflowRefusal::NotFound => {
            EngineError::NotFound { what: "workflow", id: named.to_owned() }
        }
        WorkflowRefusal::Elsewhere(names) => {
            EngineError::named_elsewhere("workflow", named.to_owned(), names)
        }
        WorkflowRefusal::TokenOfNone(names) => EngineError::token_of_none("workflow", named, names),
        WorkflowRefusal::Full(full) => crate::accounts::storage::full(&full),
        WorkflowRefusal::RoleTooLow { has, needs } => role_too_low(has, needs),
        WorkflowRefusal::RoleAboveOwn { has } => EngineError::denied(&format!(
            "you cannot grant a higher role than your own, which is `{has}`"
        ))
        .with(RefusalContext::HigherRole),
        WorkflowRefusal::TokenMissing { current } => token(
            format!(
                "there is already a workflow `{named}`; its next version needs `expected_version_token`"
            ),
            Some(current),
        ),
        WorkflowRefusal::TokenStale { current } => token(
            format!(
                "`expected_version_token` is not the current token of `{named}`, which has a newer version"
            ),
            Some(current),
        ),
        WorkflowRefusal::TokenUnexpected => token(
            format!(
                "there is no workflow `{named}` yet; leave out `expected_version_token` for its first save"
            ),
            None,
        ),
        WorkflowRefusal::Archived => {
            EngineError::Conflict(format!("the workflow `{named}` is archived; unarchive it first"))
        }
        WorkflowRefusal::VersionIsCurrent => EngineError::Conflict(format!(
            "this is the current version of `{named}`; save a new version first, or delete the workflow"
        )),
        WorkflowRefusal::TooManyGrants => EngineError::Conflict(
            "the workflow has reached its limit of grants; revoke some first".to_owned(),
        ),
        WorkflowRefusal::GrantedTooOften => EngineError::refused(
            ProblemCode::QuotaExceeded,
            format!("an account can make at most {GRANTS_A_DAY} grants a day; try again tomorrow"),
        ),
        WorkflowRefusal::TooManyWaiting => EngineError::Conflict(format!(
            "{MOST_WAITING} of the owner's grants to this user are still pending; the user must accept or decline some first, or share with a team"
        )),
        WorkflowRefusal::OwnerStays => EngineError::refused(
            ProblemCode::WorkflowOwnershipMustTransfer,
            "the owner of a workflow cannot leave it",
        ),
        WorkflowRefusal::GranteeUnknown => EngineError::user_not_found(),
        WorkflowRefusal::BindingsAreOwners => {
            EngineError::denied("only the owner of a workflow may change its verifiers")
        }
        WorkflowRefusal::Field(wrong) => EngineError::Input(wrong_field(&wrong)),
    }
}

/// The field of a request that the store refused.
/// The caller's role on a workflow does not suffice.
fn role_too_low(has: AccessRole, needs: AccessRole) -> EngineError {
    let detail = format!("this needs the role `{needs}` on the workflow, but yours is `{has}`");
    EngineError::denied(&detail).with(RefusalContext::HigherRole)
}

fn wrong_field(wrong: &WrongField) -> InputError {
    let input = |field: &str, problem: String| InputError { field: field.to_owned(), problem };
    match wrong {
        WrongField::NameMissing => input("name", "is required".to_owned()),
        WrongField::DescriptionMissing => input("description", "is required".to_owned()),
        WrongField::BindingUnknown { place } => input(
            &format!("verifiers.{place}.verifier_id"),
            "names no active verifier, or no version, of the workflow's owner".to_owned(),
        ),
        WrongField::ContentUnknown { path } => {
            input("files", format!("has `{path}` with an unknown `sha256`; send its content"))
        }
        WrongField::PathUnknown { path } => {
            input("delete_paths", format!("has `{path}`, but there is no such file"))
        }
        WrongField::PathIsFolder { path } => {
            input("files", format!("has a file `{path}` and files within a folder of that name"))
        }
        WrongField::TooManyFiles => input("files", format!("would be more than {MOST_FILES}")),
        WrongField::FilesTooLarge => {
            input("files", format!("would have more than {ALL_FILES_BYTES} bytes together"))
        }
        WrongField::GranteeIsOwner => input(
            "grantee_email_or_at_team_handle",
            "is the owner of the workflow, who already has full access".to_owned(),
        ),
    }
}
