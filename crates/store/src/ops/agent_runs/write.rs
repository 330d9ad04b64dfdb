//! Writes runs. Every operation changes steps before their run, so that no two operations deadlock.

use jurat_core::{
    agent_run::{AgentRunAddition, AgentRunEvent, AgentRunKey, AgentStep},
    time::Timestamp,
};

use super::{
    AgentRunConflict, AgentRunRefusal, AgentRunSubmit, AgentRunWrite, NewAgentStep, read,
    rows::{conclusion_text, events_text},
};
use crate::{
    Result, StoreError,
    db::{
        row::{DbRow, RowReader, json},
        tx::{Tx, args},
    },
};

const ADD: &str = "\
    insert into task_runs (\
        account_id, id, task_type, status, spec, spec_digest, seq, iteration, explored, \
        created_at, updated_at, ordered_by) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11) on conflict do nothing";
const OPEN: &str = "\
    select $1 as id, count(*) as times from (\
        select 1 from task_runs where account_id = $1 and finished_at is null limit $2) \
    as open_runs";
const ADD_STEP: &str = "\
    insert into task_run_steps (\
        account_id, run_id, id, position, executor, priority, at_once, status, attempt, \
        last_attempt, run_at, updated_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

const EVENTS: (&str, &str) = (
    "\
    insert into task_run_events (account_id, run_id, seq, kind, body, at) \
    select $1, $2, $3 + key + 1, json_extract(value, '$.kind'), json_extract(value, '$.body'), $4 \
    from json_each($5)",
    "\
    insert into task_run_events (account_id, run_id, seq, kind, body, at) \
    select $1, $2, $3 + place, event ->> 'kind', event ->> 'body', $4 \
    from json_array_elements(cast($5 as json)) with ordinality as events (event, place)",
);

const SET_STEP: &str = "\
    update task_run_steps set status = $1, attempt = $2, last_attempt = $3, run_at = $4, \
    begun_at = $5, lease_token = $6, lease_until = $7, worker = $8, output = $9, error = $10, \
    updated_at = $11 where account_id = $12 and run_id = $13 and id = $14";
const SET: &str = "\
    update task_runs set status = $1, iteration = $2, explored = $3, result = $4, error = $5, \
    updated_at = $6, started_at = $7, finished_at = $8, seq = seq + $9 \
    where account_id = $10 and id = $11 and seq = $12 and pruned_at is null";

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] =
    &[(ADD, ADD), (OPEN, OPEN), (ADD_STEP, ADD_STEP), (SET_STEP, SET_STEP), (SET, SET), EVENTS];

pub(super) async fn submit(
    tx: &mut Tx<'_>,
    submit: &AgentRunSubmit,
) -> Result<Result<AgentRunAddition, AgentRunRefusal>> {
    let key = &submit.run;
    if let Some(known) = known(tx, submit).await? {
        return Ok(known);
    }
    let read = |cells: &dyn DbRow| RowReader::new(cells, "task_runs", "id")?.count::<u32>("times");
    let open = tx.first(OPEN, args![&key.account, submit.most_open], read).await?;
    if submit.most_open <= open.unwrap_or(0) {
        return Ok(Err(AgentRunRefusal::TooManyOpen));
    }
    let args = args![
        &key.account,
        &key.id,
        &submit.task_type,
        submit.state.status.as_str(),
        json(&submit.spec)?,
        &submit.spec_digest,
        number_of(&submit.events),
        submit.state.iteration,
        json(&submit.state.explored)?,
        submit.at,
        submit.ordered_by.as_deref()
    ];
    if tx.run(ADD, args).await? == 0 {
        // A concurrent request added the run, and has committed by now.
        let known = known(tx, submit).await?;
        return known.ok_or_else(|| StoreError::conflict("the run was added and is not there"));
    }
    for (position, step) in (0_u32..).zip(&submit.steps) {
        add_step(tx, key, (position, step), submit.at).await?;
    }
    add_events(tx, key, 0, (&submit.events, submit.at)).await?;
    Ok(Ok(AgentRunAddition { is_new: true, status: submit.state.status }))
}

/// The run that already has the id.
async fn known(
    tx: &mut Tx<'_>,
    submit: &AgentRunSubmit,
) -> Result<Option<Result<AgentRunAddition, AgentRunRefusal>>> {
    let found = read::get(tx, &submit.run).await?;
    Ok(found.map(|run| {
        let is_same = run.spec_digest == submit.spec_digest;
        let added = AgentRunAddition { is_new: false, status: run.state.status };
        if is_same { Ok(added) } else { Err(AgentRunRefusal::Taken) }
    }))
}

async fn add_step(
    tx: &mut Tx<'_>,
    key: &AgentRunKey,
    (position, new): (u32, &NewAgentStep),
    at: Timestamp,
) -> Result<()> {
    let step = &new.step;
    let args = args![
        &key.account,
        &key.id,
        &step.agent_id,
        position,
        &new.executor,
        i64::from(new.priority),
        new.at_once,
        step.status.as_str(),
        step.attempt,
        step.last_attempt,
        step.run_at,
        at
    ];
    tx.run(ADD_STEP, args).await.map(drop)
}

pub(super) async fn add_events(
    tx: &mut Tx<'_>,
    key: &AgentRunKey,
    seq: u64,
    (events, at): (&[AgentRunEvent], Timestamp),
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let text = tx.own(EVENTS);
    let args = args![&key.account, &key.id, seq, at, events_text(events)?];
    tx.run(text, args).await.map(drop)
}

fn number_of(events: &[AgentRunEvent]) -> u64 {
    u64::try_from(events.len()).unwrap_or(u64::MAX)
}

pub(super) async fn write(
    tx: &mut Tx<'_>,
    write: &AgentRunWrite,
) -> Result<Result<(), AgentRunConflict>> {
    let (key, state) = (&write.run, &write.state);
    for step in &write.steps {
        set_step(tx, key, step, write.at).await?;
    }
    let result = state.result.as_ref().map(json).transpose()?;
    let args = args![
        state.status.as_str(),
        state.iteration,
        json(&state.explored)?,
        result.as_deref(),
        state.error.as_deref(),
        state.updated_at,
        state.started_at,
        state.finished_at,
        number_of(&write.events),
        &key.account,
        &key.id,
        write.expected_seq
    ];
    if tx.run(SET, args).await? == 0 {
        let found = read::get(tx, key).await?;
        let refused =
            found.map_or(AgentRunConflict::Unknown, |run| AgentRunConflict::Stale { seq: run.seq });
        return Ok(Err(refused));
    }
    add_events(tx, key, write.expected_seq, (&write.events, write.at)).await?;
    Ok(Ok(()))
}

async fn set_step(
    tx: &mut Tx<'_>,
    key: &AgentRunKey,
    step: &AgentStep,
    at: Timestamp,
) -> Result<()> {
    let lease = step.lease.as_ref();
    let args = args![
        step.status.as_str(),
        step.attempt,
        step.last_attempt,
        step.run_at,
        step.begun_at,
        lease.map(|lease| lease.token.as_str()),
        lease.map(|lease| lease.until),
        lease.map(|lease| lease.worker.as_str()),
        conclusion_text(step.conclusion.as_ref())?.as_deref(),
        step.error.as_deref(),
        at,
        &key.account,
        &key.id,
        &step.agent_id
    ];
    tx.run(SET_STEP, args).await.map(drop)
}
