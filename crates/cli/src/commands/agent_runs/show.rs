//! A run of several agents, as people read it.

use std::{
    io::{IsTerminal as _, stderr},
    time::Duration,
};

use console::Style;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::output::{
    Output, OutputFormat, Verbosity, complain, shortened,
    table::{cell, fields, said, table, word},
};

const WIDEST: usize = 2_000;
const WIDEST_LINE: usize = 300;

/// A run with its steps.
pub(crate) fn shown(out: Output, body: &Value) -> String {
    let mut lines = vec![
        ("run", said(&body["run_id"])),
        ("type", said(&body["task_type"])),
        ("status", painted(out, &said(&body["status"]))),
        ("created", said(&body["created_at"])),
    ];
    if !body["finished_at"].is_null() {
        lines.push(("finished", said(&body["finished_at"])));
    }
    if body["iteration"].as_u64().is_some_and(|iteration| iteration > 0) {
        lines.push(("repeated", format!("{} times", body["iteration"])));
    }
    if let Some(error) = body["error"].as_str() {
        lines.push(("error", shortened(error, WIDEST)));
    }
    let rows = body["steps"].as_array().into_iter().flatten().map(|step| {
        vec![
            cell(&step["agent_id"]),
            cell(&step["executor"]),
            word(&step["status"]),
            cell(&step["attempt"]),
            cell(&step["task_id"]),
            cell(&step["error"]),
        ]
    });
    let header = ["agent", "executor", "status", "attempt", "task", "error"];
    format!("{}\n{}", fields(&lines), table(out, &header, rows.collect()))
}

/// What came of a run.
pub(crate) fn result(out: Output, body: &Value) -> String {
    let aggregation = &body["result"]["aggregation"];
    let mut parts = Vec::new();
    for (title, name) in [("decision", "final_decision"), ("answer  ", "final_answer")] {
        let value = &aggregation[name];
        if !value.is_null() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            parts.push(format!("{title}  {}", shortened(&text, WIDEST)));
        }
    }
    for bucket in aggregation["buckets"].as_array().into_iter().flatten() {
        parts.push(counted(bucket));
    }
    let mut status = vec![painted(out, &said(&body["status"]))];
    if let Some(error) = body["error"].as_str() {
        status.push(shortened(error, WIDEST));
    }
    parts.push(status.join("  ·  "));
    parts.join("\n")
}

/// How often each value was said, and what decided.
fn counted(bucket: &Value) -> String {
    let candidates = bucket["candidates"].as_array().into_iter().flatten();
    let said_by: Vec<String> = candidates
        .map(|it| format!("{} by {}", shortened(&said(&it["value"]), 80), said(&it["agents"])))
        .collect();
    let decided = match (bucket["decided_by"].as_str(), bucket["unresolved"].as_str()) {
        (Some(step), _) => format!("; tie, decided by {step}"),
        (None, Some(why)) => format!("; unresolved: {why}"),
        (None, None) => String::new(),
    };
    format!("{}: {}{decided}", said(&bucket["name"]), said_by.join(", "))
}

fn painted(out: Output, status: &str) -> String {
    let style = match status {
        "FINALIZED" => Style::new().green().bold(),
        "FAILED" => Style::new().red().bold(),
        _ => Style::new().yellow().bold(),
    };
    out.paint(status, &style)
}

/// Shows the events of a run: lines above a spinner on a terminal, lines elsewhere.
#[derive(Debug)]
pub(crate) enum AgentRunProgress {
    Silent,
    Lines,
    Spinner(ProgressBar),
}

impl AgentRunProgress {
    pub(crate) fn new(out: Output) -> Self {
        if out.format == OutputFormat::Json || out.chatter == Verbosity::Quiet {
            return Self::Silent;
        }
        if !stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self::Spinner(bar)
    }

    pub(crate) fn show(&self, event: &Value) {
        let line = shortened(&event_line(event), WIDEST_LINE);
        match self {
            Self::Silent => {}
            Self::Lines => complain(&line),
            Self::Spinner(bar) => bar.println(&line),
        }
    }

    /// Takes the spinner away; what is printed next says how it ended.
    pub(crate) fn finish(self) {
        if let Self::Spinner(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn event_line(event: &Value) -> String {
    let payload = &event["payload"];
    let (agent, error) = (said(&payload["agent_id"]), said(&payload["error"]));
    match event["event_type"].as_str().unwrap_or_default() {
        "RUN_CREATED" => format!("run created with {} agents", payload["agents"]),
        "RUN_KICKOFF" => "run kicked off".to_owned(),
        "STEP_LEASED" => format!("{agent} started on {}", said(&payload["worker"])),
        "STEP_RELEASED" => format!("{agent} returned to the queue"),
        "STEP_COMPLETED" => format!("{agent} completed"),
        "STEP_RETRY_WAIT" => format!("{agent} will be retried: {error}"),
        "STEP_FAILED" => format!("{agent} failed: {error}"),
        "STEP_CANCELLED" => format!("{agent} cancelled"),
        "RUN_TIE_REEXPLORE_TRIGGERED" => "tie: asking the agents again".to_owned(),
        "RUN_NULL_REEXPLORE_TRIGGERED" => "no value: asking the agents again".to_owned(),
        "RUN_FINALIZED" => "run finalized".to_owned(),
        "RUN_FAILED" => format!("run failed: {error}"),
        "RUN_CANCELLED" => "run cancelled".to_owned(),
        other => other.to_ascii_lowercase().replace('_', " "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_shows_each_answer_and_the_reason() {
        let body = json!({
            "status": "FINALIZED", "error": null,
            "result": { "aggregation": {
                "final_decision": null, "final_answer": "Paris",
                "buckets": [{
                    "name": "answer", "value": "Paris", "decided_by": "STOCHASTIC",
                    "unresolved": null,
                    "candidates": [
                        { "value": "Paris", "agents": ["a"] },
                        { "value": "London", "agents": ["b"] },
                    ],
                }],
            } },
        });
        let text = result(Output::plain(), &body);
        let expected = "answer    Paris\nanswer: Paris by a, London by b; tie, decided by STOCHASTIC\nFINALIZED";
        assert_eq!(text, expected);
    }

    #[test]
    fn events_are_described_in_words() {
        let event = json!({
            "event_type": "STEP_RETRY_WAIT", "payload": { "agent_id": "a", "error": "it broke" },
        });
        assert_eq!(event_line(&event), "a will be retried: it broke");
    }
}
