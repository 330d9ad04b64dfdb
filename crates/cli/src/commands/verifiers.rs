//! `jurat verifiers`.

pub(crate) mod args;
mod cases;
mod deploy;
mod diff;
mod measure;
pub(crate) mod measure_args;
mod remove;
mod run;
mod runs;
mod show;
mod show_cases;
mod show_diff;
mod show_measurement;
pub(crate) mod show_run;
mod threshold;

use std::io::{IsTerminal as _, stdout};

use serde_json::{Value, json};

use super::{CommandContext, called, items, rounds::to_the_second, shared::pages::PagedList};
use crate::{
    args::{ListVerifiersArgs, ListVersionsArgs, VerifierVersionArgs, VerifiersCommand},
    client::{ApiCall, path, query},
    output::{
        Output, OutputFormat,
        table::{cell, table, word},
    },
};

const ROUTE: &str = "/v1/verifiers";
const VERIFIER_RUNS_ROUTE: &str = "/v1/verifier-runs";

pub(super) async fn run(context: &CommandContext, command: VerifiersCommand) -> anyhow::Result<u8> {
    match command {
        VerifiersCommand::Deploy(args) => Box::pin(deploy::run(context, &args)).await,
        VerifiersCommand::List(args) => list(context, args).await,
        VerifiersCommand::Show(args) => show(context, &args).await,
        VerifiersCommand::Run(args) => Box::pin(run::run(context, &args)).await,
        VerifiersCommand::Revoke(args) => remove::revoke(context, &args).await,
        VerifiersCommand::Delete(args) => remove::delete(context, &args).await,
        VerifiersCommand::Versions(args) => versions(context, args).await,
        VerifiersCommand::Diff(args) => diff::run(context, &args).await,
        VerifiersCommand::Runs(args) => runs::run(context, *args).await,
        VerifiersCommand::Test(args) => Box::pin(measure::test(context, &args)).await,
        VerifiersCommand::Attack(args) => Box::pin(measure::attack(context, &args)).await,
    }
}

async fn list(context: &CommandContext, args: ListVerifiersArgs) -> anyhow::Result<u8> {
    // What reads a pipe is a program.
    let is_json =
        context.out.format == OutputFormat::Json || !(args.table || stdout().is_terminal());
    let parameters = [("limit", Some(args.limit.to_string())), ("cursor", args.cursor)];
    let mut pages = PagedList::new(ROUTE, &parameters);
    let body = context.with_client(async |client| pages.read(client, args.all).await).await?;
    if is_json {
        context.out.data(&body.to_string())?;
        return Ok(0);
    }
    let rows = items(&body).iter().map(|item| {
        vec![
            cell(&called(item, "name")),
            cell(&item["current_version"]),
            cell(&item["role"]),
            cell(&item["description"]),
            cell(&json!(to_the_second(&item["updated_at"]))),
            cell(&item["verifier_id"]),
        ]
    });
    let header = ["name", "version", "role", "description", "updated", "id"];
    context.out.text(&table(context.out, &header, rows.collect()))?;
    context.note_page(&body, "no verifiers yet: see `jurat verifiers deploy --help`");
    Ok(0)
}

async fn show(context: &CommandContext, args: &VerifierVersionArgs) -> anyhow::Result<u8> {
    let reply = context.send(ApiCall::get(version_path(&args.verifier, args.version))).await?;
    context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
    Ok(0)
}

fn version_path(verifier: &str, version: Option<u32>) -> String {
    let version = version.map(|version| version.to_string());
    query(&path(ROUTE, &[verifier]), &[("version", version)])
}

async fn versions(context: &CommandContext, args: ListVersionsArgs) -> anyhow::Result<u8> {
    let route = path(ROUTE, &[&args.verifier, "versions"]);
    let reply = context.list(&route, &[], args.list).await?;
    context.out.reply(&reply, |out| versions_table(out, &reply.value))?;
    context.note_page(&reply.value, "no versions");
    Ok(0)
}

fn versions_table(out: Output, body: &Value) -> String {
    let rows = items(body).iter().map(|item| {
        let state = if item["is_current"] == true { "current" } else { "" };
        vec![
            cell(&item["version"]),
            word(&json!(state)),
            cell(&json!(to_the_second(&item["created_at"]))),
            cell(&json!(show::short_hash(&item["config_hash"]))),
            cell(&item["description"]),
        ]
    });
    table(out, &["version", "", "deployed", "config", "description"], rows.collect())
}
