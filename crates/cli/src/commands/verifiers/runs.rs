//! `jurat verifiers runs`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::show_run;
use super::{CommandContext, PagedList, ROUTE, VERIFIER_RUNS_ROUTE, items, to_the_second};
use crate::{
    args::{ListArgs, ListVerifierRunsArgs, VerifierRunsArgs, VerifierRunsCommand},
    client::{ApiCall, path},
    output::{
        Output, OutputFormat,
        table::{cell, table, word},
    },
};

/// As many as the server gives at once.
const WHOLE_PAGE: &str = "200";

pub(super) async fn run(context: &CommandContext, args: VerifierRunsArgs) -> anyhow::Result<u8> {
    match args.command {
        Some(VerifierRunsCommand::Show { run }) => {
            let reply = context.send(ApiCall::get(path(VERIFIER_RUNS_ROUTE, &[&run]))).await?;
            context.out.reply(&reply, |out| show_run::shown(out, &reply.value))?;
            Ok(0)
        }
        None => list(context, args.list).await,
    }
}

async fn list(context: &CommandContext, args: ListVerifierRunsArgs) -> anyhow::Result<u8> {
    let is_named = args.verifier.is_some();
    let filters = [
        // Also one that was revoked, which has no address of its own any more.
        ("verifier", args.verifier),
        ("verdict", args.verdict),
        ("purpose", args.purpose),
        ("version", args.version.map(|version| version.to_string())),
        ("since", args.since),
        ("until", args.until),
    ];
    if args.jsonl {
        let parameters = [&filters[..], &[("limit", Some(WHOLE_PAGE.to_owned()))]].concat();
        return export(context, PagedList::new(VERIFIER_RUNS_ROUTE, &parameters)).await;
    }
    let reply = context.list(VERIFIER_RUNS_ROUTE, &filters, args.list).await?;
    let is_table = context.out.format == OutputFormat::Text && !is_named;
    let names = if is_table { names(context).await } else { BTreeMap::new() };
    context.out.reply(&reply, |out| verifier_runs_table(out, &reply.value, (is_named, &names)))?;
    context.note_page(&reply.value, "no runs match");
    Ok(0)
}

/// Each page is printed as it comes, so that a long history needs no memory.
async fn export(context: &CommandContext, mut pages: PagedList) -> anyhow::Result<u8> {
    let out = context.out;
    let export = async |client: &_| {
        loop {
            let page = pages.next(client).await?;
            let lines: Vec<String> = items(&page).iter().map(Value::to_string).collect();
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

/// What people call the verifiers, by their ids. One that is revoked or deleted has only its id.
async fn names(context: &CommandContext) -> BTreeMap<String, Value> {
    let every = ListArgs { limit: None, cursor: None, all: true };
    let reply = context.list(ROUTE, &[], every).await.ok();
    let items = reply.as_ref().map(|reply| items(&reply.value)).unwrap_or_default();
    let name =
        |item: &Value| Some((item["verifier_id"].as_str()?.to_owned(), item["name"].clone()));
    items.iter().filter_map(name).collect()
}

fn verifier_runs_table(
    out: Output,
    body: &Value,
    (is_named, names): (bool, &BTreeMap<String, Value>),
) -> String {
    let rows = items(body).iter().map(|item| {
        let mut row = vec![
            cell(&item["verifier_run_id"]),
            word(&json!(show_run::verdict(item))),
            cell(&item["version"]),
            cell(&item["purpose"]),
            cell(&json!(to_the_second(&item["created_at"]))),
            cell(&json!(format!("{} ms", item["duration_ms"]))),
            cell(&item["cost_usd"]),
        ];
        if !is_named {
            let id = &item["verifier_id"];
            let name = id.as_str().and_then(|id| names.get(id));
            row.insert(2, cell(name.unwrap_or(id)));
        }
        row
    });
    let mut header = vec!["run", "verdict", "version", "purpose", "started", "took", "cost"];
    if !is_named {
        header.insert(2, "verifier");
    }
    table(out, &header, rows.collect())
}
