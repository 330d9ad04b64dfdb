//! The progress of a task: a line for each event that matters to people.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, stderr},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use jurat_wire::api::tasks::TaskEventBody;
use serde::Deserialize;

use crate::{
    client::SseEvent,
    output::{Output, OutputFormat, Verbosity, complain, shortened, table::said},
};

const WIDEST: usize = 300;

/// Shows events as lines, with a spinner below them on a terminal.
#[derive(Debug)]
pub(crate) struct TaskProgress {
    teller: TaskEventFormatter,
    shown: ProgressDisplay,
}

#[derive(Debug)]
enum ProgressDisplay {
    Silent,
    Lines,
    Spinner(ProgressBar),
}

impl TaskProgress {
    pub(crate) fn new(out: Output) -> Self {
        let shown = if out.format == OutputFormat::Json || out.chatter == Verbosity::Quiet {
            ProgressDisplay::Silent
        } else if stderr().is_terminal() {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(100));
            ProgressDisplay::Spinner(bar)
        } else {
            ProgressDisplay::Lines
        };
        Self { teller: TaskEventFormatter::default(), shown }
    }

    pub(crate) fn show(&mut self, event: &SseEvent) {
        let line = event.read().and_then(|event| self.teller.line(&event));
        let Some(line) = line else { return };
        match &self.shown {
            ProgressDisplay::Silent => {}
            ProgressDisplay::Lines => complain(&line),
            ProgressDisplay::Spinner(bar) => {
                bar.println(&line);
                bar.set_message(self.teller.in_progress());
            }
        }
    }

    /// Removes the spinner; the next output says how the task ended.
    pub(crate) fn finish(self) {
        if let ProgressDisplay::Spinner(bar) = self.shown {
            bar.finish_and_clear();
        }
    }
}

/// The data of an event: each kind has some of these members.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EventData {
    token: Option<u64>,
    claim: Option<LeaseData>,
    reason: Option<EventReason>,
    candidate: Option<String>,
    source: Option<String>,
    voter: Option<String>,
    ballot: Option<BallotData>,
    why: Option<String>,
    at: Option<String>,
    epoch: Option<u64>,
    is_bad: bool,
}

#[derive(Debug, Deserialize)]
struct LeaseData {
    role: String,
    holder: String,
    candidate: Option<String>,
}

/// The reason why a lease or a task ended.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum EventReason {
    OfTask(String),
    OfLease { why: String, code: Option<String>, detail: Option<String> },
}

#[derive(Debug, Deserialize)]
struct BallotData {
    status: String,
    score: f64,
}

/// A lease that has not ended.
#[derive(Debug)]
struct HeldLease {
    work: String,
    holder: String,
}

/// Remembers the holder of each lease, to name it when the lease ends.
#[derive(Debug, Default)]
pub(crate) struct TaskEventFormatter {
    leases: BTreeMap<u64, HeldLease>,
}

impl TaskEventFormatter {
    /// A line for an event; `None` for an event that does not matter to people.
    pub(crate) fn line(&mut self, event: &TaskEventBody<'_>) -> Option<String> {
        let data = EventData::deserialize(&event.data).unwrap_or_default();
        let name = event.r#type.0.as_ref();
        self.note(name, &data);
        let text = self.of_work(name, &data).or_else(|| of_votes(name, &data));
        let text = text.or_else(|| of_the_end(name, &data))?;
        Some(shortened(&text, WIDEST))
    }

    fn in_progress(&self) -> String {
        let held = self.leases.values().map(|lease| format!("{} {}", lease.holder, lease.work));
        held.collect::<Vec<_>>().join(", ")
    }

    fn note(&mut self, name: &str, data: &EventData) {
        match (name, &data.claim) {
            ("TASK_CLAIMED", Some(lease)) => {
                let work = match lease.role.as_str() {
                    "propose" => "is proposing".to_owned(),
                    "verify" => format!("is verifying {}", said(&lease.candidate)),
                    _ => "is finalizing".to_owned(),
                };
                let held = HeldLease { work, holder: said(&lease.holder) };
                self.leases.insert(data.token.unwrap_or_default(), held);
            }
            ("DECISION_FINALIZED" | "TASK_FAILED" | "TASK_EXPIRED" | "TASK_CANCELLED", _) => {
                self.leases.clear();
            }
            _ => {}
        }
    }

    fn holder(&mut self, data: &EventData) -> String {
        let lease = self.leases.remove(&data.token.unwrap_or_default());
        lease.map_or_else(|| "an executor".to_owned(), |lease| lease.holder)
    }

    fn of_work(&mut self, name: &str, data: &EventData) -> Option<String> {
        Some(match name {
            "TASK_CLAIMED" => {
                let HeldLease { work, holder } = self.leases.get(&data.token?)?;
                format!("{holder} {work}")
            }
            "TASK_CLAIM_RELEASED" => {
                format!("{} stopped: {}", self.holder(data), lease_end(data.reason.as_ref()))
            }
            "CANDIDATE_PROPOSED" => {
                format!("{} proposed {}", self.holder(data), said(&data.candidate))
            }
            "CANDIDATE_REUSED" => {
                format!("{} reused from {}", said(&data.candidate), said(&data.source))
            }
            "VOTE_COMMIT" => format!("{} committed its vote", self.holder(data)),
            "TASK_RETRY_SCHEDULED" => format!("next proposals at {}", said(&data.at)),
            _ => return None,
        })
    }
}

fn lease_end(reason: Option<&EventReason>) -> String {
    match reason {
        Some(EventReason::OfLease { why, code, detail }) => match why.as_str() {
            "lease_ran_out" => "its lease ran out".to_owned(),
            "failed" => format!("{}: {}", said(code), said(detail)),
            _ => said(detail),
        },
        Some(EventReason::OfTask(reason)) => said(reason),
        None => "–".to_owned(),
    }
}

fn of_votes(name: &str, data: &EventData) -> Option<String> {
    let (candidate, voter) = (said(&data.candidate), said(&data.voter));
    Some(match name {
        "VOTE_REVEAL" => {
            let ballot = data.ballot.as_ref()?;
            format!("{voter}: {} (score {})", said(&ballot.status), said(&ballot.score))
        }
        "VOTE_FORFEITED" => format!("{voter} forfeited its vote: {}", said(&data.why)),
        "EQUIVOCATION_PROVEN" => format!("{voter} gave two verdicts on {candidate}"),
        "DECISION_COMMITTED" => format!("{candidate} is approved"),
        "CANDIDATE_REJECTED" => format!("{candidate} is rejected"),
        "CANDIDATE_UNDECIDED" => format!("{candidate} is undecided: {}", said(&data.why)),
        "VERIFICATION_REPEATED" => {
            format!("verifying {candidate} again: {}", said(&data.why))
        }
        "VOTING_EXTENDED" => format!("{candidate}: asking more voters"),
        _ => return None,
    })
}

fn of_the_end(name: &str, data: &EventData) -> Option<String> {
    let reason = match &data.reason {
        Some(EventReason::OfTask(reason)) => said(reason),
        Some(EventReason::OfLease { .. }) | None => "–".to_owned(),
    };
    let epoch = data.epoch.unwrap_or_default();
    Some(match name {
        "TASK_CREATED" => "task created".to_owned(),
        "DECISION_FINALIZED" => format!("{} is final", said(&data.candidate)),
        "TASK_FAILED" => format!("task failed: {reason}"),
        "TASK_EXPIRED" => format!("task expired: {reason}"),
        "TASK_CANCELLED" => format!("task cancelled: {reason}"),
        "EPOCH_ENDED" => format!("epoch {epoch} ended"),
        "TASK_FEEDBACK_REPORTED" => format!("the decision of epoch {epoch} is disputed"),
        "TASK_SETTLED" => {
            let how = if data.is_bad { " as bad" } else { "" };
            format!("the decision of epoch {epoch} is settled{how}")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_of_work_is_shown_with_its_executor() {
        let mut teller = TaskEventFormatter::default();
        let claim = |role: &str| json!({ "role": role, "holder": "alpha", "candidate": "cand-1" });
        for (name, data, expected) in [
            (
                "TASK_CLAIMED",
                json!({ "token": 1, "claim": claim("propose") }),
                Some("alpha is proposing"),
            ),
            ("BUDGET_CHARGED", json!({ "role": "propose" }), None),
            ("TASK_CLAIM_RENEWED", json!({ "token": 1 }), None),
            (
                "TASK_CLAIM_RELEASED",
                json!({ "token": 1, "reason": { "why": "failed", "code": "timeout", "detail": "no answer\u{1b}[2J" } }),
                Some("alpha stopped: timeout: no answer\\u{1b}[2J"),
            ),
            (
                "TASK_CLAIMED",
                json!({ "token": 2, "claim": claim("verify") }),
                Some("alpha is verifying cand-1"),
            ),
            ("VOTE_COMMIT", json!({ "token": 2 }), Some("alpha committed its vote")),
            (
                "VOTE_REVEAL",
                json!({ "voter": "alpha", "ballot": { "status": "passed", "score": 0.9 } }),
                Some("alpha: passed (score 0.9)"),
            ),
            (
                "TASK_FAILED",
                json!({ "reason": "nobody is left" }),
                Some("task failed: nobody is left"),
            ),
        ] {
            let at = "2026-11-16T00:00:00Z";
            let event = json!({ "task_id": "t", "seq": 1, "type": name, "at": at, "data": data });
            let read = serde_json::from_value(event).unwrap();
            assert_eq!(teller.line(&read).as_deref(), expected, "{name} {data}");
        }
    }
}
