//! A workflow as lists and replies show it.

use jurat_core::{
    time::Timestamp,
    workflow::{
        FileEntry, ReachableWorkflow, VerifierBinding, Workflow, WorkflowVersion, authoring,
    },
};
use serde::Serialize;
use utoipa::ToSchema;

use super::files::{WorkflowFileBody, manifest};
use crate::api::kit::{time::Time, words};

/// A verifier that a workflow names.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowVerifier)]
struct BindingBody<'a> {
    /// Name of the verifier within the workflow.
    name: &'a str,
    verifier_id: &'a str,
    /// The pinned version; null for the current one.
    #[schema(required = true)]
    version: Option<u32>,
}

fn bindings(bindings: &[VerifierBinding]) -> Vec<BindingBody<'_>> {
    bindings
        .iter()
        .map(|it| BindingBody { name: &it.name, verifier_id: &it.verifier_id, version: it.version })
        .collect()
}

/// A workflow in a list, with data of its current version.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowSummary)]
pub struct ListedWorkflow<'a> {
    id: &'a str,
    /// Alias of `id`.
    workflow_id: &'a str,
    /// Alias of `id`.
    skill_id: &'a str,
    slug: &'a str,
    /// The slug as well: clients that store workflows in folders use it as the folder name.
    name: &'a str,
    /// The name as it was given.
    title: &'a str,
    description: &'a str,
    outcome: &'a str,
    tags: &'a [String],
    current_version: u32,
    /// Send it as `expected_version_token` to save the next version.
    version_token: &'a str,
    owner_user_id: &'a str,
    /// The owner if it is not the caller: `@` and a handle, or the account id if there is no
    /// handle. Refer to the workflow by its id or as `@owner/slug`.
    #[schema(required = true)]
    owner: Option<&'a str>,
    /// The caller's role.
    effective_role: words::WorkflowRole,
    /// The template that it was forked from.
    #[schema(required = true)]
    parent_template_id: Option<&'a str>,
    #[schema(required = true)]
    parent_template_version: Option<u32>,
    created_at: Time,
    updated_at: Time,
    #[schema(required = true)]
    archived_at: Option<Time>,
}

pub fn listed(reached: &ReachableWorkflow) -> ListedWorkflow<'_> {
    let workflow = &reached.workflow;
    let parent = workflow.parent.as_ref();
    ListedWorkflow {
        id: &workflow.id,
        workflow_id: &workflow.id,
        skill_id: &workflow.id,
        slug: &workflow.slug,
        name: &workflow.slug,
        title: &workflow.name,
        description: &workflow.description,
        outcome: &workflow.outcome,
        tags: &workflow.tags,
        current_version: workflow.current_version,
        version_token: &workflow.version_token,
        owner_user_id: workflow.account.as_str(),
        owner: owner(reached),
        effective_role: words::WorkflowRole(reached.role),
        parent_template_id: parent.map(|parent| parent.template_id.as_str()),
        parent_template_version: parent.map(|parent| parent.version),
        created_at: Time(workflow.created_at),
        updated_at: Time(workflow.updated_at),
        archived_at: workflow.archived_at.map(Time),
    }
}

/// Search results, best match first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowHits)]
pub struct WorkflowSearchBody<'a> {
    pub items: Vec<WorkflowHitBody<'a>>,
    pub query: &'a str,
    pub limit: u32,
    /// Search method: `lexical` compares words only.
    pub search_mode: &'static str,
}

/// A matching workflow, and why it matched.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowHit)]
pub struct WorkflowHitBody<'a> {
    id: &'a str,
    /// Alias of `id`.
    workflow_id: &'a str,
    /// Alias of `id`.
    skill_id: &'a str,
    /// Rank, from 1 for the best match.
    rank: usize,
    /// Which words matched, and where.
    match_reason: &'a str,
    slug: &'a str,
    name: &'a str,
    description: &'a str,
    outcome: &'a str,
    tags: &'a [String],
    /// The owner if it is not the caller: `@` and a handle, or the account id if there is no
    /// handle. Refer to the workflow by its id or as `@owner/slug`.
    #[schema(required = true)]
    owner: Option<&'a str>,
    effective_role: words::WorkflowRole,
}

/// Whose a workflow is that is not the caller's.
fn owner(reached: &ReachableWorkflow) -> Option<&str> {
    reached.shared.as_ref().map(|shared| shared.owner.as_str())
}

/// What was found at a place, from 0 on.
pub fn found<'a>(
    place: usize,
    reached: &'a ReachableWorkflow,
    reason: &'a str,
) -> WorkflowHitBody<'a> {
    let workflow = &reached.workflow;
    WorkflowHitBody {
        id: &workflow.id,
        workflow_id: &workflow.id,
        skill_id: &workflow.id,
        rank: place + 1,
        match_reason: reason,
        slug: &workflow.slug,
        name: &workflow.name,
        description: &workflow.description,
        outcome: &workflow.outcome,
        tags: &workflow.tags,
        owner: owner(reached),
        effective_role: words::WorkflowRole(reached.role),
    }
}

/// One version of a workflow in full.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Workflow)]
pub struct WorkflowBody<'a> {
    id: &'a str,
    /// Alias of `id`.
    workflow_id: &'a str,
    /// Alias of `id`.
    skill_id: &'a str,
    slug: &'a str,
    name: &'a str,
    description: &'a str,
    outcome: &'a str,
    tags: &'a [String],
    /// The version shown.
    version: u32,
    current_version: u32,
    /// Send it as `expected_version_token` to save the next version.
    version_token: &'a str,
    /// Markdown.
    body: &'a str,
    source: words::WorkflowSource,
    verifiers: Vec<BindingBody<'a>>,
    #[schema(value_type = Vec<String>)]
    image_generators: [&'static str; 0],
    files: Vec<WorkflowFileBody<'a>>,
    owner_user_id: &'a str,
    /// The owner if it is not the caller: `@` and a handle, or the account id if there is no
    /// handle. Refer to the workflow by its id or as `@owner/slug`.
    #[schema(required = true)]
    owner: Option<&'a str>,
    effective_role: words::WorkflowRole,
    /// The first version that the caller can see; null for all.
    #[schema(required = true)]
    shared_from_version: Option<u32>,
    /// The template that it was forked from.
    #[schema(required = true)]
    parent_template_id: Option<&'a str>,
    #[schema(required = true)]
    parent_template_version: Option<u32>,
    created_by_user_id: &'a str,
    /// When this version was saved.
    created_at: Time,
    /// When the current version was saved.
    updated_at: Time,
    #[schema(required = true)]
    archived_at: Option<Time>,
    /// How an agent should use the workflow.
    run_guidance: &'static str,
}

const GUIDANCE: &str = "Follow the body from the beginning. When it names a verifier, run the verifier with the inputs of its contract, and continue only if it passed.";

/// A workflow with one of its versions.
#[derive(Debug, Clone, Copy)]
pub struct WorkflowVersionView<'a> {
    pub reached: &'a ReachableWorkflow,
    pub version: &'a WorkflowVersion,
}

pub fn shown(
    WorkflowVersionView { reached, version }: WorkflowVersionView<'_>,
) -> WorkflowBody<'_> {
    let workflow = &reached.workflow;
    let parent = workflow.parent.as_ref();
    WorkflowBody {
        id: &workflow.id,
        workflow_id: &workflow.id,
        skill_id: &workflow.id,
        slug: &workflow.slug,
        name: &version.name,
        description: &version.description,
        outcome: &version.outcome,
        tags: &version.tags,
        version: version.version,
        current_version: workflow.current_version,
        version_token: &workflow.version_token,
        body: &version.body,
        source: words::WorkflowSource(version.source),
        verifiers: bindings(&version.bindings),
        image_generators: [],
        files: version.files.iter().map(manifest).collect(),
        owner_user_id: workflow.account.as_str(),
        owner: owner(reached),
        effective_role: words::WorkflowRole(reached.role),
        shared_from_version: (reached.floor > 0).then_some(reached.floor),
        parent_template_id: parent.map(|parent| parent.template_id.as_str()),
        parent_template_version: parent.map(|parent| parent.version),
        created_by_user_id: version.created_by.as_str(),
        created_at: Time(version.created_at),
        updated_at: Time(workflow.updated_at),
        archived_at: workflow.archived_at.map(Time),
        run_guidance: GUIDANCE,
    }
}

/// The saved version.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SavedWorkflow)]
pub struct SavedWorkflowBody<'a> {
    id: &'a str,
    /// Alias of `id`.
    workflow_id: &'a str,
    /// Alias of `id`.
    skill_id: &'a str,
    slug: &'a str,
    name: &'a str,
    version: u32,
    /// Send it as `expected_version_token` to save the next version.
    version_token: &'a str,
    verifiers: Vec<BindingBody<'a>>,
    #[schema(value_type = Vec<String>)]
    image_generators: [&'static str; 0],
    files: Vec<WorkflowFileBody<'a>>,
    /// Suggestions for the author.
    authoring_notes: Vec<String>,
    next_step: &'static str,
}

/// What can be said of a version that was saved.
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

pub fn saved<'a>(
    workflow: &'a Workflow,
    body: &'a str,
    (bound, files): (&'a [VerifierBinding], &'a [FileEntry]),
) -> SavedWorkflowBody<'a> {
    let looked = looked_at(workflow, body, (bound, files));
    SavedWorkflowBody {
        id: &workflow.id,
        workflow_id: &workflow.id,
        skill_id: &workflow.id,
        slug: &workflow.slug,
        name: &workflow.name,
        version: workflow.current_version,
        version_token: &workflow.version_token,
        verifiers: bindings(bound),
        image_generators: [],
        files: files.iter().map(manifest).collect(),
        authoring_notes: authoring::notes(&looked),
        next_step: authoring::next_step(&looked),
    }
}

/// The version created by changing files.
#[derive(Debug, Serialize, ToSchema)]
pub struct PatchedWorkflow<'a> {
    id: &'a str,
    /// Alias of `id`.
    workflow_id: &'a str,
    /// Alias of `id`.
    skill_id: &'a str,
    slug: &'a str,
    name: &'a str,
    version: u32,
    /// Send it as `expected_version_token` to save the next version.
    version_token: &'a str,
    /// Added or changed paths.
    changed: &'a [String],
    deleted: &'a [String],
    /// Number of unchanged files.
    carried_forward: usize,
    /// Suggestions for the author.
    authoring_notes: Vec<String>,
}

/// The body, the verifiers and the files of the version stand beside its workflow.
pub fn patched<'a>(
    workflow: &'a Workflow,
    (body, bound, files): (&str, &[VerifierBinding], &[FileEntry]),
    (changed, deleted): (&'a [String], &'a [String]),
) -> PatchedWorkflow<'a> {
    PatchedWorkflow {
        id: &workflow.id,
        workflow_id: &workflow.id,
        skill_id: &workflow.id,
        slug: &workflow.slug,
        name: &workflow.name,
        version: workflow.current_version,
        version_token: &workflow.version_token,
        changed,
        deleted,
        carried_forward: files.iter().filter(|file| !changed.contains(&file.path)).count(),
        authoring_notes: authoring::notes(&looked_at(workflow, body, (bound, files))),
    }
}

/// An archived or unarchived workflow.
#[derive(Debug, Serialize, ToSchema)]
pub struct ArchivedWorkflow<'a> {
    id: &'a str,
    /// Alias of `id`.
    workflow_id: &'a str,
    /// Alias of `id`.
    skill_id: &'a str,
    name: &'a str,
    archived: bool,
}

pub fn archived(workflow: &Workflow) -> ArchivedWorkflow<'_> {
    ArchivedWorkflow {
        id: &workflow.id,
        workflow_id: &workflow.id,
        skill_id: &workflow.id,
        name: &workflow.name,
        archived: true,
    }
}

pub fn unarchived(workflow: &Workflow) -> ArchivedWorkflow<'_> {
    ArchivedWorkflow { archived: false, ..archived(workflow) }
}

/// A deleted workflow.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedWorkflow<'a> {
    id: &'a str,
    /// Alias of `id`.
    workflow_id: &'a str,
    /// Alias of `id`.
    skill_id: &'a str,
    name: &'a str,
    deleted: bool,
}

pub fn deleted(workflow: &Workflow) -> DeletedWorkflow<'_> {
    DeletedWorkflow {
        id: &workflow.id,
        workflow_id: &workflow.id,
        skill_id: &workflow.id,
        name: &workflow.name,
        deleted: true,
    }
}

/// A deleted version.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedWorkflowVersion<'a> {
    id: &'a str,
    /// Alias of `id`.
    workflow_id: &'a str,
    /// Alias of `id`.
    skill_id: &'a str,
    version: u32,
    deleted: bool,
}

pub fn version_deleted(workflow: &Workflow, version: u32) -> DeletedWorkflowVersion<'_> {
    let id = workflow.id.as_str();
    DeletedWorkflowVersion { id, workflow_id: id, skill_id: id, version, deleted: true }
}

/// The template that a workflow was forked from, and its current state.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowLineage)]
pub struct LineageBody<'a> {
    id: &'a str,
    /// Alias of `id`.
    workflow_id: &'a str,
    /// Alias of `id`.
    skill_id: &'a str,
    /// The template that it was forked from; null if it was not forked.
    #[schema(required = true)]
    parent_template_id: Option<&'a str>,
    #[schema(required = true)]
    parent_template_version: Option<u32>,
    #[schema(required = true)]
    upstream_latest_version: Option<u32>,
    #[schema(required = true)]
    is_upstream_unpublished: Option<bool>,
    /// `published`, `unpublished`, `archived` or `deleted`.
    #[schema(required = true)]
    parent_source_status: Option<&'static str>,
    #[schema(required = true)]
    parent_permanently_deleted: Option<bool>,
    #[schema(required = true)]
    parent_template_archived_at: Option<Time>,
    #[schema(required = true)]
    parent_template_archive_reason: Option<&'a str>,
    #[schema(required = true)]
    parent_version_deprecated_at: Option<Time>,
    #[schema(required = true)]
    parent_version_deprecation_message: Option<&'a str>,
}

/// The template that a workflow was forked from, as it is now.
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
        id: &workflow.id,
        workflow_id: &workflow.id,
        skill_id: &workflow.id,
        parent_template_id: parent.map(|parent| parent.template_id.as_str()),
        parent_template_version: parent.map(|parent| parent.version),
        upstream_latest_version: upstream.map(|it| it.latest_version),
        is_upstream_unpublished: upstream.map(|it| it.is_unpublished),
        parent_source_status: parent.map(|_| status),
        parent_permanently_deleted: parent.map(|_| is_deleted),
        parent_template_archived_at: upstream.and_then(|it| it.archived_at).map(Time),
        parent_template_archive_reason: upstream.and_then(|it| it.archive_reason),
        parent_version_deprecated_at: upstream.and_then(|it| it.deprecated_at).map(Time),
        parent_version_deprecation_message: upstream.and_then(|it| it.deprecation_message),
    }
}
