//! Formats a task and its decision for people.

use comfy_table::Cell;
use console::Style;
use jurat_core::round::consensus::Basis;
use jurat_wire::api::tasks::{
    BudgetAccount, CandidateBody, DecisionBody, TaskBody, TaskRosterBody, VoteBody,
};

use crate::output::{
    Output, shortened,
    table::{cell, colour, fields, said, table, word},
};

const WIDEST: usize = 2_000;

/// A task with its candidates and votes.
pub(crate) fn shown(out: Output, task: &TaskBody<'_>) -> String {
    let mut parts = vec![head(out, task)];
    if !task.candidates.is_empty() {
        parts.push(candidates_table(out, &task.candidates));
    }
    let votes: Vec<Vec<Cell>> = task
        .candidates
        .iter()
        .flat_map(|candidate| {
            let id = &candidate.candidate_id;
            candidate.votes.iter().map(move |vote| {
                let mut row = vec![cell(id)];
                row.extend(vote_row(vote));
                row
            })
        })
        .collect();
    if !votes.is_empty() {
        parts.push(table(out, &["candidate", "voter", "verdict", "score", "detail"], votes));
    }
    parts.join("\n")
}

fn head(out: Output, task: &TaskBody<'_>) -> String {
    let mut lines = vec![
        ("task", said(&task.task_id)),
        ("type", said(&task.task_type)),
        ("state", painted(out, task.state.0.as_str())),
        ("epoch", task.epoch.to_string()),
        ("executors", said(&task.panel.executors)),
        ("voters", voters(&task.panel)),
        ("profile", said(&task.panel.profile)),
        ("created", said(&task.created_at)),
    ];
    if task.ended_at.is_none() {
        lines.push(("deadline", said(&task.deadline_at)));
    } else {
        lines.push(("ended", said(&task.ended_at)));
    }
    let of = |account: &BudgetAccount| format!("{} of {}", account.spent, account.limit);
    lines.push(("steps", of(&task.spent.steps)));
    lines.push(("cost units", of(&task.spent.cost_units)));
    for lease in &task.claims {
        let (role, holder, until) = (said(&lease.role), said(&lease.holder), said(&lease.until));
        lines.push(("in progress", format!("{role} by {holder} until {until}")));
    }
    if let Some(candidate) = &task.finalized_candidate_id {
        lines.push(("final candidate", said(candidate)));
    }
    for decision in &task.settling {
        let (epoch, at) = (decision.epoch, said(&decision.settles_at));
        let complaint = decision.complaint.as_ref();
        let complaint = complaint.map(|it| format!(", disputed: {it}")).unwrap_or_default();
        lines.push(("settles", shortened(&format!("epoch {epoch} at {at}{complaint}"), WIDEST)));
    }
    if let Some(reason) = &task.reason {
        lines.push(("reason", shortened(reason, WIDEST)));
    }
    fields(&lines)
}

fn voters(roster: &TaskRosterBody<'_>) -> String {
    let named = said(&roster.verifiers);
    if roster.node_votes { format!("{named} and this node") } else { named }
}

fn candidates_table(out: Output, candidates: &[CandidateBody<'_>]) -> String {
    let rows = candidates.iter().map(|candidate| {
        vec![
            cell(&candidate.candidate_id),
            cell(&candidate.proposers),
            word(&candidate.standing),
            cell(&candidate.gap),
            cell(&candidate.turn),
        ]
    });
    table(out, &["candidate", "proposed by", "state", "gap", "turn"], rows.collect())
}

fn vote_row(vote: &VoteBody<'_>) -> Vec<Cell> {
    let detail = match (&vote.forfeited, &vote.verdict) {
        (None, None) => "committed, not revealed yet".to_owned(),
        (None, Some(_)) => said(&vote.reason_codes),
        (Some(why), _) => format!("forfeited: {}", said(why)),
    };
    vec![cell(&vote.voter), word(&vote.verdict), cell(&vote.score), Cell::new(detail)]
}

/// The decision of a task, or the reason why there is none.
pub(crate) fn decision(out: Output, decision: &DecisionBody<'_>) -> String {
    let mut parts = Vec::new();
    if !decision.votes.is_empty() {
        let rows = decision.votes.iter().map(vote_row).collect();
        parts.push(table(out, &["voter", "verdict", "score", "detail"], rows));
    }
    if let Some(output) = decision.output.as_deref().filter(|output| !output.is_null()) {
        let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        parts.push(format!("answer  {}", shortened(&text, WIDEST)));
    }
    parts.push(conclusion(out, decision));
    let mut lines = vec![("task", said(&decision.task_id))];
    let named = [
        ("candidate", &decision.candidate_id),
        ("executor", &decision.executor),
        ("decision", &decision.final_hash),
    ];
    for (title, value) in named {
        if let Some(value) = value {
            lines.push((title, shortened(&said(value), 100)));
        }
    }
    if let Some(reason) = &decision.reason {
        lines.push(("reason", shortened(reason, WIDEST)));
    }
    parts.push(fields(&lines));
    parts.join("\n")
}

fn conclusion(out: Output, decision: &DecisionBody<'_>) -> String {
    let mut parts = vec![painted(out, decision.state.0.as_str())];
    if decision.candidate_id.is_some() {
        let (approvals, rejections) = (decision.approvals, decision.rejections);
        parts.push(format!("{approvals} approve, {rejections} reject"));
        parts.push(format!("quorum {}", decision.quorum_threshold));
    }
    if decision.basis.is_some_and(|basis| basis.0 == Basis::Form) {
        parts.push("form only, not truth".to_owned());
    }
    if let Some(confidence) = decision.confidence {
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
