//! `jurat templates` and `jurat design`.

pub(crate) mod args;

use std::{
    io::{IsTerminal as _, stdout},
    path::Path,
};

use serde_json::{Value, json};

use super::{
    CommandContext, items,
    rounds::to_the_second,
    shared::{confirm::is_wanted, pages::PagedList},
};
use crate::{
    args::{
        ForkTemplateArgs, GetTemplateArgs, GetTemplateFileArgs, ListTemplatesArgs,
        PublishTemplateArgs, RemoveTemplateArgs, RemoveTemplateVersionArgs, SearchTemplatesArgs,
        TemplateVersionArgs, TemplatesCommand,
    },
    client::{ApiCall, ApiReply, path, query},
    output::{
        Output, OutputFormat,
        table::{cell, fields, said, table, whole_text, word},
    },
};

const ROUTE: &str = "/v1/templates";

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
            numbered(context, &args, ApiCall::delete, ("", "Unpublished")).await
        }
        TemplatesCommand::DeleteVersion(args) => delete_version(context, &args).await,
        TemplatesCommand::DeprecateVersion(args) => {
            let body = json!({ "message": args.message });
            let post = |address: String| ApiCall::post(address, body);
            numbered(context, &args.numbered, post, ("/deprecate", "Deprecated")).await
        }
        TemplatesCommand::Archive(args) => {
            let body = json!({ "archive_reason": args.reason });
            change(context, (&args.named.template, "archive"), body, "Archived").await
        }
        TemplatesCommand::Unarchive(args) => {
            change(context, (&args.template, "unarchive"), json!({}), "Unarchived").await
        }
        TemplatesCommand::Lineage(args) => lineage(context, &args.workflow).await,
        TemplatesCommand::CheckSafety(args) => {
            let version = args.version.map(|version| version.to_string());
            let address =
                query(&of(&args.named.template, "/safety-check"), &[("version", version)]);
            check_safety(context, address).await
        }
        TemplatesCommand::TransferOwnership(args) => {
            let body = json!({ "new_owner_user_id_or_email": args.new_owner });
            let address = of(&args.named.template, "/transfer-ownership");
            let reply = context.send(ApiCall::post(address, body)).await?;
            context.out.confirm(&reply, || {
                let (label, to) = (said(&reply.value["target_label"]), &args.new_owner);
                if reply.value["invitation_id"].is_null() {
                    return format!("{label} is already yours");
                }
                format!(
                    "Offered {label} to {to} (invitation_id={})",
                    said(&reply.value["invitation_id"])
                )
            })?;
            Ok(0)
        }
    }
}

/// The address of a template. The slash of its name is sent as it is.
fn of(template: &str, rest: &str) -> String {
    let parts: Vec<&str> = template.splitn(2, '/').collect();
    format!("{}{rest}", path(ROUTE, &parts))
}

async fn list(context: &CommandContext, args: ListTemplatesArgs) -> anyhow::Result<u8> {
    // What reads a pipe is a program.
    let is_json =
        context.out.format == OutputFormat::Json || !(args.table || stdout().is_terminal());
    let parameters = [
        ("filter", args.filter),
        ("search", args.search),
        ("include_archived", args.include_archived.then(|| "true".to_owned())),
        ("limit", Some(args.limit.to_string())),
        ("cursor", args.cursor),
    ];
    let mut pages = PagedList::new(ROUTE, &parameters);
    let body = context.with_client(async |client| pages.read(client, args.all).await).await?;
    if is_json {
        context.out.data(&body.to_string())?;
        return Ok(0);
    }
    let rows = items(&body).iter().map(|item| {
        vec![
            cell(&json!(name_of(item))),
            cell(&item["latest_version"]),
            word(&item["safety_verification_status"]),
            cell(&item["name"]),
            cell(&json!(to_the_second(&item["published_at"]))),
        ]
    });
    let header = ["template", "version", "safety", "name", "published"];
    context.out.text(&table(context.out, &header, rows.collect()))?;
    context.note_page(&body, "no templates: see `jurat templates publish --help`");
    Ok(0)
}

fn name_of(item: &Value) -> String {
    format!("@{}/{}", said(&item["handle"]), said(&item["slug"]))
}

async fn search(context: &CommandContext, args: &SearchTemplatesArgs) -> anyhow::Result<u8> {
    let body = json!({ "query": args.query, "filter": args.filter, "limit": args.limit });
    let reply = context.send(ApiCall::post(format!("{ROUTE}/search"), body)).await?;
    context.out.reply(&reply, |out| {
        let rows = items(&reply.value).iter().map(|item| {
            vec![
                cell(&item["rank"]),
                cell(&json!(name_of(item))),
                cell(&item["name"]),
                cell(&item["match_reason"]),
            ]
        });
        table(out, &["rank", "template", "name", "why"], rows.collect())
    })?;
    Ok(0)
}

async fn get(context: &CommandContext, args: &GetTemplateArgs) -> anyhow::Result<u8> {
    let version = args.version.map(|version| version.to_string());
    let address = query(&of(&args.named.template, ""), &[("version", version)]);
    let reply = context.send(ApiCall::get(address)).await?;
    let is_json = context.out.format == OutputFormat::Json;
    let text = if is_json {
        reply.value.to_string()
    } else {
        reply.value["body"].as_str().unwrap_or_default().to_owned()
    };
    write(context, args.output.as_deref(), &text)
}

async fn get_file(context: &CommandContext, args: &GetTemplateFileArgs) -> anyhow::Result<u8> {
    let version = args.version.map(|version| version.to_string());
    let parameters = [("path", Some(args.path.clone())), ("version", version)];
    let address = query(&of(&args.named.template, "/files"), &parameters);
    let reply = context.send(ApiCall::get(address)).await?;
    let content = reply.value["content"].as_str();
    if context.out.format == OutputFormat::Json || content.is_none() {
        return write(context, args.output.as_deref(), &reply.value.to_string());
    }
    write(context, args.output.as_deref(), content.unwrap_or_default())
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
    let body = json!({ "workflow_id": args.workflow, "release_notes": args.release_notes });
    let reply = context.send(ApiCall::post(ROUTE, body)).await?;
    let body = &reply.value;
    context.out.reply(&reply, |_| {
        let design = &body["design_checks"];
        let states = ["outcome", "runnable", "well_formed"]
            .map(|part| format!("{part} {}", said(&design[part])));
        let handle = said(&body["publishing_handle"]);
        fields(&[
            ("published", format!("@{handle}/{}@v{}", said(&body["slug"]), body["version"])),
            ("template", said(&body["template_id"])),
            ("safety", said(&body["safety_verification"]["status"])),
            ("design", states.join(", ")),
        ])
    })?;
    notes(context, body);
    Ok(0)
}

/// What the author should look at, beside what was asked for.
fn notes(context: &CommandContext, body: &Value) {
    for note in body["authoring_notes"].as_array().into_iter().flatten() {
        context.out.note(&whole_text(note));
    }
    for name in ["verifier_exposure_notice", "deprecation_warning"] {
        if !body[name].is_null() {
            context.out.note(&whole_text(&body[name]));
        }
    }
}

async fn fork(context: &CommandContext, args: &ForkTemplateArgs) -> anyhow::Result<u8> {
    let body = json!({
        "identifier": args.named.template, "version": args.version, "name": args.name,
    });
    let reply = context.send(ApiCall::post(format!("{ROUTE}/fork"), body)).await?;
    context.out.confirm(&reply, || {
        let it = &reply.value;
        format!(
            "Forked to {} (workflow_id={}, version_token={})",
            said(&it["slug"]),
            said(&it["workflow_id"]),
            said(&it["version_token"])
        )
    })?;
    notes(context, &reply.value);
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
    let reply = context.send(ApiCall::delete(of(template, ""))).await?;
    context.out.confirm(&reply, || format!("Permanently deleted {template}"))?;
    Ok(0)
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
    let done = ("/permanent", "Permanently deleted");
    numbered(context, &args.numbered, ApiCall::delete, done).await
}

async fn numbered(
    context: &CommandContext,
    args: &TemplateVersionArgs,
    call: impl FnOnce(String) -> ApiCall,
    (rest, done): (&str, &str),
) -> anyhow::Result<u8> {
    let TemplateVersionArgs { named, version } = args;
    let address = of(&named.template, &format!("/versions/{version}{rest}"));
    let reply = context.send(call(address)).await?;
    context.out.confirm(&reply, || format!("{done} {} version {version}", named.template))?;
    Ok(0)
}

async fn change(
    context: &CommandContext,
    (template, what): (&str, &str),
    body: Value,
    done: &str,
) -> anyhow::Result<u8> {
    let reply = context.send(ApiCall::post(of(template, &format!("/{what}")), body)).await?;
    context.out.confirm(&reply, || format!("{done} {template}"))?;
    Ok(0)
}

async fn lineage(context: &CommandContext, workflow: &str) -> anyhow::Result<u8> {
    let address = path("/v1/workflows", &[workflow, "lineage"]);
    let reply = context.send(ApiCall::get(address)).await?;
    context.out.reply(&reply, |_| {
        let it = &reply.value;
        if it["parent_template_id"].is_null() {
            return "not forked from a template".to_owned();
        }
        fields(&[
            ("template", said(&it["parent_template_id"])),
            ("version", it["parent_template_version"].to_string()),
            ("newest", it["upstream_latest_version"].to_string()),
            ("state", said(&it["parent_source_status"])),
        ])
    })?;
    Ok(0)
}

/// Has something screened; what is blocked, or could not be judged, exits with 1.
pub(super) async fn check_safety(context: &CommandContext, address: String) -> anyhow::Result<u8> {
    let reply = context.send(ApiCall::post(address, json!({}))).await?;
    context.out.reply(&reply, |out| screened(out, &reply))?;
    Ok(match reply.value["status"].as_str() {
        Some("clean" | "flagged") => 0,
        _ => 1,
    })
}

fn screened(_: Output, reply: &ApiReply) -> String {
    let it = &reply.value;
    let side = |name: &str| {
        format!("{}: {}", said(&it[name]["verdict"]), whole_text(&it[name]["reasoning"]))
    };
    fields(&[
        ("status", said(&it["status"])),
        ("block", side("block")),
        ("advisory", side("advisory")),
    ])
}

/// Instructions for an agent, as markdown with the texts that they refer to behind them.
pub(super) async fn instructions(context: &CommandContext, call: ApiCall) -> anyhow::Result<u8> {
    let reply = context.send(call).await?;
    if context.out.format == OutputFormat::Json {
        context.out.data(&reply.value.to_string())?;
        return Ok(0);
    }
    let mut text = reply.value["skill_md"].as_str().unwrap_or_default().to_owned();
    for (path, reference) in reply.value["references"].as_object().into_iter().flatten() {
        text.push_str("\n---\n\n<!-- ");
        text.push_str(path);
        text.push_str(" -->\n\n");
        text.push_str(reference.as_str().unwrap_or_default());
    }
    context.out.document(&text)?;
    Ok(0)
}
