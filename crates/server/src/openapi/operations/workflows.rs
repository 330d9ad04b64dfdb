//! What the operations on workflows are for, what they take, and what they answer.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_wire::api::{
    kit::page::PageBody,
    workflows::{
        ArchivedWorkflow, DeletedWorkflow, DeletedWorkflowVersion, GrantedWorkflow, LeftWorkflow,
        LineageBody, ListedWorkflow, OfferedWorkflow, PatchWorkflowFilesRequest, PatchedWorkflow,
        RevokeWorkflowGrantRequest, RevokedWorkflowGrant, SaveWorkflowRequest, SavedWorkflowBody,
        SearchWorkflowsRequest, TransferWorkflowRequest, WorkflowBody, WorkflowFileEnvelope,
        WorkflowGrantList, WorkflowGrantRequest, WorkflowSearchBody,
    },
};
use serde_json::{Value, json};

use super::WORKFLOWS;
use crate::{
    openapi::{description::OperationDescription, parameters},
    resources::RouteInfo,
};

const ID: &str = "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70";
const TOKEN: &str = "5d41402abc4b2a76b9719d911017c592";
const AT: &str = "2026-09-21T14:13:20Z";
const DIGEST: &str = "c98c24b677eff44860afea6f493bbaec5bb1c4cbb209c6fc2bbb47f66ff2ad31";

pub(super) fn describe(route: &RouteInfo) -> Option<OperationDescription> {
    let description = match route.operation {
        "workflow_save" => save(),
        "workflow_list" => list(),
        "workflow_search" => search(),
        "workflow_get" => get(),
        "workflow_version_get" => get_version(),
        "workflow_files" => files(),
        "workflow_patch_files" => patch_files(),
        "workflow_archive" => archive(),
        "workflow_unarchive" => unarchive(),
        "workflow_delete" => delete(),
        "workflow_version_delete" => delete_version(),
        "workflow_lineage" => lineage(),
        "workflow_grant" => grant(),
        "workflow_grants" => grants(),
        "workflow_revoke" => revoke(),
        "workflow_leave" => leave(),
        "workflow_transfer" => transfer(),
        _ => return None,
    };
    let is_named = route.path.contains("{ref}");
    let usual = [ProblemCode::NotFound, ProblemCode::ValidationError];
    Some(if is_named { description.refuses(usual) } else { description })
}

fn file() -> Value {
    json!({
        "path": "short.md", "sha256": DIGEST, "size_bytes": 7, "executable": false,
        "content_kind": "text", "purpose": null, "fetchable_over_mcp": true,
        "execution_gated": false,
    })
}

fn ids(rest: Value) -> Value {
    let mut all = json!({ "id": ID, "workflow_id": ID, "skill_id": ID });
    if let (Some(all), Value::Object(rest)) = (all.as_object_mut(), rest) {
        all.extend(rest);
    }
    all
}

fn save_request() -> Value {
    json!({
        "name": "Incident postmortem",
        "description": "Drafts a postmortem from the log of an incident.",
        "outcome": "A postmortem within an hour of the end of an incident.",
        "tags": ["sre"],
        "body": "# Draft a postmortem\n\n1. Read the log.\n2. Write what happened, and why.\n",
        "expected_version_token": null,
        "verifiers": [],
        "files": [{ "path": "short.md", "content": "# Short" }],
    })
}

fn save() -> OperationDescription {
    let text = "Creates a workflow, or adds a version to one. A version never changes. The name determines the slug of a new workflow. Leave `expected_version_token` null for the first save, and send the current token for every later one; otherwise the reply is 409 with the current token in `current_version_token`. `files` and `verifiers` are complete lists: leave them out to keep them, or send an empty list to clear them. If name, description, outcome or tags are left out, they are taken from the front matter of the body, then from the previous version. Users with the role `edit` can save versions, but only the owner can change `verifiers`. The body may have 8 MiB.";
    OperationDescription::new(WORKFLOWS, "Save a version of a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<SaveWorkflowRequest>([("plain", save_request())])
        .answers::<SavedWorkflowBody<'_>>(
            201,
            "The saved version.",
            ids(json!({
                "slug": "incident-postmortem", "name": "Incident postmortem", "version": 1,
                "version_token": TOKEN, "verifiers": [], "image_generators": [],
                "files": [file()],
                "authoring_notes": [
                    "Nothing is checked: bind a verifier for each judgment the body asks for, or add a block of checks.",
                    "The file `short.md` is attached, but the body does not mention it.",
                ],
                "next_step": "Deploy a verifier for the result that matters and bind it, or add a block of checks.",
            })),
        )
        .idempotent()
        .refuses([
            ProblemCode::Conflict,
            ProblemCode::NotFound,
            ProblemCode::NotSupported,
        ])
}

fn summary() -> Value {
    ids(json!({
        "slug": "incident-postmortem", "name": "incident-postmortem",
        "title": "Incident postmortem",
        "description": "Drafts a postmortem from the log of an incident.",
        "outcome": "A postmortem within an hour of the end of an incident.", "tags": ["sre"],
        "current_version": 1, "version_token": TOKEN, "owner_user_id": "acct_admin",
        "owner": null, "effective_role": "owner", "parent_template_id": null,
        "parent_template_version": null,
        "created_at": AT, "updated_at": AT, "archived_at": null,
    }))
}

fn list() -> OperationDescription {
    let text = "The workflows that the caller owns or that are shared with it, newest first. Archived ones are listed only for their owner, with `include_archived`.";
    OperationDescription::new(WORKFLOWS, "List workflows", text)
        .scope(Scope::WorkflowsRead)
        .with(parameters::of_list())
        .with(parameters::of_workflows())
        .answers::<PageBody<'_, ListedWorkflow<'_>>>(
            200,
            "A page of workflows.",
            json!({ "items": [summary()], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
}

fn search() -> OperationDescription {
    let text = "Finds workflows by words in their names, tags, descriptions and outcomes, best match first. The search uses no model, as `search_mode` shows.";
    OperationDescription::new(WORKFLOWS, "Search workflows", text)
        .scope(Scope::WorkflowsRead)
        .takes::<SearchWorkflowsRequest>([(
            "plain",
            json!({ "query": "incident", "filter": "all", "limit": 5 }),
        )])
        .answers::<WorkflowSearchBody<'_>>(
            200,
            "The result.",
            json!({
                "items": [ids(json!({
                    "rank": 1, "match_reason": "name: incident; description: incident; outcome: incident",
                    "slug": "incident-postmortem", "name": "Incident postmortem",
                    "description": "Drafts a postmortem from the log of an incident.",
                    "outcome": "A postmortem within an hour of the end of an incident.",
                    "tags": ["sre"], "owner": null, "effective_role": "owner",
                }))],
                "query": "incident", "limit": 5, "search_mode": "lexical",
            }),
        )
        .refuses([ProblemCode::ValidationError])
}

fn whole() -> Value {
    ids(json!({
        "slug": "incident-postmortem", "name": "Incident postmortem",
        "description": "Drafts a postmortem from the log of an incident.",
        "outcome": "A postmortem within an hour of the end of an incident.", "tags": ["sre"],
        "version": 1, "current_version": 1, "version_token": TOKEN,
        "body": "# Draft a postmortem\n\n1. Read the log.\n2. Write what happened, and why.\n",
        "source": "manual", "verifiers": [], "image_generators": [], "files": [file()],
        "owner_user_id": "acct_admin", "owner": null, "effective_role": "owner", "shared_from_version": null,
        "parent_template_id": null, "parent_template_version": null,
        "created_by_user_id": "acct_admin", "created_at": AT, "updated_at": AT,
        "archived_at": null,
        "run_guidance": "Follow the body from the beginning. When it names a verifier, run the verifier with the inputs of its contract, and continue only if it passed.",
    }))
}

fn get() -> OperationDescription {
    let text = "One full version: the requested one, or the current one. With `Accept: text/markdown`, only the body. Workflows that the caller neither owns nor was granted are not found, and neither are versions before the first shared one.";
    OperationDescription::new(WORKFLOWS, "Show a workflow", text)
        .scope(Scope::WorkflowsRead)
        .with([parameters::version("The version to show; defaults to the current one.")])
        .answers::<WorkflowBody<'_>>(200, "The version.", whole())
        .or_as("text/markdown", "The body.")
}

fn get_version() -> OperationDescription {
    let text = "Same as showing a workflow with `version`.";
    OperationDescription::new(WORKFLOWS, "Show a version of a workflow", text)
        .scope(Scope::WorkflowsRead)
        .answers::<WorkflowBody<'_>>(200, "The version.", whole())
        .or_as("text/markdown", "The body.")
}

fn files() -> OperationDescription {
    let text = "An attached file by its `path`, or several by `paths`, which are returned as a list `files`. Text is returned as text and binary content as base64; binary content above 256 KiB needs `format=raw`. With `sha256`, the file is found only if its content matches.";
    OperationDescription::new(WORKFLOWS, "Read workflow files", text)
        .scope(Scope::WorkflowsRead)
        .with(parameters::of_files())
        .with([parameters::version("The version of the files; defaults to the current one.")])
        .answers::<FileOrFiles>(
            200,
            "The file, or the files.",
            json!({
                "path": "short.md", "sha256": DIGEST, "size_bytes": 7, "executable": false,
                "content_kind": "text", "content": "# Short",
            }),
        )
        .or_as("application/octet-stream", "The bytes, with `format=raw`.")
}

/// One file, or a list of them.
struct FileOrFiles;

impl utoipa::PartialSchema for FileOrFiles {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::ToSchema as _;
        let of = |name| utoipa::openapi::Ref::from_schema_name(name);
        let one = utoipa::openapi::schema::OneOfBuilder::new()
            .item(of(WorkflowFileEnvelope::name()))
            .item(of(jurat_wire::api::workflows::WorkflowFilesBody::name()))
            .build();
        utoipa::openapi::RefOr::T(utoipa::openapi::Schema::OneOf(one))
    }
}

impl utoipa::ToSchema for FileOrFiles {
    fn name() -> std::borrow::Cow<'static, str> {
        std::borrow::Cow::Borrowed("WorkflowFileOrFiles")
    }

    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        crate::openapi::description::add::<WorkflowFileEnvelope<'_>>(schemas);
        crate::openapi::description::add::<jurat_wire::api::workflows::WorkflowFilesBody<'_>>(
            schemas,
        );
    }
}

fn patch_files() -> OperationDescription {
    let text = "Adds a version that differs only in the named files; `executable` and `purpose` are unchanged if left out.";
    OperationDescription::new(WORKFLOWS, "Change workflow files", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<PatchWorkflowFilesRequest>([(
            "plain",
            json!({
                "expected_version_token": TOKEN,
                "files": [{ "path": "long.md", "content": "# Long" }],
                "delete_paths": ["short.md"],
            }),
        )])
        .answers::<PatchedWorkflow<'_>>(
            200,
            "The saved version.",
            ids(json!({
                "slug": "incident-postmortem", "name": "Incident postmortem", "version": 2,
                "version_token": TOKEN, "changed": ["long.md"], "deleted": ["short.md"],
                "carried_forward": 0,
                "authoring_notes": [
                    "Nothing is checked: bind a verifier for each judgment the body asks for, or add a block of checks.",
                    "The file `long.md` is attached, but the body does not mention it.",
                ],
            })),
        )
        .idempotent()
        .refuses([ProblemCode::Conflict])
}

fn named(rest: Value) -> Value {
    let mut all = ids(rest);
    all["name"] = json!("Incident postmortem");
    all
}

fn archive() -> OperationDescription {
    let text = "Archives a workflow: others lose access to it and its verifiers. Its grants stay, and apply again when it is unarchived. Only the owner can do this.";
    OperationDescription::new(WORKFLOWS, "Archive a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<ArchivedWorkflow<'_>>(200, "It is archived.", named(json!({ "archived": true })))
        .idempotent()
}

fn unarchive() -> OperationDescription {
    let text = "Restores an archived workflow with its grants.";
    OperationDescription::new(WORKFLOWS, "Unarchive a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<ArchivedWorkflow<'_>>(
            200,
            "It is unarchived.",
            named(json!({ "archived": false })),
        )
        .idempotent()
}

fn delete() -> OperationDescription {
    let text = "Permanently deletes a workflow with all its versions, files and grants. Its verifiers stay. Only the owner can do this, and it cannot be undone.";
    OperationDescription::new(WORKFLOWS, "Delete a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<DeletedWorkflow<'_>>(200, "It is deleted.", named(json!({ "deleted": true })))
        .idempotent()
}

fn delete_version() -> OperationDescription {
    let text = "Permanently deletes one version with its files. The current version cannot be deleted on its own.";
    OperationDescription::new(WORKFLOWS, "Delete a workflow version", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<DeletedWorkflowVersion<'_>>(
            200,
            "It is deleted.",
            ids(json!({ "version": 1, "deleted": true })),
        )
        .idempotent()
        .refuses([ProblemCode::Conflict])
}

fn lineage() -> OperationDescription {
    let text = "The template that a workflow was forked from, and its current state.";
    OperationDescription::new(WORKFLOWS, "Show the origin of a workflow", text)
        .scope(Scope::WorkflowsRead)
        .answers::<LineageBody<'_>>(
            200,
            "The origin.",
            ids(json!({
                "parent_template_id": null, "parent_template_version": null,
                "upstream_latest_version": null, "is_upstream_unpublished": null,
                "parent_source_status": null, "parent_permanently_deleted": null,
                "parent_template_archived_at": null, "parent_template_archive_reason": null,
                "parent_version_deprecated_at": null,
                "parent_version_deprecation_message": null,
            })),
        )
}

fn grant() -> OperationDescription {
    let text = "Grants a user, or all members of a team, access to a workflow and the verifiers that it names: `view` can read and run, `edit` can also save versions and tune its verifiers, `admin` can also share. Versions before the current one are shared only with `include_history`. A second grant to the same user or team changes the role and removes no versions. Callers cannot grant a higher role, or earlier versions, than they have. The caller must be a member of the team.";
    OperationDescription::new(WORKFLOWS, "Grant a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<WorkflowGrantRequest>([(
            "plain",
            json!({
                "grantee_email_or_at_team_handle": "@crew", "role": "view",
                "include_history": false,
            }),
        )])
        .answers::<GrantedWorkflow<'_>>(
            201,
            "The grant.",
            json!({
                "workflow_id": ID, "skill_id": ID, "role": "view",
                "includes_full_history": false, "shared_from_version": 1,
            }),
        )
        .idempotent()
        .refuses([ProblemCode::UserNotFound, ProblemCode::Conflict, ProblemCode::QuotaExceeded])
}

fn grants() -> OperationDescription {
    let text = "The grants of a workflow. Callers who may not share it see only their own grants.";
    OperationDescription::new(WORKFLOWS, "List the grants of a workflow", text)
        .scope(Scope::WorkflowsRead)
        .answers::<WorkflowGrantList<'_>>(
            200,
            "The grants.",
            json!({ "items": [{
                "grantee_type": "team", "grantee_identifier": "@crew", "role": "view",
                "granted_by": "acct_admin", "granted_at": AT, "is_via_team": true,
                "includes_full_history": false, "shared_from_version": 1,
            }] }),
        )
}

fn revoke() -> OperationDescription {
    let text = "Revokes a grant and access to the verifiers. The body names the user or team. If there is no such grant, nothing happens and `revoked` is false.";
    OperationDescription::new(WORKFLOWS, "Revoke a grant of a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<RevokeWorkflowGrantRequest>([(
            "plain",
            json!({ "grantee_email_or_at_team_handle": "@crew" }),
        )])
        .answers::<RevokedWorkflowGrant<'_>>(
            200,
            "The revoked grant.",
            json!({ "workflow_id": ID, "skill_id": ID, "revoked": true }),
        )
        .idempotent()
        .refuses([ProblemCode::UserNotFound])
}

fn leave() -> OperationDescription {
    let text = "Ends the caller's own grant; team grants stay. The owner cannot leave.";
    OperationDescription::new(WORKFLOWS, "Leave a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<LeftWorkflow<'_>>(
            200,
            "The caller's own grant has ended.",
            json!({ "workflow_id": ID, "skill_id": ID, "removed_direct_grants": 1 }),
        )
        .idempotent()
        .refuses([ProblemCode::WorkflowOwnershipMustTransfer])
}

fn transfer() -> OperationDescription {
    let text = "Offers a workflow to a new owner: its versions, files, grants and verifiers are transferred when the invitation is accepted. Accepting is refused if another workflow of the owner also names one of the verifiers, or if the new owner already has a workflow or verifier of the same name.";
    OperationDescription::new(WORKFLOWS, "Transfer a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<TransferWorkflowRequest>([(
            "plain",
            json!({ "new_owner_user_id_or_email": "ann@example.com" }),
        )])
        .answers::<OfferedWorkflow<'_>>(
            200,
            "The invitation.",
            json!({
                "workflow_id": ID, "skill_id": ID, "invitation_id": ID,
                "kind": "workflow_ownership_transfer", "expires_at": AT,
                "owner_user_id": "acct_admin", "transferred": false,
            }),
        )
        .idempotent()
        .refuses([
            ProblemCode::UserNotFound,
            ProblemCode::Conflict,
            ProblemCode::InvitationAlreadyPending,
            ProblemCode::QuotaExceeded,
        ])
}
