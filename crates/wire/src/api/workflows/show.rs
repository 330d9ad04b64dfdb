//! Workflows as lists and replies show them.

use std::borrow::Cow;

use jurat_core::{
    time::Timestamp,
    workflow::{
        FileEntry, ReachableWorkflow, VerifierBinding, Workflow, WorkflowVersion, authoring,
    },
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::files::{WorkflowFileBody, manifest};
use crate::api::kit::{time::Time, words};

/// A verifier that a workflow names.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = WorkflowVerifier)]
pub struct BindingBody<'a> {
    /// Name of the verifier within the workflow.
    pub name: Cow<'a, str>,
    pub verifier_id: Cow<'a, str>,
    /// The pinned version; null for the current one.
    #[schema(required = true)]
    pub version: Option<u32>,
}

fn bindings(bindings: &[VerifierBinding]) -> Vec<BindingBody<'_>> {
    bindings
        .iter()
        .map(|it| BindingBody {
            name: Cow::Borrowed(&it.name),
            verifier_id: Cow::Borrowed(&it.verifier_id),
            version: it.version,
        })
        .collect()
}

/// A workflow in a list, with data of its current version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = WorkflowSummary)]
pub struct ListedWorkflow<'a> {
    pub id: Cow<'a, str>,
    /// Alias of `id`.
    pub workflow_id: Cow<'a, str>,
    /// Alias of `id`.
    pub skill_id: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    /// The slug as well: clients that store workflows in folders use it as the folder name.
    pub name: Cow<'a, str>,
    /// The name as it was given.
    pub title: Cow<'a, str>,
    pub description: Cow<'a, str>,
    pub outcome: Cow<'a, str>,
    pub tags: Cow<'a, [String]>,
    pub current_version: u32,
    /// Send it as `expected_version_token` to save the next version.
    pub version_token: Cow<'a, str>,
    pub owner_user_id: Cow<'a, str>,
    /// The owner if it is not the caller: `@` and a handle, or the account id if there is no
    /// handle. Refer to the workflow by its id or as `@owner/slug`.
    #[schema(required = true)]
    pub owner: Option<Cow<'a, str>>,
    /// The caller's role.
    pub effective_role: words::WorkflowRole,
    /// The template that it was forked from.
    #[schema(required = true)]
    pub parent_template_id: Option<Cow<'a, str>>,
    #[schema(required = true)]
    pub parent_template_version: Option<u32>,
    pub created_at: Time,
    pub updated_at: Time,
    #[schema(required = true)]
    pub archived_at: Option<Time>,
}

/// A workflow in a list.
pub fn listed(reached: &ReachableWorkflow) -> ListedWorkflow<'_> {
    let workflow = &reached.workflow;
    let parent = workflow.parent.as_ref();
    ListedWorkflow {
        id: Cow::Borrowed(&workflow.id),
        workflow_id: Cow::Borrowed(&workflow.id),
        skill_id: Cow::Borrowed(&workflow.id),
        slug: Cow::Borrowed(&workflow.slug),
        name: Cow::Borrowed(&workflow.slug),
        title: Cow::Borrowed(&workflow.name),
        description: Cow::Borrowed(&workflow.description),
        outcome: Cow::Borrowed(&workflow.outcome),
        tags: Cow::Borrowed(&workflow.tags),
        current_version: workflow.current_version,
        version_token: Cow::Borrowed(&workflow.version_token),
        owner_user_id: Cow::Borrowed(workflow.account.as_str()),
        owner: owner(reached).map(Cow::Borrowed),
        effective_role: words::WorkflowRole(reached.role),
        parent_template_id: parent.map(|parent| parent.template_id.as_str()).map(Cow::Borrowed),
        parent_template_version: parent.map(|parent| parent.version),
        created_at: Time(workflow.created_at),
        updated_at: Time(workflow.updated_at),
        archived_at: workflow.archived_at.map(Time),
    }
}

/// Search results, best match first.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = WorkflowHits)]
pub struct WorkflowSearchBody<'a> {
    pub items: Vec<WorkflowHitBody<'a>>,
    pub query: Cow<'a, str>,
    pub limit: u32,
    /// Search method: `lexical` compares words only.
    pub search_mode: Cow<'static, str>,
}

/// A matching workflow, and why it matched.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = WorkflowHit)]
pub struct WorkflowHitBody<'a> {
    pub id: Cow<'a, str>,
    /// Alias of `id`.
    pub workflow_id: Cow<'a, str>,
    /// Alias of `id`.
    pub skill_id: Cow<'a, str>,
    /// Rank, from 1 for the best match.
    pub rank: usize,
    /// Which words matched, and where.
    pub match_reason: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub description: Cow<'a, str>,
    pub outcome: Cow<'a, str>,
    pub tags: Cow<'a, [String]>,
    /// The owner if it is not the caller: `@` and a handle, or the account id if there is no
    /// handle. Refer to the workflow by its id or as `@owner/slug`.
    #[schema(required = true)]
    pub owner: Option<Cow<'a, str>>,
    pub effective_role: words::WorkflowRole,
}

/// The owner of a workflow, unless it is the caller.
fn owner(reached: &ReachableWorkflow) -> Option<&str> {
    reached.shared.as_ref().map(|shared| shared.owner.as_str())
}

/// A search result; `place` is its position, from 0.
pub fn found<'a>(
    place: usize,
    reached: &'a ReachableWorkflow,
    reason: &'a str,
) -> WorkflowHitBody<'a> {
    let workflow = &reached.workflow;
    WorkflowHitBody {
        id: Cow::Borrowed(&workflow.id),
        workflow_id: Cow::Borrowed(&workflow.id),
        skill_id: Cow::Borrowed(&workflow.id),
        rank: place + 1,
        match_reason: Cow::Borrowed(reason),
        slug: Cow::Borrowed(&workflow.slug),
        name: Cow::Borrowed(&workflow.name),
        description: Cow::Borrowed(&workflow.description),
        outcome: Cow::Borrowed(&workflow.outcome),
        tags: Cow::Borrowed(&workflow.tags),
        owner: owner(reached).map(Cow::Borrowed),
        effective_role: words::WorkflowRole(reached.role),
    }
}

/// One version of a workflow in full.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Workflow)]
pub struct WorkflowBody<'a> {
    pub id: Cow<'a, str>,
    /// Alias of `id`.
    pub workflow_id: Cow<'a, str>,
    /// Alias of `id`.
    pub skill_id: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub description: Cow<'a, str>,
    pub outcome: Cow<'a, str>,
    pub tags: Cow<'a, [String]>,
    /// The version shown.
    pub version: u32,
    pub current_version: u32,
    /// Send it as `expected_version_token` to save the next version.
    pub version_token: Cow<'a, str>,
    /// Markdown.
    pub body: Cow<'a, str>,
    pub source: words::WorkflowSource,
    pub verifiers: Vec<BindingBody<'a>>,
    #[schema(value_type = Vec<String>)]
    pub image_generators: Vec<Cow<'static, str>>,
    pub files: Vec<WorkflowFileBody<'a>>,
    pub owner_user_id: Cow<'a, str>,
    /// The owner if it is not the caller: `@` and a handle, or the account id if there is no
    /// handle. Refer to the workflow by its id or as `@owner/slug`.
    #[schema(required = true)]
    pub owner: Option<Cow<'a, str>>,
    pub effective_role: words::WorkflowRole,
    /// The first version that the caller can see; null for all.
    #[schema(required = true)]
    pub shared_from_version: Option<u32>,
    /// The template that it was forked from.
    #[schema(required = true)]
    pub parent_template_id: Option<Cow<'a, str>>,
    #[schema(required = true)]
    pub parent_template_version: Option<u32>,
    pub created_by_user_id: Cow<'a, str>,
    /// When this version was saved.
    pub created_at: Time,
    /// When the current version was saved.
    pub updated_at: Time,
    #[schema(required = true)]
    pub archived_at: Option<Time>,
    /// How an agent should use the workflow.
    pub run_guidance: Cow<'static, str>,
}

const GUIDANCE: &str = "Follow the body from the beginning. When it names a verifier, run the verifier with the inputs of its contract, and continue only if it passed.";

/// A workflow with one of its versions.
#[derive(Debug, Clone, Copy)]
pub struct WorkflowVersionView<'a> {
    pub reached: &'a ReachableWorkflow,
    pub version: &'a WorkflowVersion,
}

/// One version of a workflow in full.
pub fn shown(
    WorkflowVersionView { reached, version }: WorkflowVersionView<'_>,
) -> WorkflowBody<'_> {
    let workflow = &reached.workflow;
    let parent = workflow.parent.as_ref();
    WorkflowBody {
        id: Cow::Borrowed(&workflow.id),
        workflow_id: Cow::Borrowed(&workflow.id),
        skill_id: Cow::Borrowed(&workflow.id),
        slug: Cow::Borrowed(&workflow.slug),
        name: Cow::Borrowed(&version.name),
        description: Cow::Borrowed(&version.description),
        outcome: Cow::Borrowed(&version.outcome),
        tags: Cow::Borrowed(&version.tags),
        version: version.version,
        current_version: workflow.current_version,
        version_token: Cow::Borrowed(&workflow.version_token),
        body: Cow::Borrowed(&version.body),
        source: words::WorkflowSource(version.source),
        verifiers: bindings(&version.bindings),
        image_generators: Vec::new(),
        files: version.files.iter().map(manifest).collect(),
        owner_user_id: Cow::Borrowed(workflow.account.as_str()),
        owner: owner(reached).map(Cow::Borrowed),
        effective_role: words::WorkflowRole(reached.role),
        shared_from_version: (reached.floor > 0).then_some(reached.floor),
        parent_template_id: parent.map(|parent| parent.template_id.as_str()).map(Cow::Borrowed),
        parent_template_version: parent.map(|parent| parent.version),
        created_by_user_id: Cow::Borrowed(version.created_by.as_str()),
        created_at: Time(version.created_at),
        updated_at: Time(workflow.updated_at),
        archived_at: workflow.archived_at.map(Time),
        run_guidance: Cow::Borrowed(GUIDANCE),
    }
}

/// The saved version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = SavedWorkflow)]
pub struct SavedWorkflowBody<'a> {
    pub id: Cow<'a, str>,
    /// Alias of `id`.
    pub workflow_id: Cow<'a, str>,
    /// Alias of `id`.
    pub skill_id: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub version: u32,
    /// Send it as `expected_version_token` to save the next version.
    pub version_token: Cow<'a, str>,
    pub verifiers: Vec<BindingBody<'a>>,
    #[schema(value_type = Vec<String>)]
    pub image_generators: Vec<Cow<'static, str>>,
    pub files: Vec<WorkflowFileBody<'a>>,
    /// Suggestions for the author.
    pub authoring_notes: Vec<String>,
    pub next_step: Cow<'static, str>,
}

/// The parts of a saved version that the authoring notes are about.
fn looked_at<'a>(
    workflow: &'a Workflow,
    body: &'a str,
    (bound, files): (&'a [VerifierBinding], &'a [FileEntry]),
) -> authoring::AuthoringDraft<'a> {
    authoring::AuthoringDraft {
        description: &workflow.description,
        outcome: &workflow.outcome,
        body,
        bindings: bound.iter().map(|it| (it.name.as_str(), it.verifier_id.as_str())).collect(),
        files: files.iter().map(|file| file.path.as_str()).collect(),
    }
}

/// The saved version, with suggestions for its author.
pub fn saved<'a>(
    workflow: &'a Workflow,
    body: &'a str,
    (bound, files): (&'a [VerifierBinding], &'a [FileEntry]),
) -> SavedWorkflowBody<'a> {
    let looked = looked_at(workflow, body, (bound, files));
    SavedWorkflowBody {
        id: Cow::Borrowed(&workflow.id),
        workflow_id: Cow::Borrowed(&workflow.id),
        skill_id: Cow::Borrowed(&workflow.id),
        slug: Cow::Borrowed(&workflow.slug),
        name: Cow::Borrowed(&workflow.name),
        version: workflow.current_version,
        version_token: Cow::Borrowed(&workflow.version_token),
        verifiers: bindings(bound),
        image_generators: Vec::new(),
        files: files.iter().map(manifest).collect(),
        authoring_notes: authoring::notes(&looked),
        next_step: Cow::Borrowed(authoring::next_step(&looked)),
    }
}

/// The version created by changing files.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PatchedWorkflow<'a> {
    pub id: Cow<'a, str>,
    /// Alias of `id`.
    pub workflow_id: Cow<'a, str>,
    /// Alias of `id`.
    pub skill_id: Cow<'a, str>,
    pub slug: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub version: u32,
    /// Send it as `expected_version_token` to save the next version.
    pub version_token: Cow<'a, str>,
    /// Added or changed paths.
    pub changed: Cow<'a, [String]>,
    pub deleted: Cow<'a, [String]>,
    /// Number of unchanged files.
    pub carried_forward: usize,
    /// Suggestions for the author.
    pub authoring_notes: Vec<String>,
}

/// The version created by changing files. The body, verifiers and files of the version are separate
/// arguments, because the workflow does not contain them.
pub fn patched<'a>(
    workflow: &'a Workflow,
    (body, bound, files): (&str, &[VerifierBinding], &[FileEntry]),
    (changed, deleted): (&'a [String], &'a [String]),
) -> PatchedWorkflow<'a> {
    PatchedWorkflow {
        id: Cow::Borrowed(&workflow.id),
        workflow_id: Cow::Borrowed(&workflow.id),
        skill_id: Cow::Borrowed(&workflow.id),
        slug: Cow::Borrowed(&workflow.slug),
        name: Cow::Borrowed(&workflow.name),
        version: workflow.current_version,
        version_token: Cow::Borrowed(&workflow.version_token),
        changed: Cow::Borrowed(changed),
        deleted: Cow::Borrowed(deleted),
        carried_forward: files.iter().filter(|file| !changed.contains(&file.path)).count(),
        authoring_notes: authoring::notes(&looked_at(workflow, body, (bound, files))),
    }
}

/// An archived or unarchived workflow.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct ArchivedWorkflow<'a> {
    pub id: Cow<'a, str>,
    /// Alias of `id`.
    pub workflow_id: Cow<'a, str>,
    /// Alias of `id`.
    pub skill_id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub archived: bool,
}

/// An archived workflow.
pub fn archived(workflow: &Workflow) -> ArchivedWorkflow<'_> {
    ArchivedWorkflow {
        id: Cow::Borrowed(&workflow.id),
        workflow_id: Cow::Borrowed(&workflow.id),
        skill_id: Cow::Borrowed(&workflow.id),
        name: Cow::Borrowed(&workflow.name),
        archived: true,
    }
}

/// An unarchived workflow.
pub fn unarchived(workflow: &Workflow) -> ArchivedWorkflow<'_> {
    ArchivedWorkflow { archived: false, ..archived(workflow) }
}

/// A deleted workflow.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct DeletedWorkflow<'a> {
    pub id: Cow<'a, str>,
    /// Alias of `id`.
    pub workflow_id: Cow<'a, str>,
    /// Alias of `id`.
    pub skill_id: Cow<'a, str>,
    pub name: Cow<'a, str>,
    pub deleted: bool,
}

/// A deleted workflow.
pub fn deleted(workflow: &Workflow) -> DeletedWorkflow<'_> {
    DeletedWorkflow {
        id: Cow::Borrowed(&workflow.id),
        workflow_id: Cow::Borrowed(&workflow.id),
        skill_id: Cow::Borrowed(&workflow.id),
        name: Cow::Borrowed(&workflow.name),
        deleted: true,
    }
}

/// A deleted version.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct DeletedWorkflowVersion<'a> {
    pub id: Cow<'a, str>,
    /// Alias of `id`.
    pub workflow_id: Cow<'a, str>,
    /// Alias of `id`.
    pub skill_id: Cow<'a, str>,
    pub version: u32,
    pub deleted: bool,
}

/// A deleted version.
pub fn version_deleted(workflow: &Workflow, version: u32) -> DeletedWorkflowVersion<'_> {
    let id = workflow.id.as_str();
    DeletedWorkflowVersion {
        id: Cow::Borrowed(id),
        workflow_id: Cow::Borrowed(id),
        skill_id: Cow::Borrowed(id),
        version,
        deleted: true,
    }
}

/// The template that a workflow was forked from, and its current state.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = WorkflowLineage)]
pub struct LineageBody<'a> {
    pub id: Cow<'a, str>,
    /// Alias of `id`.
    pub workflow_id: Cow<'a, str>,
    /// Alias of `id`.
    pub skill_id: Cow<'a, str>,
    /// The template that it was forked from; null if it was not forked.
    #[schema(required = true)]
    pub parent_template_id: Option<Cow<'a, str>>,
    #[schema(required = true)]
    pub parent_template_version: Option<u32>,
    #[schema(required = true)]
    pub upstream_latest_version: Option<u32>,
    #[schema(required = true)]
    pub is_upstream_unpublished: Option<bool>,
    /// `published`, `unpublished`, `archived` or `deleted`.
    #[schema(required = true)]
    pub parent_source_status: Option<Cow<'static, str>>,
    #[schema(required = true)]
    pub parent_permanently_deleted: Option<bool>,
    #[schema(required = true)]
    pub parent_template_archived_at: Option<Time>,
    #[schema(required = true)]
    pub parent_template_archive_reason: Option<Cow<'a, str>>,
    #[schema(required = true)]
    pub parent_version_deprecated_at: Option<Time>,
    #[schema(required = true)]
    pub parent_version_deprecation_message: Option<Cow<'a, str>>,
}

/// The current state of the template that a workflow was forked from.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamView<'a> {
    pub latest_version: u32,
    pub is_unpublished: bool,
    pub is_version_deleted: bool,
    pub archived_at: Option<Timestamp>,
    pub archive_reason: Option<&'a str>,
    pub deprecated_at: Option<Timestamp>,
    pub deprecation_message: Option<&'a str>,
}

/// The lineage of a workflow; without `upstream`, a forked workflow's template is deleted.
pub fn lineage<'a>(workflow: &'a Workflow, upstream: Option<UpstreamView<'a>>) -> LineageBody<'a> {
    let parent = workflow.parent.as_ref();
    let is_deleted = upstream.is_none_or(|it| it.is_version_deleted);
    let status = match upstream {
        _ if is_deleted => "deleted",
        Some(it) if it.archived_at.is_some() => "archived",
        Some(it) if it.is_unpublished => "unpublished",
        _ => "published",
    };
    LineageBody {
        id: Cow::Borrowed(&workflow.id),
        workflow_id: Cow::Borrowed(&workflow.id),
        skill_id: Cow::Borrowed(&workflow.id),
        parent_template_id: parent.map(|parent| parent.template_id.as_str()).map(Cow::Borrowed),
        parent_template_version: parent.map(|parent| parent.version),
        upstream_latest_version: upstream.map(|it| it.latest_version),
        is_upstream_unpublished: upstream.map(|it| it.is_unpublished),
        parent_source_status: parent.map(|_| status).map(Cow::Borrowed),
        parent_permanently_deleted: parent.map(|_| is_deleted),
        parent_template_archived_at: upstream.and_then(|it| it.archived_at).map(Time),
        parent_template_archive_reason: upstream
            .and_then(|it| it.archive_reason)
            .map(Cow::Borrowed),
        parent_version_deprecated_at: upstream.and_then(|it| it.deprecated_at).map(Time),
        parent_version_deprecation_message: upstream
            .and_then(|it| it.deprecation_message)
            .map(Cow::Borrowed),
    }
}
