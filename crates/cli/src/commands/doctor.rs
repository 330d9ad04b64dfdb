//! `jurat doctor`: what is wrong with an installation, and what to do about it.

pub(crate) mod args;
mod disk;
mod entries;
mod files;
mod local;
mod store;

use comfy_table::Cell;
use jurat_core::checkup::{CheckupFinding, CheckupLevel, clocks};
use jurat_engine::{Clock as _, SystemClock};
use jurat_wire::api::doctor::{finding, worst};
use serde_json::{Value, json};

use self::entries::EntriesCheck;
use super::CommandContext;
use crate::{
    args::DoctorArgs,
    client::{ApiCall, ApiClient},
    failure::{ERROR, sentence},
    output::{
        Output, OutputFormat, counted, shortened,
        table::{said, table, word},
    },
};

/// A detail may quote what an executor said.
const WIDEST_DETAIL: usize = 400;

pub(super) async fn run(context: &CommandContext, args: &DoctorArgs) -> anyhow::Result<u8> {
    let mut findings = local::settings(&context.config);
    if context.config.server.is_none() {
        findings.extend(local::machine(&context.config));
    }
    let mut checks: Vec<Value> = findings.iter().map(finding).collect();
    let mut entries = EntriesCheck::default();
    if let Some(found) = store::unopened(&context.config) {
        checks.push(finding(&found));
    } else if let Err(error) = Box::pin(ask(context, args, &mut checks, &mut entries)).await {
        let advice = "Fix this first; the remaining checks could not run.";
        checks.push(finding(&CheckupFinding::problem("store", sentence(&error), advice)));
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

/// What the server finds, or the same code in this process.
async fn ask(
    context: &CommandContext,
    args: &DoctorArgs,
    checks: &mut Vec<Value>,
    entries: &mut EntriesCheck,
) -> anyhow::Result<()> {
    let client = ApiClient::connect(&context.config, context.out).await?;
    let asked = async {
        let reply = client.send(ApiCall::get("/v1/doctor".to_owned())).await?.success()?;
        if let Some(date) = reply.date {
            checks.push(finding(&clocks("the server", SystemClock.now(), date)));
        }
        checks.extend(reply.value["checks"].as_array().cloned().unwrap_or_default());
        let total = reply.value["ended_rounds"].as_u64().unwrap_or(0);
        entries.check_all(context.out, &client, (total, args)).await?;
        checks.extend(entries.findings().iter().map(finding));
        anyhow::Ok(())
    }
    .await;
    client.close().await;
    asked
}

/// The worst status of all; one that is not known is none to be calm about.
fn worst_of(checks: &[Value]) -> &'static str {
    let level = |check: &Value| match check["status"].as_str() {
        Some("ok") => CheckupLevel::Ok,
        Some("warning") => CheckupLevel::Warning,
        Some(_) | None => CheckupLevel::Problem,
    };
    checks.iter().map(level).max().unwrap_or(CheckupLevel::Ok).as_str()
}

fn shown(out: Output, checks: &[Value]) -> String {
    let rows = checks.iter().map(|check| {
        let mut text = shortened(check["detail"].as_str().unwrap_or_default(), WIDEST_DETAIL);
        if let Some(advice) = check["advice"].as_str() {
            text.push_str("\n→ ");
            text.push_str(&shortened(advice, WIDEST_DETAIL));
        }
        vec![word(&check["status"]), Cell::new(said(&check["check"])), Cell::new(text)]
    });
    let list = table(out, &["status", "check", "finding"], rows.collect());
    let count = |word: &str| checks.iter().filter(|check| check["status"] == word).count();
    let (warnings, problems) = (count("warning"), count("problem"));
    let [warnings, problems] = [counted(warnings, "warning"), counted(problems, "problem")];
    format!("{list}\n{}, {warnings}, {problems}", counted(checks.len(), "check"))
}

/// One finding for several: the worst of them all, or one that is well.
fn or_healthy(
    found: Vec<CheckupFinding>,
    check: &'static str,
    well: impl Into<String>,
) -> Vec<CheckupFinding> {
    if worst(&found) == CheckupLevel::Ok { vec![CheckupFinding::ok(check, well)] } else { found }
}
