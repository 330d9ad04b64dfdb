//! What the operations on templates are for, what they take, and what they answer.

use jurat_core::{caller::Scope, code::Code};
use jurat_engine::PackKind;
use jurat_wire::api::{
    packs::PackBody,
    page::Page,
    templates::{
        ArchiveTemplateRequest, ArchivedTemplate, DeletedTemplate, DeletedVersion,
        DeprecateVersionRequest, DeprecatedVersion, FileEnvelope, ForkTemplateRequest,
        ForkedTemplate, OfferedTemplate, PublishTemplateRequest, PublishedTemplate,
        SafetyCheckBody, SearchReply, SearchTemplatesRequest, TemplateBody, TemplateSummary,
        TransferTemplateRequest, UnarchivedTemplate, UnpublishedVersion,
    },
};
use serde_json::json;

use super::{TEMPLATES, WORKFLOW_TOOLS};
use crate::{
    http::RouteInfo,
    openapi::{description::Description, examples::templates as examples, parameters},
};

pub(super) fn describe(route: &RouteInfo) -> Option<Description> {
    Some(match route.operation {
        "design_prompt" | "design_skill_prompt" => design(),
        "audit_prompt" | "audit_skill_prompt" => audit(),
        "workflow_teach" => pack(
            PackKind::Teach,
            "Get instructions to teach a workflow",
            "Instructions for an agent that turns a person's corrections into the next version of a workflow and its verifiers.",
        ),
        "workflow_audit" => pack(
            PackKind::Audit,
            "Get instructions to audit this workflow",
            "Instructions for an agent that audits one of the caller's own or shared workflows.",
        ),
        "workflow_optimize" => pack(
            PackKind::Optimize,
            "Get instructions to optimize a workflow",
            "Instructions for an agent that improves a workflow in a measured loop.",
        )
        .with([parameters::iterations(20)]),
        "workflow_optimize_description" => pack(
            PackKind::OptimizeDescription,
            "Get instructions to optimize a workflow description",
            "Instructions for an agent that improves the description that agents use to choose a workflow, in a measured loop.",
        )
        .with([parameters::iterations(10)]),
        "workflow_check_safety" => check_workflow(),
        "template_publish" => publish(),
        "template_list" => list(),
        "template_search" => search(),
        "template_fork" => fork(),
        "template_get" => get(),
        "template_file" => file(),
        "template_delete" => delete(),
        "template_archive" => archive(),
        "template_unarchive" => unarchive(),
        "template_check_safety" => check_safety(),
        "template_unpublish" => unpublish(),
        "template_delete_version" => delete_version(),
        "template_deprecate" => deprecate(),
        "template_transfer" => transfer(),
        _ => return None,
    })
}

fn design() -> Description {
    let text = "Instructions for an agent that designs a workflow with its checks, in Markdown, with the texts that they refer to.";
    Description::new(WORKFLOW_TOOLS, "Get instructions to design a workflow", text)
        .answers::<PackBody<'_>>(200, "The instructions.", examples::pack(PackKind::Design, None))
}

fn audit() -> Description {
    let text = "Instructions for an agent that audits a workflow, in Markdown, with the texts that they refer to.";
    Description::new(WORKFLOW_TOOLS, "Get instructions to audit a workflow", text)
        .answers::<PackBody<'_>>(200, "The instructions.", examples::pack(PackKind::Audit, None))
}

fn pack(kind: PackKind, summary: &'static str, text: &'static str) -> Description {
    Description::new(WORKFLOW_TOOLS, summary, text)
        .scope(Scope::WorkflowsRead)
        .answers::<PackBody<'_>>(200, "The instructions.", examples::pack(kind, Some(examples::ID)))
        .refuses([Code::NotFound, Code::ValidationError])
}

fn check_workflow() -> Description {
    let text = "Screens a version of a workflow with the judges that screen templates before publishing, as two runs that the caller pays for.";
    Description::new(WORKFLOW_TOOLS, "Check the safety of a workflow", text)
        .scope(Scope::WorkflowsRead)
        .with([parameters::version("The version to check; defaults to the current one.")])
        .answers::<SafetyCheckBody<'_>>(200, "The result.", examples::checked("workflow"))
        .refuses([Code::NotFound, Code::ValidationError])
        .refuses(SCREENED)
}

/// What every run of the screen can answer.
const SCREENED: [Code; 6] = [
    Code::BudgetExhausted,
    Code::AccountSuspended,
    Code::SessionPoolTooSmall,
    Code::SessionsUnavailable,
    Code::ShuttingDown,
    Code::RateLimited,
];

fn publish() -> Description {
    let text = "Publishes the current version of a workflow under the handle of its owner: its body, files and bound verifiers are frozen and never change. Platform judges screen it first, as runs of the caller: blocked content is not published, flagged content is published with a warning, and without a verdict nothing is published.";
    Description::new(TEMPLATES, "Publish a version of a template", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<PublishTemplateRequest>([("plain", examples::publish_request())])
        .answers::<PublishedTemplate<'_>>(201, "The published version.", examples::published())
        .repeatable()
        .refuses([
            Code::NotFound,
            Code::Conflict,
            Code::HandleNotClaimed,
            Code::SafetyVerificationFailed,
            Code::SafetyVerificationUnavailable,
        ])
        .refuses(SCREENED)
}

fn list() -> Description {
    let text = "Published templates, newest first; with a key, `filter=mine` also lists the caller's unpublished and archived ones.";
    Description::new(TEMPLATES, "List templates", text)
        .with(parameters::of_list())
        .with(parameters::of_templates())
        .answers::<Page<'_, TemplateSummary<'_>>>(
            200,
            "A page of templates.",
            json!({ "items": [examples::summary()], "next_cursor": null }),
        )
        .refuses([Code::ValidationError])
}

fn search() -> Description {
    let text = "Templates that match the words of a query, best first.";
    Description::new(TEMPLATES, "Search templates", text)
        .takes::<SearchTemplatesRequest>([("plain", json!({ "query": "weekly sales report" }))])
        .answers::<SearchReply<'_>>(200, "The result.", examples::searched())
        .refuses([Code::ValidationError])
}

fn fork() -> Description {
    let text = "Creates a private workflow from a version, with private verifiers created from its snapshots. Taken names get a number. Verifier ids in the body are replaced by those of the new verifiers.";
    Description::new(TEMPLATES, "Fork a template", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<ForkTemplateRequest>([("plain", json!({ "identifier": "@ann/report@v1" }))])
        .answers::<ForkedTemplate<'_>>(200, "The new workflow.", examples::forked())
        .repeatable()
        .refuses([Code::NotFound, Code::Conflict])
}

fn get() -> Description {
    let text = "One full version: the pinned one, or the newest. JSON unless `Accept` asks for `text/markdown`. For anyone but the owner the body begins with a warning. An old name, from before a change of handle or owner, redirects to the current one.";
    Description::new(TEMPLATES, "Show a template", text)
        .with([parameters::version("The version to show; defaults to the newest.")])
        .answers::<TemplateBody<'_>>(200, "The version.", examples::template())
        .or_as("text/markdown", "The body.")
        .answers_nothing(302, "The template has a new name.")
        .and_header("Location", "URL under the new name.")
        .refuses([Code::NotFound, Code::ValidationError])
}

fn file() -> Description {
    let text = "A file of a version: as JSON with its content, or raw with `format=raw`.";
    Description::new(TEMPLATES, "Read a template file", text)
        .with([parameters::version("The version; defaults to the newest.")])
        .with(parameters::of_file())
        .answers::<FileEnvelope<'_>>(200, "The file.", examples::file())
        .or_as("application/octet-stream", "The bytes.")
        .answers_nothing(302, "The template has a new name.")
        .and_header("Location", "URL under the new name.")
        .refuses([Code::NotFound, Code::ValidationError])
}

fn delete() -> Description {
    let text = "Permanently deletes a template with all its versions. A template with a published version is refused: unpublish its versions or archive it first.";
    Description::new(TEMPLATES, "Delete a template", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<DeletedTemplate<'_>>(
            200,
            "It is deleted.",
            json!({ "template_id": examples::ID, "slug": "report", "deleted": true }),
        )
        .repeatable()
        .refuses([Code::NotFound, Code::Conflict])
}

fn archive() -> Description {
    let text = "Hides a template from lists and from everyone but its owner. Its verifiers can no longer be run without a key.";
    Description::new(TEMPLATES, "Archive a template", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<ArchiveTemplateRequest>([("plain", json!({ "archive_reason": "replaced" }))])
        .or_nothing()
        .answers::<ArchivedTemplate<'_>>(
            200,
            "It is archived.",
            json!({ "template_id": examples::ID, "archived": true }),
        )
        .repeatable()
        .refuses([Code::NotFound])
}

fn unarchive() -> Description {
    Description::new(TEMPLATES, "Unarchive a template", "Makes an archived template public again.")
        .scope(Scope::WorkflowsWrite)
        .answers::<UnarchivedTemplate<'_>>(
            200,
            "It is unarchived.",
            json!({ "template_id": examples::ID, "archived": false }),
        )
        .repeatable()
        .refuses([
            Code::NotFound,
            Code::InvalidJson,
            Code::PayloadTooLarge,
            Code::RequestTimeout,
            Code::UnsupportedMediaType,
        ])
}

fn check_safety() -> Description {
    let text = "Screens a version again with the judges that screen templates before publishing, as two runs that the caller pays for; without a key, from the credit of the network address.";
    Description::new(TEMPLATES, "Check the safety of a template", text)
        .with([parameters::version("The version to check; defaults to the newest.")])
        .answers::<SafetyCheckBody<'_>>(200, "The result.", examples::checked("template"))
        .refuses([Code::NotFound, Code::ValidationError, Code::AnonymousDailyCap])
        .refuses(SCREENED)
}

fn unpublish() -> Description {
    let text = "Withdraws a version from everyone but the owner. It can still be deleted, and is never published again.";
    Description::new(TEMPLATES, "Unpublish a template version", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<UnpublishedVersion<'_>>(
            200,
            "It is unpublished.",
            json!({ "template_id": examples::ID, "version": 1, "unpublished": true }),
        )
        .repeatable()
        .refuses([Code::NotFound])
}

fn delete_version() -> Description {
    let text =
        "Permanently deletes a version; a published one is refused. Its number is not reused.";
    Description::new(TEMPLATES, "Delete a template version", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<DeletedVersion<'_>>(
            200,
            "It is deleted.",
            json!({ "template_id": examples::ID, "version": 1, "deleted": true }),
        )
        .repeatable()
        .refuses([Code::NotFound, Code::Conflict])
}

fn deprecate() -> Description {
    let text = "Shows a warning to users who read or fork a version; it stays published.";
    Description::new(TEMPLATES, "Deprecate a template version", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<DeprecateVersionRequest>([("plain", json!({ "message": "use version 2" }))])
        .or_nothing()
        .answers::<DeprecatedVersion<'_>>(
            200,
            "It is deprecated.",
            json!({
                "template_id": examples::ID, "version": 1,
                "deprecated_at": "2026-11-15T09:30:00Z", "deprecation_message": "use version 2",
            }),
        )
        .repeatable()
        .refuses([Code::NotFound])
}

fn transfer() -> Description {
    let text = "Offers a template of the caller to a user with a handle, who owns it after accepting. The old name redirects to the new one.";
    let to = json!({ "new_owner_user_id_or_email": "bob@example.com" });
    Description::new(TEMPLATES, "Transfer a template", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<TransferTemplateRequest>([("plain", to)])
        .answers::<OfferedTemplate<'_>>(
            200,
            "The offer; without `invitation_id` the caller already owns the template.",
            json!({
                "template_id": examples::ID,
                "owner_user_id": "acct_01KHG5YN40MXBR5YWT0Q2YFEDS", "transferred": false,
                "invitation_id": examples::ID, "kind": "template_ownership_transfer",
                "target_id": examples::ID, "target_label": "@ann/report",
                "expires_at": "2026-11-29T09:30:00Z",
            }),
        )
        .repeatable()
        .refuses([
            Code::NotFound,
            Code::Conflict,
            Code::InvitationAlreadyPending,
            Code::QuotaExceeded,
        ])
}
