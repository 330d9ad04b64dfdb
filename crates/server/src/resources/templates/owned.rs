//! Operations of a template's owner, and forks.

use std::borrow::Cow;

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    workflow::{
        operation::OfferOutcome,
        template::{
            ChangedTemplate, ForkedWorkflow, Template, TemplateChangeKind, TemplatePublication,
        },
    },
};
use jurat_engine::{Engine, ForkOrder, PublishOrder};
use jurat_wire::api::templates::{
    self, ArchiveTemplateRequest, ArchivedTemplate, DeletedTemplate, DeletedVersion,
    DeprecateVersionRequest, DeprecatedVersion, ForkTemplateRequest, ForkedTemplate,
    OfferedTemplate, PublishTemplateRequest, PublishedTemplateBody, TransferTemplateRequest,
    UnarchivedTemplate, UnpublishedVersion,
};
use serde_json::{Value, json};

use super::address::TemplatePath;
use crate::{
    mcp::render,
    operation::{Operation, TextAuthor, Tool, parameters},
    request::{
        decode::{Json, MaybeJson},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
    },
    resources::{
        TEMPLATES,
        templates::{SCREENED, TEMPLATE, TEMPLATE_PATTERN, examples},
    },
};

pub(super) fn publish_operation() -> Operation {
    let text = "Publishes the current version of a workflow under the handle of its owner: its body, files and bound verifiers are frozen and never change. Platform judges screen it first, as runs of the caller: blocked content is not published, flagged content is published with a warning, and without a verdict nothing is published.";
    let about = "Publishes the current version of a workflow as a public template, with its verifiers, after judges have screened it.";
    Operation::post("/v1/templates", "template_publish", publish)
        .tag(TEMPLATES)
        .summary("Publish a version of a template")
        .text(text)
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
        .tool(
            Tool::asks("publish_template_version", "Publish a template", about)
                .summary(render::template_changed)
                .author(TextAuthor::Published),
        )
}

async fn publish(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let (workflow, release_notes) = templates::decode_publish(&body)?;
    let order = PublishOrder { workflow, release_notes };
    let keyed = idempotency.write_for("template_publish", &body, StatusCode::CREATED, published);
    let done = engine.template_publish(&caller, order, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::created(&published(it))))
}

/// The reply to publishing.
pub(crate) fn published(it: &TemplatePublication) -> Value {
    let template = &it.template;
    let names = (&*template.id, &*template.slug, &*template.publishing_handle);
    let (summary, told) = (&it.summary, (&*it.notes, &*it.exposed));
    json!(templates::published(names, it.version, (&summary.safety, &summary.design), told))
}

pub(super) fn fork_operation() -> Operation {
    let text = "Creates a private workflow from a version, with private verifiers created from its snapshots. Taken names get a number. Verifier ids in the body are replaced by those of the new verifiers.";
    let about = "Creates a private workflow from a template, with private verifiers.";
    Operation::post("/v1/templates/fork", "template_fork", fork)
        .tag(TEMPLATES)
        .summary("Fork a template")
        .text(text)
        .scope(Scope::WorkflowsWrite)
        .takes::<ForkTemplateRequest>([("plain", json!({ "identifier": "@ann/report@v1" }))])
        .answers::<ForkedTemplate<'_>>(200, "The new workflow.", examples::forked())
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
        .tool(
            Tool::adds("fork_template", "Fork a template", about)
                .summary(render::template_changed)
                .author(TextAuthor::Published),
        )
}

async fn fork(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    Json(body): Json,
) -> HandlerResult {
    let (wanted, name) = templates::decode_fork(&body)?;
    let keyed = idempotency.write_for("template_fork", &body, StatusCode::OK, forked);
    let done = engine.template_fork(&caller, ForkOrder { wanted, name }, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&forked(it))))
}

/// The reply to a fork.
pub(crate) fn forked(it: &ForkedWorkflow) -> Value {
    let moved = it.notes.moved.as_ref().map(|(from, to)| (from.as_str(), to.as_str()));
    json!(templates::forked(
        (&it.workflow_id, &it.slug, &it.name),
        (&it.template_id, it.template_version),
        &it.version_token,
        &it.verifiers,
        (moved, it.notes.deprecation.as_deref()),
    ))
}

pub(super) fn unpublish_operation() -> Operation {
    let text = "Withdraws a version from everyone but the owner. It can still be deleted, and is never published again.";
    Operation::delete("/v1/templates/{ref}/versions/{version}", "template_unpublish", unpublish)
        .also("/v1/templates/{ref}/{slug}/versions/{version}")
        .tag(TEMPLATES)
        .summary("Unpublish a template version")
        .text(text)
        .in_path([TEMPLATE, parameters::VERSION])
        .scope(Scope::WorkflowsWrite)
        .answers::<UnpublishedVersion<'_>>(
            200,
            "It is unpublished.",
            json!({ "template_id": examples::ID, "version": 1, "unpublished": true }),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound])
        .tool(
            Tool::ends(
                "unpublish_template_version",
                "Unpublish a template version",
                "Withdraws a version of a template from the public.",
            )
            .path_like("template_id", "The id of a template, or `@handle/slug`.", TEMPLATE_PATTERN)
            .path_version("The number of the version.")
            .ignores_unknown()
            .summary(render::template_changed)
            .author(TextAuthor::Published),
        )
}

async fn unpublish(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    named: TemplatePath,
) -> HandlerResult {
    let (wanted, version) = named.numbered()?;
    let reply = move |it: &ChangedTemplate| {
        let template_id = it.template.id.as_str();
        json!(UnpublishedVersion {
            template_id: Cow::Borrowed(template_id),
            version,
            unpublished: true
        })
    };
    let keyed = idempotency.write_for("template_unpublish", &Value::Null, StatusCode::OK, reply);
    let done = engine
        .template_change(&caller, &wanted, TemplateChangeKind::Unpublish(version), keyed)
        .await?;
    Ok(idempotency::reply(done, |it| encode::ok(&reply(it))))
}

pub(super) fn delete_version_operation() -> Operation {
    let text =
        "Permanently deletes a version; a published one is refused. Its number is not reused.";
    Operation::delete(
        "/v1/templates/{ref}/versions/{version}/permanent",
        "template_delete_version",
        delete_version,
    )
    .also("/v1/templates/{ref}/{slug}/versions/{version}/permanent")
    .tag(TEMPLATES)
    .summary("Delete a template version")
    .text(text)
    .in_path([TEMPLATE, parameters::VERSION])
    .scope(Scope::WorkflowsWrite)
    .answers::<DeletedVersion<'_>>(
        200,
        "It is deleted.",
        json!({ "template_id": examples::ID, "version": 1, "deleted": true }),
    )
    .idempotent()
    .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
    .tool(
        Tool::ends(
            "delete_template_version",
            "Delete a template version",
            "Permanently deletes an unpublished version of a template.",
        )
        .confirmed()
        .path_like("template_id", "The id of a template, or `@handle/slug`.", TEMPLATE_PATTERN)
        .path_version("The number of the version.")
        .ignores_unknown()
        .summary(render::template_changed)
        .author(TextAuthor::Published),
    )
}

async fn delete_version(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    named: TemplatePath,
) -> HandlerResult {
    let (wanted, version) = named.numbered()?;
    let reply =
        move |it: &ChangedTemplate| json!(templates::deleted_version(&it.template.id, version));
    let keyed =
        idempotency.write_for("template_delete_version", &Value::Null, StatusCode::OK, reply);
    let change = TemplateChangeKind::DeleteVersion(version);
    let done = engine.template_change(&caller, &wanted, change, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&reply(it))))
}

pub(super) fn deprecate_operation() -> Operation {
    let text = "Shows a warning to users who read or fork a version; it stays published.";
    let about = "Shows a warning to users who read or fork a version of a template.";
    Operation::post(
        "/v1/templates/{ref}/versions/{version}/deprecate",
        "template_deprecate",
        deprecate,
    )
    .also("/v1/templates/{ref}/{slug}/versions/{version}/deprecate")
    .tag(TEMPLATES)
    .summary("Deprecate a template version")
    .text(text)
    .in_path([TEMPLATE, parameters::VERSION])
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
    .tool(
        Tool::adds("deprecate_template_version", "Deprecate a template version", about)
            .path_like("template_id", "The id of a template, or `@handle/slug`.", TEMPLATE_PATTERN)
            .path_version("The number of the version.")
            .summary(render::template_changed)
            .author(TextAuthor::Published),
    )
}

async fn deprecate(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    named: TemplatePath,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let (wanted, version) = named.numbered()?;
    let message = templates::decode_deprecate(&body)?;
    let change = TemplateChangeKind::Deprecate(version, message.clone());
    let reply = move |it: &ChangedTemplate| {
        json!(templates::deprecated(&it.template.id, version, it.at, message.as_deref()))
    };
    let keyed = idempotency.write_for("template_deprecate", &body, StatusCode::OK, reply.clone());
    let done = engine.template_change(&caller, &wanted, change, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&reply(it))))
}

pub(super) fn archive_operation() -> Operation {
    let text = "Hides a template from lists and from everyone but its owner. Its verifiers can no longer be run without a key.";
    Operation::post("/v1/templates/{ref}/archive", "template_archive", archive)
        .also("/v1/templates/{ref}/{slug}/archive")
        .tag(TEMPLATES)
        .summary("Archive a template")
        .text(text)
        .in_path([TEMPLATE])
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
        .tool(
            Tool::adds(
                "archive_template",
                "Archive a template",
                "Hides a template from everyone but its owner.",
            )
            .path_like("template_id", "The id of a template, or `@handle/slug`.", TEMPLATE_PATTERN)
            .summary(render::template_changed)
            .author(TextAuthor::Published),
        )
}

async fn archive(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    named: TemplatePath,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let wanted = named.wanted(&[])?;
    let change = TemplateChangeKind::Archive(templates::decode_archive(&body)?);
    let keyed = idempotency.write_for("template_archive", &body, StatusCode::OK, archived);
    let done = engine.template_change(&caller, &wanted, change, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&archived(it))))
}

fn archived(it: &ChangedTemplate) -> Value {
    json!(ArchivedTemplate { template_id: Cow::Borrowed(&it.template.id), archived: true })
}

pub(super) fn unarchive_operation() -> Operation {
    Operation::post("/v1/templates/{ref}/unarchive", "template_unarchive", unarchive)
        .also("/v1/templates/{ref}/{slug}/unarchive")
        .tag(TEMPLATES)
        .summary("Unarchive a template")
        .text("Makes an archived template public again.")
        .in_path([TEMPLATE])
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
        .tool(
            Tool::adds(
                "unarchive_template",
                "Unarchive a template",
                "Makes an archived template public again.",
            )
            .path_like("template_id", "The id of a template, or `@handle/slug`.", TEMPLATE_PATTERN)
            .ignores_unknown()
            .summary(render::template_changed)
            .author(TextAuthor::Published),
        )
}

async fn unarchive(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    named: TemplatePath,
    MaybeJson(body): MaybeJson,
) -> HandlerResult {
    let wanted = named.wanted(&[])?;
    let keyed = idempotency.write_for("template_unarchive", &body, StatusCode::OK, unarchived);
    let done =
        engine.template_change(&caller, &wanted, TemplateChangeKind::Unarchive, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&unarchived(it))))
}

fn unarchived(it: &ChangedTemplate) -> Value {
    json!(UnarchivedTemplate { template_id: Cow::Borrowed(&it.template.id), archived: false })
}

pub(super) fn delete_operation() -> Operation {
    let text = "Permanently deletes a template with all its versions. A template with a published version is refused: unpublish its versions or archive it first.";
    Operation::delete("/v1/templates/{ref}", "template_delete", delete)
        .also("/v1/templates/{ref}/{slug}")
        .tag(TEMPLATES)
        .summary("Delete a template")
        .text(text)
        .in_path([TEMPLATE])
        .scope(Scope::WorkflowsWrite)
        .answers::<DeletedTemplate<'_>>(
            200,
            "It is deleted.",
            json!({ "template_id": examples::ID, "slug": "report", "deleted": true }),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::Conflict])
        .tool(
            Tool::ends(
                "delete_template",
                "Delete a template",
                "Permanently deletes a template with all its versions.",
            )
            .confirmed()
            .path_like("template_id", "The id of a template, or `@handle/slug`.", TEMPLATE_PATTERN)
            .ignores_unknown()
            .summary(render::template_changed)
            .author(TextAuthor::Published),
        )
}

async fn delete(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    named: TemplatePath,
) -> HandlerResult {
    let wanted = named.wanted(&[])?;
    let keyed = idempotency.write_for("template_delete", &Value::Null, StatusCode::OK, deleted);
    let done = engine.template_change(&caller, &wanted, TemplateChangeKind::Delete, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&deleted(it))))
}

fn deleted(it: &ChangedTemplate) -> Value {
    let (template_id, slug) = (it.template.id.as_str(), it.template.slug.as_str());
    json!(DeletedTemplate {
        template_id: Cow::Borrowed(template_id),
        slug: Cow::Borrowed(slug),
        deleted: true
    })
}

pub(super) fn transfer_operation() -> Operation {
    let text = "Offers a template of the caller to a user with a handle, who owns it after accepting. The old name redirects to the new one.";
    let reply = "The offer; without `invitation_id` the caller already owns the template.";
    let about = "Offers a template to another user, who owns it after accepting.";
    let to = json!({ "new_owner_user_id_or_email": "bob@example.com" });
    Operation::post("/v1/templates/{ref}/transfer-ownership", "template_transfer", transfer)
        .also("/v1/templates/{ref}/{slug}/transfer-ownership")
        .tag(TEMPLATES)
        .summary("Transfer a template")
        .text(text)
        .in_path([TEMPLATE])
        .scope(Scope::WorkflowsWrite)
        .takes::<TransferTemplateRequest>([("plain", to)])
        .answers::<OfferedTemplate<'_>>(
            200,
            reply,
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
        .tool(
            Tool::adds("transfer_template_ownership", "Transfer a template", about)
                .path_like(
                    "template_id",
                    "The id of a template, or `@handle/slug`.",
                    TEMPLATE_PATTERN,
                )
                .summary(render::template_changed)
                .author(TextAuthor::Published),
        )
}

async fn transfer(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    named: TemplatePath,
    Json(body): Json,
) -> HandlerResult {
    let wanted = named.wanted(&[])?;
    let to = templates::decode_transfer(&body)?;
    let keyed = idempotency.write_for("template_transfer", &body, StatusCode::OK, offered_template);
    let done = engine.template_transfer(&caller, &wanted, &to, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&offered_template(it))))
}

pub(crate) fn offered_template(it: &OfferOutcome<Template>) -> Value {
    match it {
        OfferOutcome::Invitation(invitation) => json!(templates::offered(invitation)),
        OfferOutcome::Own(template) => json!(templates::already_owned(template)),
    }
}
