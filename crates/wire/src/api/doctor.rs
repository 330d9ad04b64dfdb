//! The resource `/v1/doctor`.

use jurat_core::{
    checkup::{CheckupFinding, CheckupLevel},
    id::{AccountId, RoundId},
};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Result of a health check of the installation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Checkup)]
pub struct CheckupBody<'a> {
    /// The worst result: `ok`, `warning` or `problem`.
    #[schema(example = "ok")]
    status: &'static str,
    checks: Vec<CheckupFindingBody<'a>>,
    /// Number of decisions to check.
    ended_rounds: u64,
}

/// One check.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Checked)]
pub struct CheckupFindingBody<'a> {
    /// Name of the check, in one word.
    check: &'static str,
    /// `ok`, `warning` or `problem`.
    #[schema(example = "ok")]
    status: &'static str,
    detail: &'a str,
    /// What to do about it; null if the result is `ok`.
    #[schema(required = true)]
    advice: Option<&'a str>,
}

/// A page of checked decisions.
#[derive(Debug, Serialize, ToSchema)]
pub struct CheckedEntries<'a> {
    /// Number of decisions checked on this page.
    checked: usize,
    /// Empty if all decisions are valid.
    #[schema(value_type = Vec<EntryProblem>)]
    problems: &'a [Value],
    /// Send it as `cursor` to get the next page; null on the last page.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// A decision that failed the check.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryProblem<'a> {
    account_id: &'a str,
    round_id: &'a str,
    problem: &'a str,
}

/// What was found, the worst of it first in a word.
pub fn body(findings: &[CheckupFinding], ended_rounds: u64) -> Value {
    let checks = findings.iter().map(checked).collect();
    json!(CheckupBody { status: worst(findings).as_str(), checks, ended_rounds })
}

pub fn finding(finding: &CheckupFinding) -> Value {
    json!(checked(finding))
}

fn checked(finding: &CheckupFinding) -> CheckupFindingBody<'_> {
    CheckupFindingBody {
        check: finding.check,
        status: finding.level.as_str(),
        detail: &finding.detail,
        advice: finding.advice.as_deref(),
    }
}

pub fn worst(findings: &[CheckupFinding]) -> CheckupLevel {
    findings.iter().map(|finding| finding.level).max().unwrap_or(CheckupLevel::Ok)
}

/// A decision that failed the check.
pub fn problem(account: &AccountId, round: &RoundId, problem: &str) -> Value {
    json!(EntryProblem { account_id: account.as_str(), round_id: round.as_str(), problem })
}

pub fn entries(checked: usize, problems: &[Value], next_cursor: Option<String>) -> Value {
    json!(CheckedEntries { checked, problems, next_cursor })
}
