//! Rows of runs, their steps and events.

use jurat_core::id::AccountId;

use super::{
    NewRunEvent, NewStep, RunKey, StepLease, TaskRun, TaskRunEvent, TaskRunStep, TaskRunSummary,
};
use crate::{
    Result,
    rows::{Cells, Columns, event_texts, json},
};

macro_rules! run_columns {
    () => {
        "account_id, id, task_type, status, spec, spec_digest, seq, explored, due_at, result, \
         error, created_at, updated_at, started_at, finished_at"
    };
}
pub(super) use run_columns;

macro_rules! step_columns {
    () => {
        "account_id, run_id, id, executor, body, priority, status, attempt, run_at, lease_token, \
         lease_until, worker, output, error, created_at, updated_at"
    };
}
pub(super) use step_columns;

pub(super) fn read_key(cells: &dyn Cells) -> Result<RunKey> {
    let columns = Columns::new(&cells, "task_runs", "id")?;
    let account = columns.id("account_id", AccountId::parse)?;
    Ok(RunKey { account, id: columns.text("id")? })
}

pub(super) fn read_run(cells: &dyn Cells) -> Result<TaskRun> {
    let columns = Columns::new(&cells, "task_runs", "id")?;
    Ok(TaskRun {
        key: read_key(cells)?,
        task_type: columns.text("task_type")?,
        status: columns.word("status")?,
        spec: columns.document("spec")?,
        spec_digest: columns.text("spec_digest")?,
        seq: columns.count("seq")?,
        explored: columns.document("explored")?,
        due_at: columns.maybe_time("due_at")?,
        result: columns.maybe_document("result")?,
        error: columns.maybe_text("error")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
        started_at: columns.maybe_time("started_at")?,
        finished_at: columns.maybe_time("finished_at")?,
    })
}

pub(super) fn read_summary(cells: &dyn Cells) -> Result<TaskRunSummary> {
    let columns = Columns::new(&cells, "task_runs", "id")?;
    Ok(TaskRunSummary {
        id: columns.text("id")?,
        task_type: columns.text("task_type")?,
        status: columns.word("status")?,
        error: columns.maybe_text("error")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
        started_at: columns.maybe_time("started_at")?,
        finished_at: columns.maybe_time("finished_at")?,
    })
}

pub(super) fn read_step(cells: &dyn Cells) -> Result<TaskRunStep> {
    let columns = Columns::new(&cells, "task_run_steps", "id")?;
    let account = columns.id("account_id", AccountId::parse)?;
    let step = NewStep {
        id: columns.text("id")?,
        executor: columns.text("executor")?,
        body: columns.document("body")?,
        priority: columns.count("priority")?,
        attempt: columns.count("attempt")?,
        run_at: columns.time("run_at")?,
    };
    let held = columns.maybe_text("lease_token")?.zip(columns.maybe_time("lease_until")?);
    let worker = columns.maybe_text("worker")?;
    Ok(TaskRunStep {
        run: RunKey { account, id: columns.text("run_id")? },
        step,
        status: columns.word("status")?,
        lease: held.zip(worker).map(|((token, until), worker)| StepLease { worker, token, until }),
        output: columns.maybe_document("output")?,
        error: columns.maybe_text("error")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
    })
}

pub(super) fn read_event(cells: &dyn Cells) -> Result<TaskRunEvent> {
    let columns = Columns::new(&cells, "task_run_events", "run_id")?;
    let event = NewRunEvent { kind: columns.text("kind")?, body: columns.document("body")? };
    Ok(TaskRunEvent { seq: columns.count("seq")?, event, at: columns.time("at")? })
}

pub(super) fn events_text(events: &[NewRunEvent]) -> Result<String> {
    event_texts(events.iter().map(|event| Ok((event.kind.as_str(), json(&event.body)?))))
}
