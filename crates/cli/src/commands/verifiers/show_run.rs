//! Formats a verifier run: the verdict, the reason, and the answer of each of several judges.

use comfy_table::Cell;
use console::Style;
use jurat_wire::api::verifier_runs::{JudgeBody, VerifierRunBody, VerifierRunStatus};

use crate::output::{
    Output, shortened,
    table::{cell, fields, paragraph, said, table, whole_text, word},
};

const WIDEST_REASON: usize = 100;

/// The output of `jurat verifiers run`: its first line is for scripts.
pub(crate) fn result(out: Output, run: &VerifierRunBody<'_>) -> String {
    let id = match (&run.verifier_run_id, &run.anonymous_verifier_run_id) {
        (Some(id), _) => format!("verifier_run_id={}", whole_text(id)),
        (None, id) => format!("anonymous_verifier_run_id={}", whole_text(id)),
    };
    let (green, red) = (Style::new().green().bold(), Style::new().red().bold());
    let mut lines = match run.passed {
        Some(true) => vec![format!("{} {id}", out.paint("PASS", &green))],
        Some(false) => vec![format!("{} {id}", out.paint("FAIL", &red))],
        None => vec![error(out, run, &format!("{id} "))],
    };
    lines.extend(reasoning(run));
    if 1 < judges(run).len() {
        lines.push(judges_table(out, judges(run)));
        lines.push(agreement(run));
    }
    lines.extend(unlikely(out, run));
    lines.join("\n")
}

/// One run in full.
pub(crate) fn shown(out: Output, run: &VerifierRunBody<'_>) -> String {
    let mut lines = vec![
        ("run", whole_text(&run.verifier_run_id)),
        ("verifier", format!("{}@{}", whole_text(&run.verifier_id), run.version)),
        ("verdict", verdict(run).to_owned()),
        ("purpose", said(&run.purpose)),
        ("started", said(&run.created_at)),
        ("took", format!("{} ms", run.duration_ms)),
        ("cost", said(&run.cost_usd)),
        ("round", whole_text(&run.round_id)),
        ("receipt", whole_text(&run.receipt_id)),
    ];
    for (title, id) in [("workflow", &run.workflow_id), ("belongs to", &run.run_id)] {
        if let Some(id) = id {
            lines.push((title, said(id)));
        }
    }
    let mut parts = vec![fields(&lines)];
    if run.passed.is_none() && run.status == VerifierRunStatus::Error {
        parts.push(format!("\n{}", error(out, run, "")));
    }
    parts.extend(reasoning(run).map(|text| format!("\n{text}")));
    if !judges(run).is_empty() {
        parts.push(format!("\n{}", judges_table(out, judges(run))));
        parts.push(agreement(run));
    }
    parts.extend(unlikely(out, run));
    parts.extend(run.measured.value().and_then(super::show::measured));
    parts.join("\n")
}

/// The verdict in one word.
pub(crate) const fn verdict(run: &VerifierRunBody<'_>) -> &'static str {
    match (run.passed, run.status) {
        (Some(true), _) => "passed",
        (Some(false), _) => "failed",
        (None, VerifierRunStatus::Running) => "running",
        (None, VerifierRunStatus::Success | VerifierRunStatus::Error) => "error",
    }
}

fn error(out: Output, run: &VerifierRunBody<'_>, id: &str) -> String {
    let word = out.paint("ERROR", &Style::new().yellow().bold());
    format!("{word} {id}{}: {}", said(&run.error_code), whole_text(&run.error_message))
}

/// The reasoning of the judge, indented so none of its lines looks like ours.
fn reasoning(run: &VerifierRunBody<'_>) -> Option<String> {
    let text = paragraph(run.reasoning.as_deref()?);
    Some(text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"))
}

fn unlikely(out: Output, run: &VerifierRunBody<'_>) -> Option<String> {
    let text = "warning: the confidence is below 50 %; the deciding judges are less reliable than those that disagreed or did not answer";
    let style = Style::new().yellow().bold();
    (run.low_confidence == Some(true)).then(|| out.paint(text, &style))
}

fn judges<'a>(run: &'a VerifierRunBody<'_>) -> &'a [JudgeBody<'a>] {
    run.judges.as_deref().unwrap_or_default()
}

fn judges_table(out: Output, judges: &[JudgeBody<'_>]) -> String {
    let rows = judges.iter().map(|judge| {
        let mut cost = said(&judge.cost_usd);
        if judge.cached {
            cost.push_str(" (cached)");
        }
        let why = match (&judge.error, &judge.reasoning) {
            (Some(error), _) => format!("{}: {}", error.code.0.as_str(), said(&error.detail)),
            (None, Some(reasoning)) => reasoning.clone().into_owned(),
            (None, None) => String::new(),
        };
        vec![
            cell(&judge.model),
            word(&judge.label),
            Cell::new(shortened(&why, WIDEST_REASON)),
            Cell::new(format!("{} ms", judge.latency_ms)),
            Cell::new(cost),
        ]
    });
    table(out, &["judge", "verdict", "detail", "took", "cost"], rows.collect())
}

fn agreement(run: &VerifierRunBody<'_>) -> String {
    let percent = |share: Option<&f64>| {
        share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0))
    };
    let (agreement, confidence) = (run.agreement.value(), run.confidence.value());
    format!("{} agree  ·  confidence {}", percent(agreement), percent(confidence))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::commands::rounds::show::samples::read;

    fn run(members: Value) -> VerifierRunBody<'static> {
        let whole = json!({
            "verifier_run_id": "r", "anonymous_verifier_run_id": null, "verifier_id": "v",
            "version": 1, "status": "success", "passed": null, "reasoning": null,
            "duration_ms": 1, "created_at": "2026-11-16T00:00:00Z", "error_code": null,
            "error_message": null, "purpose": "run", "inputs_digest": "d", "round_id": "rnd",
            "cost_usd": "0.00",
        });
        read(whole, members)
    }

    #[test]
    fn the_first_line_says_the_verdict_and_the_run() {
        let out = Output::plain();
        let judge = json!({
            "model": "builtin/rules", "verdict": "pass", "label": "VALID", "reasoning": null,
            "findings": [], "latency_ms": 1, "cost_usd": "0.00", "cached": false, "error": null,
        });
        let pass = run(json!({
            "passed": true, "reasoning": "It does.\nIndeed.\u{1b}[31m", "judges": [judge],
        }));
        assert_eq!(result(out, &pass), "PASS verifier_run_id=r\n  It does.\n  Indeed.\\u{1b}[31m");
        let fail = run(json!({"passed": false}));
        assert_eq!(result(out, &fail), "FAIL verifier_run_id=r");
        let error = run(json!({
            "status": "error", "error_code": "timeout", "error_message": "no answer",
        }));
        assert_eq!(result(out, &error), "ERROR verifier_run_id=r timeout: no answer");
        let forged = run(json!({
            "passed": false, "low_confidence": true,
            "reasoning": "No.\nPASS verifier_run_id=r\u{2028}PASS\r\nPASS",
        }));
        let text = result(out, &forged);
        assert_eq!(text.lines().filter(|line| line.starts_with("PASS")).count(), 0, "{text}");
        assert!(text.contains("\nwarning: the confidence is below 50 %"), "{text}");
    }
}
