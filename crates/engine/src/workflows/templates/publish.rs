//! Publishes a workflow: checks it, screens it, and then freezes it in one transaction.

use jurat_core::{
    account::caller::{Caller, Scope},
    id,
    verifier::{VerifierRef, VerifierSelector, VerifierVersion, run::Provenance},
    workflow::{
        AccessRole, VerifierRole, WorkflowRef,
        authoring::{AuthoringDraft, notes},
        template::{
            TemplateContent, TemplatePublication, TemplateVersionSummary, VerifierSnapshot,
        },
    },
};
use jurat_store::{Behalf, NameMatch, PublishRefusal, PublishableWorkflow, TemplatePublish};

use super::screen::screened_workflow;
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, access::require_scope,
    accounts::handles::no_handle, workflows::workflow_query,
};

/// The workflow to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishOrder {
    /// The id of one of the caller's workflows, or its slug.
    pub workflow: String,
    pub release_notes: Option<String>,
}

impl Engine {
    /// Publishes the current version of one of the caller's workflows under the caller's handle.
    pub async fn template_publish(
        &self,
        caller: &Caller,
        order: PublishOrder,
        keyed: Option<IdempotentWrite<TemplatePublication>>,
    ) -> Result<IdempotentOutcome<TemplatePublication>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        let keyed = keyed.as_ref();
        // Judges are not paid twice for one request.
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Rows).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        self.check_handle(caller).await?;
        let workflow = self.publishable(caller, &order.workflow).await?;
        if workflow.outcome.trim().is_empty() {
            let reason = "names a workflow without an outcome; describe the observable result in its `outcome`, and save it";
            return Err(EngineError::invalid("workflow_id", reason));
        }
        let publish = self.publication(caller, workflow, order.release_notes).await?;
        let templates = self.inner.store.templates();
        let done = self.write_idempotent(caller, keyed, Leaves::Rows, async |once| {
            let behalf = Behalf::Account(caller.account().clone());
            templates.publish(&behalf, &publish, once).await
        });
        let done = done.await?.map_err(|refused| refusal(refused, &publish))?;
        if let IdempotentOutcome::Now(published) = &done {
            let (id, version) = (&published.template.id, published.version);
            tracing::info!(template.id = %id, version, "published a version of a template");
        }
        Ok(done)
    }

    async fn check_handle(&self, caller: &Caller) -> Result<(), EngineError> {
        let name = jurat_core::account::AccountName::Id(caller.account().clone());
        let (behalf, now) = (Behalf::Account(caller.account().clone()), self.inner.clock.now());
        let profile = self.inner.store.people().profile(&behalf, &name, &now).await?;
        match profile.and_then(|profile| profile.handle) {
            Some(_) => Ok(()),
            None => Err(no_handle()),
        }
    }

    /// One of the caller's workflows, if it could be published now.
    async fn publishable(
        &self,
        caller: &Caller,
        workflow: &str,
    ) -> Result<PublishableWorkflow, EngineError> {
        let (account, behalf) = (caller.account(), Behalf::Account(caller.account().clone()));
        let found = self.inner.store.templates().publishable(&behalf, account, workflow).await?;
        match found {
            Some(found) => Ok(found),
            None => Err(self.not_own(caller, workflow).await?),
        }
    }

    /// Why a workflow of another owner cannot be published: a caller that can see it is told so.
    async fn not_own(&self, caller: &Caller, workflow: &str) -> Result<EngineError, EngineError> {
        let id: String = workflow.chars().take(200).collect();
        let absent = EngineError::NotFound { what: "workflow", id };
        let Ok(reference) = WorkflowRef::parse(workflow) else { return Ok(absent) };
        let asked = workflow_query(caller, &reference);
        let behalf = Behalf::Account(caller.account().clone());
        let found = self.inner.store.workflows().find(&behalf, &asked).await?;
        Ok(match found {
            NameMatch::One(reached) => {
                crate::workflows::role_too_low(reached.role, AccessRole::Owner)
            }
            NameMatch::Elsewhere(names) => {
                EngineError::named_elsewhere("workflow", reference.to_string(), names)
            }
            NameMatch::Nothing => absent,
        })
    }

    /// The verifiers that the workflow names, each at its current version.
    async fn snapshots(
        &self,
        caller: &Caller,
        workflow: &PublishableWorkflow,
    ) -> Result<Vec<VerifierSnapshot>, EngineError> {
        let mut snapshots = Vec::new();
        for (name, id, pinned) in &workflow.bindings {
            let reference =
                VerifierRef { which: VerifierSelector::Id(id.clone()), version: *pinned };
            let found = self.verifier_reached(caller, &reference, VerifierRole::Owner).await;
            match found {
                Ok(found) => snapshots.push(snapshot(name, found)),
                Err(EngineError::NotFound { .. }) => return Err(verifier_gone(name)),
                Err(error) => return Err(error),
            }
        }
        Ok(snapshots)
    }

    async fn publication(
        &self,
        caller: &Caller,
        workflow: PublishableWorkflow,
        release_notes: Option<String>,
    ) -> Result<TemplatePublish, EngineError> {
        let snapshots = self.snapshots(caller, &workflow).await?;
        let seen = screened_workflow(&workflow, &criteria(&snapshots));
        let from = Provenance {
            workflow_id: Some(workflow.id.clone()),
            workflow_version: Some(workflow.version),
            ..Provenance::default()
        };
        let safety = self.screen(caller, &seen, &from).await?;
        let design = self.check_design(caller, &workflow, &from).await?;
        let notes = authoring_notes(&workflow);
        let clock = &self.inner.clock;
        let at = clock.now();
        Ok(TemplatePublish {
            account: caller.account().clone(),
            workflow_id: workflow.id,
            workflow_version: workflow.version,
            slug: workflow.slug,
            summary: TemplateVersionSummary {
                name: workflow.name,
                description: workflow.description,
                outcome: workflow.outcome,
                tags: workflow.tags,
                safety,
                design,
            },
            content: TemplateContent {
                body: workflow.body,
                release_notes,
                workflow_version: workflow.version,
                snapshots,
            },
            notes,
            new_id: id::uuid(at, clock.bits()),
            at,
        })
    }
}

fn snapshot(name: &str, found: VerifierVersion) -> VerifierSnapshot {
    VerifierSnapshot {
        name: name.to_owned(),
        verifier_id: found.verifier.id,
        verifier_name: found.verifier.name,
        description: found.description,
        version: found.version,
        config: found.config,
        config_hash: found.config_hash,
    }
}

fn criteria(snapshots: &[VerifierSnapshot]) -> Vec<(String, String)> {
    snapshots.iter().map(|it| (it.name.clone(), it.config.criterion.clone())).collect()
}

fn authoring_notes(workflow: &PublishableWorkflow) -> Vec<String> {
    let bindings = workflow.bindings.iter().map(|(name, id, _)| (name.as_str(), id.as_str()));
    notes(&AuthoringDraft {
        description: &workflow.description,
        outcome: &workflow.outcome,
        body: &workflow.body,
        bindings: bindings.collect(),
        files: workflow.files.iter().map(|it| it.file.path.as_str()).collect(),
    })
}

fn verifier_gone(name: &str) -> EngineError {
    EngineError::Conflict(format!(
        "the workflow's verifier `{name}` was revoked or deleted; bind another one and save the workflow"
    ))
}

fn refusal(refused: PublishRefusal, publish: &TemplatePublish) -> EngineError {
    let conflict = |text: &str| EngineError::Conflict(text.to_owned());
    match refused {
        PublishRefusal::HandleNotClaimed => no_handle(),
        PublishRefusal::WorkflowUnknown => {
            EngineError::NotFound { what: "workflow", id: publish.workflow_id.clone() }
        }
        PublishRefusal::WorkflowArchived => {
            conflict("the workflow is archived; unarchive it first")
        }
        PublishRefusal::WorkflowChanged => {
            conflict("a new version was saved during the screening; publish again")
        }
        PublishRefusal::VerifierGone(name) => verifier_gone(&name),
        PublishRefusal::SlugTaken => EngineError::Conflict(format!(
            "another workflow of yours is published as `{}`; save this one under another slug",
            publish.slug
        )),
        PublishRefusal::Archived => conflict("the template is archived; unarchive it first"),
    }
}
