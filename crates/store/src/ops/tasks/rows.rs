//! Rows of tasks, their events, candidates and ballots.

use jurat_core::{
    id::{AccountId, RoundId},
    round::candidate::{ArtifactRef, Evidence},
    task::{TaskCandidateRow, TaskEvent, TaskEventRow, TaskKey, TaskRecord, TaskSummary},
};

use super::TaskBallotRow;
use crate::{
    Result,
    db::row::{DbRow, RowReader, event_texts, json},
    ops::documents::{InlineDocument, ReferenceDocument},
};

pub(super) fn read_key(cells: &dyn DbRow) -> Result<TaskKey> {
    let columns = RowReader::new(cells, "tasks", "id")?;
    let account = columns.id("account_id", AccountId::parse)?;
    Ok(TaskKey { account, id: columns.text("id")? })
}

pub(crate) fn read_record(cells: &dyn DbRow) -> Result<TaskRecord> {
    let columns = RowReader::new(cells, "tasks", "id")?;
    Ok(TaskRecord {
        key: read_key(cells)?,
        task_type: columns.text("task_type")?,
        contract: columns.document("contract")?,
        contract_digest: columns.text("contract_digest")?,
        panel: columns.document("panel")?,
        ordered_by: columns.maybe_text("ordered_by")?,
        state: columns.document("state")?,
        seq: columns.count("seq")?,
        due_at: columns.maybe_time("due_at")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
        ended_at: columns.maybe_time("ended_at")?,
        reason: columns.maybe_text("reason")?,
    })
}

pub(super) fn read_summary(cells: &dyn DbRow) -> Result<TaskSummary> {
    let columns = RowReader::new(cells, "tasks", "id")?;
    Ok(TaskSummary {
        id: columns.text("id")?,
        task_type: columns.text("task_type")?,
        phase: columns.word("phase")?,
        seq: columns.count("seq")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
        ended_at: columns.maybe_time("ended_at")?,
        reason: columns.maybe_text("reason")?,
    })
}

pub(super) fn read_event(cells: &dyn DbRow) -> Result<TaskEventRow> {
    let columns = RowReader::new(cells, "task_events", "task_id")?;
    let event = columns.document("body")?;
    Ok(TaskEventRow { seq: columns.count("seq")?, event, at: columns.time("at")? })
}

pub(super) fn read_candidate(cells: &dyn DbRow) -> Result<TaskCandidateRow> {
    let columns = RowReader::new(cells, "task_candidates", "candidate_id")?;
    let inline: Vec<InlineDocument<'_>> = columns.document("evidence_inline")?;
    Ok(TaskCandidateRow {
        id: columns.text("candidate_id")?,
        execution_id: columns.text("execution_id")?,
        executor: columns.text("executor")?,
        round: read_round(&columns)?,
        output: columns.document("output")?,
        evidence: Evidence {
            inline: inline.into_iter().map(Into::into).collect(),
            refs: read_refs(cells)?,
        },
        digest: columns.text("digest")?,
        created_at: columns.time("created_at")?,
    })
}

pub(super) fn read_refs(cells: &dyn DbRow) -> Result<Vec<ArtifactRef>> {
    let columns = RowReader::new(cells, "task_candidates", "candidate_id")?;
    let refs: Vec<ReferenceDocument<'_>> = columns.document("evidence_refs")?;
    Ok(refs.into_iter().map(Into::into).collect())
}

pub(super) fn read_ballot(cells: &dyn DbRow) -> Result<TaskBallotRow> {
    let columns = RowReader::new(cells, "task_ballots", "voter")?;
    Ok(TaskBallotRow {
        candidate: columns.text("candidate_id")?,
        turn: columns.count("turn")?,
        voter: columns.text("voter")?,
        ballot: columns.document("ballot")?,
        salt: columns.text("salt")?,
        round: read_round(&columns)?,
        created_at: columns.time("created_at")?,
    })
}

fn read_round(columns: &RowReader<'_>) -> Result<Option<RoundId>> {
    let round = columns.maybe_text("round_id")?;
    round.map(|text| RoundId::parse(&text).map_err(|why| columns.bad("round_id", why))).transpose()
}

pub(super) fn events_text(events: &[TaskEvent]) -> Result<String> {
    event_texts(events.iter().map(|event| Ok((event.name(), json(event)?))))
}

pub(super) fn inline_text(evidence: &Evidence) -> Result<String> {
    json(&evidence.inline.iter().map(InlineDocument::from).collect::<Vec<_>>())
}

pub(super) fn refs_text(evidence: &Evidence) -> Result<String> {
    json(&evidence.refs.iter().map(ReferenceDocument::from).collect::<Vec<_>>())
}
