//! Open work in the whole installation, for its operators.

use jurat_core::{
    agent_run::AgentRunStatus,
    id::AccountId,
    task::{TaskPhase, TaskRecord},
    time::Timestamp,
};

use super::tasks::rows::read_record;
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Open work of all accounts, read through indexes that hold only open rows.
    pub struct OpenWorkOps = store.open_work();
    reads {
        fn counts() -> OpenWorkCounts = counts;
        /// Tasks that were due before a time, the longest due first.
        fn overdue(before: &Timestamp, limit: &u32) -> Vec<TaskRecord> = overdue;
        /// The number of events of an account that failed since a time, counted up to the limit.
        fn given_up(account: &AccountId, since: &Timestamp, limit: &u32) -> u32 = given_up;
    }
}

/// The amount of open work.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenWorkCounts {
    /// Tasks by phase; phases without tasks are left out.
    pub tasks: Vec<(TaskPhase, u64)>,
    /// Agent runs by status; statuses without runs are left out.
    pub runs: Vec<(AgentRunStatus, u64)>,
    /// Queued steps of agent runs, and the time since which the first is queued.
    pub queued: QueueDepth,
    /// Leased steps, and when the first lease ends.
    pub leased: QueueDepth,
    /// The number of workers that have steps.
    pub workers: u64,
    /// Undelivered events, and the time since which the first is pending.
    pub events: QueueDepth,
    /// Waiting webhook deliveries, and when the first was due.
    pub deliveries: QueueDepth,
}

/// The number of waiting items, counted up to a limit, and the earliest time among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueDepth {
    pub count: u64,
    pub first: Option<Timestamp>,
}

/// SQLite is given the name of the index, because it does not know how few rows are open.
const TASKS: (&str, &str) = (
    "select phase as id, count(*) as times from tasks indexed by tasks_open \
     where ended_at is null group by phase order by phase",
    "select phase as id, count(*) as times from tasks \
     where ended_at is null group by phase order by phase",
);
const AGENT_RUNS: (&str, &str) = (
    "select status as id, count(*) as times from task_runs indexed by task_runs_open \
     where finished_at is null group by status order by status",
    "select status as id, count(*) as times from task_runs \
     where finished_at is null group by status order by status",
);
const QUEUED: &str = "\
    select 'steps' as id, count(*) as times, min(run_at) as earliest, cast(0 as bigint) as workers from (\
        select run_at from task_run_steps where status = 'QUEUED' limit 10000) as queued";
const LEASED: &str = "\
    select 'steps' as id, count(*) as times, min(lease_until) as earliest, \
    count(distinct worker) as workers from (\
        select lease_until, worker from task_run_steps where status = 'LEASED' limit 10000) as leased";
const EVENTS: &str = "\
    select 'events' as id, count(*) as times, min(created_at) as earliest, cast(0 as bigint) as workers from (\
        select created_at from agent_events where next_at is not null limit 100000) as pending";

const DELIVERIES: &str = "\
    select 'deliveries' as id, count(*) as times, min(next_at) as earliest, cast(0 as bigint) as workers from (\
        select next_at from webhook_deliveries where next_at is not null limit 100000) as pending";

const OVERDUE: &str = "\
    select account_id, id, task_type, contract, contract_digest, panel, state, seq, due_at, \
    created_at, updated_at, ended_at, reason, ordered_by from tasks where due_at < $1 \
    order by due_at limit $2";
const GIVEN_UP: &str = "\
    select $1 as id, count(*) as times from (\
        select 1 from agent_events where account_id = $1 and state in ('failed', 'expired') \
        and created_at >= $2 limit $3) as given_up";

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    TASKS,
    AGENT_RUNS,
    (QUEUED, QUEUED),
    (LEASED, LEASED),
    (EVENTS, EVENTS),
    (DELIVERIES, DELIVERIES),
    (OVERDUE, OVERDUE),
    (GIVEN_UP, GIVEN_UP),
];

async fn counts(tx: &mut Tx<'_>) -> Result<OpenWorkCounts> {
    let of_phase = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "tasks", "id")?;
        Ok((columns.word("id")?, columns.count("times")?))
    };
    let of_status = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "task_runs", "id")?;
        Ok((columns.word("id")?, columns.count("times")?))
    };
    let (leased, workers) = waiting(tx, LEASED).await?;
    Ok(OpenWorkCounts {
        tasks: tx.all(tx.own(TASKS), args![], of_phase).await?,
        runs: tx.all(tx.own(AGENT_RUNS), args![], of_status).await?,
        queued: waiting(tx, QUEUED).await?.0,
        leased,
        workers,
        events: waiting(tx, EVENTS).await?.0,
        deliveries: waiting(tx, DELIVERIES).await?.0,
    })
}

/// The depth of a queue, and the number of workers that have its items.
async fn waiting(tx: &mut Tx<'_>, text: &'static str) -> Result<(QueueDepth, u64)> {
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "open_work", "id")?;
        let (count, first) = (columns.count("times")?, columns.maybe_time("earliest")?);
        Ok((QueueDepth { count, first }, columns.count("workers")?))
    };
    Ok(tx.first(text, args![], read).await?.unwrap_or_default())
}

async fn overdue(tx: &mut Tx<'_>, before: &Timestamp, limit: &u32) -> Result<Vec<TaskRecord>> {
    tx.all(OVERDUE, args![*before, *limit], read_record).await
}

async fn given_up(
    tx: &mut Tx<'_>,
    account: &AccountId,
    since: &Timestamp,
    limit: &u32,
) -> Result<u32> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "agent_events", "id")?.count("times");
    Ok(tx.first(GIVEN_UP, args![account, *since, *limit], read).await?.unwrap_or(0))
}
