//! `jurat workflows`.

mod checks;
mod folder;
mod publish;
mod shared;

use std::io::{IsTerminal as _, stdout};

use serde_json::{Value, json};

use super::{
    Context, called, confirm::is_wanted, items, pages::Pages, rounds::to_the_second, templates,
};
use crate::{
    args::{
        DeleteWorkflow, DeleteWorkflowVersion, GetWorkflow, ListWorkflows, NamedWorkflow,
        SearchWorkflows, Workflows,
    },
    client::{Call, path, query},
    failure::Failure,
    output::{
        Format, Output,
        table::{cell, fields, said, table, word},
    },
};

const ROUTE: &str = "/v1/workflows";

pub(super) async fn run(context: &Context, command: Workflows) -> anyhow::Result<u8> {
    match command {
        Workflows::List(args) => list(context, args).await,
        Workflows::Search(args) => search(context, &args).await,
        Workflows::Get(args) => get(context, &args).await,
        Workflows::Publish(args) => Box::pin(publish::publish(context, &args)).await,
        Workflows::PutFile(args) => Box::pin(publish::put_file(context, &args)).await,
        Workflows::RmFile(args) => Box::pin(publish::rm_file(context, &args)).await,
        Workflows::Lineage(args) => lineage(context, &args).await,
        Workflows::Archive(args) => change(context, &args, ("archive", "Archived")).await,
        Workflows::Unarchive(args) => change(context, &args, ("unarchive", "Unarchived")).await,
        Workflows::Delete(args) => delete(context, &args).await,
        Workflows::DeleteVersion(args) => delete_version(context, &args).await,
        Workflows::Grant(args) => shared::grant(context, &args).await,
        Workflows::RevokeGrant(args) => shared::revoke(context, &args).await,
        Workflows::Grants(args) => shared::list(context, &args).await,
        Workflows::Leave(args) => shared::leave(context, &args).await,
        Workflows::TransferOwnership(args) => shared::transfer(context, &args).await,
        Workflows::Teach(args) => instructions(context, (&args.workflow, "teach"), None).await,
        Workflows::Audit(args) => instructions(context, (&args.workflow, "audit"), None).await,
        Workflows::Optimize(args) => {
            let of = (args.named.workflow.as_str(), "optimize");
            instructions(context, of, args.max_iterations).await
        }
        Workflows::OptimizeDescription(args) => {
            let of = (args.named.workflow.as_str(), "optimize-description");
            instructions(context, of, args.max_iterations).await
        }
        Workflows::CheckSafety(args) => {
            let address = path(ROUTE, &[&args.workflow, "safety-check"]);
            templates::check_safety(context, address).await
        }
        Workflows::RunChecks(args) => Box::pin(checks::run(context, &args)).await,
    }
}

/// Instructions for an agent that works on one workflow.
async fn instructions(
    context: &Context,
    (workflow, what): (&str, &str),
    iterations: Option<u32>,
) -> anyhow::Result<u8> {
    let iterations = iterations.map(|count| count.to_string());
    let address = query(&path(ROUTE, &[workflow, what]), &[("max_iterations", iterations)]);
    templates::instructions(context, Call::post(address, json!({}))).await
}

async fn list(context: &Context, args: ListWorkflows) -> anyhow::Result<u8> {
    // What reads a pipe is a program.
    let is_json =
        context.out.format == Format::Json || !(args.list.table || stdout().is_terminal());
    let parameters = [
        ("filter", args.filter),
        ("tag", args.tag),
        ("search", args.search),
        ("include_archived", args.include_archived.then(|| "true".to_owned())),
        ("limit", Some(args.list.limit.to_string())),
        ("cursor", args.list.cursor),
    ];
    let mut pages = Pages::new(ROUTE, &parameters);
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

async fn search(context: &Context, args: &SearchWorkflows) -> anyhow::Result<u8> {
    let mut body = json!({ "query": args.query });
    for (name, value) in
        [("filter", json!(args.filter)), ("tag", json!(args.tag)), ("limit", json!(args.limit))]
    {
        if !value.is_null() {
            body[name] = value;
        }
    }
    let reply = context.send(Call::post(format!("{ROUTE}/search"), body)).await?;
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

async fn get(context: &Context, args: &GetWorkflow) -> anyhow::Result<u8> {
    let version = args.version.map(|version| version.to_string());
    let address = query(&path(ROUTE, &[&args.named.workflow]), &[("version", version)]);
    let reply = context.send(Call::get(address)).await?;
    let body = reply.value["body"].as_str().unwrap_or_default();
    if let Some(file) = &args.output {
        std::fs::write(file, body).map_err(|error| {
            Failure::usage(format!("`--output {}` cannot be written: {error}", file.display()))
        })?;
        context.out.note(&format!("wrote {}", file.display()));
        return Ok(0);
    }
    match context.out.format {
        Format::Json => context.out.reply(&reply, |_| String::new())?,
        Format::Text => context.out.document(body.trim_end())?,
    }
    Ok(0)
}

async fn lineage(context: &Context, args: &NamedWorkflow) -> anyhow::Result<u8> {
    let reply = context.send(Call::get(path(ROUTE, &[&args.workflow, "lineage"]))).await?;
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
    context: &Context,
    args: &NamedWorkflow,
    (what, done): (&str, &str),
) -> anyhow::Result<u8> {
    let call = Call::post(path(ROUTE, &[&args.workflow, what]), json!({}));
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || format!("{done} {}", said(&reply.value["name"])))?;
    Ok(0)
}

async fn delete(context: &Context, args: &DeleteWorkflow) -> anyhow::Result<u8> {
    let name = &args.named.workflow;
    let question = format!(
        "Delete the workflow {name} and all its versions and files? This cannot be undone."
    );
    if !is_wanted(args.yes, &question)? {
        context.out.note("nothing was deleted");
        return Ok(0);
    }
    let reply = context.send(Call::delete(path(ROUTE, &[name]))).await?;
    let done = || format!("Permanently deleted {}", said(&reply.value["name"]));
    context.out.confirm(&reply, done)?;
    Ok(0)
}

async fn delete_version(context: &Context, args: &DeleteWorkflowVersion) -> anyhow::Result<u8> {
    let (name, version) = (&args.named.workflow, args.version.to_string());
    let question = format!("Delete version {version} of {name}? This cannot be undone.");
    if !is_wanted(args.yes, &question)? {
        context.out.note("nothing was deleted");
        return Ok(0);
    }
    let call = Call::delete(path(ROUTE, &[name, "versions", &version]));
    let reply = context.send(call).await?;
    context.out.confirm(&reply, || format!("Permanently deleted version {version} of {name}"))?;
    Ok(0)
}
