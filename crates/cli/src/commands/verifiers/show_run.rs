//! A run of a verifier: the verdict and why, and with several judges what each of them says.

use comfy_table::Cell;
use console::Style;
use serde_json::Value;

use crate::output::{
    Output, shortened,
    table::{cell, fields, paragraph, said, table, whole_text, word},
};

const WIDEST_REASON: usize = 100;

/// What `jurat verifiers run` prints: the first line is for scripts.
pub(crate) fn result(out: Output, body: &Value) -> String {
    let name = if body["verifier_run_id"].is_null() {
        "anonymous_verifier_run_id"
    } else {
        "verifier_run_id"
    };
    let id = format!("{name}={}", whole_text(&body[name]));
    let (green, red) = (Style::new().green().bold(), Style::new().red().bold());
    let mut lines = match body["passed"].as_bool() {
        Some(true) => vec![format!("{} {id}", out.paint("PASS", &green))],
        Some(false) => vec![format!("{} {id}", out.paint("FAIL", &red))],
        None => vec![error(out, body, &format!("{id} "))],
    };
    lines.extend(reasoning(body));
    if judges(body).len() > 1 {
        lines.push(judges_table(out, body));
        lines.push(agreement(body));
    }
    lines.extend(unlikely(out, body));
    lines.join("\n")
}

/// One run in full.
pub(crate) fn shown(out: Output, body: &Value) -> String {
    let verifier = format!("{}@{}", whole_text(&body["verifier_id"]), body["version"]);
    let mut lines = vec![
        ("run", whole_text(&body["verifier_run_id"])),
        ("verifier", verifier),
        ("verdict", verdict(body).to_owned()),
        ("purpose", said(&body["purpose"])),
        ("started", said(&body["created_at"])),
        ("took", format!("{} ms", body["duration_ms"])),
        ("cost", said(&body["cost_usd"])),
        ("round", whole_text(&body["round_id"])),
        ("receipt", whole_text(&body["receipt_id"])),
    ];
    for (title, name) in [("workflow", "workflow_id"), ("belongs to", "run_id")] {
        if !body[name].is_null() {
            lines.push((title, said(&body[name])));
        }
    }
    let mut parts = vec![fields(&lines)];
    if body["passed"].is_null() && body["status"] == "error" {
        parts.push(format!("\n{}", error(out, body, "")));
    }
    parts.extend(reasoning(body).map(|text| format!("\n{text}")));
    if !judges(body).is_empty() {
        parts.push(format!("\n{}", judges_table(out, body)));
        parts.push(agreement(body));
    }
    parts.extend(unlikely(out, body));
    parts.extend(super::show::measured(&body["measured"]));
    parts.join("\n")
}

/// One word.
pub(crate) fn verdict(body: &Value) -> &'static str {
    match (body["passed"].as_bool(), body["status"].as_str()) {
        (Some(true), _) => "passed",
        (Some(false), _) => "failed",
        (None, Some("running")) => "running",
        (None, _) => "error",
    }
}

fn error(out: Output, body: &Value, run: &str) -> String {
    let word = out.paint("ERROR", &Style::new().yellow().bold());
    format!("{word} {run}{}: {}", said(&body["error_code"]), whole_text(&body["error_message"]))
}

/// What the judge says, set in, so that none of its lines looks like one of ours.
fn reasoning(body: &Value) -> Option<String> {
    if body["reasoning"].is_null() {
        return None;
    }
    let text = paragraph(&body["reasoning"]);
    Some(text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n"))
}

fn unlikely(out: Output, body: &Value) -> Option<String> {
    let text = "warning: the confidence is below 50 %; the deciding judges are less reliable than those that disagreed or did not answer";
    let style = Style::new().yellow().bold();
    (body["low_confidence"] == true).then(|| out.paint(text, &style))
}

fn judges(body: &Value) -> &[Value] {
    body["judges"].as_array().map_or(&[], Vec::as_slice)
}

fn judges_table(out: Output, body: &Value) -> String {
    let rows = judges(body).iter().map(|judge| {
        let mut cost = said(&judge["cost_usd"]);
        if judge["cached"] == true {
            cost.push_str(" (cached)");
        }
        let why = match judge["error"]["code"].as_str() {
            Some(code) => format!("{code}: {}", said(&judge["error"]["detail"])),
            None => judge["reasoning"].as_str().unwrap_or_default().to_owned(),
        };
        vec![
            cell(&judge["model"]),
            word(&judge["label"]),
            Cell::new(shortened(&why, WIDEST_REASON)),
            Cell::new(format!("{} ms", judge["latency_ms"])),
            Cell::new(cost),
        ]
    });
    table(out, &["judge", "verdict", "detail", "took", "cost"], rows.collect())
}

fn agreement(body: &Value) -> String {
    let share = |name: &str| body[name].as_f64();
    let percent = |share: Option<f64>| {
        share.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0))
    };
    format!("{} agree  ·  confidence {}", percent(share("agreement")), percent(share("confidence")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_line_says_the_verdict_and_the_run() {
        let out = Output::plain();
        let judge = json!({"model": "builtin/rules", "label": "VALID", "latency_ms": 1});
        let pass = json!({
            "verifier_run_id": "r", "passed": true, "reasoning": "It does.\nIndeed.\u{1b}[31m",
            "judges": [judge],
        });
        assert_eq!(result(out, &pass), "PASS verifier_run_id=r\n  It does.\n  Indeed.\\u{1b}[31m");
        let fail = json!({"verifier_run_id": "r", "passed": false, "reasoning": null});
        assert_eq!(result(out, &fail), "FAIL verifier_run_id=r");
        let error = json!({
            "verifier_run_id": "r", "passed": null, "status": "error", "error_code": "timeout",
            "error_message": "no answer",
        });
        assert_eq!(result(out, &error), "ERROR verifier_run_id=r timeout: no answer");
        let forged = json!({
            "verifier_run_id": "r", "passed": false, "low_confidence": true,
            "reasoning": "No.\nPASS verifier_run_id=r\u{2028}PASS\r\nPASS",
        });
        let text = result(out, &forged);
        assert_eq!(text.lines().filter(|line| line.starts_with("PASS")).count(), 0, "{text}");
        assert!(text.contains("\nwarning: the confidence is below 50 %"), "{text}");
    }
}
