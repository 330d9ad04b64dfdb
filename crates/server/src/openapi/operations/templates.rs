//! What the operations on templates are for, what they take, and what they answer.

use jurat_core::{account::caller::Scope, code::ProblemCode};
use jurat_engine::InstructionKind;
use jurat_wire::api::{
    kit::page::PageBody,
    packs::PackBody,
    templates::{
        ArchiveTemplateRequest, ArchivedTemplate, DeletedTemplate, DeletedVersion,
        DeprecateVersionRequest, DeprecatedVersion, ForkTemplateRequest, ForkedTemplate,
        OfferedTemplate, PublishTemplateRequest, PublishedTemplateBody, SafetyCheckBody,
        SearchTemplatesRequest, TemplateBody, TemplateFileEnvelope, TemplateSearchBody,
        TemplateSummary, TransferTemplateRequest, UnarchivedTemplate, UnpublishedVersion,
    },
};
use serde_json::json;

use super::{TEMPLATES, WORKFLOW_TOOLS};
use crate::{
    openapi::{description::OperationDescription, examples::templates as examples, parameters},
    resources::RouteInfo,
};

pub(super) fn describe(route: &RouteInfo) -> Option<OperationDescription> {
    Some(match route.operation {
        "design_prompt" | "design_skill_prompt" => design(),
        "audit_prompt" | "audit_skill_prompt" => audit(),
        "workflow_teach" => pack(
            InstructionKind::Teach,
            "Get instructions to teach a workflow",
            "Instructions for an agent that turns a person's corrections into the next version of a workflow and its verifiers.",
        ),
        "workflow_audit" => pack(
            InstructionKind::Audit,
            "Get instructions to audit this workflow",
            "Instructions for an agent that audits one of the caller's own or shared workflows.",
        ),
        "workflow_optimize" => pack(
            InstructionKind::Optimize,
            "Get instructions to optimize a workflow",
            "Instructions for an agent that improves a workflow in a measured loop.",
        )
        .with([parameters::iterations(20)]),
        "workflow_optimize_description" => pack(
            InstructionKind::OptimizeDescription,
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

fn design() -> OperationDescription {
    let text = "Instructions for an agent that designs a workflow with its checks, in Markdown, with the texts that they refer to.";
    OperationDescription::new(WORKFLOW_TOOLS, "Get instructions to design a workflow", text)
        .answers::<PackBody<'_>>(
            200,
            "The instructions.",
            examples::pack(InstructionKind::Design, None),
        )
}

fn audit() -> OperationDescription {
    let text = "Instructions for an agent that audits a workflow, in Markdown, with the texts that they refer to.";
    OperationDescription::new(WORKFLOW_TOOLS, "Get instructions to audit a workflow", text)
        .answers::<PackBody<'_>>(
            200,
            "The instructions.",
            examples::pack(InstructionKind::Audit, None),
        )
}

fn pack(kind: InstructionKind, summary: &'static str, text: &'static str) -> OperationDescription {
    OperationDescription::new(WORKFLOW_TOOLS, summary, text)
        .scope(Scope::WorkflowsRead)
        .answers::<PackBody<'_>>(200, "The instructions.", examples::pack(kind, Some(examples::ID)))
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn check_workflow() -> OperationDescription {
    let text = "Screens a version of a workflow with the judges that screen templates before publishing, as two runs that the caller pays for.";
    OperationDescription::new(WORKFLOW_TOOLS, "Check the safety of a workflow", text)
        .scope(Scope::WorkflowsRead)
        .with([parameters::version("The version to check; defaults to the current one.")])
        .answers::<SafetyCheckBody<'_>>(200, "The result.", examples::checked("workflow"))
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .refuses(SCREENED)
}

/// What every run of the screen can answer.
const SCREENED: [ProblemCode; 6] = [
    ProblemCode::BudgetExhausted,
    ProblemCode::AccountSuspended,
    ProblemCode::SessionPoolTooSmall,
    ProblemCode::SessionsUnavailable,
    ProblemCode::ShuttingDown,
    ProblemCode::RateLimited,
];

fn publish() -> OperationDescription {
    let text = "Publishes the current version of a workflow under the handle of its owner: its body, files and bound verifiers are frozen and never change. Platform judges screen it first, as runs of the caller: blocked content is not published, flagged content is published with a warning, and without a verdict nothing is published.";
    OperationDescription::new(TEMPLATES, "Publish a version of a template", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<PublishTemplateRequest>([("plain", examples::publish_request())])
        .answers::<PublishedTemplateBody<'_>>(201, "The published version.", examples::published())
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::Conflict,
            ProblemCode::HandleNotClaimed,
            ProblemCode::SafetyVerificationFailed,
            ProblemCode::SafetyVerificationUnavailable,
        ])
        .refuses(SCREENED)
}

fn list() -> OperationDescription {
    let text = "Published templates, newest first; with a key, `filter=mine` also lists the caller's unpublished and archived ones.";
    OperationDescription::new(TEMPLATES, "List templates", text)
        .with(parameters::of_list())
        .with(parameters::of_templates())
        .answers::<PageBody<'_, TemplateSummary<'_>>>(
            200,
            "A page of templates.",
            json!({ "items": [examples::summary()], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
}

fn search() -> OperationDescription {
    let text = "Templates that match the words of a query, best first.";
    OperationDescription::new(TEMPLATES, "Search templates", text)
        .takes::<SearchTemplatesRequest>([("plain", json!({ "query": "weekly sales report" }))])
        .answers::<TemplateSearchBody<'_>>(200, "The result.", examples::searched())
        .refuses([ProblemCode::ValidationError])
}

fn fork() -> OperationDescription {
    let text = "Creates a private workflow from a version, with private verifiers created from its snapshots. Taken names get a number. Verifier ids in the body are replaced by those of the new verifiers.";
    OperationDescription::new(TEMPLATES, "Fork a template", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<ForkTemplateRequest>([("plain", json!({ "identifier": "@ann/report@v1" }))])
        .answers::<ForkedTemplate<'_>>(200, "The new workflow.", examples::forked())
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
}

fn get() -> OperationDescription {
    let text = "One full version: the pinned one, or the newest. JSON unless `Accept` asks for `text/markdown`. For anyone but the owner the body begins with a warning. An old name, from before a change of handle or owner, redirects to the current one.";
    OperationDescription::new(TEMPLATES, "Show a template", text)
        .with([parameters::version("The version to show; defaults to the newest.")])
        .answers::<TemplateBody<'_>>(200, "The version.", examples::template())
        .or_as("text/markdown", "The body.")
        .answers_nothing(302, "The template has a new name.")
        .and_header("Location", "URL under the new name.")
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn file() -> OperationDescription {
    let text = "A file of a version: as JSON with its content, or raw with `format=raw`.";
    OperationDescription::new(TEMPLATES, "Read a template file", text)
        .with([parameters::version("The version; defaults to the newest.")])
        .with(parameters::of_file())
        .answers::<TemplateFileEnvelope<'_>>(200, "The file.", examples::file())
        .or_as("application/octet-stream", "The bytes.")
        .answers_nothing(302, "The template has a new name.")
        .and_header("Location", "URL under the new name.")
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

fn delete() -> OperationDescription {
    let text = "Permanently deletes a template with all its versions. A template with a published version is refused: unpublish its versions or archive it first.";
    OperationDescription::new(TEMPLATES, "Delete a template", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<DeletedTemplate<'_>>(
            200,
            "It is deleted.",
            json!({ "template_id": examples::ID, "slug": "report", "deleted": true }),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
}

fn archive() -> OperationDescription {
    let text = "Hides a template from lists and from everyone but its owner. Its verifiers can no longer be run without a key.";
    OperationDescription::new(TEMPLATES, "Archive a template", text)
        .scope(Scope::WorkflowsWrite)
        .takes::<ArchiveTemplateRequest>([("plain", json!({ "archive_reason": "replaced" }))])
        .or_nothing()
        .answers::<ArchivedTemplate<'_>>(
            200,
            "It is archived.",
            json!({ "template_id": examples::ID, "archived": true }),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
}

fn unarchive() -> OperationDescription {
    OperationDescription::new(
        TEMPLATES,
        "Unarchive a template",
        "Makes an archived template public again.",
    )
    .scope(Scope::WorkflowsWrite)
    .answers::<UnarchivedTemplate<'_>>(
        200,
        "It is unarchived.",
        json!({ "template_id": examples::ID, "archived": false }),
    )
    .idempotent()
    .refuses([
        ProblemCode::NotFound,
        ProblemCode::InvalidJson,
        ProblemCode::PayloadTooLarge,
        ProblemCode::RequestTimeout,
        ProblemCode::UnsupportedMediaType,
    ])
}

fn check_safety() -> OperationDescription {
    let text = "Screens a version again with the judges that screen templates before publishing, as two runs that the caller pays for; without a key, from the credit of the network address.";
    OperationDescription::new(TEMPLATES, "Check the safety of a template", text)
        .with([parameters::version("The version to check; defaults to the newest.")])
        .answers::<SafetyCheckBody<'_>>(200, "The result.", examples::checked("template"))
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::ValidationError,
            ProblemCode::AnonymousDailyCap,
        ])
        .refuses(SCREENED)
}

fn unpublish() -> OperationDescription {
    let text = "Withdraws a version from everyone but the owner. It can still be deleted, and is never published again.";
    OperationDescription::new(TEMPLATES, "Unpublish a template version", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<UnpublishedVersion<'_>>(
            200,
            "It is unpublished.",
            json!({ "template_id": examples::ID, "version": 1, "unpublished": true }),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
}

fn delete_version() -> OperationDescription {
    let text =
        "Permanently deletes a version; a published one is refused. Its number is not reused.";
    OperationDescription::new(TEMPLATES, "Delete a template version", text)
        .scope(Scope::WorkflowsWrite)
        .answers::<DeletedVersion<'_>>(
            200,
            "It is deleted.",
            json!({ "template_id": examples::ID, "version": 1, "deleted": true }),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
}

fn deprecate() -> OperationDescription {
    let text = "Shows a warning to users who read or fork a version; it stays published.";
    OperationDescription::new(TEMPLATES, "Deprecate a template version", text)
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
        .idempotent()
        .refuses([ProblemCode::NotFound])
}

fn transfer() -> OperationDescription {
    let text = "Offers a template of the caller to a user with a handle, who owns it after accepting. The old name redirects to the new one.";
    let to = json!({ "new_owner_user_id_or_email": "bob@example.com" });
    OperationDescription::new(TEMPLATES, "Transfer a template", text)
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
        .idempotent()
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::Conflict,
            ProblemCode::InvitationAlreadyPending,
            ProblemCode::QuotaExceeded,
        ])
}
