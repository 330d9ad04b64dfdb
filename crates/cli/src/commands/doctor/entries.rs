//! Checks the recorded decisions, page by page.

use jurat_client::node::{self, EntryRange};
use jurat_core::checkup::CheckupFinding;
use jurat_wire::api::doctor::{CheckedEntries, EntryProblem};
use serde_json::{Value, json};

use crate::{
    client::ApiClient,
    output::{Output, backup_progress, counted},
};

/// Number of the newest decisions that are checked by default.
const NEWEST: u64 = 10_000;
const PAGE: u32 = 500;
/// Maximum numbers of problems in the table and in the JSON output.
const MOST_SHOWN: usize = 20;
const MOST_KEPT: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct EntriesCheck {
    is_whole: bool,
    checked: u64,
    problems: Vec<EntryProblem<'static>>,
    problem_count: usize,
}

/// The number of decisions, and whether to check them all.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntriesWanted {
    pub(super) total: u64,
    pub(super) all: bool,
}

impl EntriesCheck {
    pub(super) async fn check_all(
        &mut self,
        out: Output,
        client: &ApiClient,
        wanted: EntriesWanted,
    ) -> anyhow::Result<()> {
        let EntriesWanted { total, all } = wanted;
        let newest = (!all).then_some(NEWEST);
        let bar = backup_progress::bar(out);
        if let Some(bar) = &bar {
            bar.set_length(newest.map_or(total, |newest| newest.min(total)));
            bar.set_message("checking decisions");
        }
        let mut range = EntryRange { newest, cursor: None, limit: PAGE };
        loop {
            let mut page = client.send(node::doctor_entries(&range)).await?.value;
            let next = page.next_cursor.take();
            self.add(page);
            if let Some(bar) = &bar {
                bar.set_position(self.checked);
            }
            if next.is_none() {
                break;
            }
            range = EntryRange { newest: None, cursor: next, limit: PAGE };
        }
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        self.is_whole = true;
        Ok(())
    }

    fn add(&mut self, page: CheckedEntries<'static>) {
        self.checked += u64::try_from(page.checked).unwrap_or(u64::MAX);
        self.problem_count += page.problems.len();
        let free = MOST_KEPT.saturating_sub(self.problems.len());
        self.problems.extend(page.problems.into_iter().take(free));
    }

    pub(super) fn findings(&self) -> Vec<CheckupFinding> {
        let checked = self.checked;
        if self.problem_count == 0 {
            let text = if checked == 1 {
                "1 decision recomputed, and it matches its record".to_owned()
            } else {
                format!("{checked} decisions recomputed, and all match their records")
            };
            return vec![CheckupFinding::ok("entries", text)];
        }
        let advice = "Find out what changed the database outside Jurat, and restore a backup.";
        let named = self.problems.iter().take(MOST_SHOWN).map(|problem| {
            let text = format!("round `{}`: {}", problem.round_id, problem.problem);
            CheckupFinding::problem("entries", text, advice)
        });
        let mut findings: Vec<CheckupFinding> = named.collect();
        let more = self.problem_count.saturating_sub(findings.len());
        if 0 < more {
            let (more, checked) = (counted(more, "more problem"), counted(checked, "decision"));
            let text = format!("{more} in {checked}; `--json` lists them");
            findings.push(CheckupFinding::problem("entries", text, advice));
        }
        findings
    }

    pub(super) fn body(&self) -> Value {
        if !self.is_whole {
            return Value::Null;
        }
        let count = self.problem_count;
        json!({ "checked": self.checked, "problems": self.problems, "problem_count": count })
    }
}
