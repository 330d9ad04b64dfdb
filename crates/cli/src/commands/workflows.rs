//! `jurat workflows`.

pub(crate) mod args;
mod checks;
mod folder;
mod publish;
mod shared;

use std::io::{IsTerminal as _, stdout};

use jurat_client::workflows::{self, Instructions, WorkflowListQuery};
use jurat_wire::api::workflows::{
    ArchivedWorkflow, LineageBody, ListedWorkflow, SearchWorkflowsDraft,
};

use super::{
    CommandContext, called,
    shared::{confirm::is_wanted, pages::PagedList},
    templates, to_the_second,
};
use crate::{
    args::{
        DeleteWorkflowArgs, DeleteWorkflowVersionArgs, GetWorkflowArgs, ListWorkflowsArgs,
        SearchWorkflowsArgs, WorkflowNameArgs, WorkflowsCommand,
    },
    client::{Call, Page, Reply},
    failure::CliFailure,
    output::{
        Output, OutputFormat,
        table::{cell, fields, said, table, word},
    },
};

pub(super) async fn run(context: &CommandContext, command: WorkflowsCommand) -> anyhow::Result<u8> {
    match command {
        WorkflowsCommand::List(args) => list(context, args).await,
        WorkflowsCommand::Search(args) => search(context, &args).await,
        WorkflowsCommand::Get(args) => get(context, &args).await,
        WorkflowsCommand::Publish(args) => Box::pin(publish::publish(context, &args)).await,
        WorkflowsCommand::PutFile(args) => Box::pin(publish::put_file(context, &args)).await,
        WorkflowsCommand::RmFile(args) => Box::pin(publish::rm_file(context, &args)).await,
        WorkflowsCommand::Lineage(args) => lineage(context, &args).await,
        WorkflowsCommand::Archive(args) => {
            change(context, workflows::archive(&args.workflow), "Archived").await
        }
        WorkflowsCommand::Unarchive(args) => {
            change(context, workflows::unarchive(&args.workflow), "Unarchived").await
        }
        WorkflowsCommand::Delete(args) => delete(context, &args).await,
        WorkflowsCommand::DeleteVersion(args) => delete_version(context, &args).await,
        WorkflowsCommand::Grant(args) => shared::grant(context, &args).await,
        WorkflowsCommand::RevokeGrant(args) => shared::revoke(context, &args).await,
        WorkflowsCommand::Grants(args) => shared::list(context, &args).await,
        WorkflowsCommand::Leave(args) => shared::leave(context, &args).await,
        WorkflowsCommand::TransferOwnership(args) => shared::transfer(context, &args).await,
        WorkflowsCommand::Teach(args) => {
            let call = workflows::instructions(&args.workflow, Instructions::Teach, None);
            templates::instructions(context, call).await
        }
        WorkflowsCommand::Audit(args) => {
            let call = workflows::instructions(&args.workflow, Instructions::Audit, None);
            templates::instructions(context, call).await
        }
        WorkflowsCommand::Optimize(args) => {
            let (workflow, most) = (&args.named.workflow, args.max_iterations);
            let call = workflows::instructions(workflow, Instructions::Optimize, most);
            templates::instructions(context, call).await
        }
        WorkflowsCommand::OptimizeDescription(args) => {
            let (workflow, most) = (&args.named.workflow, args.max_iterations);
            let call = workflows::instructions(workflow, Instructions::OptimizeDescription, most);
            templates::instructions(context, call).await
        }
        WorkflowsCommand::CheckSafety(args) => {
            templates::check_safety(context, workflows::check_safety(&args.workflow)).await
        }
        WorkflowsCommand::RunChecks(args) => Box::pin(checks::run(context, &args)).await,
    }
}

async fn list(context: &CommandContext, args: ListWorkflowsArgs) -> anyhow::Result<u8> {
    // A program reads from a pipe, so it gets JSON.
    let is_json =
        context.out.format == OutputFormat::Json || !(args.list.table || stdout().is_terminal());
    let call = workflows::list(&WorkflowListQuery {
        filter: args.filter,
        tag: args.tag,
        search: args.search,
        include_archived: args.include_archived.then_some(true),
    });
    let mut pages = PagedList::new(call, args.list.limit, args.list.cursor);
    let all = args.list.all;
    let reply: Reply<Page<ListedWorkflow<'_>>> =
        context.with_client(async |client| pages.read(client, all).await).await?;
    if is_json {
        context.out.data(&reply.document().to_string())?;
        return Ok(0);
    }
    context.out.text(&workflows_table(context.out, &reply.value.items))?;
    context.note_page(&reply.value, "no workflows yet: see `jurat workflows publish --help`");
    Ok(0)
}

fn workflows_table(out: Output, workflows: &[ListedWorkflow<'_>]) -> String {
    let rows = workflows.iter().map(|workflow| {
        let state = if workflow.archived_at.is_none() { "" } else { "archived" };
        vec![
            cell(&called(workflow.owner.as_deref(), &workflow.slug)),
            cell(&workflow.current_version),
            cell(&workflow.effective_role),
            word(state),
            cell(&workflow.description),
            cell(&to_the_second(workflow.updated_at)),
            cell(&workflow.id),
        ]
    });
    let header = ["name", "version", "role", "", "description", "updated", "id"];
    table(out, &header, rows.collect())
}

async fn search(context: &CommandContext, args: &SearchWorkflowsArgs) -> anyhow::Result<u8> {
    let draft = SearchWorkflowsDraft {
        query: args.query.clone(),
        filter: args.filter.clone(),
        limit: args.limit,
        tag: args.tag.clone(),
    };
    let reply = context.send(workflows::search(&draft)).await?;
    context.out.reply(&reply, |out| {
        let rows = reply.value.items.iter().map(|hit| {
            vec![
                cell(&hit.rank),
                cell(&called(hit.owner.as_deref(), &hit.slug)),
                cell(&hit.match_reason),
                cell(&hit.description),
                cell(&hit.id),
            ]
        });
        table(out, &["rank", "name", "found in", "description", "id"], rows.collect())
    })?;
    context.note_empty(reply.value.items.len(), "no workflows match");
    Ok(0)
}

async fn get(context: &CommandContext, args: &GetWorkflowArgs) -> anyhow::Result<u8> {
    let reply = context.send(workflows::show(&args.named.workflow, args.version)).await?;
    let body = &reply.value.body;
    if let Some(file) = &args.output {
        std::fs::write(file, body.as_ref()).map_err(|error| {
            CliFailure::usage(format!("`--output {}` cannot be written: {error}", file.display()))
        })?;
        context.out.note(&format!("wrote {}", file.display()));
        return Ok(0);
    }
    match context.out.format {
        OutputFormat::Json => context.out.reply(&reply, |_| String::new())?,
        OutputFormat::Text => context.out.document(body.trim_end())?,
    }
    Ok(0)
}

async fn lineage(context: &CommandContext, args: &WorkflowNameArgs) -> anyhow::Result<u8> {
    let reply = context.send(workflows::lineage(&args.workflow)).await?;
    context.out.reply(&reply, |_| ancestry(&reply.value, "newest version"))?;
    Ok(0)
}

/// The template that a workflow was forked from.
pub(super) fn ancestry(lineage: &LineageBody<'_>, newest: &str) -> String {
    if lineage.parent_template_id.is_none() {
        return "not forked from a template".to_owned();
    }
    fields(&[
        ("template", said(&lineage.parent_template_id)),
        ("version", said(&lineage.parent_template_version)),
        (newest, said(&lineage.upstream_latest_version)),
        ("state", said(&lineage.parent_source_status)),
    ])
}

async fn change(
    context: &CommandContext,
    call: Call<ArchivedWorkflow<'static>>,
    done: &str,
) -> anyhow::Result<u8> {
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || format!("{done} {}", said(&reply.value.name)))?;
    Ok(0)
}

async fn delete(context: &CommandContext, args: &DeleteWorkflowArgs) -> anyhow::Result<u8> {
    let name = &args.named.workflow;
    let question = format!(
        "Delete the workflow {name} and all its versions and files? This cannot be undone."
    );
    if !is_wanted(args.yes, &question)? {
        context.out.note("nothing was deleted");
        return Ok(0);
    }
    let reply = context.send(workflows::delete(name)).await?;
    let done = || format!("Permanently deleted {}", said(&reply.value.name));
    context.out.confirm(&reply, done)?;
    Ok(0)
}

async fn delete_version(
    context: &CommandContext,
    args: &DeleteWorkflowVersionArgs,
) -> anyhow::Result<u8> {
    let (name, version) = (&args.named.workflow, args.version);
    let question = format!("Delete version {version} of {name}? This cannot be undone.");
    if !is_wanted(args.yes, &question)? {
        context.out.note("nothing was deleted");
        return Ok(0);
    }
    let reply = context.send(workflows::delete_version(name, version)).await?;
    context.out.confirm(&reply, || format!("Permanently deleted version {version} of {name}"))?;
    Ok(0)
}
