//! How good a verifier is: shares with their intervals, then the cases that went wrong.

use comfy_table::Cell;
use console::Style;
use serde_json::Value;

use crate::output::{
    Output, counted, shortened,
    table::{fields, said, table, whole_text},
};

const WIDEST_REASON: usize = 300;
/// `--json` has the rest.
const MOST_CASES: usize = 20;

/// How a case was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaseResult {
    Right,
    Wrong,
    /// The judge gave no verdict.
    Undecided,
}

/// The report of `jurat verifiers test`.
pub(crate) fn test(out: Output, report: &Value) -> String {
    let figures = &report["figures"];
    let rows = [
        ("right", "accuracy"),
        ("false pass", "false_pass_rate"),
        ("false fail", "false_fail_rate"),
        ("no verdict", "inconclusive_rate"),
    ];
    let rows = rows.iter().map(|(title, name)| metric_row(title, &figures[*name]));
    let mut parts = vec![
        head(report, "case"),
        table(out, &["cases", "share", "95 % interval", "of"], rows.collect()),
        format!("kappa {}", number(&figures["kappa"])),
    ];
    parts.extend(not_shown(report));
    parts.extend(comparison(out, &report["compared"]));
    parts.extend(wrong_cases(report));
    parts.push(identifiers(report));
    parts.join("\n")
}

/// The report of `jurat verifiers attack`.
pub(crate) fn attack(out: Output, report: &Value) -> String {
    let figures = &report["figures"];
    let families = figures["families"].as_array().into_iter().flatten();
    let row = |title: &str, it: &Value| {
        let mut row = metric_row(title, &it["success_rate"]);
        row.push(Cell::new(said(&it["inconclusive"])));
        row
    };
    let rows = families.map(|it| row(&said(&it["family"]), it)).chain([row("all", figures)]);
    let header = ["attacks", "succeed", "95 % interval", "of", "no verdict"];
    let mut parts = vec![head(report, "attack"), table(out, &header, rows.collect())];
    parts.extend(not_shown(report));
    parts.extend(wrong_cases(report));
    parts.push(identifiers(report));
    parts.join("\n")
}

/// A measurement with other judges or of a part only is not the version's own.
fn not_shown(report: &Value) -> Option<String> {
    let text = "this measurement is not shown with the version, which shows only those of its own judge alone, on all cases and families";
    (report["shown"] == false).then(|| text.to_owned())
}

fn head(report: &Value, what: &str) -> String {
    let judges = report["judges"].as_array().into_iter().flatten();
    let judges: Vec<String> =
        judges.map(|judge| said(judge.get("model").unwrap_or(judge))).collect();
    let count = counted(report["figures"]["n"].as_u64().unwrap_or(0), what);
    format!("version {}  ·  {count}  ·  judged by {}", report["version"], judges.join(", "))
}

fn metric_row(title: &str, rate: &Value) -> Vec<Cell> {
    let percent = |name: &str| rate[name].as_f64().map(|share| share * 100.0);
    let share = percent("value").map_or_else(|| "–".to_owned(), |it| format!("{it:.1} %"));
    let interval = match (percent("low"), percent("high")) {
        (Some(low), Some(high)) => format!("{low:.1} – {high:.1} %"),
        _ => "–".to_owned(),
    };
    let of = format!("{} of {}", said(&rate["count"]), said(&rate["n"]));
    vec![Cell::new(title), Cell::new(share), Cell::new(interval), Cell::new(of)]
}

/// A share in one line, with its interval and the number of cases.
pub(crate) fn rate(rate: &Value) -> String {
    let percent = |name: &str| rate[name].as_f64().map(|share| share * 100.0);
    match (percent("value"), percent("low"), percent("high")) {
        (Some(value), Some(low), Some(high)) => {
            format!("{value:.1} % ({low:.1} – {high:.1} %, n = {})", said(&rate["n"]))
        }
        (Some(value), ..) => format!("{value:.1} %"),
        (None, ..) => "–".to_owned(),
    }
}

fn number(value: &Value) -> String {
    let value = value.get("value").unwrap_or(value);
    value.as_f64().map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"))
}

fn comparison(out: Output, compared: &Value) -> Vec<String> {
    if compared.is_null() {
        return Vec::new();
    }
    let flips = compared["flips"].as_array().map_or(&[][..], Vec::as_slice);
    let version = said(&compared["with_version"]);
    let chance = compared["p_value"].as_f64().map(|p| format!(", p = {p:.3}"));
    let mut lines = vec![format!(
        "compared with version {version}: {}{}",
        counted(u64::try_from(flips.len()).unwrap_or(u64::MAX), "flip"),
        chance.unwrap_or_default()
    )];
    for flip in flips.iter().take(MOST_CASES) {
        let (before, after) = (word(&flip["before"]), word(&flip["after"]));
        lines.push(format!("  {}: {before} before, {after} now", whole_text(&flip["id"])));
    }
    if compared["is_worse"] == true {
        let text = format!("warning: it does worse than version {version}");
        lines.push(out.paint(&text, &Style::new().red().bold()));
    }
    lines
}

fn wrong_cases(report: &Value) -> Vec<String> {
    let cases = report["cases"].as_array().into_iter().flatten();
    let wrong: Vec<&Value> = cases.filter(|case| side(case) != CaseResult::Right).collect();
    let mut lines: Vec<String> =
        wrong.iter().take(MOST_CASES).map(|case| case_line(case)).collect();
    let left = wrong.len().saturating_sub(MOST_CASES);
    if left > 0 {
        lines.push(format!("and {left} more; `--json` lists them all"));
    }
    lines
}

/// One case: what it should be, what it was judged, and why.
pub(crate) fn case_line(case: &Value) -> String {
    let why = match (&case["error"], case["reasoning"].as_str()) {
        (Value::Null, None) => String::new(),
        (Value::Null, Some(reasoning)) => format!(": {}", shortened(reasoning, WIDEST_REASON)),
        (error, _) => {
            let error = error.get("message").unwrap_or(error);
            format!(": {}", shortened(&whole_text(error), WIDEST_REASON))
        }
    };
    let got = match side(case) {
        CaseResult::Undecided => "has no verdict".to_owned(),
        CaseResult::Right | CaseResult::Wrong => format!("was judged {}", word(&case["got"])),
    };
    format!("case {}: should {}, {got}{why}", case_name(case), word(&case["expected"]))
}

pub(crate) fn case_name(case: &Value) -> String {
    let id = if case["id"].is_null() { &case["index"] } else { &case["id"] };
    shortened(&whole_text(id), 60)
}

pub(crate) fn side(case: &Value) -> CaseResult {
    match (passes(&case["expected"]), passes(&case["got"])) {
        (Some(expected), Some(got)) if expected == got => CaseResult::Right,
        (_, Some(_)) => CaseResult::Wrong,
        (_, None) => CaseResult::Undecided,
    }
}

fn passes(value: &Value) -> Option<bool> {
    match value.as_str() {
        Some("pass" | "passed") => Some(true),
        Some("fail" | "failed") => Some(false),
        Some(_) | None => value.as_bool(),
    }
}

fn word(value: &Value) -> &'static str {
    match passes(value) {
        Some(true) => "pass",
        Some(false) => "fail",
        None => "no verdict",
    }
}

fn identifiers(report: &Value) -> String {
    let given = [("measurement", "measurement_id"), ("data", "data_digest"), ("cost", "cost_usd")];
    let present = given.iter().filter(|(_, name)| !report[*name].is_null());
    let lines: Vec<(&str, String)> = present
        .map(|(title, name)| (*title, shortened(&whole_text(&report[*name]), 100)))
        .collect();
    fields(&lines)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rate_of(of: u64, n: u64) -> Value {
        json!({"count": of, "n": n, "value": 0.75, "low": 0.301, "high": 0.954})
    }

    #[test]
    fn a_test_is_read_at_a_glance() {
        let report = json!({
            "measurement_id": "m-1", "version": 2, "judges": ["builtin/rules"], "data_digest": "ab",
            "figures": {
                "n": 4, "judged": 4, "inconclusive": 0, "correct": 3,
                "accuracy": rate_of(3, 4), "false_pass_rate": rate_of(1, 2),
                "false_fail_rate": {"count": 0, "n": 0, "value": null, "low": null, "high": null},
                "inconclusive_rate": rate_of(0, 4), "kappa": 0.5,
            },
            "cases": [
                {"id": "1", "expected": true, "got": true, "reasoning": "fine", "error": null},
                {"id": "2", "expected": false, "got": true, "reasoning": "It looks kind.", "error": null},
                {"id": "3", "expected": false, "got": null, "reasoning": null, "error": "timeout"},
            ],
            "compared": {"with_version": 1, "is_worse": true, "p_value": 0.25,
                "flips": [{"id": "2", "before": false, "after": true}]},
            "cost_usd": "0.00",
        });
        insta::assert_snapshot!(test(Output::plain(), &report));
    }

    #[test]
    fn attacks_are_reported_by_family() {
        let report = json!({
            "measurement_id": "m-1", "version": 1, "judges": [{"model": "builtin/rules"}],
            "figures": {"n": 2, "succeeded": 1, "inconclusive": 1, "success_rate": rate_of(1, 2),
                "families": [{"family": "authority", "inconclusive": 1, "success_rate": rate_of(1, 2)}]},
            "cases": [], "cost_usd": "0.00", "shown": false,
        });
        insta::assert_snapshot!(attack(Output::plain(), &report));
    }
}
