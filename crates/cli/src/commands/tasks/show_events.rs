//! The progress of a task: a line for each event that matters to people.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, stderr},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::output::{Output, OutputFormat, Verbosity, complain, shortened, table::said};

const WIDEST: usize = 300;

/// Shows events: lines above a spinner on a terminal, lines elsewhere.
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

    pub(crate) fn show(&mut self, event: &Value) {
        let Some(line) = self.teller.line(event) else { return };
        match &self.shown {
            ProgressDisplay::Silent => {}
            ProgressDisplay::Lines => complain(&line),
            ProgressDisplay::Spinner(bar) => {
                bar.println(&line);
                bar.set_message(self.teller.in_progress());
            }
        }
    }

    /// Takes the spinner away; what is printed next says how it ended.
    pub(crate) fn finish(self) {
        if let ProgressDisplay::Spinner(bar) = self.shown {
            bar.finish_and_clear();
        }
    }
}

/// Knows who holds which claim, so that the end of one can be told with a name.
#[derive(Debug, Default)]
pub(crate) struct TaskEventFormatter {
    leases: BTreeMap<u64, (String, String)>,
}

impl TaskEventFormatter {
    /// What an event says; nothing for those that say only that time goes on.
    pub(crate) fn line(&mut self, event: &Value) -> Option<String> {
        let data = &event["data"];
        let name = event["type"].as_str().unwrap_or_default();
        self.note(name, data);
        let text = self.of_work(name, data).or_else(|| of_votes(name, data));
        let text = text.or_else(|| of_the_end(name, data))?;
        Some(shortened(&text, WIDEST))
    }

    fn in_progress(&self) -> String {
        let held = self.leases.values().map(|(role, holder)| format!("{holder} {role}"));
        held.collect::<Vec<_>>().join(", ")
    }

    fn note(&mut self, name: &str, data: &Value) {
        let token = data["token"].as_u64().unwrap_or_default();
        match name {
            "TASK_CLAIMED" => {
                let claim = &data["claim"];
                let does = match claim["role"].as_str() {
                    Some("propose") => "is proposing".to_owned(),
                    Some("verify") => format!("is verifying {}", said(&claim["candidate"])),
                    _ => "is finalizing".to_owned(),
                };
                self.leases.insert(token, (does, said(&claim["holder"])));
            }
            "DECISION_FINALIZED" | "TASK_FAILED" | "TASK_EXPIRED" | "TASK_CANCELLED" => {
                self.leases.clear();
            }
            _ => {}
        }
    }

    fn holder(&mut self, data: &Value) -> String {
        let token = data["token"].as_u64().unwrap_or_default();
        self.leases.remove(&token).map_or_else(|| "an executor".to_owned(), |(_, holder)| holder)
    }

    fn of_work(&mut self, name: &str, data: &Value) -> Option<String> {
        Some(match name {
            "TASK_CLAIMED" => {
                let (does, holder) = self.leases.get(&data["token"].as_u64()?)?;
                format!("{holder} {does}")
            }
            "TASK_CLAIM_RELEASED" => {
                let reason = &data["reason"];
                let why = match reason["why"].as_str() {
                    Some("lease_ran_out") => "its lease ran out".to_owned(),
                    Some("failed") => {
                        format!("{}: {}", said(&reason["code"]), said(&reason["detail"]))
                    }
                    _ => said(&reason["detail"]),
                };
                format!("{} stopped: {why}", self.holder(data))
            }
            "CANDIDATE_PROPOSED" => {
                format!("{} proposed {}", self.holder(data), said(&data["candidate"]))
            }
            "CANDIDATE_REUSED" => {
                format!("{} reused from {}", said(&data["candidate"]), said(&data["source"]))
            }
            "VOTE_COMMIT" => format!("{} committed its vote", self.holder(data)),
            "TASK_RETRY_SCHEDULED" => format!("next proposals at {}", said(&data["at"])),
            _ => return None,
        })
    }
}

fn of_votes(name: &str, data: &Value) -> Option<String> {
    let (candidate, voter) = (said(&data["candidate"]), said(&data["voter"]));
    Some(match name {
        "VOTE_REVEAL" => {
            let ballot = &data["ballot"];
            format!("{voter}: {} (score {})", said(&ballot["status"]), ballot["score"])
        }
        "VOTE_FORFEITED" => format!("{voter} forfeited its vote: {}", said(&data["why"])),
        "EQUIVOCATION_PROVEN" => format!("{voter} gave two verdicts on {candidate}"),
        "DECISION_COMMITTED" => format!("{candidate} is approved"),
        "CANDIDATE_REJECTED" => format!("{candidate} is rejected"),
        "CANDIDATE_UNDECIDED" => format!("{candidate} is undecided: {}", said(&data["why"])),
        "VERIFICATION_REPEATED" => {
            format!("verifying {candidate} again: {}", said(&data["why"]))
        }
        "VOTING_EXTENDED" => format!("{candidate}: asking more voters"),
        _ => return None,
    })
}

fn of_the_end(name: &str, data: &Value) -> Option<String> {
    Some(match name {
        "TASK_CREATED" => "task created".to_owned(),
        "DECISION_FINALIZED" => format!("{} is final", said(&data["candidate"])),
        "TASK_FAILED" => format!("task failed: {}", said(&data["reason"])),
        "TASK_EXPIRED" => format!("task expired: {}", said(&data["reason"])),
        "TASK_CANCELLED" => format!("task cancelled: {}", said(&data["reason"])),
        "EPOCH_ENDED" => format!("epoch {} ended", data["epoch"]),
        "TASK_FEEDBACK_REPORTED" => {
            format!("the decision of epoch {} is disputed", data["epoch"])
        }
        "TASK_SETTLED" => {
            let how = if data["is_bad"] == true { " as bad" } else { "" };
            format!("the decision of epoch {} is settled{how}", data["epoch"])
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
            let event = json!({ "type": name, "data": data });
            assert_eq!(teller.line(&event).as_deref(), expected, "{event}");
        }
    }
}
