//! Reads runs, their steps and their events.

use const_format::concatcp;
use std::collections::BTreeMap;

use jurat_core::{
    agent_run::{
        AgentRunEventRow, AgentRunFilter, AgentRunKey, AgentRunStatus, AgentRunSummary,
        EventsStart, StepStatus, counts,
    },
    id::AccountId,
    time::Timestamp,
};

use super::{
    AgentRunEventsQuery, AgentRunRecord,
    rows::{RUN_COLUMNS, STEP_COLUMNS, read_agent_run, read_agent_step, read_event},
};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args},
    },
    ops::tasks::read::LAST,
};

const GET: &str =
    concatcp!("select ", RUN_COLUMNS, " from task_runs where account_id = $1 and id = $2");
/// A run has at most 64 steps.
const STEPS: &str = concatcp!(
    "select ",
    STEP_COLUMNS,
    " from task_run_steps where account_id = $1 and run_id = $2 order by position limit 1000"
);

macro_rules! page {
    ($filter:literal, $at:literal, $id:literal, $limit:literal) => {
        const_format::concatcp!(
            "with page as (\
                 select id, task_type, status, iteration, error, created_at, updated_at, \
                 started_at, finished_at from task_runs where account_id = $1 ",
            $filter,
            " and (created_at, id) < (",
            $at,
            ", ",
            $id,
            ") order by created_at desc, id desc limit ",
            $limit,
            ") select page.id, page.task_type, page.status, page.iteration, page.error, \
             page.created_at, page.updated_at, page.started_at, page.finished_at, \
             steps.status as step_status, count(*) as times from page \
             join task_run_steps as steps on steps.account_id = $1 and steps.run_id = page.id \
             group by page.id, page.task_type, page.status, page.iteration, page.error, \
             page.created_at, page.updated_at, page.started_at, page.finished_at, steps.status \
             order by page.created_at desc, page.id desc, steps.status"
        )
    };
}

const ANY: &str = page!("", "$2", "$3", "$4");
const OF_STATUS: &str = page!("and status = $2", "$3", "$4", "$5");

const AFTER: &str = "\
    select run_id, seq, kind, body, at from task_run_events \
    where account_id = $1 and run_id = $2 and seq > $3 order by seq limit $4";
const BEFORE: &str = "\
    select run_id, seq, kind, body, at from task_run_events \
    where account_id = $1 and run_id = $2 and seq < $3 order by seq desc limit $4";

/// Queued steps are left out: they can be taken now, unless their executor is at its limit until a
/// lease ends.
const NEXT_DUE: &str = "\
    select 'steps' as id, min(at) as at from (\
        select min(run_at) as at from task_run_steps where status = 'RETRY_WAIT' \
        union all select min(lease_until) as at from task_run_steps where status = 'LEASED') \
    as times";
/// Each subquery asks for a minimum, because an index finds a minimum but not an arbitrary row.
const OPEN: &str = "\
    select 'steps' as id, \
    (select min(executor) from task_run_steps where status = 'QUEUED') as queued, \
    (select min(run_at) from task_run_steps where status = 'RETRY_WAIT') as waiting, \
    (select min(lease_until) from task_run_steps where status = 'LEASED') as leased";

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (GET, GET),
    (STEPS, STEPS),
    (ANY, ANY),
    (OF_STATUS, OF_STATUS),
    (AFTER, AFTER),
    (BEFORE, BEFORE),
    (NEXT_DUE, NEXT_DUE),
    (OPEN, OPEN),
];

pub(super) async fn get(tx: &mut Tx<'_>, run: &AgentRunKey) -> Result<Option<AgentRunRecord>> {
    let Some(found) = tx.first(GET, args![&run.account, &run.id], read_agent_run).await? else {
        return Ok(None);
    };
    let steps = tx.all(STEPS, args![&run.account, &run.id], read_agent_step).await?;
    Ok(Some(AgentRunRecord { steps, ..found }))
}

/// A run, and the number of its steps that have one status.
fn read_part(cells: &dyn DbRow) -> Result<AgentRunSummary> {
    let columns = RowReader::new(cells, "task_runs", "id")?;
    let status: StepStatus = columns.word("step_status")?;
    Ok(AgentRunSummary {
        run_id: columns.text("id")?,
        task_type: columns.text("task_type")?,
        status: columns.word("status")?,
        iteration: columns.count("iteration")?,
        error: columns.maybe_text("error")?,
        created_at: columns.time("created_at")?,
        updated_at: columns.time("updated_at")?,
        started_at: columns.maybe_time("started_at")?,
        finished_at: columns.maybe_time("finished_at")?,
        counts: BTreeMap::from([(status, columns.count("times")?)]),
    })
}

pub(super) async fn page(
    tx: &mut Tx<'_>,
    account: &AccountId,
    filter: &AgentRunFilter,
) -> Result<Vec<AgentRunSummary>> {
    let text = if filter.status.is_some() { OF_STATUS } else { ANY };
    let mut args = args![account];
    args.extend(filter.status.map(|status: AgentRunStatus| status.as_str().into()));
    let before = filter.before.as_ref();
    args.push(before.map_or(LAST, |it| it.created_at).into());
    args.push(before.map_or("", |it| it.id.as_str()).into());
    args.push(filter.limit.into());
    let mut runs: Vec<AgentRunSummary> = Vec::new();
    for part in tx.all(text, args, read_part).await? {
        match runs.last_mut() {
            Some(run) if run.run_id == part.run_id => run.counts.extend(part.counts),
            _ => {
                let mut all = counts([]);
                all.extend(part.counts);
                runs.push(AgentRunSummary { counts: all, ..part });
            }
        }
    }
    Ok(runs)
}

pub(super) async fn events(
    tx: &mut Tx<'_>,
    asked: &AgentRunEventsQuery,
) -> Result<Vec<AgentRunEventRow>> {
    let (text, seq) = match asked.from {
        EventsStart::After(seq) => (AFTER, seq),
        EventsStart::Before(seq) => (BEFORE, seq),
    };
    let args = args![&asked.run.account, &asked.run.id, seq, asked.limit];
    tx.all(text, args, read_event).await
}

pub(super) async fn next_due(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "task_run_steps", "id")?.maybe_time("at");
    Ok(tx.first(NEXT_DUE, args![], read).await?.flatten())
}

pub(super) async fn is_idle(tx: &mut Tx<'_>) -> Result<bool> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "task_run_steps", "id")?;
        let times = [columns.maybe_time("waiting")?, columns.maybe_time("leased")?];
        Ok(columns.maybe_text("queued")?.is_none() && times == [None, None])
    };
    Ok(tx.first(OPEN, args![], read).await?.unwrap_or(true))
}
