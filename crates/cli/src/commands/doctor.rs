//! `jurat doctor`: finds problems with an installation, and suggests fixes.

pub(crate) mod args;
mod disk;
mod entries;
mod files;
mod local;
mod peers;
mod store;

use comfy_table::Cell;
use jurat_client::node;
use jurat_core::checkup::{CheckupFinding, CheckupLevel, clocks};
use jurat_engine::{Clock as _, SystemClock};
use jurat_wire::api::doctor::{CheckupFindingBody, finding, worst};
use serde_json::json;

use self::entries::{EntriesCheck, EntriesWanted};
use super::CommandContext;
use crate::{
    args::DoctorArgs,
    client::ApiClient,
    failure::{ERROR, sentence},
    output::{
        Output, OutputFormat, counted, shortened,
        table::{said, table, word},
    },
};

/// Maximum length of a detail, which may quote an executor.
const WIDEST_DETAIL: usize = 400;

pub(super) async fn run(context: &CommandContext, args: &DoctorArgs) -> anyhow::Result<u8> {
    let mut findings = local::settings(&context.config);
    if context.config.server.is_none() {
        findings.extend(local::machine(&context.config));
    }
    let mut checks: Vec<CheckupFindingBody<'_>> = findings.iter().map(finding).collect();
    let mut entries = EntriesCheck::default();
    if let Some(found) = store::unopened(&context.config) {
        checks.push(finding(&found).into_owned());
    } else if let Err(error) = Box::pin(ask(context, args, &mut checks, &mut entries)).await {
        let advice = "Fix this first; the remaining checks could not run.";
        checks.push(
            finding(&CheckupFinding::problem("store", sentence(&error), advice)).into_owned(),
        );
    }
    let status = worst_of(&checks);
    match context.out.format {
        OutputFormat::Json => {
            let body = json!({ "status": status, "checks": checks, "entries": entries.body() });
            context.out.data(&body.to_string())?;
        }
        OutputFormat::Text => context.out.text(&shown(context.out, &checks))?,
    }
    Ok(if status == CheckupLevel::Problem.as_str() { ERROR } else { 0 })
}

/// Adds the findings of the server, or of the same code in this process.
async fn ask(
    context: &CommandContext,
    args: &DoctorArgs,
    checks: &mut Vec<CheckupFindingBody<'_>>,
    entries: &mut EntriesCheck,
) -> anyhow::Result<()> {
    let client = ApiClient::connect(&context.config, context.out).await?;
    let asked = async {
        let reply = client.send(node::doctor()).await?;
        if let Some(date) = reply.date {
            checks.push(finding(&clocks("the server", SystemClock.now(), date)).into_owned());
        }
        checks.extend(reply.value.checks);
        checks.extend(peers::check(&client).await?.iter().map(|it| finding(it).into_owned()));
        let total = reply.value.ended_rounds;
        entries
            .check_all(context.out, &client, EntriesWanted { total, all: args.all_entries })
            .await?;
        checks.extend(entries.findings().iter().map(|it| finding(it).into_owned()));
        anyhow::Ok(())
    }
    .await;
    client.close().await;
    asked
}

/// The worst status of all checks; an unknown status counts as a problem.
fn worst_of(checks: &[CheckupFindingBody<'_>]) -> &'static str {
    let level = |check: &CheckupFindingBody<'_>| match check.status.as_ref() {
        "ok" => CheckupLevel::Ok,
        "warning" => CheckupLevel::Warning,
        _ => CheckupLevel::Problem,
    };
    checks.iter().map(level).max().unwrap_or(CheckupLevel::Ok).as_str()
}

fn shown(out: Output, checks: &[CheckupFindingBody<'_>]) -> String {
    let rows = checks.iter().map(|check| {
        let mut text = shortened(&check.detail, WIDEST_DETAIL);
        if let Some(advice) = &check.advice {
            text.push_str("\n→ ");
            text.push_str(&shortened(advice, WIDEST_DETAIL));
        }
        vec![word(&check.status), Cell::new(said(&check.check)), Cell::new(text)]
    });
    let list = table(out, &["status", "check", "finding"], rows.collect());
    let count = |word: &str| checks.iter().filter(|check| check.status == word).count();
    let (warnings, problems) = (count("warning"), count("problem"));
    let [warnings, problems] = [counted(warnings, "warning"), counted(problems, "problem")];
    format!("{list}\n{}, {warnings}, {problems}", counted(checks.len(), "check"))
}

/// The findings, or a single good one if there is nothing to report.
fn or_healthy(
    found: Vec<CheckupFinding>,
    check: &'static str,
    well: impl Into<String>,
) -> Vec<CheckupFinding> {
    if worst(&found) == CheckupLevel::Ok { vec![CheckupFinding::ok(check, well)] } else { found }
}
