//! Takes steps: each goes to one worker, and no executor gets more than it may do concurrently.
//!
//! If some steps have to wait, accounts get a fair share. There is no list of queued steps by
//! account, so a few accounts are considered, and a few runs of each. A take therefore lasts no
//! longer if an account has very many.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use jurat_core::{
    account::fair_share::share_fairly,
    agent_run::{AgentRunEvent, AgentRunEventKind, AgentRunKey, AgentRunStatus},
    id::AccountId,
    time::Timestamp,
};
use serde_json::{Value, json};

use super::{AgentStepRenewal, AgentStepTake, TakenAgentStep, write::add_events};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, json},
        tx::{Tx, args, of_found},
    },
    ops::agent_events::NotLeaseHolder,
};

/// The number of accounts to consider if steps have to wait, and the number of runs of each: this
/// limit applies to unstarted and to started runs separately.
const ACCOUNTS: u32 = 32;
const RUNS: u32 = 8;

/// Steps that waited, and steps with an expired lease, return to the queue.
const WAITED: (&str, &str) = of_found!(
    "update task_run_steps set status = 'QUEUED'",
    "task_run_steps where status = 'RETRY_WAIT' and run_at <= $1 order by run_at limit $2",
    ""
);
const LEFT: (&str, &str) = of_found!(
    "update task_run_steps set status = 'QUEUED', lease_token = null, lease_until = null, \
     worker = null",
    "task_run_steps where status = 'LEASED' and lease_until <= $1 order by lease_until limit $2",
    ""
);

/// Finds the executors with queued steps one by one, without reading other steps.
const EXECUTORS: &str = "\
    with recursive named (executor) as (\
        select min(executor) from task_run_steps where status = 'QUEUED' \
        union all \
        select (select min(executor) from task_run_steps \
            where status = 'QUEUED' and executor > named.executor) \
        from named where named.executor is not null) \
    select executor from named where executor is not null limit 1000";
const IN_FLIGHT: &str = "\
    select account_id, executor from task_run_steps \
    where executor = $1 and status = 'LEASED' limit $2";

/// `times` is the number of steps in progress that have the same run and executor.
macro_rules! queued {
    ($of:literal, $rest:literal) => {
        const_format::concatcp!(
            "select task_run_steps.account_id, task_run_steps.run_id, task_run_steps.id, \
             task_run_steps.executor, task_run_steps.priority, task_run_steps.run_at, \
             task_run_steps.at_once, task_run_steps.begun_at, task_run_steps.attempt, \
             (select count(*) from task_run_steps as held \
                 where held.account_id = task_run_steps.account_id \
                 and held.run_id = task_run_steps.run_id and held.status = 'LEASED' \
                 and held.executor = task_run_steps.executor) as times from ",
            $of,
            " task_run_steps.status = 'QUEUED' and (task_run_steps.at_once is null \
                 or (select count(*) from task_run_steps as held \
                 where held.account_id = task_run_steps.account_id \
                 and held.run_id = task_run_steps.run_id and held.status = 'LEASED' \
                 and held.executor = task_run_steps.executor) < task_run_steps.at_once) ",
            $rest
        )
    };
}

const QUEUED: (&str, &str) = (
    queued!(
        "task_run_steps where executor = $1 and",
        "order by run_at, priority desc, account_id, run_id, id limit $2"
    ),
    queued!(
        "task_run_steps where executor = $1 and",
        "order by run_at, priority desc, account_id, run_id, id limit $2 for update skip locked"
    ),
);

/// Finds the accounts with open runs one by one, without reading other runs.
const WITH_RUNS: &str = "\
    with recursive named (account_id, place) as (\
        select (select min(account_id) from task_runs \
            where finished_at is null and account_id > $1), 1 \
        union all \
        select (select min(account_id) from task_runs \
            where finished_at is null and account_id > named.account_id), place + 1 \
        from named where named.account_id is not null and place < $2) \
    select account_id from named where account_id is not null";

const OF_ACCOUNTS: (&str, &str) = (
    queued!(
        "json_each($1) as named cross join task_runs as open_run on open_run.rowid in (\
            select place from (select rowid as place from task_runs as unbegun \
                where unbegun.account_id = json_extract(named.value, '$.account') \
                and unbegun.status = 'QUEUED' order by unbegun.created_at, unbegun.id limit $2) \
            union \
            select place from (select rowid as place from task_runs as begun \
                where begun.account_id = json_extract(named.value, '$.account') \
                and begun.status = 'RUNNING' order by begun.created_at, begun.id limit $2)) \
         cross join task_run_steps on task_run_steps.account_id = open_run.account_id \
         and task_run_steps.run_id = open_run.id where",
        "limit 4096"
    ),
    queued!(
        "json_to_recordset(cast($1 as json)) as named (account text) cross join lateral (\
            (select account_id, id from task_runs \
                where account_id = named.account and status = 'QUEUED' \
                order by created_at, id limit $2) \
            union all \
            (select account_id, id from task_runs \
                where account_id = named.account and status = 'RUNNING' \
                order by created_at, id limit $2)) as open_run \
         join task_run_steps on task_run_steps.account_id = open_run.account_id \
         and task_run_steps.run_id = open_run.id where",
        "limit 4096 for update of task_run_steps skip locked"
    ),
);

const LEASE: &str = "\
    update task_run_steps set status = 'LEASED', lease_token = $1, lease_until = $2, \
    worker = $3, begun_at = coalesce(begun_at, $4), updated_at = $4 \
    where account_id = $5 and run_id = $6 and id = $7 and status = 'QUEUED'";
const BEGUN: &str = "\
    update task_runs set status = case status when 'QUEUED' then 'RUNNING' else status end, \
    started_at = coalesce(started_at, $1), updated_at = $1, seq = seq + $2 \
    where account_id = $3 and id = $4 returning id, seq, iteration";
const RENEW: &str = "\
    update task_run_steps set lease_until = $1 \
    where account_id = $2 and run_id = $3 and id = $4 and status = 'LEASED' and lease_token = $5";
const STATUS: &str = "select id, status from task_runs where account_id = $1 and id = $2";

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (EXECUTORS, EXECUTORS),
    (IN_FLIGHT, IN_FLIGHT),
    (WITH_RUNS, WITH_RUNS),
    OF_ACCOUNTS,
    (LEASE, LEASE),
    (BEGUN, BEGUN),
    (RENEW, RENEW),
    (STATUS, STATUS),
    QUEUED,
    WAITED,
    LEFT,
];

/// Maximum number of steps that return to the queue in one transaction.
const AGAIN: u32 = 256;

/// A step that could be taken. The most urgent step comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedStep {
    run_at: Timestamp,
    priority: Reverse<i64>,
    step: TakenAgentStep,
    executor: String,
    at_once: Option<u32>,
    /// The number of steps of the run that the executor has.
    in_flight: u32,
    attempt: u32,
    was_begun: bool,
}

/// The free capacity.
#[derive(Debug, Default)]
struct StepCapacity {
    /// The number of steps that each executor can still start.
    free: BTreeMap<String, usize>,
    /// The number of each account's steps that these executors have.
    held: BTreeMap<AccountId, usize>,
}

pub(super) async fn steps(tx: &mut Tx<'_>, take: &AgentStepTake) -> Result<Vec<TakenAgentStep>> {
    queue_again(tx, take.now).await?;
    let read =
        |cells: &dyn DbRow| RowReader::new(cells, "task_run_steps", "executor")?.text("executor");
    let limit = usize::try_from(take.limit).unwrap_or(usize::MAX);
    let (mut room, mut queued) = (StepCapacity::default(), BTreeSet::new());
    let mut some_wait = false;
    for executor in tx.all(EXECUTORS, args![], read).await? {
        let found = of_executor(tx, take, (&executor, &mut room)).await?;
        some_wait |= room.free.get(&executor).is_some_and(|free| *free < found.len());
        queued.extend(found);
    }
    if some_wait || limit < queued.len() {
        let found = of_accounts(tx, take).await?;
        queued.extend(found.into_iter().filter(|one| room.free.contains_key(&one.executor)));
    }
    let mut taken: BTreeMap<AgentRunKey, Vec<QueuedStep>> = BTreeMap::new();
    for step in fairly(queued, room, limit) {
        if lease(tx, take, &step.step).await? {
            taken.entry(step.step.run.clone()).or_default().push(step);
        }
    }
    // All callers change the runs in the same order.
    for (run, steps) in &taken {
        begin(tx, take, (run, steps)).await?;
    }
    Ok(taken.into_values().flatten().map(|queued| queued.step).collect())
}

async fn queue_again(tx: &mut Tx<'_>, now: Timestamp) -> Result<()> {
    for texts in [WAITED, LEFT] {
        tx.run(tx.own(texts), args![now, AGAIN]).await?;
    }
    Ok(())
}

/// The most urgent steps of an executor: as many as it can start now, and one more to show whether
/// some have to wait.
async fn of_executor(
    tx: &mut Tx<'_>,
    take: &AgentStepTake,
    (executor, room): (&str, &mut StepCapacity),
) -> Result<Vec<QueuedStep>> {
    // Two concurrent counts could give the executor twice its limit.
    tx.lock(&format!("steps of {executor}")).await?;
    let held = tx.all(IN_FLIGHT, args![executor, take.per_executor], read_account).await?;
    let under_way = u32::try_from(held.len()).unwrap_or(u32::MAX);
    for account in held {
        *room.held.entry(account).or_default() += 1;
    }
    let free = take.per_executor.saturating_sub(under_way).min(take.limit);
    if free == 0 {
        return Ok(Vec::new());
    }
    room.free.insert(executor.to_owned(), usize::try_from(free).unwrap_or(usize::MAX));
    tx.all(tx.own(QUEUED), args![executor, free.saturating_add(1)], read_queued).await
}

/// Some steps of some accounts. The search starts at a random account and wraps around, so that it
/// considers different accounts each time if there are many.
async fn of_accounts(tx: &mut Tx<'_>, take: &AgentStepTake) -> Result<Vec<QueuedStep>> {
    let drawn = format!("acct_{}", take.token);
    let mut accounts = tx.all(WITH_RUNS, args![&drawn, ACCOUNTS], read_account).await?;
    let more = ACCOUNTS.saturating_sub(u32::try_from(accounts.len()).unwrap_or(u32::MAX));
    if more != 0 {
        accounts.extend(tx.all(WITH_RUNS, args!["", more], read_account).await?);
    }
    let accounts: BTreeSet<AccountId> = accounts.into_iter().collect();
    let named = |it: &AccountId| json!({ "account": it.as_str() });
    let named: Vec<Value> = accounts.iter().map(named).collect();
    tx.all(tx.own(OF_ACCOUNTS), args![json(&named)?, RUNS], read_queued).await
}

fn read_account(cells: &dyn DbRow) -> Result<AccountId> {
    RowReader::new(cells, "task_runs", "account_id")?.id("account_id", AccountId::parse)
}

fn read_queued(cells: &dyn DbRow) -> Result<QueuedStep> {
    let columns = RowReader::new(cells, "task_run_steps", "id")?;
    let account = columns.id("account_id", AccountId::parse)?;
    Ok(QueuedStep {
        run_at: columns.time("run_at")?,
        priority: Reverse(columns.number("priority")?),
        step: TakenAgentStep {
            run: AgentRunKey { account, id: columns.text("run_id")? },
            agent_id: columns.text("id")?,
        },
        executor: columns.text("executor")?,
        at_once: columns.maybe_count("at_once")?,
        in_flight: columns.count("times")?,
        attempt: columns.count("attempt")?,
        was_begun: columns.maybe_time("begun_at")?.is_some(),
    })
}

/// Shares the steps fairly between accounts, and leaves out those beyond the limits of an executor
/// or a run.
fn fairly(queued: BTreeSet<QueuedStep>, mut room: StepCapacity, limit: usize) -> Vec<QueuedStep> {
    let mut waiting: BTreeMap<AccountId, Vec<QueuedStep>> = BTreeMap::new();
    for one in queued {
        waiting.entry(one.step.run.account.clone()).or_default().push(one);
    }
    let mut more: BTreeMap<(AgentRunKey, String), u32> = BTreeMap::new();
    let mut chosen = share_fairly(waiting, &room.held, usize::MAX);
    chosen.retain(|one| {
        let count = more.entry((one.step.run.clone(), one.executor.clone())).or_default();
        let is_wanted = one.at_once.is_none_or(|most| one.in_flight.saturating_add(*count) < most);
        let Some(free) = room.free.get_mut(&one.executor) else { return false };
        let is_free = is_wanted && *free != 0;
        *free -= usize::from(is_free);
        *count += u32::from(is_free);
        is_free
    });
    chosen.truncate(limit);
    chosen
}

async fn lease(tx: &mut Tx<'_>, take: &AgentStepTake, step: &TakenAgentStep) -> Result<bool> {
    let args = args![
        &take.token,
        take.until,
        &take.worker,
        take.now,
        &step.run.account,
        &step.run.id,
        &step.agent_id
    ];
    Ok(tx.run(LEASE, args).await? == 1)
}

/// Marks the run of the taken steps as started, and adds its events.
async fn begin(
    tx: &mut Tx<'_>,
    take: &AgentStepTake,
    (run, steps): (&AgentRunKey, &[QueuedStep]),
) -> Result<()> {
    let number = u64::try_from(steps.len()).unwrap_or(u64::MAX);
    let read = |cells: &dyn DbRow| {
        let columns = RowReader::new(cells, "task_runs", "id")?;
        Ok((columns.count::<u64>("seq")?, columns.count::<u32>("iteration")?))
    };
    let args = args![take.now, number, &run.account, &run.id];
    let Some((seq, iteration)) = tx.first(BEGUN, args, read).await? else { return Ok(()) };
    let event = |queued: &QueuedStep| {
        let body = json!({
            "agent_id": queued.step.agent_id,
            "iteration": iteration,
            "attempt": queued.attempt,
            "worker": take.worker,
            "again": queued.was_begun,
        });
        AgentRunEvent::new(AgentRunEventKind::StepLeased, body)
    };
    let events: Vec<AgentRunEvent> = steps.iter().map(event).collect();
    add_events(tx, run, seq.saturating_sub(number), (&events, take.now)).await
}

pub(super) async fn renew(
    tx: &mut Tx<'_>,
    renewal: &AgentStepRenewal,
) -> Result<Result<AgentRunStatus, NotLeaseHolder>> {
    let TakenAgentStep { run, agent_id } = &renewal.step;
    let args = args![renewal.until, &run.account, &run.id, agent_id, &renewal.token];
    if tx.run(RENEW, args).await? == 0 {
        return Ok(Err(NotLeaseHolder));
    }
    let read = |cells: &dyn DbRow| RowReader::new(cells, "task_runs", "id")?.word("status");
    let status = tx.first(STATUS, args![&run.account, &run.id], read).await?;
    Ok(status.ok_or(NotLeaseHolder))
}
