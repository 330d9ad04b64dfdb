//! How far a measurement is: a bar on a terminal, nothing elsewhere.

use indicatif::ProgressBar;

use super::show_measurement::{CaseResult, side};
use crate::client::SseEvent;
use crate::output::{Output, backup_progress::bar};

/// The event of a case that was judged.
const CASE: &str = "case";

#[derive(Debug)]
pub(crate) struct CasesBar {
    bar: Option<ProgressBar>,
    wrong: u64,
}

impl CasesBar {
    pub(crate) fn new(out: Output) -> Self {
        Self { bar: bar(out), wrong: 0 }
    }

    pub(crate) fn show(&mut self, event: &SseEvent) {
        let Some(bar) = self.bar.as_ref().filter(|_| event.name == CASE) else { return };
        let body = event.value();
        if side(&body["case"]) == CaseResult::Wrong {
            self.wrong += 1;
        }
        bar.set_length(body["total"].as_u64().unwrap_or(0));
        bar.inc(1);
        bar.set_message(format!("judging cases, {} wrong", self.wrong));
    }

    /// Takes the bar away; the report says the same.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
