//! Writing runs. Everybody changes steps before the run that they belong to, so that nobody waits
//! for somebody who waits for him.

use jurat_core::{task_run::RunStatus, time::Timestamp};

use super::{
    NewRunEvent, NewStep, RunAdvance, RunKey, RunNote, RunRefused, RunSubmit, RunSubmitRefused,
    RunSubmitted, TaskRun, read, rows::events_text,
};
use crate::{
    Result, StoreError,
    both::{Tx, args},
    rows::{Cells, Columns, json},
};

const ADD: &str = "\
    insert into task_runs (\
        account_id, id, task_type, status, spec, spec_digest, seq, explored, created_at, \
        updated_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) on conflict do nothing";
const OPEN: &str = "\
    select $1 as id, count(*) as times from (\
        select 1 from task_runs where account_id = $1 and finished_at is null limit $2) \
    as open_runs";

const PUT_STEP: &str = "\
    insert into task_run_steps (\
        account_id, run_id, id, executor, body, priority, status, attempt, run_at, created_at, \
        updated_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10) \
    on conflict (account_id, run_id, id) do update set executor = excluded.executor, \
    body = excluded.body, priority = excluded.priority, status = excluded.status, \
    attempt = excluded.attempt, run_at = excluded.run_at, updated_at = excluded.updated_at, \
    lease_token = null, lease_until = null, worker = null, output = null, error = null";

const EVENTS_SQLITE: &str = "\
    insert into task_run_events (account_id, run_id, seq, kind, body, at) \
    select $1, $2, $3 + key + 1, json_extract(value, '$.kind'), json_extract(value, '$.body'), $4 \
    from json_each($5)";
const EVENTS_POSTGRES: &str = "\
    insert into task_run_events (account_id, run_id, seq, kind, body, at) \
    select $1, $2, $3 + place, event ->> 'kind', event ->> 'body', $4 \
    from json_array_elements(cast($5 as json)) with ordinality as events (event, place)";

const KICKOFF_STEPS: &str = "\
    update task_run_steps set status = 'QUEUED', run_at = $1, updated_at = $1 \
    where account_id = $2 and run_id = $3 and status = 'CREATED'";
/// The parameters are the new status, the time, the number of events that are added, and the run.
const KICKOFF: &str = "\
    update task_runs set status = 'QUEUED', updated_at = $1, seq = seq + $2 \
    where account_id = $3 and id = $4 and status = 'CREATED'";

/// Steps that nobody has.
const CANCEL_STEPS: &str = "\
    update task_run_steps set status = 'CANCELLED', updated_at = $1 \
    where account_id = $2 and run_id = $3 and status in ('CREATED', 'QUEUED', 'RETRY_WAIT')";
const CANCEL: &str = "\
    update task_runs set status = 'CANCELLING', updated_at = $1, seq = seq + $2 \
    where account_id = $3 and id = $4 and status in ('CREATED', 'QUEUED', 'RUNNING')";
const CANCELLED: &str = "\
    update task_runs set status = 'CANCELLED', finished_at = $1, due_at = null \
    where account_id = $2 and id = $3 and status = 'CANCELLING'";

/// All steps that are not over, also those that somebody has: what they still write is refused.
const END_STEPS: &str = "\
    update task_run_steps set status = 'CANCELLED', updated_at = $1, lease_token = null, \
    lease_until = null, worker = null where account_id = $2 and run_id = $3 \
    and status in ('CREATED', 'QUEUED', 'RETRY_WAIT', 'LEASED')";
const ADVANCE: &str = "\
    update task_runs set status = $1, explored = $2, result = $3, error = $4, updated_at = $5, \
    finished_at = $6, due_at = null, seq = seq + $7 \
    where account_id = $8 and id = $9 and seq = $10";

pub(super) const LEFT: &str = "\
    select id from task_run_steps where account_id = $1 and run_id = $2 \
    and status in ('CREATED', 'QUEUED', 'RETRY_WAIT', 'LEASED') limit 1";

pub(super) async fn submit(
    tx: &mut impl Tx,
    submit: &RunSubmit,
) -> Result<Result<RunSubmitted, RunSubmitRefused>> {
    let key = &submit.run;
    if let Some(known) = known(tx, submit).await? {
        return Ok(known);
    }
    let read = |cells: &dyn Cells| Columns::new(&cells, "task_runs", "id")?.count::<u32>("times");
    let open = tx.first(OPEN, args![&key.account, submit.most_open], read).await?;
    if submit.most_open <= open.unwrap_or(0) {
        return Ok(Err(RunSubmitRefused::TooManyOpen));
    }
    let status = if submit.is_kicked_off { RunStatus::Queued } else { RunStatus::Created };
    let args = args![
        &key.account,
        &key.id,
        &submit.task_type,
        status.as_str(),
        json(&submit.spec)?,
        &submit.spec_digest,
        number_of(&submit.events),
        json(&submit.explored)?,
        submit.at
    ];
    if tx.run(ADD, args).await? == 0 {
        // Somebody else added it at the same moment, and has done so by now.
        let known = known(tx, submit).await?;
        return known.ok_or_else(|| StoreError::conflict("the run was added and is not there"));
    }
    for step in &submit.steps {
        put_step(tx, key, step, (status.as_str(), submit.at)).await?;
    }
    add_events(tx, key, 0, (&submit.events, submit.at)).await?;
    let run = changed(tx, key).await?;
    Ok(Ok(RunSubmitted { run, is_new: true }))
}

/// The run that has the identifier already.
async fn known(
    tx: &mut impl Tx,
    submit: &RunSubmit,
) -> Result<Option<Result<RunSubmitted, RunSubmitRefused>>> {
    let found = read::get(tx, &submit.run).await?;
    Ok(found.map(|run| {
        if run.spec_digest == submit.spec_digest {
            Ok(RunSubmitted { run, is_new: false })
        } else {
            Err(RunSubmitRefused::Taken)
        }
    }))
}

/// A step begins in the status with which its run does.
async fn put_step(
    tx: &mut impl Tx,
    key: &RunKey,
    step: &NewStep,
    (status, at): (&str, Timestamp),
) -> Result<()> {
    let args = args![
        &key.account,
        &key.id,
        &step.id,
        &step.executor,
        json(&step.body)?,
        i64::from(step.priority),
        status,
        step.attempt,
        step.run_at,
        at
    ];
    tx.run(PUT_STEP, args).await.map(drop)
}

pub(super) async fn add_events(
    tx: &mut impl Tx,
    key: &RunKey,
    seq: u64,
    (events, at): (&[NewRunEvent], Timestamp),
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let text = tx.own(EVENTS_SQLITE, EVENTS_POSTGRES);
    let args = args![&key.account, &key.id, seq, at, events_text(events)?];
    tx.run(text, args).await.map(drop)
}

pub(super) fn number_of(events: &[NewRunEvent]) -> u64 {
    u64::try_from(events.len()).unwrap_or(u64::MAX)
}

async fn changed(tx: &mut impl Tx, key: &RunKey) -> Result<TaskRun> {
    let found = read::get(tx, key).await?;
    found.ok_or_else(|| StoreError::conflict("the run is not there"))
}

/// Why a run was not changed.
async fn why_not(tx: &mut impl Tx, key: &RunKey) -> Result<RunRefused> {
    let found = read::get(tx, key).await?;
    Ok(found.map_or(RunRefused::Unknown, |run| RunRefused::Is(run.status)))
}

/// Adds the events of a run whose number of events was raised already.
async fn noted(tx: &mut impl Tx, note: &RunNote) -> Result<TaskRun> {
    let run = changed(tx, &note.run).await?;
    let before = run.seq.saturating_sub(number_of(&note.events));
    add_events(tx, &note.run, before, (&note.events, note.at)).await?;
    Ok(run)
}

pub(super) async fn kickoff(
    tx: &mut impl Tx,
    note: &RunNote,
) -> Result<Result<TaskRun, RunRefused>> {
    let key = &note.run;
    tx.run(KICKOFF_STEPS, args![note.at, &key.account, &key.id]).await?;
    let args = args![note.at, number_of(&note.events), &key.account, &key.id];
    if tx.run(KICKOFF, args).await? == 0 {
        return Ok(Err(why_not(tx, key).await?));
    }
    noted(tx, note).await.map(Ok)
}

pub(super) async fn cancel(
    tx: &mut impl Tx,
    note: &RunNote,
) -> Result<Result<TaskRun, RunRefused>> {
    let key = &note.run;
    tx.run(CANCEL_STEPS, args![note.at, &key.account, &key.id]).await?;
    let args = args![note.at, number_of(&note.events), &key.account, &key.id];
    if tx.run(CANCEL, args).await? == 0 {
        return Ok(Err(why_not(tx, key).await?));
    }
    // A step may have been given back before the run was held.
    tx.run(CANCEL_STEPS, args![note.at, &key.account, &key.id]).await?;
    if is_done(tx, key).await? {
        tx.run(CANCELLED, args![note.at, &key.account, &key.id]).await?;
    }
    noted(tx, note).await.map(Ok)
}

/// Whether all steps of a run are over.
pub(super) async fn is_done(tx: &mut impl Tx, key: &RunKey) -> Result<bool> {
    let read = |cells: &dyn Cells| Columns::new(&cells, "task_run_steps", "id").map(drop);
    Ok(tx.first(LEFT, args![&key.account, &key.id], read).await?.is_none())
}

pub(super) async fn advance(
    tx: &mut impl Tx,
    advance: &RunAdvance,
) -> Result<Result<TaskRun, RunRefused>> {
    let (note, is_over) = (&advance.note, advance.status.is_over());
    let key = &note.run;
    if is_over {
        tx.run(END_STEPS, args![note.at, &key.account, &key.id]).await?;
    } else {
        for step in &advance.steps {
            put_step(tx, key, step, (RunStatus::Queued.as_str(), note.at)).await?;
        }
    }
    let result = advance.result.as_ref().map(json).transpose()?;
    let args = args![
        advance.status.as_str(),
        json(&advance.explored)?,
        result.as_deref(),
        advance.error.as_deref(),
        note.at,
        is_over.then_some(note.at),
        number_of(&note.events),
        &key.account,
        &key.id,
        advance.expected_seq
    ];
    if tx.run(ADVANCE, args).await? == 0 {
        let found = read::get(tx, key).await?;
        let refused = found.map_or(RunRefused::Unknown, |run| RunRefused::Stale { seq: run.seq });
        return Ok(Err(refused));
    }
    noted(tx, note).await.map(Ok)
}
