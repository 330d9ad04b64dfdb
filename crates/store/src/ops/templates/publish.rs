//! Publishes: freezes a workflow with its files and verifiers as a version that never changes.

use std::collections::BTreeSet;

use jurat_core::{
    id::AccountId,
    webhook::WebhookEvent,
    workflow::{
        search::{SearchIndex, SearchTexts},
        template::{
            Template, TemplateFile, TemplatePublication, TemplateVersionSummary, VerifierSnapshot,
        },
    },
};
use serde_json::Value;

use super::{
    PublishRefusal, PublishableWorkflow, TemplateFileBytes, TemplatePublish,
    read::{BY_SLUG, BY_WORKFLOW, read_template},
};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, json},
        tx::{Tx, args},
    },
    ops::webhooks::announce::announce,
};

const WORKFLOW: &str = "\
    select workflows.id, workflows.slug, workflows.current_version, workflows.archived_at, \
    workflow_versions.name, workflow_versions.description, workflow_versions.outcome, \
    workflow_versions.tags, workflow_versions.body from workflows join workflow_versions \
    on workflow_versions.account_id = workflows.account_id \
    and workflow_versions.workflow_id = workflows.id \
    and workflow_versions.version = workflows.current_version \
    where workflows.account_id = $1 and (workflows.id = $2 or workflows.slug = $2) \
    order by case when workflows.id = $2 then 0 else 1 end";
const BINDINGS: &str = "\
    select name, verifier_id, pinned_version from workflow_bindings \
    where account_id = $1 and workflow_id = $2 order by name";
const FILES: &str = "\
    select workflow_files.path, workflow_files.sha256, workflow_files.size_bytes, \
    workflow_files.is_executable, workflow_files.content_kind, workflow_files.purpose, \
    workflow_blobs.content from workflow_files join workflow_blobs \
    on workflow_blobs.account_id = workflow_files.account_id \
    and workflow_blobs.sha256 = workflow_files.sha256 \
    where workflow_files.account_id = $1 and workflow_files.workflow_id = $2 \
    and workflow_files.version = $3 order by workflow_files.path";
const STANDING: &str = "\
    select id, current_version, archived_at from workflows where account_id = $1 and id = $2";
const HANDLE: &str = "select id, handle from accounts where id = $1";
const STAMP: &str = "update handles set is_stamped = 1 where handle = $1";
const PIN_CHECK: &str = "\
    select verifiers.id from verifiers join verifier_versions \
    on verifier_versions.account_id = verifiers.account_id \
    and verifier_versions.verifier_id = verifiers.id \
    where verifiers.account_id = $1 and verifiers.id = $2 and verifiers.standing = 'active' \
    and verifier_versions.version = $3 and verifier_versions.config_hash = $4";
/// The newest version of a template, if it is published.
const NEWEST: &str = "\
    select template_id, summary, document from template_versions \
    where template_id = $1 and version = $2 and unpublished_at is null";
const ADD: &str = "\
    insert into templates (id, account_id, slug, workflow_id, publishing_handle, latest_version, \
    created_at, updated_at) values ($1, $2, $3, $4, $5, 1, $6, $6)";
const NEXT: &str = "\
    update templates set publishing_handle = $1, latest_version = $2, updated_at = $3 \
    where id = $4";
const VERSION_ADD: &str = "\
    insert into template_versions (template_id, version, summary, document, search_name, \
    search_text, search_body, published_at) values ($1, $2, $3, $4, $5, $6, $7, $8)";
const FILES_ADD: &str = "\
    insert into template_files (template_id, version, path, sha256, size_bytes, is_executable, \
    content_kind, purpose, content) \
    select $1, $2, workflow_files.path, workflow_files.sha256, workflow_files.size_bytes, \
    workflow_files.is_executable, workflow_files.content_kind, workflow_files.purpose, \
    workflow_blobs.content from workflow_files join workflow_blobs \
    on workflow_blobs.account_id = workflow_files.account_id \
    and workflow_blobs.sha256 = workflow_files.sha256 \
    where workflow_files.account_id = $3 and workflow_files.workflow_id = $4 \
    and workflow_files.version = $5";
const PIN_ADD: &str = "\
    insert into template_pins (template_id, version, name, account_id, verifier_id, \
    verifier_version) values ($1, $2, $3, $4, $5, $6)";

/// The lock that publishing with a verifier and deleting it share, so that neither misses the
/// other.
pub(crate) fn verifier_lock(id: &str) -> String {
    format!("verifier {id}")
}

fn read_workflow(cells: &dyn DbRow) -> Result<PublishableWorkflow> {
    let columns = RowReader::new(cells, "workflows", "id")?;
    Ok(PublishableWorkflow {
        id: columns.text("id")?,
        slug: columns.text("slug")?,
        name: columns.text("name")?,
        description: columns.text("description")?,
        outcome: columns.text("outcome")?,
        tags: columns.document("tags")?,
        body: columns.text("body")?,
        version: columns.count("current_version")?,
        is_archived: columns.maybe_time("archived_at")?.is_some(),
        bindings: Vec::new(),
        files: Vec::new(),
    })
}

fn read_binding(cells: &dyn DbRow) -> Result<(String, String, Option<u32>)> {
    let columns = RowReader::new(cells, "workflow_bindings", "name")?;
    let pinned = columns.maybe_count("pinned_version")?;
    Ok((columns.text("name")?, columns.text("verifier_id")?, pinned))
}

fn read_file(cells: &dyn DbRow) -> Result<TemplateFileBytes> {
    let columns = RowReader::new(cells, "workflow_files", "path")?;
    Ok(TemplateFileBytes {
        file: TemplateFile {
            path: columns.text("path")?,
            sha256: columns.text("sha256")?,
            size_bytes: columns.count("size_bytes")?,
            is_executable: columns.number("is_executable")? != 0,
            content_kind: columns.text("content_kind")?,
            purpose: columns.text("purpose")?,
        },
        content: columns.bytes("content")?,
    })
}

pub(super) async fn publishable(
    tx: &mut Tx<'_>,
    account: &AccountId,
    workflow: &str,
) -> Result<Option<PublishableWorkflow>> {
    let found = tx.first(WORKFLOW, args![account, workflow], read_workflow).await?;
    let Some(mut found) = found else { return Ok(None) };
    found.bindings = tx.all(BINDINGS, args![account, &found.id], read_binding).await?;
    found.files = tx.all(FILES, args![account, &found.id, found.version], read_file).await?;
    Ok(Some(found))
}

/// The search index of a version.
fn index_of(publish: &TemplatePublish) -> SearchIndex {
    let summary = &publish.summary;
    let texts = SearchTexts {
        name: &summary.name,
        slug: &publish.slug,
        tags: &summary.tags,
        description: &summary.description,
        outcome: &summary.outcome,
        body: &publish.content.body,
    };
    texts.index()
}

pub(super) async fn publish(
    tx: &mut Tx<'_>,
    publish: &TemplatePublish,
) -> Result<Result<TemplatePublication, PublishRefusal>> {
    lock(tx, publish).await?;
    let handle = match check(tx, publish).await? {
        Ok(handle) => handle,
        Err(refused) => return Ok(Err(refused)),
    };
    let document = json(&publish.content.document())?;
    if let Some(before) = published_before(tx, publish, (&handle, &document)).await? {
        return Ok(Ok(before));
    }
    let template = match next_release(tx, publish, &handle).await? {
        Ok(template) => template,
        Err(refused) => return Ok(Err(refused)),
    };
    let (id, version) = (&template.id, template.latest_version);
    let summary = json(&publish.summary.document())?;
    let index = index_of(publish);
    let (name, text, body) = (index.name, index.text, index.body);
    let args = args![id, version, summary, document, name, text, body, publish.at];
    tx.run(VERSION_ADD, args).await?;
    let workflow = (&publish.workflow_id, publish.workflow_version);
    tx.run(FILES_ADD, args![id, version, &publish.account, workflow.0, workflow.1]).await?;
    for VerifierSnapshot { name, verifier_id, version: pinned, .. } in &publish.content.snapshots {
        let args = args![id, version, name, &publish.account, verifier_id, *pinned];
        tx.run(PIN_ADD, args).await?;
    }
    tx.run(STAMP, args![&handle]).await?;
    let event = WebhookEvent::of_template(&template, publish.at);
    announce(tx, &publish.account, &event, publish.at).await?;
    Ok(Ok(published(publish, template, publish.summary.clone())))
}

fn published(
    publish: &TemplatePublish,
    template: Template,
    summary: TemplateVersionSummary,
) -> TemplatePublication {
    let exposed = publish.content.snapshots.iter().map(|it| it.name.clone());
    let (version, notes) = (template.latest_version, publish.notes.clone());
    TemplatePublication { version, template, summary, notes, exposed: exposed.collect() }
}

/// The newest version, if it is equal and has the same handle: it is not copied again.
async fn published_before(
    tx: &mut Tx<'_>,
    publish: &TemplatePublish,
    (handle, document): (&str, &str),
) -> Result<Option<TemplatePublication>> {
    let args = args![&publish.account, &publish.workflow_id];
    let Some(template) = tx.first(BY_WORKFLOW, args, read_template).await? else {
        return Ok(None);
    };
    if template.archived_at.is_some() || template.publishing_handle != handle {
        return Ok(None);
    }
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "template_versions", "template_id")?;
        let summary: Value = columns.document("summary")?;
        let summary = TemplateVersionSummary::read(&summary)
            .ok_or_else(|| columns.bad("summary", "it is none"))?;
        Ok((columns.text("document")?, summary))
    };
    let args = args![&template.id, template.latest_version];
    let newest = tx.first(NEWEST, args, read).await?;
    let same = newest.filter(|(newest, _)| newest == document);
    Ok(same.map(|(_, summary)| published(publish, template, summary)))
}

/// Takes the locks in ascending order: the handles, the templates of the account, the verifiers.
async fn lock(tx: &mut Tx<'_>, publish: &TemplatePublish) -> Result<()> {
    tx.lock("handles").await?;
    tx.lock(&format!("templates {}", publish.account)).await?;
    let verifiers: BTreeSet<&str> =
        publish.content.snapshots.iter().map(|it| it.verifier_id.as_str()).collect();
    for verifier in verifiers {
        tx.lock(&verifier_lock(verifier)).await?;
    }
    Ok(())
}

/// The handle to publish under, if nothing changed since the screening.
async fn check(
    tx: &mut Tx<'_>,
    publish: &TemplatePublish,
) -> Result<Result<String, PublishRefusal>> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "accounts", "id")?.maybe_text("handle");
    let handle = tx.first(HANDLE, args![&publish.account], read).await?.flatten();
    let Some(handle) = handle else { return Ok(Err(PublishRefusal::HandleNotClaimed)) };
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "workflows", "id")?;
        Ok((columns.count::<u32>("current_version")?, columns.maybe_time("archived_at")?))
    };
    let args = args![&publish.account, &publish.workflow_id];
    match tx.first(STANDING, args, read).await? {
        None => return Ok(Err(PublishRefusal::WorkflowUnknown)),
        Some((_, Some(_))) => return Ok(Err(PublishRefusal::WorkflowArchived)),
        Some((version, None)) if version != publish.workflow_version => {
            return Ok(Err(PublishRefusal::WorkflowChanged));
        }
        Some(_) => {}
    }
    for snapshot in &publish.content.snapshots {
        let args =
            args![&publish.account, &snapshot.verifier_id, snapshot.version, &snapshot.config_hash];
        let read = |cells: &dyn DbRow| RowReader::new(cells, "verifiers", "id")?.text("id");
        if tx.first(PIN_CHECK, args, read).await?.is_none() {
            return Ok(Err(PublishRefusal::VerifierGone(snapshot.name.clone())));
        }
    }
    Ok(Ok(handle))
}

/// The template with the number of the new version: a new template, or the one of the workflow.
async fn next_release(
    tx: &mut Tx<'_>,
    publish: &TemplatePublish,
    handle: &str,
) -> Result<Result<Template, PublishRefusal>> {
    let account = &publish.account;
    let args = args![account, &publish.workflow_id];
    let found = tx.first(BY_WORKFLOW, args, read_template).await?;
    if let Some(template) = found {
        if template.archived_at.is_some() {
            return Ok(Err(PublishRefusal::Archived));
        }
        let version = template.latest_version.saturating_add(1);
        tx.run(NEXT, args![handle, version, publish.at, &template.id]).await?;
        let publishing_handle = handle.to_owned();
        return Ok(Ok(Template { latest_version: version, publishing_handle, ..template }));
    }
    if tx.first(BY_SLUG, args![account, &publish.slug], read_template).await?.is_some() {
        return Ok(Err(PublishRefusal::SlugTaken));
    }
    let args =
        args![&publish.new_id, account, &publish.slug, &publish.workflow_id, handle, publish.at];
    tx.run(ADD, args).await?;
    Ok(Ok(Template {
        id: publish.new_id.clone(),
        account: account.clone(),
        slug: publish.slug.clone(),
        workflow_id: publish.workflow_id.clone(),
        handle: handle.to_owned(),
        publishing_handle: handle.to_owned(),
        latest_version: 1,
        created_at: publish.at,
        updated_at: publish.at,
        archived_at: None,
        archive_reason: None,
    }))
}
