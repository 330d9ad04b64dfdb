//! What the owner of a template does, and forks.

use axum::{Extension, extract::State, http::StatusCode};
use jurat_core::{
    account::caller::Caller,
    workflow::{
        operation::OfferOutcome,
        template::{
            ChangedTemplate, ForkedWorkflow, Template, TemplateChangeKind, TemplatePublication,
        },
    },
};
use jurat_engine::{Engine, ForkOrder, PublishOrder};
use jurat_wire::api::templates::{
    self, ArchivedTemplate, DeletedTemplate, UnarchivedTemplate, UnpublishedVersion,
};
use serde_json::{Value, json};

use super::address::TemplatePath;
use crate::request::{
    decode::{Json, MaybeJson},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

pub(in crate::resources) async fn publish(
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

pub(in crate::resources) async fn fork(
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

pub(in crate::resources) async fn unpublish(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    named: TemplatePath,
) -> HandlerResult {
    let (wanted, version) = named.numbered()?;
    let reply = move |it: &ChangedTemplate| {
        let template_id = it.template.id.as_str();
        json!(UnpublishedVersion { template_id, version, unpublished: true })
    };
    let keyed = idempotency.write_for("template_unpublish", &Value::Null, StatusCode::OK, reply);
    let done = engine
        .template_change(&caller, &wanted, TemplateChangeKind::Unpublish(version), keyed)
        .await?;
    Ok(idempotency::reply(done, |it| encode::ok(&reply(it))))
}

pub(in crate::resources) async fn delete_version(
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

pub(in crate::resources) async fn deprecate(
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

pub(in crate::resources) async fn archive(
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
    json!(ArchivedTemplate { template_id: &it.template.id, archived: true })
}

pub(in crate::resources) async fn unarchive(
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
    json!(UnarchivedTemplate { template_id: &it.template.id, archived: false })
}

pub(in crate::resources) async fn delete(
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
    json!(DeletedTemplate { template_id, slug, deleted: true })
}

pub(in crate::resources) async fn transfer(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    named: TemplatePath,
    Json(body): Json,
) -> HandlerResult {
    let wanted = named.wanted(&[])?;
    let to = templates::decode_transfer(&body)?;
    let keyed = idempotency.write_for("template_transfer", &body, StatusCode::OK, offered_template);
    let done = engine.template_offer(&caller, &wanted, &to, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::ok(&offered_template(it))))
}

pub(crate) fn offered_template(it: &OfferOutcome<Template>) -> Value {
    match it {
        OfferOutcome::Invitation(invitation) => json!(templates::offered(invitation)),
        OfferOutcome::Own(template) => json!(templates::already_owned(template)),
    }
}
