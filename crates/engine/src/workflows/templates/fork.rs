//! Forks a version into a private workflow of the caller, with verifiers of its own.

use jurat_core::{
    account::caller::{Caller, Scope},
    id,
    workflow::{
        Slug,
        template::{ForkNotes, ForkedWorkflow, TemplateRef},
    },
};
use jurat_store::{Behalf, ForkRefusal, ForkedVerifier, TemplateFork};

use super::unknown_template;
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, TemplateView,
    access::require_scope,
};

/// The template to fork, and the name of the fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkOrder {
    pub wanted: TemplateRef,
    /// If absent, the name of the template.
    pub name: Option<String>,
}

impl Engine {
    pub async fn template_fork(
        &self,
        caller: &Caller,
        order: ForkOrder,
        keyed: Option<IdempotentWrite<ForkedWorkflow>>,
    ) -> Result<IdempotentOutcome<ForkedWorkflow>, EngineError> {
        require_scope(caller, Scope::WorkflowsWrite)?;
        let view = self.template_get(Some(caller), &order.wanted).await?;
        if !view.found.content.snapshots.is_empty() {
            require_scope(caller, Scope::VerifiersWrite)?;
        }
        let fork = self.fork_of(caller, view, order.name);
        let templates = self.inner.store.templates();
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Rows, async |once| {
            let behalf = Behalf::Account(caller.account().clone());
            templates.fork(&behalf, &fork, once).await
        });
        done.await?.map_err(|refused| match refused {
            ForkRefusal::Unknown => unknown_template(&order.wanted),
            ForkRefusal::Workflow(_) => EngineError::invalid("name", "is not a valid workflow name; use letters or digits"),
            ForkRefusal::NoNameLeft(name) => EngineError::Conflict(format!(
                "there are too many workflows or verifiers named like `{name}`; choose another `name`"
            )),
        })
    }

    fn fork_of(&self, caller: &Caller, view: TemplateView, name: Option<String>) -> TemplateFork {
        let clock = &self.inner.clock;
        let at = clock.now();
        let TemplateView { found, moved, .. } = view;
        let mut body = found.content.body;
        let mut verifiers = Vec::new();
        for snapshot in found.content.snapshots {
            let new_id = id::uuid(at, clock.bits());
            // The body names verifiers by id, and the fork has new ones.
            let pinned = format!("{}@{}", snapshot.verifier_id, snapshot.version);
            body = body.replace(&pinned, &new_id).replace(&snapshot.verifier_id, &new_id);
            verifiers.push(ForkedVerifier {
                binding: snapshot.name,
                name: snapshot.verifier_name,
                description: snapshot.description,
                config: snapshot.config,
                id: new_id,
                token: format!("{:032x}", clock.bits()),
            });
        }
        let deprecation = found.release.deprecated_at.map(|_| {
            let why = found.release.deprecation_message.as_deref().unwrap_or("no reason was given");
            format!("the version that you forked is deprecated: {why}")
        });
        let name = name.unwrap_or_else(|| found.summary.name.clone());
        TemplateFork {
            account: caller.account().clone(),
            template_id: found.template.id,
            version: found.release.version,
            slug: Slug::of_name(&name).map_or(found.template.slug, |slug| slug.as_str().to_owned()),
            name,
            summary: found.summary,
            body,
            verifiers,
            workflow_id: id::uuid(at, clock.bits()),
            workflow_token: format!("{:032x}", clock.bits()),
            notes: ForkNotes { moved: moved.map(|it| (it.from, it.to)), deprecation },
            at,
        }
    }
}
