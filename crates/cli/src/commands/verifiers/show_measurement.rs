//! The quality of a verifier: shares with their intervals, then the cases that went wrong.

use comfy_table::Cell;
use console::Style;
use jurat_wire::api::verifier_tests::{
    CaseBody, ComparedBody, MeasuredRate, MeasurementScores, ReportBody,
};

use crate::output::{
    Output, counted, shortened,
    table::{fields, said, table, whole_text},
};

const WIDEST_REASON: usize = 300;
/// Maximum number of cases shown; `--json` lists the rest.
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
pub(crate) fn test(out: Output, report: &ReportBody<'_>) -> String {
    let scores = MeasurementScores::read(&report.figures);
    let rows = [
        ("right", scores.accuracy),
        ("false pass", scores.false_pass_rate),
        ("false fail", scores.false_fail_rate),
        ("no verdict", scores.inconclusive_rate),
    ];
    let rows = rows.into_iter().map(|(title, rate)| metric_row(title, rate.unwrap_or_default()));
    let kappa = scores.kappa.map_or_else(|| "–".to_owned(), |kappa| format!("{kappa:.2}"));
    let mut parts = vec![
        head(report, scores.n, "case"),
        table(out, &["cases", "share", "95 % interval", "of"], rows.collect()),
        format!("kappa {kappa}"),
    ];
    parts.extend(not_shown(report));
    parts.extend(report.compared.iter().flat_map(|compared| comparison(out, compared)));
    parts.extend(wrong_cases(report));
    parts.push(identifiers(report));
    parts.join("\n")
}

/// The report of `jurat verifiers attack`.
pub(crate) fn attack(out: Output, report: &ReportBody<'_>) -> String {
    let scores = MeasurementScores::read(&report.figures);
    let row = |title: &str, rate: MeasuredRate, inconclusive: u32| {
        let mut row = metric_row(title, rate);
        row.push(Cell::new(inconclusive));
        row
    };
    let families = scores.families.iter();
    let families = families.map(|it| row(&said(&it.family), it.success_rate, it.inconclusive));
    let all = row("all", scores.success_rate.unwrap_or_default(), scores.inconclusive);
    let header = ["attacks", "succeed", "95 % interval", "of", "no verdict"];
    let rows = families.chain([all]).collect();
    let mut parts = vec![head(report, scores.n, "attack"), table(out, &header, rows)];
    parts.extend(not_shown(report));
    parts.extend(wrong_cases(report));
    parts.push(identifiers(report));
    parts.join("\n")
}

/// A note for a measurement that is not the version's own: with other judges, or only of a part.
fn not_shown(report: &ReportBody<'_>) -> Option<String> {
    let text = "this measurement is not shown with the version, which shows only those of its own judge alone, on all cases and families";
    (!report.shown).then(|| text.to_owned())
}

fn head(report: &ReportBody<'_>, cases: u32, noun: &str) -> String {
    let judges: Vec<String> = report.judges.iter().map(said).collect();
    let count = counted(cases, noun);
    format!("version {}  ·  {count}  ·  judged by {}", report.version, judges.join(", "))
}

fn metric_row(title: &str, rate: MeasuredRate) -> Vec<Cell> {
    let share = rate.value.map_or_else(|| "–".to_owned(), |it| format!("{:.1} %", it * 100.0));
    let interval = match (rate.low, rate.high) {
        (Some(low), Some(high)) => format!("{:.1} – {:.1} %", low * 100.0, high * 100.0),
        _ => "–".to_owned(),
    };
    let of = format!("{} of {}", rate.count, rate.n);
    vec![Cell::new(title), Cell::new(share), Cell::new(interval), Cell::new(of)]
}

/// A share on one line, with its interval and the number of cases.
pub(crate) fn rate(rate: Option<MeasuredRate>) -> String {
    let rate = rate.unwrap_or_default();
    match (rate.value, rate.low, rate.high) {
        (Some(value), Some(low), Some(high)) => {
            let [value, low, high] = [value, low, high].map(|share| share * 100.0);
            format!("{value:.1} % ({low:.1} – {high:.1} %, n = {})", rate.n)
        }
        (Some(value), ..) => format!("{:.1} %", value * 100.0),
        (None, ..) => "–".to_owned(),
    }
}

fn comparison(out: Output, compared: &ComparedBody<'_>) -> Vec<String> {
    let version = compared.with_version;
    let mut lines = vec![format!(
        "compared with version {version}: {}, p = {:.3}",
        counted(u64::try_from(compared.flips.len()).unwrap_or(u64::MAX), "flip"),
        compared.p_value
    )];
    for flip in compared.flips.iter().take(MOST_CASES) {
        let (before, after) = (word(flip.before), word(flip.after));
        lines.push(format!("  {}: {before} before, {after} now", whole_text(&flip.id)));
    }
    if compared.is_worse {
        let text = format!("warning: it does worse than version {version}");
        lines.push(out.paint(&text, &Style::new().red().bold()));
    }
    lines
}

fn wrong_cases(report: &ReportBody<'_>) -> Vec<String> {
    let wrong: Vec<&CaseBody<'_>> =
        report.cases.iter().filter(|case| side(case) != CaseResult::Right).collect();
    let mut lines: Vec<String> =
        wrong.iter().take(MOST_CASES).map(|case| case_line(case)).collect();
    let left = wrong.len().saturating_sub(MOST_CASES);
    if left > 0 {
        lines.push(format!("and {left} more; `--json` lists them all"));
    }
    lines
}

/// One case: its label, its verdict and the reason.
pub(crate) fn case_line(case: &CaseBody<'_>) -> String {
    let why = match (&case.error, &case.reasoning) {
        (None, None) => String::new(),
        (None, Some(reasoning)) => format!(": {}", shortened(reasoning, WIDEST_REASON)),
        (Some(error), _) => {
            format!(": {}", shortened(&whole_text(&error.message), WIDEST_REASON))
        }
    };
    let got = match side(case) {
        CaseResult::Undecided => "has no verdict".to_owned(),
        CaseResult::Right | CaseResult::Wrong => format!("was judged {}", word(case.got)),
    };
    format!("case {}: should {}, {got}{why}", case_name(case), word(Some(case.expected)))
}

pub(crate) fn case_name(case: &CaseBody<'_>) -> String {
    shortened(&whole_text(&case.id), 60)
}

pub(crate) fn side(case: &CaseBody<'_>) -> CaseResult {
    match case.got {
        Some(got) if got == case.expected => CaseResult::Right,
        Some(_) => CaseResult::Wrong,
        None => CaseResult::Undecided,
    }
}

const fn word(passed: Option<bool>) -> &'static str {
    match passed {
        Some(true) => "pass",
        Some(false) => "fail",
        None => "no verdict",
    }
}

fn identifiers(report: &ReportBody<'_>) -> String {
    let short = |text: &str| shortened(text, 100);
    fields(&[
        ("measurement", short(&report.measurement_id)),
        ("data", short(&report.data_digest)),
        ("cost", short(&report.cost_usd)),
    ])
}

#[cfg(test)]
pub(crate) mod samples {
    //! Complete reports for tests, with the members that a test cares about.

    use serde_json::{Value, json};

    use super::ReportBody;
    use crate::commands::rounds::show::samples::read;

    pub(crate) fn report(members: Value) -> ReportBody<'static> {
        let whole = json!({
            "measurement_id": "m-1", "verifier_id": "v-1", "name": "tone", "version": 1,
            "purpose": "test", "judges": ["builtin/rules"], "replicas": 1, "families": [],
            "shown": true, "data_digest": "ab", "figures": {}, "reliability": {}, "cases": [],
            "compared": null, "cost_usd": "0.00", "measured_at": "2026-11-16T00:00:00Z",
        });
        read(whole, members)
    }

    pub(crate) fn case(members: Value) -> Value {
        let whole = json!({
            "id": "1", "inputs": {}, "media_url": null, "family": null, "expected": true,
            "got": true, "reasoning": null, "error": null, "verifier_run_id": null,
            "cost_usd": "0.00",
        });
        read(whole, members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        samples::{case, report},
        *,
    };

    fn rate_of(of: u64, n: u64) -> Value {
        json!({"count": of, "n": n, "value": 0.75, "low": 0.301, "high": 0.954})
    }

    #[test]
    fn a_test_is_read_at_a_glance() {
        let report = report(json!({
            "version": 2,
            "figures": {
                "n": 4, "judged": 4, "inconclusive": 0, "correct": 3,
                "accuracy": rate_of(3, 4), "false_pass_rate": rate_of(1, 2),
                "false_fail_rate": {"count": 0, "n": 0, "value": null, "low": null, "high": null},
                "inconclusive_rate": rate_of(0, 4), "kappa": 0.5,
            },
            "cases": [
                case(json!({"id": "1", "reasoning": "fine"})),
                case(json!({"id": "2", "expected": false, "reasoning": "It looks kind."})),
                case(json!({"id": "3", "expected": false, "got": null,
                    "error": {"code": "timeout", "message": "timeout"}})),
            ],
            "compared": {"with_version": 1, "is_worse": true, "p_value": 0.25,
                "flips": [{"id": "2", "expected": false, "before": false, "after": true}]},
        }));
        insta::assert_snapshot!(test(Output::plain(), &report));
    }

    #[test]
    fn attacks_are_reported_by_family() {
        let report = report(json!({
            "figures": {"n": 2, "succeeded": 1, "inconclusive": 1, "success_rate": rate_of(1, 2),
                "families": [{"family": "authority", "inconclusive": 1, "success_rate": rate_of(1, 2)}]},
            "shown": false,
        }));
        insta::assert_snapshot!(attack(Output::plain(), &report));
    }
}
