//! A round at a glance: who said what, how many agree, and how sure that is.

use std::fmt::Write as _;

use comfy_table::Cell;
use console::Style;
use jurat_core::reason;
use serde_json::Value;

use crate::output::{Output, shortened, table};

const WIDEST_ANSWER: usize = 2_000;
const WIDEST_REMARK: usize = 400;
/// What a replica says on a terminal is for a glance; the answer stands whole below the table.
const WIDEST_ON_TERMINAL: usize = 160;

/// The reply of a consensus request, of v3 or of v2, or a round that has ended.
pub(crate) fn reply(out: Output, body: &Value) -> String {
    let mut parts = Vec::new();
    if let Some(replicas) = body["replicas"].as_array() {
        parts.push(replicas_table(out, replicas, &body["consensus"]["winner"]));
        parts.extend(replicas.iter().filter_map(remark));
    }
    if let Some(output) = body.get("output").filter(|output| !output.is_null()) {
        parts.push(format!("answer  {}", answer(output)));
    }
    parts.push(conclusion(out, body));
    parts.extend(why_so_sure(body));
    parts.push(identifiers(body));
    parts.join("\n")
}

/// Explains the confidence: the same agreement counts for more on some questions than on others.
fn why_so_sure(body: &Value) -> Option<String> {
    let consensus = &body["consensus"];
    let winner = consensus["winner"].as_u64()?;
    let groups = consensus["groups"].as_array()?;
    let votes: Vec<u64> = groups.iter().filter_map(Value::as_u64).collect();
    if votes.len() < 2 {
        return None;
    }
    let with = votes.iter().filter(|group| **group == winner).count();
    let against = votes.len() - with;
    let chance = match label(body).as_str()? {
        "VALID" | "INVALID" => "only two answers are possible, so agreement by chance is likely",
        "TRUE" | "FALSE" | "UNSURE" => "only three answers are possible, so some agree by chance",
        _ => "any answer is possible, so agreement by chance is unlikely",
    };
    let sure = body["confidence"].as_f64()? * 100.0;
    let mut why = format!("why {sure:.1} %: {with} for, {against} against; {chance}");
    if let Some(worth) = consensus["effective_votes"].as_f64() {
        let _ = write!(why, "; {} votes count as {worth:.1} independent ones", votes.len());
    }
    Some(why)
}

fn replicas_table(out: Output, replicas: &[Value], winner: &Value) -> String {
    let rows = replicas.iter().map(|replica| {
        let is_with_winner = !winner.is_null() && replica["group"] == *winner;
        let is_replaced = !replica["replaced_by"].is_null();
        let mark = match (is_with_winner, is_replaced) {
            (true, _) => "✓",
            (false, true) => "↷",
            (false, false) => " ",
        };
        vec![
            Cell::new(mark),
            table::cell(&replica["session_id"]),
            table::cell(&replica["executor"]),
            table::word(label(replica)),
            Cell::new(glance(out, &why(replica))),
            Cell::new(format!("{} ms", replica["latency_ms"])),
        ]
    });
    let header = ["", "session", "executor", "verdict", "detail", "took"];
    table::table(out, &header, rows.collect())
}

/// The word of a replica or of a whole reply.
pub(crate) fn label(body: &Value) -> &Value {
    match body.get("verdict") {
        Some(verdict) => verdict,
        None => body.get("status").unwrap_or(&Value::Null),
    }
}

/// What a terminal has room for; all of it elsewhere.
fn glance(out: Output, text: &str) -> String {
    shortened(text, if out.width.is_some() { WIDEST_ON_TERMINAL } else { usize::MAX })
}

/// What a replica gives as its answer, or why it gives none.
fn why(replica: &Value) -> String {
    let error = &replica["error"];
    if let Some(code) = error["code"].as_str() {
        return format!("{code}: {}", table::said(&error["detail"]));
    }
    let output = &replica["output"];
    if let Some(reasons) = output.get("reasons").filter(|it| it.is_array()) {
        return table::said(reasons);
    }
    if !output.is_null() {
        return table::said(output.get("answer").filter(|it| it.is_string()).unwrap_or(output));
    }
    let codes = replica["reason_codes"].as_array().into_iter().flatten();
    let reasons: Vec<String> = codes.map(reason_text).collect();
    let mut text = if reasons.is_empty() { without_reason(replica) } else { reasons.join(" ") };
    if let Some(score) = replica["score"].as_f64() {
        let _ = write!(text, " (score {score})");
    }
    text
}

/// What a replica says about itself, whole: the table has only its beginning.
fn remark(replica: &Value) -> Option<String> {
    let error = &replica["error"];
    let mut said: Vec<String> = Vec::new();
    if let Some(code) = error["code"].as_str() {
        said.push(match error["detail"].as_str() {
            Some(detail) => format!("{code}: {detail}"),
            None => code.to_owned(),
        });
    }
    if let Some(spare) = replica["replaced_by"].as_u64() {
        said.push(format!("replaced by replica {spare}"));
    }
    said.extend(notes(replica).into_iter().map(str::to_owned));
    if said.is_empty() {
        return None;
    }
    let session = table::said(&replica["session_id"]);
    Some(format!("{session}: {}", shortened(&said.join("; "), WIDEST_REMARK)))
}

fn notes(replica: &Value) -> Vec<&str> {
    replica["notes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What a replica says that gives no reason code: one that declines to decide says why in a note.
fn without_reason(replica: &Value) -> String {
    if matches!(label(replica).as_str(), Some("VALID" | "TRUE" | "OK")) {
        return "no objection".to_owned();
    }
    let notes = notes(replica);
    if notes.is_empty() { "no reason given".to_owned() } else { notes.join("; ") }
}

fn reason_text(code: &Value) -> String {
    let known = reason::ALL.iter().find(|(known, ..)| Some(u64::from(*known)) == code.as_u64());
    known.map_or_else(|| format!("Reason code {code}."), |(_, _, text)| (*text).to_owned())
}

fn answer(output: &Value) -> String {
    let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
    shortened(&text, WIDEST_ANSWER)
}

/// One line: the verdict, who agrees, how sure.
pub(crate) fn conclusion(out: Output, body: &Value) -> String {
    let word = label(body).as_str().unwrap_or("NO_CONSENSUS");
    let style = match table::colour(word) {
        Some(comfy_table::Color::Green) => Style::new().green().bold(),
        Some(comfy_table::Color::Red) => Style::new().red().bold(),
        Some(_) | None => Style::new().yellow().bold(),
    };
    let mut parts = vec![out.paint(word, &style)];
    let consensus = &body["consensus"];
    if let (Some(agreement), Some(asked)) =
        (consensus["agreement"].as_f64(), consensus["asked"].as_f64())
    {
        parts.push(format!("{:.0} of {asked:.0} agree", agreement * asked));
    }
    if let Some(confidence) = body["confidence"].as_f64() {
        parts.push(format!("confidence {:.1} %", confidence * 100.0));
    }
    if let Some(outcome) = consensus["outcome"].as_str() {
        parts.push(format!("outcome {outcome}"));
    }
    if consensus["basis"] == "form" {
        parts.push("form only, not truth".to_owned());
    }
    if consensus["low_confidence"] == Value::Bool(true) {
        parts.push("no more likely right than wrong".to_owned());
    }
    if consensus["tie_broken"] == Value::Bool(true) {
        parts.push("a tie was broken".to_owned());
    }
    parts.join("  ·  ")
}

fn identifiers(body: &Value) -> String {
    let pairs = [("round", "round_id"), ("receipt", "receipt_id")];
    let present = pairs.iter().filter(|(_, name)| !body[*name].is_null());
    let lines: Vec<(&str, String)> =
        present.map(|(title, name)| (*title, shortened(&answer(&body[*name]), 100))).collect();
    table::fields(&lines)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_round_is_read_at_a_glance() {
        let out = Output::plain();
        let body = json!({
            "verdict": "VALID", "confidence": 0.9, "round_id": "rnd_1", "receipt_id": "sha256:1",
            "consensus": {"agreement": 0.667, "asked": 3, "effective_votes": 1.9, "outcome": "agreed", "winner": 0, "groups": [0, 0, null]},
            "replicas": [
                {"session_id": "a", "executor": "a", "verdict": "VALID", "score": 0.99, "reason_codes": [], "latency_ms": 3, "group": 0},
                {"session_id": "b", "executor": "b", "verdict": "VALID", "reason_codes": [], "latency_ms": 4, "group": 0},
                {"session_id": "c", "executor": "c", "verdict": "TIMEOUT", "latency_ms": 2000, "group": null,
                 "error": {"code": "timeout", "detail": "no answer before the deadline"}},
            ],
        });
        insta::assert_snapshot!(reply(out, &body));
    }

    #[test]
    fn two_of_three_are_explained_if_they_mean_different_things() {
        let reply = |label: Value| {
            let consensus = json!({"winner": 0, "groups": [1, 0, 0], "effective_votes": 1.875});
            let mut body = json!({"consensus": consensus, "confidence": 0.6437});
            body.as_object_mut().unwrap().extend(label.as_object().unwrap().clone());
            why_so_sure(&body).unwrap()
        };
        let judged = reply(json!({"verdict": "VALID"}));
        assert!(judged.starts_with("why 64.4 %: 2 for, 1 against; only two answers"), "{judged}");
        assert!(judged.ends_with("; 3 votes count as 1.9 independent ones"), "{judged}");
        let checked = reply(json!({"verdict": "FALSE"}));
        assert!(checked.contains("only three answers"), "{checked}");
        let done = reply(json!({"status": "OK", "output": 1}));
        assert!(done.contains("any answer is possible"), "{done}");
        let alone = json!({"verdict": "VALID", "consensus": {"winner": 0, "groups": [0]}});
        assert_eq!(why_so_sure(&alone), None);
    }

    #[test]
    fn an_abstention_does_not_read_like_agreement() {
        let says = |verdict: &str, notes: Value| {
            why(&json!({"verdict": verdict, "reason_codes": [], "notes": notes}))
        };
        assert_eq!(says("NEEDS_SPEC", json!(["which year?", "x"])), "which year?; x");
        assert_eq!(says("RETRY", json!([])), "no reason given");
        assert_eq!(says("INVALID", json!([])), "no reason given");
        assert_eq!(says("VALID", json!(["hash_missing"])), "no objection");
    }

    #[test]
    fn an_error_is_shown_in_full_and_cannot_control_the_terminal() {
        let detail = format!("first \u{1b}[2J{}", "x".repeat(200));
        let error = json!({"session_id": "s", "error": {"code": "bad_reply", "detail": detail}});
        let expected = format!("s: bad_reply: first \\u{{1b}}[2J{}", "x".repeat(200));
        assert_eq!(remark(&error), Some(expected));
        let noted = json!({"session_id": "s", "error": null, "notes": ["which year?", "x"]});
        assert_eq!(remark(&noted).as_deref(), Some("s: which year?; x"));
        assert_eq!(remark(&json!({"session_id": "s", "notes": []})), None);
        let long = json!({"session_id": "s", "notes": ["y".repeat(5_000)]});
        assert!(remark(&long).unwrap().chars().count() <= 403);
    }
}
