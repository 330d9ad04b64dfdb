//! `jurat workflows`.

pub(crate) mod args;
mod checks;
mod folder;
mod publish;
mod shared;

use std::io::{IsTerminal as _, stdout};

use serde_json::{Value, json};

use super::{
    CommandContext, called, items,
    rounds::to_the_second,
    shared::{confirm::is_wanted, pages::PagedList},
    templates,
};
use crate::{
    args::{
        DeleteWorkflowArgs, DeleteWorkflowVersionArgs, GetWorkflowArgs, ListWorkflowsArgs,
        SearchWorkflowsArgs, WorkflowNameArgs, WorkflowsCommand,
    },
    client::{ApiCall, path, query},
    failure::CliFailure,
    output::{
        Output, OutputFormat,
        table::{cell, fields, said, table, word},
    },
};

const ROUTE: &str = "/v1/workflows";

pub(super) async fn run(context: &CommandContext, command: WorkflowsCommand) -> anyhow::Result<u8> {
    match command {
        WorkflowsCommand::List(args) => list(context, args).await,
        WorkflowsCommand::Search(args) => search(context, &args).await,
        WorkflowsCommand::Get(args) => get(context, &args).await,
        WorkflowsCommand::Publish(args) => Box::pin(publish::publish(context, &args)).await,
        WorkflowsCommand::PutFile(args) => Box::pin(publish::put_file(context, &args)).await,
        WorkflowsCommand::RmFile(args) => Box::pin(publish::rm_file(context, &args)).await,
        WorkflowsCommand::Lineage(args) => lineage(context, &args).await,
        WorkflowsCommand::Archive(args) => change(context, &args, ("archive", "Archived")).await,
        WorkflowsCommand::Unarchive(args) => {
            change(context, &args, ("unarchive", "Unarchived")).await
        }
        WorkflowsCommand::Delete(args) => delete(context, &args).await,
        WorkflowsCommand::DeleteVersion(args) => delete_version(context, &args).await,
        WorkflowsCommand::Grant(args) => shared::grant(context, &args).await,
        WorkflowsCommand::RevokeGrant(args) => shared::revoke(context, &args).await,
        WorkflowsCommand::Grants(args) => shared::list(context, &args).await,
        WorkflowsCommand::Leave(args) => shared::leave(context, &args).await,
        WorkflowsCommand::TransferOwnership(args) => shared::transfer(context, &args).await,
        WorkflowsCommand::Teach(args) => {
            instructions(context, (&args.workflow, "teach"), None).await
        }
        WorkflowsCommand::Audit(args) => {
            instructions(context, (&args.workflow, "audit"), None).await
        }
        WorkflowsCommand::Optimize(args) => {
            let of = (args.named.workflow.as_str(), "optimize");
            instructions(context, of, args.max_iterations).await
        }
        WorkflowsCommand::OptimizeDescription(args) => {
            let of = (args.named.workflow.as_str(), "optimize-description");
            instructions(context, of, args.max_iterations).await
        }
        WorkflowsCommand::CheckSafety(args) => {
            let address = path(ROUTE, &[&args.workflow, "safety-check"]);
            templates::check_safety(context, address).await
        }
        WorkflowsCommand::RunChecks(args) => Box::pin(checks::run(context, &args)).await,
    }
}

/// Instructions for an agent that works on one workflow.
async fn instructions(
    context: &CommandContext,
    (workflow, what): (&str, &str),
    iterations: Option<u32>,
) -> anyhow::Result<u8> {
    let iterations = iterations.map(|count| count.to_string());
    let address = query(&path(ROUTE, &[workflow, what]), &[("max_iterations", iterations)]);
    templates::instructions(context, ApiCall::post(address, json!({}))).await
}

async fn list(context: &CommandContext, args: ListWorkflowsArgs) -> anyhow::Result<u8> {
    // What reads a pipe is a program.
    let is_json =
        context.out.format == OutputFormat::Json || !(args.list.table || stdout().is_terminal());
    let parameters = [
        ("filter", args.filter),
        ("tag", args.tag),
        ("search", args.search),
        ("include_archived", args.include_archived.then(|| "true".to_owned())),
        ("limit", Some(args.list.limit.to_string())),
        ("cursor", args.list.cursor),
    ];
    let mut pages = PagedList::new(ROUTE, &parameters);
    let all = args.list.all;
    let body = context.with_client(async |client| pages.read(client, all).await).await?;
    if is_json {
        context.out.data(&body.to_string())?;
        return Ok(0);
    }
    context.out.text(&workflows_table(context.out, &body))?;
    context.note_page(&body, "no workflows yet: see `jurat workflows publish --help`");
    Ok(0)
}

fn workflows_table(out: Output, body: &Value) -> String {
    let rows = items(body).iter().map(|item| {
        let state = if item["archived_at"].is_null() { "" } else { "archived" };
        vec![
            cell(&called(item, "slug")),
            cell(&item["current_version"]),
            cell(&item["effective_role"]),
            word(&json!(state)),
            cell(&item["description"]),
            cell(&json!(to_the_second(&item["updated_at"]))),
            cell(&item["id"]),
        ]
    });
    let header = ["name", "version", "role", "", "description", "updated", "id"];
    table(out, &header, rows.collect())
}

async fn search(context: &CommandContext, args: &SearchWorkflowsArgs) -> anyhow::Result<u8> {
    let mut body = json!({ "query": args.query });
    for (name, value) in
        [("filter", json!(args.filter)), ("tag", json!(args.tag)), ("limit", json!(args.limit))]
    {
        if !value.is_null() {
            body[name] = value;
        }
    }
    let reply = context.send(ApiCall::post(format!("{ROUTE}/search"), body)).await?;
    context.out.reply(&reply, |out| {
        let rows = items(&reply.value).iter().map(|item| {
            vec![
                cell(&item["rank"]),
                cell(&called(item, "slug")),
                cell(&item["match_reason"]),
                cell(&item["description"]),
                cell(&item["id"]),
            ]
        });
        table(out, &["rank", "name", "found in", "description", "id"], rows.collect())
    })?;
    context.note_page(&reply.value, "no workflows match");
    Ok(0)
}

async fn get(context: &CommandContext, args: &GetWorkflowArgs) -> anyhow::Result<u8> {
    let version = args.version.map(|version| version.to_string());
    let address = query(&path(ROUTE, &[&args.named.workflow]), &[("version", version)]);
    let reply = context.send(ApiCall::get(address)).await?;
    let body = reply.value["body"].as_str().unwrap_or_default();
    if let Some(file) = &args.output {
        std::fs::write(file, body).map_err(|error| {
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
    let reply = context.send(ApiCall::get(path(ROUTE, &[&args.workflow, "lineage"]))).await?;
    context.out.reply(&reply, |_| {
        let body = &reply.value;
        if body["parent_template_id"].is_null() {
            return "not forked from a template".to_owned();
        }
        fields(&[
            ("template", said(&body["parent_template_id"])),
            ("version", said(&body["parent_template_version"])),
            ("newest version", said(&body["upstream_latest_version"])),
            ("state", said(&body["parent_source_status"])),
        ])
    })?;
    Ok(0)
}

async fn change(
    context: &CommandContext,
    args: &WorkflowNameArgs,
    (what, done): (&str, &str),
) -> anyhow::Result<u8> {
    let call = ApiCall::post(path(ROUTE, &[&args.workflow, what]), json!({}));
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || format!("{done} {}", said(&reply.value["name"])))?;
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
    let reply = context.send(ApiCall::delete(path(ROUTE, &[name]))).await?;
    let done = || format!("Permanently deleted {}", said(&reply.value["name"]));
    context.out.confirm(&reply, done)?;
    Ok(0)
}

async fn delete_version(
    context: &CommandContext,
    args: &DeleteWorkflowVersionArgs,
) -> anyhow::Result<u8> {
    let (name, version) = (&args.named.workflow, args.version.to_string());
    let question = format!("Delete version {version} of {name}? This cannot be undone.");
    if !is_wanted(args.yes, &question)? {
        context.out.note("nothing was deleted");
        return Ok(0);
    }
    let call = ApiCall::delete(path(ROUTE, &[name, "versions", &version]));
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || format!("Permanently deleted version {version} of {name}"))?;
    Ok(0)
}
