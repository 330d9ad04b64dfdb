//! Reads tasks. Each filter of the list has its own statement, so that it uses an index.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    round::candidate::ArtifactRef,
    task::{
        TaskCandidateRow, TaskEventRow, TaskFilter, TaskKey, TaskPhase, TaskRecord, TaskSummary,
    },
    time::Timestamp,
};

use super::{
    TaskBallotRow, TaskEventsQuery,
    rows::{read_ballot, read_candidate, read_event, read_record, read_refs, read_summary},
};
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader},
        tx::{Tx, args},
    },
};

const GET: &str = "\
    select account_id, id, task_type, contract, contract_digest, panel, state, seq, due_at, \
    created_at, updated_at, ended_at, reason, ordered_by from tasks \
    where account_id = $1 and id = $2";

/// Contracts and states may be large, so a list does not read them.
macro_rules! page {
    ($filter:literal, $at:literal, $id:literal, $limit:literal) => {
        const_format::concatcp!(
            "select id, task_type, phase, seq, created_at, updated_at, ended_at, reason from tasks \
             where account_id = $1 ",
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
const OF_PHASE: &str = page!("and phase = $2", "$3", "$4", "$5");
const OF_TYPE: &str = page!("and task_type = $2", "$3", "$4", "$5");
const OF_BOTH: &str = page!("and task_type = $2 and phase = $3", "$4", "$5", "$6");

const EVENTS: &str = "\
    select task_id, seq, body, at from task_events \
    where account_id = $1 and task_id = $2 and seq > $3 order by seq limit $4";

const SELECT_CANDIDATES: &str = "\
    select candidate_id, execution_id, executor, round_id, output, evidence_inline, \
    evidence_refs, digest, created_at from task_candidates \
    where account_id = $1 and task_id = $2 ";

const CANDIDATE: &str = concatcp!(SELECT_CANDIDATES, "and candidate_id = $3");
const CANDIDATES: &str = concatcp!(SELECT_CANDIDATES, "order by candidate_id limit $3");

/// The limit is far above the number of executors that can propose in an epoch.
const REFERENCES: &str = "\
    select candidate_id, evidence_refs from task_candidates \
    where account_id = $1 and task_id = $2 and digest = $3 \
    order by created_at, candidate_id limit 1000";

/// A voter casts one ballot in a vote, and no more voters than the limit are asked.
const BALLOTS: &str = "\
    select candidate_id, turn, voter, ballot, salt, round_id, created_at from task_ballots \
    where account_id = $1 and task_id = $2 and candidate_id = $3 and turn = $4 \
    order by voter limit 1000";

const NEXT_DUE: &str = "\
    select 'tasks' as id, due_at from tasks where due_at is not null order by due_at limit 1";

/// Later than any other time.
pub(crate) const LAST: Timestamp = Timestamp::from_micros(i64::MAX);

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (GET, GET),
    (ANY, ANY),
    (OF_PHASE, OF_PHASE),
    (OF_TYPE, OF_TYPE),
    (OF_BOTH, OF_BOTH),
    (EVENTS, EVENTS),
    (CANDIDATE, CANDIDATE),
    (CANDIDATES, CANDIDATES),
    (REFERENCES, REFERENCES),
    (BALLOTS, BALLOTS),
    (NEXT_DUE, NEXT_DUE),
];

pub(super) async fn get(tx: &mut Tx<'_>, task: &TaskKey) -> Result<Option<TaskRecord>> {
    tx.first(GET, args![&task.account, &task.id], read_record).await
}

pub(super) async fn page(
    tx: &mut Tx<'_>,
    account: &AccountId,
    filter: &TaskFilter,
) -> Result<Vec<TaskSummary>> {
    let phase = filter.phase.map(TaskPhase::as_str);
    let text = match (&filter.task_type, phase) {
        (None, None) => ANY,
        (None, Some(_)) => OF_PHASE,
        (Some(_), None) => OF_TYPE,
        (Some(_), Some(_)) => OF_BOTH,
    };
    let mut args = args![account];
    args.extend(filter.task_type.as_ref().map(Into::into));
    args.extend(phase.map(Into::into));
    let before = filter.before.as_ref();
    args.push(before.map_or(LAST, |it| it.created_at).into());
    args.push(before.map_or("", |it| it.id.as_str()).into());
    args.push(filter.limit.into());
    tx.all(text, args, read_summary).await
}

pub(super) async fn events(tx: &mut Tx<'_>, asked: &TaskEventsQuery) -> Result<Vec<TaskEventRow>> {
    let args = args![&asked.task.account, &asked.task.id, asked.after, asked.limit];
    tx.all(EVENTS, args, read_event).await
}

pub(super) async fn candidate(
    tx: &mut Tx<'_>,
    task: &TaskKey,
    candidate: &str,
) -> Result<Option<TaskCandidateRow>> {
    tx.first(CANDIDATE, args![&task.account, &task.id, candidate], read_candidate).await
}

pub(super) async fn candidates(
    tx: &mut Tx<'_>,
    task: &TaskKey,
    limit: &u32,
) -> Result<Vec<TaskCandidateRow>> {
    tx.all(CANDIDATES, args![&task.account, &task.id, *limit], read_candidate).await
}

pub(super) async fn references(
    tx: &mut Tx<'_>,
    task: &TaskKey,
    digest: &str,
) -> Result<Vec<ArtifactRef>> {
    let found = tx.all(REFERENCES, args![&task.account, &task.id, digest], read_refs).await?;
    Ok(found.into_iter().flatten().collect())
}

pub(super) async fn ballots(
    tx: &mut Tx<'_>,
    task: &TaskKey,
    candidate: &str,
    turn: &u32,
) -> Result<Vec<TaskBallotRow>> {
    tx.all(BALLOTS, args![&task.account, &task.id, candidate, *turn], read_ballot).await
}

pub(super) async fn next_due(tx: &mut Tx<'_>) -> Result<Option<Timestamp>> {
    let read = |cells: &dyn DbRow| RowReader::new(cells, "tasks", "id")?.time("due_at");
    tx.first(NEXT_DUE, args![], read).await
}
