//! Formats a run of several agents for people.

use std::{
    io::{IsTerminal as _, stderr},
    time::Duration,
};

use console::Style;
use indicatif::{ProgressBar, ProgressStyle};
use jurat_core::agent_run::{AgentRunEventKind as Kind, AgentRunStatus};
use jurat_wire::api::agent_runs::{
    AgentRunBody, AgentRunEventBody, AgentRunResultBody, ResultBucket,
};
use serde::Deserialize;

use crate::{
    client::SseEvent,
    output::{
        Output, OutputFormat, Verbosity, complain, shortened,
        table::{cell, fields, said, table, word},
    },
};

const WIDEST: usize = 2_000;
const WIDEST_LINE: usize = 300;

/// A run with its steps.
pub(crate) fn shown(out: Output, run: &AgentRunBody<'_>) -> String {
    let mut lines = vec![
        ("run", said(&run.run_id)),
        ("type", said(&run.task_type)),
        ("status", painted(out, run.status.0)),
        ("created", said(&run.created_at)),
    ];
    if let Some(at) = &run.finished_at {
        lines.push(("finished", said(at)));
    }
    if 0 < run.iteration {
        lines.push(("repeated", format!("{} times", run.iteration)));
    }
    if let Some(error) = &run.error {
        lines.push(("error", shortened(error, WIDEST)));
    }
    let rows = run.steps.iter().map(|step| {
        vec![
            cell(&step.agent_id),
            cell(&step.executor),
            word(&step.status),
            cell(&step.attempt),
            cell(&step.task_id),
            cell(&step.error),
        ]
    });
    let header = ["agent", "executor", "status", "attempt", "task", "error"];
    format!("{}\n{}", fields(&lines), table(out, &header, rows.collect()))
}

/// The result of a run.
pub(crate) fn result(out: Output, run: &AgentRunResultBody<'_>) -> String {
    let aggregation = run.aggregation();
    let mut parts = Vec::new();
    let values =
        [("decision", &aggregation.final_decision), ("answer  ", &aggregation.final_answer)];
    for (title, value) in values {
        if !value.is_null() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            parts.push(format!("{title}  {}", shortened(&text, WIDEST)));
        }
    }
    parts.extend(aggregation.buckets.iter().map(counted));
    let mut status = vec![painted(out, run.status.0)];
    if let Some(error) = &run.error {
        status.push(shortened(error, WIDEST));
    }
    parts.push(status.join("  ·  "));
    parts.join("\n")
}

/// The agents behind each value, and the tie-break if there was one.
fn counted(bucket: &ResultBucket) -> String {
    let candidates = bucket.candidates.iter();
    let said_by: Vec<String> = candidates
        .map(|it| format!("{} by {}", shortened(&said(&it.value), 80), said(&it.agents)))
        .collect();
    let decided = match (&bucket.decided_by, &bucket.unresolved) {
        (Some(step), _) => format!("; tie, decided by {step}"),
        (None, Some(why)) => format!("; unresolved: {why}"),
        (None, None) => String::new(),
    };
    format!("{}: {}{decided}", said(&bucket.name), said_by.join(", "))
}

fn painted(out: Output, status: AgentRunStatus) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other status is in between")]
    let style = match status {
        AgentRunStatus::Finalized => Style::new().green().bold(),
        AgentRunStatus::Failed => Style::new().red().bold(),
        _ => Style::new().yellow().bold(),
    };
    out.paint(status.as_str(), &style)
}

/// Shows the events of a run as lines, with a spinner below them on a terminal.
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

    pub(crate) fn show(&self, event: &SseEvent) {
        let Some(event) = event.read() else { return };
        let line = shortened(&event_line(&event), WIDEST_LINE);
        match self {
            Self::Silent => {}
            Self::Lines => complain(&line),
            Self::Spinner(bar) => bar.println(&line),
        }
    }

    /// Removes the spinner; the next output says how the run ended.
    pub(crate) fn finish(self) {
        if let Self::Spinner(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// The payload of an event: each kind has some of these members.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EventPayload {
    agents: Option<u64>,
    agent_id: Option<String>,
    worker: Option<String>,
    error: Option<String>,
}

fn event_line(event: &AgentRunEventBody<'_>) -> String {
    let payload = EventPayload::deserialize(event.payload.as_ref()).unwrap_or_default();
    let (agent, error) = (said(&payload.agent_id), said(&payload.error));
    let kind = event.event_type.0;
    match kind {
        Kind::RunCreated => {
            format!("run created with {} agents", payload.agents.unwrap_or_default())
        }
        Kind::RunKickoff => "run kicked off".to_owned(),
        Kind::StepLeased => format!("{agent} started on {}", said(&payload.worker)),
        Kind::StepReleased => format!("{agent} returned to the queue"),
        Kind::StepCompleted => format!("{agent} completed"),
        Kind::StepRetryWait => format!("{agent} will be retried: {error}"),
        Kind::StepFailed => format!("{agent} failed: {error}"),
        Kind::StepCancelled => format!("{agent} cancelled"),
        Kind::RunTieReexploreTriggered => "tie: asking the agents again".to_owned(),
        Kind::RunNullReexploreTriggered => "no value: asking the agents again".to_owned(),
        Kind::RunFinalized => "run finalized".to_owned(),
        Kind::RunFailed => format!("run failed: {error}"),
        Kind::RunCancelled => "run cancelled".to_owned(),
        Kind::RunCancelRequested | Kind::RunRetryRequested => {
            kind.as_str().to_ascii_lowercase().replace('_', " ")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_shows_each_answer_and_the_reason() {
        let body = json!({
            "run_id": "r", "status": "FINALIZED", "finished_at": null, "error": null,
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
        let text = result(Output::plain(), &serde_json::from_value(body).unwrap());
        let expected = "answer    Paris\nanswer: Paris by a, London by b; tie, decided by STOCHASTIC\nFINALIZED";
        assert_eq!(text, expected);
    }

    #[test]
    fn events_are_described_in_words() {
        let event = json!({
            "id": 1, "run_id": "r", "created_at": "2026-11-16T00:00:00Z",
            "event_type": "STEP_RETRY_WAIT", "payload": { "agent_id": "a", "error": "it broke" },
        });
        let event = serde_json::from_value(event).unwrap();
        assert_eq!(event_line(&event), "a will be retried: it broke");
    }
}
