//! Reading runs, their steps and their events.

use std::collections::BTreeMap;

use jurat_core::{
    task_run::{RunStatus, StepStatus},
    time::Timestamp,
};

use super::{
    EventsFrom, RunEventsAsked, RunKey, TaskRun, TaskRunEvent, TaskRunFilter, TaskRunStep,
    TaskRunSummary,
    rows::{read_event, read_run, read_step, read_summary, run_columns, step_columns},
};
use crate::{
    Result,
    both::{Tx, args},
    rows::{Cells, Columns},
    tasks::read::LAST,
};

const GET: &str =
    concat!("select ", run_columns!(), " from task_runs where account_id = $1 and id = $2");

macro_rules! page {
    ($filter:literal, $at:literal, $id:literal, $limit:literal) => {
        concat!(
            "select id, task_type, status, error, created_at, updated_at, started_at, finished_at \
             from task_runs where account_id = $1 ",
            $filter,
            " and (created_at, id) < (",
            $at,
            ", ",
            $id,
            ") order by created_at desc, id desc limit ",
            $limit
        )
    };
}

const ANY: &str = page!("", "$2", "$3", "$4");
const OF_STATUS: &str = page!("and status = $2", "$3", "$4", "$5");

/// More than a run can have.
const STEPS: &str = concat!(
    "select ",
    step_columns!(),
    " from task_run_steps where account_id = $1 and run_id = $2 order by id limit 1000"
);
const COUNTS: &str = "\
    select status, count(*) as times from task_run_steps \
    where account_id = $1 and run_id = $2 group by status";

const AFTER: &str = "\
    select run_id, seq, kind, body, at from task_run_events \
    where account_id = $1 and run_id = $2 and seq > $3 order by seq limit $4";
const BEFORE: &str = "\
    select run_id, seq, kind, body, at from task_run_events \
    where account_id = $1 and run_id = $2 and seq < $3 order by seq desc limit $4";

const NEXT_DUE: &str = "\
    select 'runs' as id, min(at) as at from (\
        select min(run_at) as at from task_run_steps where status = 'RETRY_WAIT' \
        union all select min(lease_until) as at from task_run_steps where status = 'LEASED' \
        union all select min(due_at) as at from task_runs where due_at is not null) as times";

pub(super) async fn get(tx: &mut impl Tx, run: &RunKey) -> Result<Option<TaskRun>> {
    tx.first(GET, args![&run.account, &run.id], read_run).await
}

pub(super) async fn page(tx: &mut impl Tx, filter: &TaskRunFilter) -> Result<Vec<TaskRunSummary>> {
    let text = if filter.status.is_some() { OF_STATUS } else { ANY };
    let mut args = args![&filter.account];
    args.extend(filter.status.map(|status: RunStatus| status.as_str().into()));
    let before = filter.before.as_ref();
    args.push(before.map_or(LAST, |it| it.created_at).into());
    args.push(before.map_or("", |it| it.id.as_str()).into());
    args.push(filter.limit.into());
    tx.all(text, args, read_summary).await
}

pub(super) async fn steps(tx: &mut impl Tx, run: &RunKey) -> Result<Vec<TaskRunStep>> {
    tx.all(STEPS, args![&run.account, &run.id], read_step).await
}

pub(super) async fn counts(tx: &mut impl Tx, run: &RunKey) -> Result<BTreeMap<StepStatus, u32>> {
    let read = |cells: &dyn Cells| {
        let columns = Columns::new(&cells, "task_run_steps", "status")?;
        Ok((columns.word("status")?, columns.count("times")?))
    };
    let counts = tx.all(COUNTS, args![&run.account, &run.id], read).await?;
    Ok(counts.into_iter().collect())
}

pub(super) async fn events(tx: &mut impl Tx, asked: &RunEventsAsked) -> Result<Vec<TaskRunEvent>> {
    let (text, seq) = match asked.from {
        EventsFrom::After(seq) => (AFTER, seq),
        EventsFrom::Before(seq) => (BEFORE, seq),
    };
    let args = args![&asked.run.account, &asked.run.id, seq, asked.limit];
    tx.all(text, args, read_event).await
}

pub(super) async fn next_due(tx: &mut impl Tx) -> Result<Option<Timestamp>> {
    let read = |cells: &dyn Cells| Columns::new(&cells, "task_runs", "id")?.maybe_time("at");
    Ok(tx.first(NEXT_DUE, args![], read).await?.flatten())
}
