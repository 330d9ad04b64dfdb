//! Taking what is to be done: each is given to one of all who ask.

use std::{cmp::Reverse, collections::BTreeMap, convert::Infallible};

use jurat_core::time::Timestamp;

use super::{
    RunKey, StepTake, TakenStep, TaskRunStep,
    rows::{read_key, read_step, step_columns},
    steps::status,
};
use crate::{
    Result, StoreError,
    both::{Tx, args},
    rows::{Cells, Columns},
    tasks::TaskTake,
};

macro_rules! take_due {
    ($lock:literal) => {
        concat!(
            "with due as materialized (\
                 select account_id, id from task_runs where due_at <= $1 \
                 order by due_at limit $2 ",
            $lock,
            ") update task_runs set due_at = $3 from due \
             where task_runs.account_id = due.account_id and task_runs.id = due.id \
             returning task_runs.account_id, task_runs.id"
        )
    };
}

/// Steps that somebody had or that waited are in the queue again.
macro_rules! queue_again {
    ($status:literal, $time:literal, $lock:literal) => {
        concat!(
            "with due as materialized (\
                 select account_id, run_id, id from task_run_steps where status = '",
            $status,
            "' and ",
            $time,
            " <= $1 order by ",
            $time,
            " limit $2 ",
            $lock,
            ") update task_run_steps set status = 'QUEUED', lease_token = null, \
             lease_until = null, worker = null from due \
             where task_run_steps.account_id = due.account_id \
             and task_run_steps.run_id = due.run_id and task_run_steps.id = due.id"
        )
    };
}

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

macro_rules! queued {
    ($lock:literal) => {
        concat!(
            "select account_id, run_id, id, priority, run_at from task_run_steps \
             where executor = $1 and status = 'QUEUED' \
             order by priority desc, run_at, account_id, run_id, id limit $2 ",
            $lock
        )
    };
}

const LEASE: &str = concat!(
    "update task_run_steps set status = 'LEASED', lease_token = $1, lease_until = $2, \
     worker = $3, updated_at = $4 \
     where account_id = $5 and run_id = $6 and id = $7 and status = 'QUEUED' returning ",
    step_columns!()
);
const BEGUN: &str = "\
    update task_runs set status = 'RUNNING', started_at = coalesce(started_at, $1), \
    updated_at = $1 where account_id = $2 and id = $3 and status = 'QUEUED'";

/// How many steps come back into the queue at once.
const AGAIN: u32 = 256;

/// A step that could be taken: the first is the most urgent one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Queued {
    priority: Reverse<i64>,
    run_at: Timestamp,
    run: RunKey,
    id: String,
}

pub(super) async fn due(
    tx: &mut impl Tx,
    take: &TaskTake,
) -> Result<Result<Vec<RunKey>, Infallible>> {
    let text = tx.own(take_due!(""), take_due!("for update skip locked"));
    tx.all(text, args![take.now, take.limit, take.until], read_key).await.map(Ok)
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
    let mut taken = Vec::new();
    for step in queued {
        taken.extend(lease(tx, take, &step).await?);
    }
    begin(tx, take, taken).await.map(Ok)
}

async fn queue_again(tx: &mut impl Tx, now: Timestamp) -> Result<()> {
    let waited = tx.own(
        queue_again!("RETRY_WAIT", "run_at", ""),
        queue_again!("RETRY_WAIT", "run_at", "for update skip locked"),
    );
    let left = tx.own(
        queue_again!("LEASED", "lease_until", ""),
        queue_again!("LEASED", "lease_until", "for update skip locked"),
    );
    for text in [waited, left] {
        tx.run(text, args![now, AGAIN]).await?;
    }
    Ok(())
}

/// The most urgent steps of an executor, as many as it can begin now.
async fn of_executor(tx: &mut impl Tx, take: &StepTake, executor: &str) -> Result<Vec<Queued>> {
    // Two nodes that count at the same time would let it do twice as much.
    tx.lock(&format!("steps of {executor}")).await?;
    let at_once = take.at_once.get(executor).copied().unwrap_or(take.at_once_otherwise);
    let read = |cells: &dyn Cells| {
        Columns::new(&cells, "task_run_steps", "executor")?.count::<u32>("times")
    };
    let under_way = tx.first(UNDER_WAY, args![executor, at_once], read).await?.unwrap_or(0);
    let free = at_once.saturating_sub(under_way).min(take.limit);
    if free == 0 {
        return Ok(Vec::new());
    }
    let text = tx.own(queued!(""), queued!("for update skip locked"));
    let read = |cells: &dyn Cells| {
        let columns = Columns::new(&cells, "task_run_steps", "id")?;
        let account = columns.id("account_id", jurat_core::id::AccountId::parse)?;
        Ok(Queued {
            priority: Reverse(columns.number("priority")?),
            run_at: columns.time("run_at")?,
            run: RunKey { account, id: columns.text("run_id")? },
            id: columns.text("id")?,
        })
    };
    tx.all(text, args![executor, free], read).await
}

async fn lease(tx: &mut impl Tx, take: &StepTake, step: &Queued) -> Result<Option<TaskRunStep>> {
    let lease = &take.lease;
    let args = args![
        &lease.token,
        lease.until,
        &lease.worker,
        take.now,
        &step.run.account,
        &step.run.id,
        &step.id
    ];
    tx.first(LEASE, args, read_step).await
}

/// The runs of steps that were taken are under way. They are changed in one order by everybody.
async fn begin(
    tx: &mut impl Tx,
    take: &StepTake,
    taken: Vec<TaskRunStep>,
) -> Result<Vec<TakenStep>> {
    let mut runs: BTreeMap<RunKey, _> = taken.iter().map(|step| (step.run.clone(), None)).collect();
    for (run, found) in &mut runs {
        tx.run(BEGUN, args![take.now, &run.account, &run.id]).await?;
        *found = status(tx, run).await?;
    }
    let with_status = |step: TaskRunStep| {
        let run_status = runs.get(&step.run).copied().flatten();
        let run_status = run_status.ok_or_else(|| StoreError::conflict("a step has no run"))?;
        Ok(TakenStep { step, run_status })
    };
    taken.into_iter().map(with_status).collect()
}
