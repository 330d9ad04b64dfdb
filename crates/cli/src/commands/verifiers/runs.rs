//! `jurat verifiers runs`.

use std::collections::BTreeMap;

use jurat_client::{
    verifier_runs::{self, RunListQuery},
    verifiers,
};
use jurat_wire::api::verifier_runs::VerifierRunBody;
use serde_json::Value;

use super::show_run;
use super::{CommandContext, PagedList, to_the_second};
use crate::{
    args::{ListArgs, ListVerifierRunsArgs, VerifierRunsArgs, VerifierRunsCommand},
    output::{
        Output, OutputFormat,
        table::{cell, table, word},
    },
};

pub(super) async fn run(context: &CommandContext, args: VerifierRunsArgs) -> anyhow::Result<u8> {
    match args.command {
        Some(VerifierRunsCommand::Show { run }) => {
            let reply = context.send(verifier_runs::show(&run)).await?;
            context.out.reply(&reply, |out| show_run::shown(out, &reply.value))?;
            Ok(0)
        }
        None => list(context, args.list).await,
    }
}

async fn list(context: &CommandContext, args: ListVerifierRunsArgs) -> anyhow::Result<u8> {
    let is_named = args.verifier.is_some();
    let call = verifier_runs::list(&RunListQuery {
        // A filter and not a path: a revoked verifier has runs, but no address of its own any more.
        verifier: args.verifier,
        verdict: args.verdict,
        purpose: args.purpose,
        version: args.version,
        since: args.since,
        until: args.until,
    });
    if args.jsonl {
        return export(context, PagedList::whole(call)).await;
    }
    let reply = context.list(call, args.list).await?;
    let is_table = context.out.format == OutputFormat::Text && !is_named;
    let names = if is_table { Some(names(context).await) } else { None };
    let runs = &reply.value.items;
    context.out.reply(&reply, |out| verifier_runs_table(out, runs, names.as_ref()))?;
    context.note_page(&reply.value, "no runs match");
    Ok(0)
}

/// Prints each page as it arrives, so a long history needs little memory.
async fn export(context: &CommandContext, mut pages: PagedList) -> anyhow::Result<u8> {
    let out = context.out;
    let export = async |client: &_| {
        loop {
            let page = pages.next(client).await?;
            let lines: Vec<String> = page.items.iter().map(Value::to_string).collect();
            if !lines.is_empty() {
                out.data(&lines.join("\n"))?;
            }
            if !pages.has_more() {
                return anyhow::Ok(0);
            }
        }
    };
    context.with_client(export).await
}

/// The names of the verifiers by id. Only the id of a revoked or deleted verifier is known.
async fn names(context: &CommandContext) -> BTreeMap<String, String> {
    let every = ListArgs { limit: None, cursor: None, all: true };
    let reply = context.list(verifiers::list(), every).await;
    let verifiers = reply.map(|reply| reply.value.items).unwrap_or_default();
    verifiers.into_iter().map(|it| (it.verifier_id.into_owned(), it.name.into_owned())).collect()
}

/// The runs as a table, with the names of verifiers unless all runs are of one verifier.
fn verifier_runs_table(
    out: Output,
    runs: &[VerifierRunBody<'_>],
    names: Option<&BTreeMap<String, String>>,
) -> String {
    let rows = runs.iter().map(|run| {
        let mut row = vec![
            cell(&run.verifier_run_id),
            word(show_run::verdict(run)),
            cell(&run.version),
            cell(&run.purpose),
            cell(&to_the_second(run.created_at)),
            cell(&format!("{} ms", run.duration_ms)),
            cell(&run.cost_usd),
        ];
        if let Some(names) = names {
            let id = run.verifier_id.as_ref();
            row.insert(2, cell(names.get(id).map_or(id, String::as_str)));
        }
        row
    });
    let mut header = vec!["run", "verdict", "version", "purpose", "started", "took", "cost"];
    if names.is_some() {
        header.insert(2, "verifier");
    }
    table(out, &header, rows.collect())
}
