//! Saving, putting away and erasing.

use jurat_core::{
    caller::{Caller, Scope},
    id::uuid,
    workflow::{
        NewFile, Source, Workflow, WorkflowRef,
        draft::{WorkflowDraft, check_deletions, check_files, patched_body},
    },
};
use jurat_store::{
    FilesPatch, Once, SaveTarget, Saved, StoreError, WorkflowChange, WorkflowRefused, WorkflowSave,
    Written,
};

use super::{behalf, refusal, whole};
use crate::{Done, Engine, EngineError, Keyed, Leaves, executors::require, storage::no_room};

/// A change of files alone.
#[derive(Debug, Clone)]
pub struct NewPatch {
    pub files: Vec<NewFile>,
    pub delete_paths: Vec<String>,
    pub source: Option<Source>,
    pub expected_token: Option<String>,
}

impl Engine {
    /// Makes a workflow, or adds a version to one.
    pub async fn workflow_save(
        &self,
        caller: &Caller,
        draft: WorkflowDraft,
        keyed: Option<Keyed<Saved>>,
    ) -> Result<Done<Saved>, EngineError> {
        require(caller, Scope::WorkflowsWrite)?;
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
        let sharing = self.inner.store.sharing();
        let write =
            async |once: Option<&Once>| sharing.workflow_save(&behalf(caller), &save, once).await;
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Note, write).await?;
        let done = done.map_err(|refused| unsaved(caller, refused, &named))?;
        if let Done::Now(saved) = &done {
            tracing::info!(
                workflow.id = %saved.workflow.id,
                version = saved.workflow.current_version,
                "saved a version of a workflow"
            );
        }
        Ok(done)
    }

    /// Adds a version that differs in its files only. The file `SKILL.md` is the body.
    pub async fn workflow_patch_files(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        mut patch: NewPatch,
        keyed: Option<Keyed<Saved>>,
    ) -> Result<Done<Saved>, EngineError> {
        require(caller, Scope::WorkflowsWrite)?;
        whole(reference)?;
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
            source: patch.source.unwrap_or(Source::Manual),
            new_token: format!("{:032x}", clock.bits()),
            quota_bytes: self.inner.limits.storage.quota_bytes,
            at: clock.now(),
        };
        let sharing = self.inner.store.sharing();
        let write = async |once: Option<&Once>| {
            sharing.workflow_patch_files(&behalf(caller), &patch, once).await
        };
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Note, write).await?;
        done.map_err(|refused| unsaved(caller, refused, &reference.to_string()))
    }

    /// Puts a workflow away: it is gone for all but its owner.
    pub async fn workflow_archive(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        keyed: Option<Keyed<Workflow>>,
    ) -> Result<Done<Workflow>, EngineError> {
        whole(reference)?;
        let sharing = self.inner.store.sharing();
        self.changed(caller, reference, (keyed, Leaves::Less), async |change, once| {
            sharing.workflow_archive(&behalf(caller), &change, once).await
        })
        .await
    }

    /// Brings a workflow back, with its grants.
    pub async fn workflow_unarchive(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        keyed: Option<Keyed<Workflow>>,
    ) -> Result<Done<Workflow>, EngineError> {
        whole(reference)?;
        let sharing = self.inner.store.sharing();
        self.changed(caller, reference, (keyed, Leaves::Note), async |change, once| {
            sharing.workflow_unarchive(&behalf(caller), &change, once).await
        })
        .await
    }

    /// Erases a workflow with all its versions, files and grants.
    pub async fn workflow_delete(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        keyed: Option<Keyed<Workflow>>,
    ) -> Result<Done<Workflow>, EngineError> {
        whole(reference)?;
        let sharing = self.inner.store.sharing();
        self.changed(caller, reference, (keyed, Leaves::Less), async |change, once| {
            sharing.workflow_delete(&behalf(caller), &change, once).await
        })
        .await
    }

    /// Erases one version, which the reference pins.
    pub async fn workflow_version_delete(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        keyed: Option<Keyed<Workflow>>,
    ) -> Result<Done<Workflow>, EngineError> {
        let sharing = self.inner.store.sharing();
        self.changed(caller, reference, (keyed, Leaves::Less), async |change, once| {
            sharing.workflow_version_delete(&behalf(caller), &change, once).await
        })
        .await
    }

    async fn changed(
        &self,
        caller: &Caller,
        reference: &WorkflowRef,
        (keyed, leaves): (Option<Keyed<Workflow>>, Leaves),
        change: impl AsyncFnOnce(
            WorkflowChange,
            Option<&Once>,
        ) -> Result<Written<Workflow, WorkflowRefused>, StoreError>,
    ) -> Result<Done<Workflow>, EngineError> {
        require(caller, Scope::WorkflowsWrite)?;
        let order = self.change_of(caller, reference);
        let write = async |once: Option<&Once>| change(order, once).await;
        let done = self.write_once(caller, keyed.as_ref(), leaves, write).await?;
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
            source: draft.source.unwrap_or(Source::Manual),
            bindings: draft.bindings,
            files: draft.files,
            new_id: uuid(at, clock.bits()),
            new_token: format!("{:032x}", clock.bits()),
            quota_bytes: self.inner.limits.storage.quota_bytes,
            at,
        }
    }
}

/// Why nothing was saved. The owner of a workflow need not be who saves it.
fn unsaved(caller: &Caller, refused: WorkflowRefused, named: &str) -> EngineError {
    if let WorkflowRefused::Full(full) = &refused {
        return no_room(caller, full, "workflow");
    }
    refusal(refused, named)
}
