//! Taking steps: each is given to one of all who ask, and of no executor more than it does at once.

use std::{cmp::Reverse, collections::BTreeMap, convert::Infallible};

use jurat_core::{
    id::AccountId,
    task_run::{RunEvent, RunEventKind, RunStatus},
    time::Timestamp,
};
use serde_json::json;

use super::{RunKey, StepRenewal, StepTake, TakenStep, write::add_events};
use crate::{
    Result,
    agent_events::NotHeld,
    both::{Tx, args, of_found},
    rows::{Cells, Columns},
};

/// Steps that waited, and steps that somebody had, are in the queue again.
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

/// Goes from one executor that has queued steps to the next, and reads no other step on the way.
const EXECUTORS: &str = "\
    with recursive named (executor) as (\
        select min(executor) from task_run_steps where status = 'QUEUED' \
        union all \
        select (select min(executor) from task_run_steps \
            where status = 'QUEUED' and executor > named.executor) \
        from named where named.executor is not null) \
    select executor from named where executor is not null limit 1000";
const UNDER_WAY: &str = "\
    select $1 as executor, count(*) as times from (\
        select 1 from task_run_steps where executor = $1 and status = 'LEASED' limit $2) as held";

/// The number of those under way is of the run and the executor.
macro_rules! queued {
    ($lock:literal) => {
        concat!(
            "select account_id, run_id, id, priority, run_at, at_once, begun_at, attempt, \
             (select count(*) from task_run_steps as held \
                 where held.account_id = task_run_steps.account_id \
                 and held.run_id = task_run_steps.run_id and held.status = 'LEASED' \
                 and held.executor = task_run_steps.executor) as times \
             from task_run_steps where executor = $1 and status = 'QUEUED' \
             and (at_once is null or (select count(*) from task_run_steps as held \
                 where held.account_id = task_run_steps.account_id \
                 and held.run_id = task_run_steps.run_id and held.status = 'LEASED' \
                 and held.executor = task_run_steps.executor) < at_once) \
             order by run_at, priority desc, account_id, run_id, id limit $2 ",
            $lock
        )
    };
}

const QUEUED: (&str, &str) = (queued!(""), queued!("for update skip locked"));

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

/// Every text, for a look at how the databases read.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (EXECUTORS, EXECUTORS),
    (UNDER_WAY, UNDER_WAY),
    (LEASE, LEASE),
    (BEGUN, BEGUN),
    (RENEW, RENEW),
    (STATUS, STATUS),
    QUEUED,
    WAITED,
    LEFT,
];

/// How many steps come back into the queue at once.
const AGAIN: u32 = 256;

/// A step that could be taken: the first is the most urgent one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Queued {
    run_at: Timestamp,
    priority: Reverse<i64>,
    step: TakenStep,
    at_once: Option<u32>,
    /// How many of its run the executor has.
    under_way: u32,
    attempt: u32,
    was_begun: bool,
}

pub(super) async fn steps(
    tx: &mut impl Tx,
    take: &StepTake,
) -> Result<Result<Vec<TakenStep>, Infallible>> {
    queue_again(tx, take.now).await?;
    let read =
        |cells: &dyn Cells| Columns::new(&cells, "task_run_steps", "executor")?.text("executor");
    let mut queued = Vec::new();
    for executor in tx.all(EXECUTORS, args![], read).await? {
        queued.extend(of_executor(tx, take, &executor).await?);
    }
    queued.sort();
    queued.truncate(usize::try_from(take.limit).unwrap_or(usize::MAX));
    let mut taken: BTreeMap<RunKey, Vec<Queued>> = BTreeMap::new();
    for step in queued {
        if lease(tx, take, &step.step).await? {
            taken.entry(step.step.run.clone()).or_default().push(step);
        }
    }
    // The runs are changed in one order by everybody.
    for (run, steps) in &taken {
        begin(tx, take, (run, steps)).await?;
    }
    Ok(Ok(taken.into_values().flatten().map(|queued| queued.step).collect()))
}

async fn queue_again(tx: &mut impl Tx, now: Timestamp) -> Result<()> {
    for texts in [WAITED, LEFT] {
        tx.run(tx.own(texts), args![now, AGAIN]).await?;
    }
    Ok(())
}

/// The most urgent steps of an executor, as many as it can begin now.
async fn of_executor(tx: &mut impl Tx, take: &StepTake, executor: &str) -> Result<Vec<Queued>> {
    // Two who count at the same time would let it do twice as much.
    tx.lock(&format!("steps of {executor}")).await?;
    let read = |cells: &dyn Cells| {
        Columns::new(&cells, "task_run_steps", "executor")?.count::<u32>("times")
    };
    let under_way = tx.first(UNDER_WAY, args![executor, take.per_executor], read).await?;
    let free = take.per_executor.saturating_sub(under_way.unwrap_or(0)).min(take.limit);
    if free == 0 {
        return Ok(Vec::new());
    }
    let mut queued = tx.all(tx.own(QUEUED), args![executor, free], read_queued).await?;
    within_runs(&mut queued);
    Ok(queued)
}

fn read_queued(cells: &dyn Cells) -> Result<Queued> {
    let columns = Columns::new(&cells, "task_run_steps", "id")?;
    let account = columns.id("account_id", AccountId::parse)?;
    Ok(Queued {
        run_at: columns.time("run_at")?,
        priority: Reverse(columns.number("priority")?),
        step: TakenStep {
            run: RunKey { account, id: columns.text("run_id")? },
            agent_id: columns.text("id")?,
        },
        at_once: columns.maybe_count("at_once")?,
        under_way: columns.count("times")?,
        attempt: columns.count("attempt")?,
        was_begun: columns.maybe_time("begun_at")?.is_some(),
    })
}

/// Leaves out what a run does not want to be done at the same time.
fn within_runs(queued: &mut Vec<Queued>) {
    let mut more: BTreeMap<RunKey, u32> = BTreeMap::new();
    queued.retain(|one| {
        let count = more.entry(one.step.run.clone()).or_default();
        let is_free = one.at_once.is_none_or(|most| one.under_way.saturating_add(*count) < most);
        *count += u32::from(is_free);
        is_free
    });
}

async fn lease(tx: &mut impl Tx, take: &StepTake, step: &TakenStep) -> Result<bool> {
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

/// The run of steps that were taken is under way, and tells of them.
async fn begin(
    tx: &mut impl Tx,
    take: &StepTake,
    (run, steps): (&RunKey, &[Queued]),
) -> Result<()> {
    let number = u64::try_from(steps.len()).unwrap_or(u64::MAX);
    let read = |cells: &dyn Cells| {
        let columns = Columns::new(&cells, "task_runs", "id")?;
        Ok((columns.count::<u64>("seq")?, columns.count::<u32>("iteration")?))
    };
    let args = args![take.now, number, &run.account, &run.id];
    let Some((seq, iteration)) = tx.first(BEGUN, args, read).await? else { return Ok(()) };
    let event = |queued: &Queued| {
        let body = json!({
            "agent_id": queued.step.agent_id,
            "iteration": iteration,
            "attempt": queued.attempt,
            "worker": take.worker,
            "again": queued.was_begun,
        });
        RunEvent::new(RunEventKind::StepLeased, body)
    };
    let events: Vec<RunEvent> = steps.iter().map(event).collect();
    add_events(tx, run, seq.saturating_sub(number), (&events, take.now)).await
}

pub(super) async fn renew(
    tx: &mut impl Tx,
    renewal: &StepRenewal,
) -> Result<Result<RunStatus, NotHeld>> {
    let TakenStep { run, agent_id } = &renewal.step;
    let args = args![renewal.until, &run.account, &run.id, agent_id, &renewal.token];
    if tx.run(RENEW, args).await? == 0 {
        return Ok(Err(NotHeld));
    }
    let read = |cells: &dyn Cells| Columns::new(&cells, "task_runs", "id")?.word("status");
    let status = tx.first(STATUS, args![&run.account, &run.id], read).await?;
    Ok(status.ok_or(NotHeld))
}
