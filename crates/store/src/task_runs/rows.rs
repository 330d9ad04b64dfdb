//! Rows of runs, their steps and events.

use std::collections::BTreeSet;

use jurat_core::{
    id::AccountId,
    task_run::{Conclusion, RunEvent, Step, StepLease},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{RunKey, RunState, StoredRun, StoredRunEvent};
use crate::{
    Result,
    rows::{Cells, Columns, event_texts, json},
};

macro_rules! run_columns {
    () => {
        "account_id, id, status, spec, spec_digest, seq, iteration, explored, result, error, \
         created_at, updated_at, started_at, finished_at, ordered_by, pruned_at"
    };
}
pub(super) use run_columns;

macro_rules! step_columns {
    () => {
        "id, status, attempt, last_attempt, run_at, begun_at, lease_token, lease_until, worker, \
         output, error"
    };
}
pub(super) use step_columns;

pub(super) fn read_run(cells: &dyn Cells) -> Result<StoredRun> {
    let columns = Columns::new(&cells, "task_runs", "id")?;
    let account = columns.id("account_id", AccountId::parse)?;
    Ok(StoredRun {
        key: RunKey { account, id: columns.text("id")? },
        ordered_by: columns.maybe_text("ordered_by")?,
        spec: columns.document("spec")?,
        spec_digest: columns.text("spec_digest")?,
        seq: columns.count("seq")?,
        state: RunState {
            status: columns.word("status")?,
            iteration: columns.count("iteration")?,
            explored: columns.document("explored")?,
            result: columns.maybe_document("result")?,
            error: columns.maybe_text("error")?,
            updated_at: columns.time("updated_at")?,
            started_at: columns.maybe_time("started_at")?,
            finished_at: columns.maybe_time("finished_at")?,
        },
        created_at: columns.time("created_at")?,
        pruned_at: columns.maybe_time("pruned_at")?,
        steps: Vec::new(),
    })
}

pub(super) fn read_step(cells: &dyn Cells) -> Result<Step> {
    let columns = Columns::new(&cells, "task_run_steps", "id")?;
    let held = columns.maybe_text("lease_token")?.zip(columns.maybe_time("lease_until")?);
    let worker = columns.maybe_text("worker")?;
    let output: Option<ConclusionDocument> = columns.maybe_document("output")?;
    Ok(Step {
        agent_id: columns.text("id")?,
        status: columns.word("status")?,
        attempt: columns.count("attempt")?,
        last_attempt: columns.count("last_attempt")?,
        run_at: columns.time("run_at")?,
        begun_at: columns.maybe_time("begun_at")?,
        lease: held.zip(worker).map(|((token, until), worker)| StepLease { token, until, worker }),
        conclusion: output.map(Conclusion::from),
        error: columns.maybe_text("error")?,
    })
}

pub(super) fn read_event(cells: &dyn Cells) -> Result<StoredRunEvent> {
    let columns = Columns::new(&cells, "task_run_events", "run_id")?;
    let event = RunEvent::new(columns.word("kind")?, columns.document("body")?);
    Ok(StoredRunEvent { seq: columns.count("seq")?, event, at: columns.time("at")? })
}

pub(super) fn events_text(events: &[RunEvent]) -> Result<String> {
    event_texts(events.iter().map(|event| Ok((event.kind.as_str(), json(&event.body)?))))
}

/// What an agent said, as its row keeps it.
#[derive(Serialize, Deserialize)]
struct ConclusionDocument {
    output: Value,
    candidate_id: String,
    evidence: BTreeSet<String>,
}

impl From<ConclusionDocument> for Conclusion {
    fn from(document: ConclusionDocument) -> Self {
        let ConclusionDocument { output, candidate_id, evidence } = document;
        Self { output, candidate_id, evidence }
    }
}

/// The text of what an agent said.
pub(super) fn conclusion_text(conclusion: Option<&Conclusion>) -> Result<Option<String>> {
    let document = |it: &Conclusion| {
        json(&ConclusionDocument {
            output: it.output.clone(),
            candidate_id: it.candidate_id.clone(),
            evidence: it.evidence.clone(),
        })
    };
    conclusion.map(document).transpose()
}
