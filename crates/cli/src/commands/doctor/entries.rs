//! Walks over the recorded decisions, a page at a time.

use jurat_core::checkup::CheckupFinding;
use serde_json::{Value, json};

use crate::{
    args::DoctorArgs,
    client::{ApiCall, ApiClient, query},
    output::{Output, backup_progress, counted},
};

const ROUTE: &str = "/v1/doctor/entries";
/// How many of the newest decisions are checked unless all are asked for.
const NEWEST: u64 = 10_000;
const PAGE: u32 = 500;
/// How many problems are named one by one, in a table and at all.
const MOST_SHOWN: usize = 20;
const MOST_KEPT: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct EntriesCheck {
    is_whole: bool,
    checked: u64,
    problems: Vec<Value>,
    problem_count: usize,
}

impl EntriesCheck {
    pub(super) async fn check_all(
        &mut self,
        out: Output,
        client: &ApiClient,
        (total, args): (u64, &DoctorArgs),
    ) -> anyhow::Result<()> {
        let newest = (!args.all_entries).then_some(NEWEST);
        let bar = backup_progress::bar(out);
        if let Some(bar) = &bar {
            bar.set_length(newest.map_or(total, |newest| newest.min(total)));
            bar.set_message("checking decisions");
        }
        let mut parameters =
            [("newest", newest.map(|newest| newest.to_string())), ("cursor", None)];
        loop {
            let [newest, cursor] = parameters;
            let address = query(ROUTE, &[newest, cursor, ("limit", Some(PAGE.to_string()))]);
            let page = client.send(ApiCall::get(address)).await?.success()?.value;
            self.add(&page);
            if let Some(bar) = &bar {
                bar.set_position(self.checked);
            }
            let Some(next) = page["next_cursor"].as_str() else { break };
            parameters = [("newest", None), ("cursor", Some(next.to_owned()))];
        }
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        self.is_whole = true;
        Ok(())
    }

    fn add(&mut self, page: &Value) {
        self.checked += page["checked"].as_u64().unwrap_or(0);
        let problems = page["problems"].as_array().map_or(&[][..], Vec::as_slice);
        self.problem_count += problems.len();
        let free = MOST_KEPT.saturating_sub(self.problems.len());
        self.problems.extend(problems.iter().take(free).cloned());
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
            let word = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
            let text = format!("round `{}`: {}", word("round_id"), word("problem"));
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
