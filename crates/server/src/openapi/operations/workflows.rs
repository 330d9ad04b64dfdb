//! What the operations on workflows are for, what they take, and what they answer.

use jurat_core::{caller::Scope, code::Code};
use jurat_wire::api::{
    page::Page,
    workflows::{
        ArchivedWorkflow, DeletedWorkflow, DeletedWorkflowVersion, FileEnvelope, GrantedWorkflow,
        LeftWorkflow, LineageBody, ListedWorkflow, OfferedWorkflow, PatchWorkflowFilesRequest,
        PatchedWorkflow, RevokeWorkflowGrantRequest, RevokedWorkflowGrant, SaveWorkflowRequest,
        SavedWorkflow, SearchWorkflowsRequest, TransferWorkflowRequest, WorkflowBody,
        WorkflowGrantList, WorkflowGrantRequest, WorkflowSearchBody,
    },
};
use serde_json::{Value, json};

use super::WORKFLOWS;
use crate::{
    http::RouteInfo,
    openapi::{description::Description, parameters},
};

const ID: &str = "0199f3a1-5b20-7d31-9c44-0a2b6d1e8f70";
const TOKEN: &str = "5d41402abc4b2a76b9719d911017c592";
const AT: &str = "2026-09-21T14:13:20Z";
const DIGEST: &str = "c98c24b677eff44860afea6f493bbaec5bb1c4cbb209c6fc2bbb47f66ff2ad31";

pub(super) fn describe(route: &RouteInfo) -> Option<Description> {
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
    let usual = [Code::NotFound, Code::ValidationError];
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

fn save() -> Description {
    let text = "Makes a workflow, or adds a version to one. A version never changes. The name makes the slug of a new workflow. The first save leaves `expected_version_token` null, every later one sends the current token; else the answer is 409 with the current one in `current_version_token`. `files` and `verifiers` that are left out stay as they are, an empty list clears them, and a list is all of them. Name, description, outcome and tags that are left out are taken from the front matter of the body, then from the version before. Who was granted `edit` saves versions, and only the owner changes `verifiers`. The body may have 8 MiB.";
    Description::new(WORKFLOWS, "Save a version of a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<SaveWorkflowRequest>([("plain", save_request())])
        .answers::<SavedWorkflow<'_>>(
            201,
            "The version that was saved.",
            ids(json!({
                "slug": "incident-postmortem", "name": "Incident postmortem", "version": 1,
                "version_token": TOKEN, "verifiers": [], "image_generators": [],
                "files": [file()],
                "authoring_notes": [
                    "Nothing is checked: bind a verifier for each judgment that the body asks for, or put a block of checks into it.",
                    "The file `short.md` is attached, and the body does not name it.",
                ],
                "next_step": "Deploy a verifier for the result that matters and bind it, or add a block of checks.",
            })),
        )
        .repeatable()
        .refuses([
            Code::Conflict,
            Code::NotFound,
            Code::NotSupported,
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

fn list() -> Description {
    let text = "The workflows that the caller owns and those that others share with it, newest first. Those that are put away are seen by their owner, and only with `include_archived`.";
    Description::new(WORKFLOWS, "List workflows", text)
        .scope(Scope::WorkflowsRead)
        .with(parameters::of_list())
        .with(parameters::of_workflows())
        .answers::<Page<'_, ListedWorkflow<'_>>>(
            200,
            "A page of workflows.",
            json!({ "items": [summary()], "next_cursor": null }),
        )
        .refuses([Code::ValidationError])
}

fn search() -> Description {
    let text = "Finds workflows by words in their names, tags, descriptions and outcomes; the best comes first. No model is asked, which `search_mode` says.";
    Description::new(WORKFLOWS, "Search workflows", text)
        .scope(Scope::WorkflowsRead)
        .takes::<SearchWorkflowsRequest>([(
            "plain",
            json!({ "query": "incident", "filter": "all", "limit": 5 }),
        )])
        .answers::<WorkflowSearchBody<'_>>(
            200,
            "What was found.",
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
        .refuses([Code::ValidationError])
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
        "run_guidance": "Follow the body from its beginning. Where it names a verifier, run that with the inputs of its contract, and go on only when it passed.",
    }))
}

fn get() -> Description {
    let text = "One version in full: the one that is asked for, or the current one. With `Accept: text/markdown` the body alone. What the caller does not own and was not granted is not found, and so are versions before the first one that was shared.";
    Description::new(WORKFLOWS, "Show a workflow", text)
        .scope(Scope::WorkflowsRead)
        .with([parameters::version("The version to show; the current one when left out.")])
        .answers::<WorkflowBody<'_>>(200, "The version.", whole())
        .or_as("text/markdown", "The body.")
}

fn get_version() -> Description {
    let text = "The same as a workflow with `version`.";
    Description::new(WORKFLOWS, "Show a version of a workflow", text)
        .scope(Scope::WorkflowsRead)
        .answers::<WorkflowBody<'_>>(200, "The version.", whole())
        .or_as("text/markdown", "The body.")
}

fn files() -> Description {
    let text = "A file beside the body by its `path`, or several by `paths`, which then come as a list `files`. Text comes as text and bytes as base64; bytes above 256 KiB come with `format=raw` only. With `sha256` the file is found only if that is its content.";
    Description::new(WORKFLOWS, "Read files of a workflow", text)
        .scope(Scope::WorkflowsRead)
        .with(parameters::of_files())
        .with([parameters::version("The version whose files; the current one when left out.")])
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
            .item(of(FileEnvelope::name()))
            .item(of(jurat_wire::api::workflows::FilesBody::name()))
            .build();
        utoipa::openapi::RefOr::T(utoipa::openapi::Schema::OneOf(one))
    }
}

impl utoipa::ToSchema for FileOrFiles {
    fn name() -> std::borrow::Cow<'static, str> {
        std::borrow::Cow::Borrowed("WorkflowFileOrFiles")
    }

    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        crate::openapi::description::add::<FileEnvelope<'_>>(schemas);
        crate::openapi::description::add::<jurat_wire::api::workflows::FilesBody<'_>>(schemas);
    }
}

fn patch_files() -> Description {
    let text = "Adds a version that differs in the named files only; `executable` and `purpose` that are left out stay as they were.";
    Description::new(WORKFLOWS, "Change files of a workflow", text)
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
            "The version that was saved.",
            ids(json!({
                "slug": "incident-postmortem", "name": "Incident postmortem", "version": 2,
                "version_token": TOKEN, "changed": ["long.md"], "deleted": ["short.md"],
                "carried_forward": 0,
                "authoring_notes": [
                    "Nothing is checked: bind a verifier for each judgment that the body asks for, or put a block of checks into it.",
                    "The file `long.md` is attached, and the body does not name it.",
                ],
            })),
        )
        .repeatable()
        .refuses([Code::Conflict])
}

fn named(rest: Value) -> Value {
    let mut all = ids(rest);
    all["name"] = json!("Incident postmortem");
    all
}

fn archive() -> Description {
    let text = "Puts a workflow away: it is gone for all but its owner, and so are its verifiers. Its grants stay, and are back when it is. Only the owner does this.";
    Description::new(WORKFLOWS, "Archive a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<ArchivedWorkflow<'_>>(200, "It is away.", named(json!({ "archived": true })))
        .repeatable()
}

fn unarchive() -> Description {
    let text = "Brings a workflow back, with its grants.";
    Description::new(WORKFLOWS, "Unarchive a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<ArchivedWorkflow<'_>>(200, "It is back.", named(json!({ "archived": false })))
        .repeatable()
}

fn delete() -> Description {
    let text = "Erases a workflow with all its versions, files and grants. Its verifiers stay. Only the owner does this, and it cannot be undone.";
    Description::new(WORKFLOWS, "Delete a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<DeletedWorkflow<'_>>(200, "It is gone.", named(json!({ "deleted": true })))
        .repeatable()
}

fn delete_version() -> Description {
    let text = "Erases one version with its files. The current one cannot be erased alone.";
    Description::new(WORKFLOWS, "Delete a version of a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<DeletedWorkflowVersion<'_>>(
            200,
            "It is gone.",
            ids(json!({ "version": 1, "deleted": true })),
        )
        .repeatable()
        .refuses([Code::Conflict])
}

fn lineage() -> Description {
    let text = "The template that a workflow was forked from, and what became of it since.";
    Description::new(WORKFLOWS, "Show where a workflow comes from", text)
        .scope(Scope::WorkflowsRead)
        .answers::<LineageBody<'_>>(
            200,
            "Where it comes from.",
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

fn grant() -> Description {
    let text = "Lets a user, or all members of a team, use a workflow and the verifiers that it names: `view` reads and runs, `edit` also saves versions and tunes its verifiers, `admin` also shares. Versions before the current one are shared only with `include_history`. A second grant to the same one changes the role, and takes no versions away. Nobody grants a higher role, or earlier versions, than they have. A team must be one that the caller is in.";
    Description::new(WORKFLOWS, "Grant a workflow", text)
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
        .repeatable()
        .refuses([Code::UserNotFound, Code::Conflict, Code::QuotaExceeded])
}

fn grants() -> Description {
    let text = "Who may use a workflow. Who may not share it sees only what reaches themselves.";
    Description::new(WORKFLOWS, "List the grants of a workflow", text)
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

fn revoke() -> Description {
    let text = "Takes a grant back, and with it the use of the verifiers. The body names whose. Without such a grant nothing happens, and `revoked` is false.";
    Description::new(WORKFLOWS, "Revoke a grant of a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<RevokeWorkflowGrantRequest>([(
            "plain",
            json!({ "grantee_email_or_at_team_handle": "@crew" }),
        )])
        .answers::<RevokedWorkflowGrant<'_>>(
            200,
            "The grant has ended.",
            json!({ "workflow_id": ID, "skill_id": ID, "revoked": true }),
        )
        .repeatable()
        .refuses([Code::UserNotFound])
}

fn leave() -> Description {
    let text = "Gives up what was granted to the caller alone; what a team was granted stays. The owner cannot leave.";
    Description::new(WORKFLOWS, "Leave a workflow", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<LeftWorkflow<'_>>(
            200,
            "The caller's own grant has ended.",
            json!({ "workflow_id": ID, "skill_id": ID, "removed_direct_grants": 1 }),
        )
        .repeatable()
        .refuses([Code::WorkflowOwnershipMustTransfer])
}

fn transfer() -> Description {
    let text = "Asks somebody to own a workflow: it changes hands with its versions, files, grants and verifiers when the invitation is accepted. That is refused when a verifier is named by another workflow of the owner too, or when the new owner has a workflow or a verifier of the same name.";
    Description::new(WORKFLOWS, "Transfer a workflow", text)
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
        .repeatable()
        .refuses([
            Code::UserNotFound,
            Code::Conflict,
            Code::InvitationAlreadyPending,
            Code::QuotaExceeded,
        ])
}
