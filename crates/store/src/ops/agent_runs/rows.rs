//! Rows of runs, their steps and events.

use std::collections::BTreeSet;

use jurat_core::{
    agent_run::{
        AgentRunEvent, AgentRunEventRow, AgentRunKey, AgentStep, StepConclusion, StepLease,
    },
    id::AccountId,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentRunRecord, AgentRunState};
use crate::{
    Result,
    db::row::{DbRow, RowReader, event_texts, json},
};

pub(super) const RUN_COLUMNS: &str = "\
    account_id, id, status, spec, spec_digest, seq, iteration, explored, result, error, \
    created_at, updated_at, started_at, finished_at, ordered_by, pruned_at";

pub(super) const STEP_COLUMNS: &str = "\
    id, status, attempt, last_attempt, run_at, begun_at, lease_token, lease_until, worker, \
    output, error";

pub(super) fn read_agent_run(cells: &dyn DbRow) -> Result<AgentRunRecord> {
    let columns = RowReader::new(cells, "task_runs", "id")?;
    let account = columns.id("account_id", AccountId::parse)?;
    Ok(AgentRunRecord {
        key: AgentRunKey { account, id: columns.text("id")? },
        ordered_by: columns.maybe_text("ordered_by")?,
        spec: columns.document("spec")?,
        spec_digest: columns.text("spec_digest")?,
        seq: columns.count("seq")?,
        state: AgentRunState {
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

pub(super) fn read_agent_step(cells: &dyn DbRow) -> Result<AgentStep> {
    let columns = RowReader::new(cells, "task_run_steps", "id")?;
    let held = columns.maybe_text("lease_token")?.zip(columns.maybe_time("lease_until")?);
    let worker = columns.maybe_text("worker")?;
    let output: Option<ConclusionDocument> = columns.maybe_document("output")?;
    Ok(AgentStep {
        agent_id: columns.text("id")?,
        status: columns.word("status")?,
        attempt: columns.count("attempt")?,
        last_attempt: columns.count("last_attempt")?,
        run_at: columns.time("run_at")?,
        begun_at: columns.maybe_time("begun_at")?,
        lease: held.zip(worker).map(|((token, until), worker)| StepLease { token, until, worker }),
        conclusion: output.map(StepConclusion::from),
        error: columns.maybe_text("error")?,
    })
}

pub(super) fn read_event(cells: &dyn DbRow) -> Result<AgentRunEventRow> {
    let columns = RowReader::new(cells, "task_run_events", "run_id")?;
    let event = AgentRunEvent::new(columns.word("kind")?, columns.document("body")?);
    Ok(AgentRunEventRow { seq: columns.count("seq")?, event, at: columns.time("at")? })
}

pub(super) fn events_text(events: &[AgentRunEvent]) -> Result<String> {
    event_texts(events.iter().map(|event| Ok((event.kind.as_str(), json(&event.body)?))))
}

/// The answer of an agent, as stored in its row.
#[derive(Serialize, Deserialize)]
struct ConclusionDocument {
    output: Value,
    candidate_id: String,
    evidence: BTreeSet<String>,
}

impl From<ConclusionDocument> for StepConclusion {
    fn from(document: ConclusionDocument) -> Self {
        let ConclusionDocument { output, candidate_id, evidence } = document;
        Self { output, candidate_id, evidence }
    }
}

/// The text of a conclusion.
pub(super) fn conclusion_text(conclusion: Option<&StepConclusion>) -> Result<Option<String>> {
    let document = |it: &StepConclusion| {
        json(&ConclusionDocument {
            output: it.output.clone(),
            candidate_id: it.candidate_id.clone(),
            evidence: it.evidence.clone(),
        })
    };
    conclusion.map(document).transpose()
}
