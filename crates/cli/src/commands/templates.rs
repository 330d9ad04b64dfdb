//! `jurat templates` and `jurat design`.

pub(crate) mod args;

use std::{
    io::{IsTerminal as _, stdout},
    path::Path,
};

use jurat_client::{templates, workflows};
use jurat_core::workflow::template::SafetyStatus;
use jurat_wire::api::{
    packs::PackBody,
    templates::{
        ForkTemplateDraft, ForkedTemplate, PublishedTemplateBody, SafetyCheckBody, ScreenRunBody,
        SearchTemplatesDraft, TemplateSummary,
    },
};
use serde::de::DeserializeOwned;

use super::{
    CommandContext,
    shared::{confirm::is_wanted, pages::PagedList},
    to_the_second,
    workflows::ancestry,
};
use crate::{
    args::{
        ForkTemplateArgs, GetTemplateArgs, GetTemplateFileArgs, ListTemplatesArgs,
        PublishTemplateArgs, RemoveTemplateArgs, RemoveTemplateVersionArgs, SearchTemplatesArgs,
        TemplateVersionArgs, TemplatesCommand,
    },
    client::{Call, Page, Reply},
    output::{
        OutputFormat,
        table::{cell, fields, said, table, whole_text, word},
    },
};

pub(super) async fn run(context: &CommandContext, command: TemplatesCommand) -> anyhow::Result<u8> {
    match command {
        TemplatesCommand::List(args) => list(context, args).await,
        TemplatesCommand::Search(args) => search(context, &args).await,
        TemplatesCommand::Get(args) => get(context, &args).await,
        TemplatesCommand::GetFile(args) => get_file(context, &args).await,
        TemplatesCommand::Publish(args) => publish(context, &args).await,
        TemplatesCommand::Fork(args) => fork(context, &args).await,
        TemplatesCommand::Delete(args) => delete(context, &args).await,
        TemplatesCommand::Unpublish(args) => {
            let call = templates::unpublish(&args.named.template, args.version);
            numbered(context, &args, call, "Unpublished").await
        }
        TemplatesCommand::DeleteVersion(args) => delete_version(context, &args).await,
        TemplatesCommand::DeprecateVersion(args) => {
            let TemplateVersionArgs { named, version } = &args.numbered;
            let message = args.message.as_deref();
            let call = templates::deprecate_version(&named.template, *version, message);
            numbered(context, &args.numbered, call, "Deprecated").await
        }
        TemplatesCommand::Archive(args) => {
            let template = &args.named.template;
            let call = templates::archive(template, args.reason.as_deref());
            done(context, call, &format!("Archived {template}")).await
        }
        TemplatesCommand::Unarchive(args) => {
            let call = templates::unarchive(&args.template);
            done(context, call, &format!("Unarchived {}", args.template)).await
        }
        TemplatesCommand::Lineage(args) => lineage(context, &args.workflow).await,
        TemplatesCommand::CheckSafety(args) => {
            let call = templates::check_safety(&args.named.template, args.version);
            check_safety(context, call).await
        }
        TemplatesCommand::TransferOwnership(args) => {
            let to = &args.new_owner;
            let call = templates::transfer_ownership(&args.named.template, to);
            let reply = context.send(call).await?;
            let label = said(&reply.value.target_label);
            context.out.confirm(&reply, || match &reply.value.invitation_id {
                Some(id) => format!("Offered {label} to {to} (invitation_id={})", said(id)),
                None => format!("{label} is already yours"),
            })?;
            Ok(0)
        }
    }
}

async fn list(context: &CommandContext, args: ListTemplatesArgs) -> anyhow::Result<u8> {
    // A program reads from a pipe, so it gets JSON.
    let is_json =
        context.out.format == OutputFormat::Json || !(args.table || stdout().is_terminal());
    let call = templates::list(
        args.filter.as_deref(),
        args.search.as_deref(),
        args.include_archived.then_some(true),
    );
    let mut pages = PagedList::new(call, args.limit, args.cursor);
    let reply: Reply<Page<TemplateSummary<'_>>> =
        context.with_client(async |client| pages.read(client, args.all).await).await?;
    if is_json {
        context.out.data(&reply.document().to_string())?;
        return Ok(0);
    }
    let rows = reply.value.items.iter().map(|template| {
        vec![
            cell(&full_name(&template.handle, &template.slug)),
            cell(&template.latest_version),
            word(&template.safety_verification_status),
            cell(&template.name),
            cell(&to_the_second(template.published_at)),
        ]
    });
    let header = ["template", "version", "safety", "name", "published"];
    context.out.text(&table(context.out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no templates: see `jurat templates publish --help`");
    Ok(0)
}

fn full_name(handle: &str, slug: &str) -> String {
    format!("@{}/{}", said(handle), said(slug))
}

async fn search(context: &CommandContext, args: &SearchTemplatesArgs) -> anyhow::Result<u8> {
    let draft = SearchTemplatesDraft {
        query: args.query.clone(),
        filter: args.filter.clone(),
        limit: args.limit,
    };
    let reply = context.send(templates::search(&draft)).await?;
    context.out.reply(&reply, |out| {
        let rows = reply.value.items.iter().map(|hit| {
            vec![
                cell(&hit.rank),
                cell(&full_name(&hit.handle, &hit.slug)),
                cell(&hit.name),
                cell(&hit.match_reason),
            ]
        });
        table(out, &["rank", "template", "name", "why"], rows.collect())
    })?;
    Ok(0)
}

async fn get(context: &CommandContext, args: &GetTemplateArgs) -> anyhow::Result<u8> {
    let reply = context.send(templates::show(&args.named.template, args.version)).await?;
    let text = match context.out.format {
        OutputFormat::Json => reply.document().to_string(),
        OutputFormat::Text => reply.value.body,
    };
    write(context, args.output.as_deref(), &text)
}

async fn get_file(context: &CommandContext, args: &GetTemplateFileArgs) -> anyhow::Result<u8> {
    let call = templates::file(&args.named.template, &args.path, args.version);
    let reply = context.send(call).await?;
    let text = match (context.out.format, &reply.value.content) {
        (OutputFormat::Text, Some(content)) => content.clone().into_owned(),
        (OutputFormat::Text, None) | (OutputFormat::Json, _) => reply.document().to_string(),
    };
    write(context, args.output.as_deref(), &text)
}

fn write(context: &CommandContext, file: Option<&Path>, text: &str) -> anyhow::Result<u8> {
    match file {
        None => context.out.document(text)?,
        Some(file) => {
            std::fs::write(file, text)?;
            context.out.note(&format!("wrote {}", file.display()));
        }
    }
    Ok(0)
}

async fn publish(context: &CommandContext, args: &PublishTemplateArgs) -> anyhow::Result<u8> {
    let call = templates::publish(&args.workflow, args.release_notes.as_deref());
    let reply = context.send(call).await?;
    let published = &reply.value;
    context.out.reply(&reply, |_| published_lines(published))?;
    for note in published.authoring_notes.iter().chain(&published.verifier_exposure_notice) {
        context.out.note(&whole_text(note));
    }
    Ok(0)
}

fn published_lines(published: &PublishedTemplateBody<'_>) -> String {
    let design = &published.design_checks;
    let states = [
        ("outcome", design.outcome),
        ("runnable", design.runnable),
        ("well_formed", design.well_formed),
    ];
    let states = states.map(|(part, state)| format!("{part} {}", said(&state)));
    let name = full_name(&published.publishing_handle, &published.slug);
    fields(&[
        ("published", format!("{name}@v{}", published.version)),
        ("template", said(&published.template_id)),
        ("safety", said(&published.safety_verification.status)),
        ("design", states.join(", ")),
    ])
}

async fn fork(context: &CommandContext, args: &ForkTemplateArgs) -> anyhow::Result<u8> {
    let draft = ForkTemplateDraft {
        identifier: args.named.template.clone(),
        version: args.version,
        name: args.name.clone(),
    };
    let reply = context.send(templates::fork(&draft)).await?;
    let ForkedTemplate { slug, workflow_id, version_token, deprecation_warning, .. } = &reply.value;
    context.out.confirm(&reply, || {
        format!(
            "Forked to {} (workflow_id={}, version_token={})",
            said(slug),
            said(workflow_id),
            said(version_token)
        )
    })?;
    if let Some(warning) = deprecation_warning {
        context.out.note(&whole_text(warning));
    }
    Ok(0)
}

async fn delete(context: &CommandContext, args: &RemoveTemplateArgs) -> anyhow::Result<u8> {
    let template = &args.named.template;
    let question =
        format!("Delete the template {template} and all its versions? This cannot be undone.");
    if !is_wanted(args.yes, &question)? {
        context.out.note("nothing was deleted");
        return Ok(0);
    }
    done(context, templates::delete(template), &format!("Permanently deleted {template}")).await
}

async fn delete_version(
    context: &CommandContext,
    args: &RemoveTemplateVersionArgs,
) -> anyhow::Result<u8> {
    let TemplateVersionArgs { named, version } = &args.numbered;
    let question =
        format!("Delete version {version} of {}? This cannot be undone.", named.template);
    if !is_wanted(args.yes, &question)? {
        context.out.note("nothing was deleted");
        return Ok(0);
    }
    let call = templates::delete_version(&named.template, *version);
    numbered(context, &args.numbered, call, "Permanently deleted").await
}

/// Changes one version, and confirms the change.
async fn numbered<R: DeserializeOwned>(
    context: &CommandContext,
    args: &TemplateVersionArgs,
    call: Call<R>,
    verb: &str,
) -> anyhow::Result<u8> {
    let TemplateVersionArgs { named, version } = args;
    done(context, call, &format!("{verb} {} version {version}", named.template)).await
}

/// Sends a call, and confirms it with a sentence.
async fn done<R: DeserializeOwned>(
    context: &CommandContext,
    call: Call<R>,
    sentence: &str,
) -> anyhow::Result<u8> {
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || sentence.to_owned())?;
    Ok(0)
}

async fn lineage(context: &CommandContext, workflow: &str) -> anyhow::Result<u8> {
    let reply = context.send(workflows::lineage(workflow)).await?;
    context.out.reply(&reply, |_| ancestry(&reply.value, "newest"))?;
    Ok(0)
}

/// Screens a workflow or a template. The exit code is 1 if it is blocked or could not be judged.
pub(super) async fn check_safety(
    context: &CommandContext,
    call: Call<SafetyCheckBody<'static>>,
) -> anyhow::Result<u8> {
    let reply = context.send(call).await?;
    context.out.reply(&reply, |_| screened(&reply.value))?;
    Ok(match reply.value.status.0 {
        SafetyStatus::Clean | SafetyStatus::Flagged => 0,
        SafetyStatus::Blocked | SafetyStatus::Error => 1,
    })
}

fn screened(check: &SafetyCheckBody<'_>) -> String {
    let side =
        |run: &ScreenRunBody<'_>| format!("{}: {}", said(&run.verdict), whole_text(&run.reasoning));
    fields(&[
        ("status", said(&check.status)),
        ("block", side(&check.block)),
        ("advisory", side(&check.advisory)),
    ])
}

/// Prints instructions for an agent as Markdown, followed by the texts that they refer to.
pub(super) async fn instructions(
    context: &CommandContext,
    call: Call<PackBody<'static>>,
) -> anyhow::Result<u8> {
    let reply = context.send(call).await?;
    if context.out.format == OutputFormat::Json {
        context.out.data(&reply.document().to_string())?;
        return Ok(0);
    }
    let mut text = reply.value.skill_md.into_owned();
    for (path, reference) in &reply.value.references {
        text.push_str("\n---\n\n<!-- ");
        text.push_str(path);
        text.push_str(" -->\n\n");
        text.push_str(reference);
    }
    context.out.document(&text)?;
    Ok(0)
}
