//! Saves, archives, unarchives and deletes workflows.

use jurat_core::{
    account::caller::{Caller, Scope},
    id::uuid,
    workflow::{
        NewFile, VersionSource, Workflow, WorkflowRef,
        draft::{WorkflowDraft, check_deletions, check_files, patched_body},
        operation::WorkflowSaveResult,
    },
};
use jurat_store::{
    FilesPatch, IdempotencyRecord, SaveTarget, StoreError, WorkflowChange, WorkflowRefusal,
    WorkflowSave, WriteOutcome,
};

use super::{refusal, require_unpinned};
use crate::access::behalf_of;
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, access::require_scope,
    accounts::storage::no_room,
};

/// A change of files alone.
#[derive(Debug, Clone)]
pub struct NewFilePatch {
    pub files: Vec<NewFile>,
    pub delete_paths: Vec<String>,
    pub source: Option<VersionSource>,
    pub expected_token: Option<String>,
}

/// The idempotency key of a change, and what a repeated request finds.
struct WorkflowWrite {
    keyed: Option<IdempotentWrite<Workflow>>,
    leaves: Leaves,
}

impl Engine {
    /// Creates a workflow, or adds a version to one.
    pub async fn workflow_save(
        &self,
        caller: &Caller,
        draft: WorkflowDraft,
        keyed: Option<IdempotentWrite<WorkflowSaveResult>>,
    ) -> Result<IdempotentOutcome<WorkflowSaveResult>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        let draft = draft.completed().map_err(EngineError::Input)?;
        let target = match &draft.id {
            Some(id) => SaveTarget::Id(id.clone()),
            None => SaveTarget::Slug(draft.slug().map_err(EngineError::Input)?),
        };
        let named = match &target {
            SaveTarget::Id(id) => id.clone(),
            SaveTarget::Slug(slug) => slug.to_string(),
        };
        let save = self.save_of(caller, draft, target);
        let workflows = self.inner.store.workflows();
        let write = async |once: Option<&_>| workflows.save(&behalf_of(caller), &save, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Note, write).await?;
        let done = done.map_err(|refused| unsaved(caller, refused, &named))?;
        if let IdempotentOutcome::Now(saved) = &done {
            tracing::info!(
                workflow.id = %saved.workflow.id,
                version = saved.workflow.current_version,
                "saved a version of a workflow"
            );
        }
        Ok(done)
    }

    /// Adds a version that differs only in its files. The file `SKILL.md` is the body.
    pub async fn workflow_patch_files(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        mut patch: NewFilePatch,
        keyed: Option<IdempotentWrite<WorkflowSaveResult>>,
    ) -> Result<IdempotentOutcome<WorkflowSaveResult>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        require_unpinned(reference)?;
        check_files(&patch.files).map_err(EngineError::Input)?;
        check_deletions(&patch.files, &patch.delete_paths).map_err(EngineError::Input)?;
        let body = patched_body(&mut patch.files).map_err(EngineError::Input)?;
        let clock = &self.inner.clock;
        let patch = FilesPatch {
            caller: caller.account().clone(),
            which: reference.which.clone(),
            expected_token: patch.expected_token,
            files: patch.files,
            delete_paths: patch.delete_paths,
            body,
            source: patch.source.unwrap_or(VersionSource::Manual),
            new_token: format!("{:032x}", clock.bits()),
            quota_bytes: self.inner.limits.storage.quota_bytes,
            at: clock.now(),
        };
        let workflows = self.inner.store.workflows();
        let write =
            async |once: Option<&_>| workflows.patch_files(&behalf_of(caller), &patch, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Note, write).await?;
        done.map_err(|refused| unsaved(caller, refused, &reference.to_string()))
    }

    /// Archives a workflow: only its owner still sees it.
    pub async fn workflow_archive(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        keyed: Option<IdempotentWrite<Workflow>>,
    ) -> Result<IdempotentOutcome<Workflow>, EngineError> {
        require_unpinned(reference)?;
        let workflows = self.inner.store.workflows();
        self.change_workflow(
            caller,
            reference,
            WorkflowWrite { keyed, leaves: Leaves::Less },
            async |change, once| workflows.archive(&behalf_of(caller), &change, once).await,
        )
        .await
    }

    /// Unarchives a workflow, with its grants.
    pub async fn workflow_unarchive(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        keyed: Option<IdempotentWrite<Workflow>>,
    ) -> Result<IdempotentOutcome<Workflow>, EngineError> {
        require_unpinned(reference)?;
        let workflows = self.inner.store.workflows();
        self.change_workflow(
            caller,
            reference,
            WorkflowWrite { keyed, leaves: Leaves::Note },
            async |change, once| workflows.unarchive(&behalf_of(caller), &change, once).await,
        )
        .await
    }

    /// Erases a workflow with all its versions, files and grants.
    pub async fn workflow_delete(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        keyed: Option<IdempotentWrite<Workflow>>,
    ) -> Result<IdempotentOutcome<Workflow>, EngineError> {
        require_unpinned(reference)?;
        let workflows = self.inner.store.workflows();
        self.change_workflow(
            caller,
            reference,
            WorkflowWrite { keyed, leaves: Leaves::Less },
            async |change, once| workflows.delete(&behalf_of(caller), &change, once).await,
        )
        .await
    }

    /// Erases one version, which the reference pins.
    pub async fn workflow_version_delete(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        keyed: Option<IdempotentWrite<Workflow>>,
    ) -> Result<IdempotentOutcome<Workflow>, EngineError> {
        let workflows = self.inner.store.workflows();
        self.change_workflow(
            caller,
            reference,
            WorkflowWrite { keyed, leaves: Leaves::Less },
            async |change, once| workflows.delete_version(&behalf_of(caller), &change, once).await,
        )
        .await
    }

    async fn change_workflow(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        write: WorkflowWrite,
        change: impl AsyncFnOnce(
            WorkflowChange,
            Option<&IdempotencyRecord<Workflow>>,
        ) -> Result<WriteOutcome<Workflow, WorkflowRefusal>, StoreError>,
    ) -> Result<IdempotentOutcome<Workflow>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        let order = self.change_of(caller, reference);
        let WorkflowWrite { keyed, leaves } = write;
        let write = async |once: Option<&_>| change(order, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), leaves, write).await?;
        done.map_err(|refused| refusal(refused, &reference.to_string()))
    }

    pub(super) fn change_of(&self, caller: &Caller, reference: &WorkflowRef) -> WorkflowChange {
        WorkflowChange {
            caller: caller.account().clone(),
            which: reference.which.clone(),
            version: reference.version,
            at: self.inner.clock.now(),
        }
    }

    fn save_of(&self, caller: &Caller, draft: WorkflowDraft, target: SaveTarget) -> WorkflowSave {
        let clock = &self.inner.clock;
        let at = clock.now();
        WorkflowSave {
            caller: caller.account().clone(),
            target,
            expected_token: draft.expected_token,
            name: draft.name,
            description: draft.description,
            outcome: draft.outcome,
            tags: draft.tags,
            body: draft.body,
            source: draft.source.unwrap_or(VersionSource::Manual),
            bindings: draft.bindings,
            files: draft.files,
            new_id: uuid(at, clock.bits()),
            new_token: format!("{:032x}", clock.bits()),
            quota_bytes: self.inner.limits.storage.quota_bytes,
            at,
        }
    }
}

/// Why nothing was saved. An editor need not be the owner of the workflow.
fn unsaved(caller: &Caller, refused: WorkflowRefusal, named: &str) -> EngineError {
    if let WorkflowRefusal::Full(full) = &refused {
        return no_room(caller, full, "workflow");
    }
    refusal(refused, named)
}
