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

use jurat_client::verifiers;
use jurat_wire::api::verifiers::{ListedVerifier, VersionBody};

use super::{CommandContext, called, shared::pages::PagedList, to_the_second};
use crate::{
    args::{ListVerifiersArgs, ListVersionsArgs, VerifierVersionArgs, VerifiersCommand},
    client::{Page, Reply},
    output::{
        Output, OutputFormat,
        table::{cell, table, word},
    },
};

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
    // A program reads from a pipe, so it gets JSON.
    let is_json =
        context.out.format == OutputFormat::Json || !(args.table || stdout().is_terminal());
    let mut pages = PagedList::new(verifiers::list(), args.limit, args.cursor);
    let reply: Reply<Page<ListedVerifier<'_>>> =
        context.with_client(async |client| pages.read(client, args.all).await).await?;
    if is_json {
        context.out.data(&reply.document().to_string())?;
        return Ok(0);
    }
    let rows = reply.value.items.iter().map(|verifier| {
        vec![
            cell(&called(verifier.owner.as_deref(), &verifier.name)),
            cell(&verifier.current_version),
            cell(&verifier.role),
            cell(&verifier.description),
            cell(&to_the_second(verifier.updated_at)),
            cell(&verifier.verifier_id),
        ]
    });
    let header = ["name", "version", "role", "description", "updated", "id"];
    context.out.text(&table(context.out, &header, rows.collect()))?;
    context.note_page(&reply.value, "no verifiers yet: see `jurat verifiers deploy --help`");
    Ok(0)
}

async fn show(context: &CommandContext, args: &VerifierVersionArgs) -> anyhow::Result<u8> {
    let reply = context.send(verifiers::show(&args.verifier, args.version)).await?;
    context.out.reply(&reply, |out| show::shown(out, &reply.value))?;
    Ok(0)
}

async fn versions(context: &CommandContext, args: ListVersionsArgs) -> anyhow::Result<u8> {
    let reply = context.list(verifiers::versions(&args.verifier), args.list).await?;
    context.out.reply(&reply, |out| versions_table(out, &reply.value.items))?;
    context.note_page(&reply.value, "no versions");
    Ok(0)
}

fn versions_table(out: Output, versions: &[VersionBody<'_>]) -> String {
    let rows = versions.iter().map(|version| {
        let state = if version.is_current { "current" } else { "" };
        vec![
            cell(&version.version),
            word(state),
            cell(&to_the_second(version.created_at)),
            cell(&show::short_hash(&version.config_hash)),
            cell(&version.description),
        ]
    });
    table(out, &["version", "", "deployed", "config", "description"], rows.collect())
}
