//! The resource `/v1/doctor`: health checks of the installation.

use std::borrow::Cow;

use jurat_core::{
    checkup::{CheckupFinding, CheckupLevel},
    id::{AccountId, RoundId},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Result of a health check of the installation.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Checkup)]
pub struct CheckupBody<'a> {
    /// The worst result: `ok`, `warning` or `problem`.
    #[schema(example = "ok")]
    pub status: Cow<'static, str>,
    pub checks: Vec<CheckupFindingBody<'a>>,
    /// Number of decisions to check.
    pub ended_rounds: u64,
}

/// One check.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[schema(as = Checked)]
pub struct CheckupFindingBody<'a> {
    /// Name of the check, in one word.
    pub check: Cow<'static, str>,
    /// `ok`, `warning` or `problem`.
    #[schema(example = "ok")]
    pub status: Cow<'static, str>,
    pub detail: Cow<'a, str>,
    /// What to do about it; null if the result is `ok`.
    #[schema(required = true)]
    pub advice: Option<Cow<'a, str>>,
}

/// A page of checked decisions.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct CheckedEntries<'a> {
    /// Number of decisions checked on this page.
    pub checked: usize,
    /// Empty if all decisions are valid.
    pub problems: Vec<EntryProblem<'a>>,
    /// Send it as `cursor` to get the next page; null on the last page.
    #[schema(required = true)]
    pub next_cursor: Option<String>,
}

/// A decision that failed the check.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct EntryProblem<'a> {
    pub account_id: Cow<'a, str>,
    pub round_id: Cow<'a, str>,
    pub problem: Cow<'a, str>,
}

/// The findings, and the worst status among them.
pub fn body(findings: &[CheckupFinding], ended_rounds: u64) -> Value {
    let checks = findings.iter().map(finding).collect();
    json!(CheckupBody { status: Cow::Borrowed(worst(findings).as_str()), checks, ended_rounds })
}

/// One finding of the check-up.
pub fn finding(finding: &CheckupFinding) -> CheckupFindingBody<'_> {
    CheckupFindingBody {
        check: Cow::Borrowed(finding.check),
        status: Cow::Borrowed(finding.level.as_str()),
        detail: Cow::Borrowed(&finding.detail),
        advice: finding.advice.as_deref().map(Cow::Borrowed),
    }
}

impl CheckupFindingBody<'_> {
    /// The same finding with owned text.
    pub fn into_owned(self) -> CheckupFindingBody<'static> {
        CheckupFindingBody {
            check: self.check,
            status: self.status,
            detail: Cow::Owned(self.detail.into_owned()),
            advice: self.advice.map(|advice| Cow::Owned(advice.into_owned())),
        }
    }
}

/// The worst level among the findings; `Ok` if there are none.
pub fn worst(findings: &[CheckupFinding]) -> CheckupLevel {
    findings.iter().map(|finding| finding.level).max().unwrap_or(CheckupLevel::Ok)
}

/// A decision that failed the check.
pub fn problem<'a>(
    account: &'a AccountId,
    round: &'a RoundId,
    problem: &'a str,
) -> EntryProblem<'a> {
    EntryProblem {
        account_id: Cow::Borrowed(account.as_str()),
        round_id: Cow::Borrowed(round.as_str()),
        problem: Cow::Borrowed(problem),
    }
}

/// A page of checked decisions.
pub fn entries(
    checked: usize,
    problems: Vec<EntryProblem<'_>>,
    next_cursor: Option<String>,
) -> CheckedEntries<'_> {
    CheckedEntries { checked, problems, next_cursor }
}
