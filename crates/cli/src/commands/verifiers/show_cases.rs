//! The progress of a measurement: a bar on a terminal, nothing elsewhere.

use indicatif::ProgressBar;
use jurat_wire::api::verifier_tests::CaseEvent;

use super::show_measurement::{CaseResult, side};
use crate::client::SseEvent;
use crate::output::{Output, backup_progress::bar};

/// Name of the event for a judged case.
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
        let Some(event) = event.read::<CaseEvent<'_>>() else { return };
        if side(&event.case) == CaseResult::Wrong {
            self.wrong += 1;
        }
        bar.set_length(u64::try_from(event.total).unwrap_or(u64::MAX));
        bar.inc(1);
        bar.set_message(format!("judging cases, {} wrong", self.wrong));
    }

    /// Removes the bar; the report shows the same.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
