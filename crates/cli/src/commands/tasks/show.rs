//! A task, its events and its decision, as people read them.

use comfy_table::Cell;
use console::Style;
use serde_json::Value;

use crate::output::{
    Output, shortened,
    table::{cell, colour, fields, said, table, word},
};

const WIDEST: usize = 2_000;

/// A task with its candidates and votes.
pub(crate) fn shown(out: Output, body: &Value) -> String {
    let mut parts = vec![head(out, body)];
    let candidates = body["candidates"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !candidates.is_empty() {
        parts.push(candidates_table(out, candidates));
    }
    let votes: Vec<Vec<Cell>> = candidates.iter().flat_map(votes_of).collect();
    if !votes.is_empty() {
        parts.push(table(out, &["candidate", "voter", "verdict", "score", "detail"], votes));
    }
    parts.join("\n")
}

fn head(out: Output, body: &Value) -> String {
    let mut lines = vec![
        ("task", said(&body["task_id"])),
        ("type", said(&body["task_type"])),
        ("state", painted(out, &said(&body["state"]))),
        ("epoch", body["epoch"].to_string()),
        ("executors", said(&body["panel"]["executors"])),
        ("voters", verifiers(&body["panel"])),
        ("profile", said(&body["panel"]["profile"])),
        ("created", said(&body["created_at"])),
    ];
    if body["ended_at"].is_null() {
        lines.push(("deadline", said(&body["deadline_at"])));
    } else {
        lines.push(("ended", said(&body["ended_at"])));
    }
    let spent = &body["spent"];
    let of = |name: &str| format!("{} of {}", spent[name]["spent"], spent[name]["limit"]);
    lines.push(("steps", of("steps")));
    lines.push(("cost units", of("cost_units")));
    for claim in body["claims"].as_array().into_iter().flatten() {
        let until = said(&claim["until"]);
        let text = format!("{} by {} until {until}", said(&claim["role"]), said(&claim["holder"]));
        lines.push(("in progress", text));
    }
    if !body["finalized_candidate_id"].is_null() {
        lines.push(("final candidate", said(&body["finalized_candidate_id"])));
    }
    for decision in body["settling"].as_array().into_iter().flatten() {
        let (epoch, at) = (&decision["epoch"], said(&decision["settles_at"]));
        let complaint = decision["complaint"].as_str();
        let complaint = complaint.map(|it| format!(", disputed: {it}")).unwrap_or_default();
        lines.push(("settles", shortened(&format!("epoch {epoch} at {at}{complaint}"), WIDEST)));
    }
    if let Some(reason) = body["reason"].as_str() {
        lines.push(("reason", shortened(reason, WIDEST)));
    }
    fields(&lines)
}

fn verifiers(panel: &Value) -> String {
    let named = said(&panel["verifiers"]);
    if panel["node_votes"] == true { format!("{named} and this node") } else { named }
}

fn candidates_table(out: Output, candidates: &[Value]) -> String {
    let rows = candidates.iter().map(|it| {
        vec![
            cell(&it["candidate_id"]),
            cell(&it["proposers"]),
            word(&it["standing"]),
            cell(&it["gap"]),
            cell(&it["turn"]),
        ]
    });
    table(out, &["candidate", "proposed by", "state", "gap", "turn"], rows.collect())
}

fn votes_of(candidate: &Value) -> Vec<Vec<Cell>> {
    let votes = candidate["votes"].as_array().into_iter().flatten();
    votes
        .map(|vote| {
            let says = match (&vote["forfeited"], &vote["verdict"]) {
                (Value::Null, Value::Null) => "committed, not revealed yet".to_owned(),
                (Value::Null, _) => said(&vote["reason_codes"]),
                (why, _) => format!("forfeited: {}", said(why)),
            };
            vec![
                cell(&candidate["candidate_id"]),
                cell(&vote["voter"]),
                word(&vote["verdict"]),
                cell(&vote["score"]),
                Cell::new(says),
            ]
        })
        .collect()
}

/// What a task decided, or why it did not.
pub(crate) fn decision(out: Output, body: &Value) -> String {
    let mut parts = Vec::new();
    let votes = votes_of(body);
    if !votes.is_empty() {
        let rows = votes.into_iter().map(|row| row.into_iter().skip(1).collect()).collect();
        parts.push(table(out, &["voter", "verdict", "score", "detail"], rows));
    }
    if let Some(output) = body.get("output").filter(|output| !output.is_null()) {
        let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        parts.push(format!("answer  {}", shortened(&text, WIDEST)));
    }
    parts.push(conclusion(out, body));
    let mut lines = vec![("task", said(&body["task_id"]))];
    for (title, name) in
        [("candidate", "candidate_id"), ("executor", "executor"), ("decision", "final_hash")]
    {
        if !body[name].is_null() {
            lines.push((title, shortened(&said(&body[name]), 100)));
        }
    }
    if let Some(reason) = body["reason"].as_str() {
        lines.push(("reason", shortened(reason, WIDEST)));
    }
    parts.push(fields(&lines));
    parts.join("\n")
}

fn conclusion(out: Output, body: &Value) -> String {
    let mut parts = vec![painted(out, &said(&body["state"]))];
    if !body["candidate_id"].is_null() {
        let (approvals, quorum) = (&body["approvals"], &body["quorum_threshold"]);
        parts.push(format!("{approvals} approve, {} reject", body["rejections"]));
        parts.push(format!("quorum {quorum}"));
    }
    if body["basis"] == "form" {
        parts.push("form only, not truth".to_owned());
    }
    if let Some(confidence) = body["confidence"].as_f64() {
        parts.push(format!("confidence {:.1} %", confidence * 100.0));
    }
    parts.join("  ·  ")
}

fn painted(out: Output, state: &str) -> String {
    let style = match colour(state) {
        Some(comfy_table::Color::Green) => Style::new().green().bold(),
        Some(comfy_table::Color::Red) => Style::new().red().bold(),
        Some(_) | None => Style::new().yellow().bold(),
    };
    out.paint(state, &style)
}
