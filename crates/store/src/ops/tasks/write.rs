//! Writes tasks.

use jurat_core::{
    id::RoundId,
    task::{TaskAddition, TaskCandidateRow, TaskEvent, TaskKey},
    time::Timestamp,
    webhook::WebhookEvent,
};

use super::{
    TaskAppend, TaskAppendRefusal, TaskBallotRow, TaskSubmit, TaskSubmitRefusal, read,
    rows::{events_text, inline_text, refs_text},
};
use crate::{
    Result, StoreError,
    db::{
        row::{DbRow, RowReader, json},
        tx::{Tx, args},
    },
    ops::{agent_events, knowledge, webhooks::announce::announce},
};

const ADD: &str = "\
    insert into tasks (\
        account_id, id, task_type, phase, contract, contract_digest, panel, state, seq, due_at, \
        created_at, updated_at, ended_at, reason, ordered_by) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13, $14) \
    on conflict do nothing";

/// The number of open tasks, counted only up to the limit.
const OPEN: &str = "\
    select $1 as id, count(*) as times from (\
        select 1 from tasks where account_id = $1 and ended_at is null limit $2) as open_tasks";

const ADVANCE: &str = "\
    update tasks set phase = $1, state = $2, seq = $3, due_at = $4, updated_at = $5, \
    ended_at = coalesce(ended_at, $6), reason = $7 where account_id = $8 and id = $9 and seq = $10";
const SEQ: &str = "select id, seq from tasks where account_id = $1 and id = $2";

const EVENTS: (&str, &str) = (
    "\
    insert into task_events (account_id, task_id, seq, kind, body, at) \
    select $1, $2, $3 + key + 1, json_extract(value, '$.kind'), json_extract(value, '$.body'), $4 \
    from json_each($5)",
    "\
    insert into task_events (account_id, task_id, seq, kind, body, at) \
    select $1, $2, $3 + place, event ->> 'kind', event ->> 'body', $4 \
    from json_array_elements(cast($5 as json)) with ordinality as events (event, place)",
);

const CANDIDATE: &str = "\
    insert into task_candidates (\
        account_id, task_id, candidate_id, execution_id, executor, round_id, output, \
        evidence_inline, evidence_refs, digest, created_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
const BALLOT: &str = "\
    insert into task_ballots (\
        account_id, task_id, candidate_id, turn, voter, ballot, salt, round_id, created_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (ADD, ADD),
    (OPEN, OPEN),
    (ADVANCE, ADVANCE),
    (SEQ, SEQ),
    (CANDIDATE, CANDIDATE),
    (BALLOT, BALLOT),
    EVENTS,
];

pub(super) async fn submit(
    tx: &mut Tx<'_>,
    submit: &TaskSubmit,
) -> Result<Result<TaskAddition, TaskSubmitRefusal>> {
    let key = &submit.task;
    if let Some(known) = known(tx, submit).await? {
        return Ok(known);
    }
    let read = |cells: &dyn DbRow| RowReader::new(cells, "tasks", "id")?.count::<u32>("times");
    let open = tx.first(OPEN, args![&key.account, submit.most_open], read).await?;
    if submit.most_open <= open.unwrap_or(0) {
        return Ok(Err(TaskSubmitRefusal::TooManyOpen));
    }
    let state = &submit.state;
    let args = args![
        &key.account,
        &key.id,
        &submit.task_type,
        state.phase.as_str(),
        json(&submit.contract)?,
        &submit.contract_digest,
        json(&submit.panel)?,
        json(state)?,
        number_of(&submit.events),
        submit.due_at,
        submit.at,
        state.is_over().then_some(submit.at),
        state.reason(),
        submit.ordered_by.as_deref()
    ];
    if tx.run(ADD, args).await? == 0 {
        // A concurrent request added the task, and has committed by now.
        let known = known(tx, submit).await?;
        return known.ok_or_else(|| StoreError::conflict("the task was added and is not there"));
    }
    add_events(tx, key, 0, (&submit.events, submit.at)).await?;
    let added = read::get(tx, key).await?;
    let record = added.ok_or_else(|| StoreError::conflict("the task is not there"))?;
    Ok(Ok(TaskAddition { record, is_new: true }))
}

/// The task that already has the id.
async fn known(
    tx: &mut Tx<'_>,
    submit: &TaskSubmit,
) -> Result<Option<Result<TaskAddition, TaskSubmitRefusal>>> {
    let found = read::get(tx, &submit.task).await?;
    Ok(found.map(|record| {
        if record.contract_digest != submit.contract_digest {
            Err(TaskSubmitRefusal::Taken)
        } else if record.panel != submit.panel {
            Err(TaskSubmitRefusal::OtherPanel)
        } else {
            Ok(TaskAddition { record, is_new: false })
        }
    }))
}

pub(super) async fn append(
    tx: &mut Tx<'_>,
    append: &TaskAppend,
) -> Result<Result<(), TaskAppendRefusal>> {
    let (key, state) = (&append.task, &append.state);
    let args = args![
        state.phase.as_str(),
        json(state)?,
        append.expected_seq.saturating_add(number_of(&append.events)),
        append.due_at,
        append.at,
        state.is_over().then_some(append.at),
        state.reason(),
        &key.account,
        &key.id,
        append.expected_seq
    ];
    if tx.run(ADVANCE, args).await? == 0 {
        let read = |cells: &dyn DbRow| RowReader::new(cells, "tasks", "id")?.count("seq");
        let seq = tx.first(SEQ, args![&key.account, &key.id], read).await?;
        return Ok(Err(
            seq.map_or(TaskAppendRefusal::Unknown, |seq| TaskAppendRefusal::Stale { seq })
        ));
    }
    if let Some(reused) = &append.with.reused
        && knowledge::is_deprecated(tx, &key.account, reused).await?
    {
        return Ok(Err(TaskAppendRefusal::Deprecated));
    }
    add_events(tx, key, append.expected_seq, (&append.events, append.at)).await?;
    if let Some(candidate) = &append.with.candidate {
        add_candidate(tx, key, candidate).await?;
    }
    if let Some(ballot) = &append.with.ballot {
        add_ballot(tx, key, ballot).await?;
    }
    if let Some(knowledge) = &append.with.knowledge {
        knowledge::add(tx, key, knowledge).await?;
    }
    for event in &append.events {
        if let TaskEvent::Complained { epoch, .. } = event {
            // A disputed decision is not used again, even if another task made it.
            knowledge::deprecate_same(tx, key, *epoch, append.at).await?;
        }
    }
    for event in &append.with.agent_events {
        agent_events::add(tx, &key.account, event, append.at).await?;
    }
    for given_up in &append.with.given_up {
        agent_events::add_given_up(tx, &key.account, given_up, append.at).await?;
    }
    Ok(Ok(()))
}

fn number_of(events: &[TaskEvent]) -> u64 {
    u64::try_from(events.len()).unwrap_or(u64::MAX)
}

async fn add_events(
    tx: &mut Tx<'_>,
    key: &TaskKey,
    seq: u64,
    (events, at): (&[TaskEvent], Timestamp),
) -> Result<()> {
    let text = tx.own(EVENTS);
    let args = args![&key.account, &key.id, seq, at, events_text(events)?];
    tx.run(text, args).await?;
    for (seq, event) in (seq.saturating_add(1)..).zip(events) {
        if let Some(event) = WebhookEvent::of_task(key, seq, event, at) {
            announce(tx, &key.account, &event, at).await?;
        }
    }
    Ok(())
}

async fn add_candidate(tx: &mut Tx<'_>, key: &TaskKey, candidate: &TaskCandidateRow) -> Result<()> {
    let args = args![
        &key.account,
        &key.id,
        &candidate.id,
        &candidate.execution_id,
        &candidate.executor,
        candidate.round.as_ref().map(RoundId::as_str),
        json(&candidate.output)?,
        inline_text(&candidate.evidence)?,
        refs_text(&candidate.evidence)?,
        &candidate.digest,
        candidate.created_at
    ];
    tx.run(CANDIDATE, args).await.map(drop)
}

async fn add_ballot(tx: &mut Tx<'_>, key: &TaskKey, ballot: &TaskBallotRow) -> Result<()> {
    let args = args![
        &key.account,
        &key.id,
        &ballot.candidate,
        ballot.turn,
        &ballot.voter,
        json(&ballot.ballot)?,
        &ballot.salt,
        ballot.round.as_ref().map(RoundId::as_str),
        ballot.created_at
    ];
    tx.run(BALLOT, args).await.map(drop)
}
