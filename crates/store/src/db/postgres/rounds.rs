//! Rounds and decision entries in PostgreSQL.

use jurat_core::{
    account::ledger::{CreditAdmission, admit},
    id::{AccountId, NodeId, RoundId},
    round::{OpenRound, Round, RoundSummary, replica::Replica},
    time::Timestamp,
};
use sqlx::{Connection as _, PgConnection, PgExecutor};

use super::{idempotency, ledger, verifier_runs};
use crate::{
    Result, RoundCloseOutcome, RoundFilter, RoundOpenOutcome, RoundTakeover,
    db::{
        rows::{
            idempotency::IdempotencyRow,
            rounds::{
                AFTER_ALL, BEFORE_ALL, ClosingRow, RoundRow, TAKEOVER_TRIES, read_cancelled,
                read_id, read_replica, read_round, read_summary, read_taken_over,
            },
        },
        sql::{self, open_columns, replica_columns},
    },
};

/// The clocks of nodes may differ, so the database measures the leases of them all.
/// As a subquery it is read once for each statement.
macro_rules! clock {
    () => {
        "(select (extract(epoch from clock_timestamp()) * 1000000)::bigint)"
    };
}

/// One statement, one round trip, also with what was asked.
const OPEN: &str = concat!(
    "with opened as (insert into rounds (account_id, id, kind, state, node_id, lease_token, lease_until, \
     request_digest, policy_id, policy_hash, disagreement, traces, seats, opened_at, deadline_at, \
     run, held_micros, is_limited, day_cap_micros, step, most_micros, verifier_id) \
     values ($1, $2, $3, 'open', $4, $5, ",
    clock!(),
    " + $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)) \
     insert into round_payloads (account_id, round_id, asked, request, created_at) \
     select $1, $2, $22::text, $23::text, $13 where $22::text is not null"
);
const HOLD_ONLY: &str = "update rounds set held_micros = $1 where account_id = $2 and id = $3";

/// Whether what is said in an open round is to be erased.
const ERASED: &str = "\
    select erased_at from rounds \
    where account_id = $1 and id = $2 and state = 'open' and lease_token = $3 for update";

/// One statement, one round trip: whoever does not end the round writes nothing.
const CLOSE: &str = concat!(
    "with ended as ( \
     update rounds set state = $4, closed_at = $5, outcome = $6, verdict = $7, \
     agreement_bp = $8, confidence_bp = $9, consensus = $10, receipt_id = $11 \
     where account_id = $1 and id = $2 and state = 'open' and lease_token = $3 \
     returning account_id, id \
     ), answered as ( \
     insert into replicas (account_id, ",
    replica_columns!(),
    ") select ended.account_id, ended.id, answer.* from ended, unnest( \
     $13::smallint[], $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[], \
     $19::bigint[], $20::text[]) as answer \
     ), recorded as ( \
     insert into entries (account_id, round_id, receipt_id, entry, recorded_at) \
     select account_id, id, $11, $12, $5 from ended \
     ) select count(*) from ended"
);

/// The first answer of a step's execution.
const OF_TASK_CALL: &str = "\
    select id from rounds where account_id = $1 and step is not null \
    and step::json ->> 'execution_id' = $2 and state = 'closed' and outcome <> 'failed' \
    order by closed_at, id limit 1";

/// Rounds that another node is just claiming are left to it.
const TAKE_OVER: &str = concat!(
    "with late as materialized ( \
     select account_id, id from rounds where state = 'open' and lease_until <= ",
    clock!(),
    " order by lease_until limit $4 for update skip locked \
     ) update rounds set node_id = $1, lease_token = $2, lease_until = ",
    clock!(),
    " + $3 from late where rounds.account_id = late.account_id and rounds.id = late.id returning ",
    open_columns!()
);

pub(super) async fn open(
    db: &mut PgConnection,
    mut row: RoundRow,
    idempotency: Option<&IdempotencyRow>,
) -> Result<RoundOpenOutcome> {
    // Most rounds have no key, and one statement needs no transaction.
    if idempotency.is_none() && row.is_alone() {
        insert(&mut *db, &row).await?;
        return Ok(RoundOpenOutcome::Opened);
    }
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, Some(&row.id)).await? {
        tx.rollback().await?;
        return Ok(RoundOpenOutcome::Repeated);
    }
    insert(&mut *tx, &row).await?;
    if let Some(refused) = beside(&mut tx, &mut row).await? {
        tx.rollback().await?;
        return Ok(refused);
    }
    tx.commit().await?;
    Ok(row.opened())
}

/// Writes what belongs to the round, or says why it cannot be.
async fn beside(tx: &mut PgConnection, row: &mut RoundRow) -> Result<Option<RoundOpenOutcome>> {
    if let Some(run) = &row.run_row
        && !verifier_runs::add(tx, run).await?
    {
        return Ok(Some(RoundOpenOutcome::VerifierGone));
    }
    if let Some(part) = row.reserved()
        && !ledger::reserve(tx, &part).await?
    {
        return Ok(Some(RoundOpenOutcome::DaySpent));
    }
    if let Some(refused) = pay(tx, row).await? {
        return Ok(Some(refused));
    }
    if let Some(posting) = &row.posting {
        ledger::post(tx, posting).await?;
    }
    Ok(None)
}

/// Decides how much a limited account holds, or says why it holds nothing.
async fn pay(tx: &mut PgConnection, row: &mut RoundRow) -> Result<Option<RoundOpenOutcome>> {
    let Some(hold) = row.limited() else { return Ok(None) };
    let available_micros = ledger::locked(tx, &row.account_id).await?.available;
    let at_risk = ledger::at_risk(tx, &row.account_id, &row.id).await?;
    match admit(available_micros, at_risk, &hold) {
        CreditAdmission::Begin { held_micros, may_owe_micros } => {
            row.hold_only(held_micros, may_owe_micros);
        }
        CreditAdmission::Wait => return Ok(Some(RoundOpenOutcome::InTurn)),
        CreditAdmission::Short => {
            return Ok(Some(RoundOpenOutcome::Overdrawn { available_micros }));
        }
    }
    if row.held_micros != Some(hold.micros) {
        let update = sqlx::query(HOLD_ONLY).bind(row.held_micros).bind(&row.account_id);
        update.bind(&row.id).execute(tx).await?;
    }
    Ok(None)
}

async fn insert(database: impl PgExecutor<'_>, row: &RoundRow) -> Result<()> {
    sqlx::query(OPEN)
        .bind(&row.account_id)
        .bind(&row.id)
        .bind(row.kind)
        .bind(&row.node_id)
        .bind(row.lease_token)
        .bind(row.lease_until.saturating_sub(row.opened_at))
        .bind(&row.request_digest)
        .bind(&row.policy_id)
        .bind(&row.policy_hash)
        .bind(row.disagreement)
        .bind(row.traces)
        .bind(&row.seats)
        .bind(row.opened_at)
        .bind(row.deadline_at)
        .bind(&row.run)
        .bind(row.held_micros)
        .bind(row.is_limited)
        .bind(row.day_cap_micros)
        .bind(&row.step)
        .bind(row.most_micros)
        .bind(&row.verifier_id)
        .bind(&row.asked)
        .bind(&row.request)
        .execute(database)
        .await?;
    Ok(())
}

pub(super) async fn close(db: &mut PgConnection, mut row: ClosingRow) -> Result<RoundCloseOutcome> {
    if row.is_alone() {
        return end(&mut *db, &row).await;
    }
    let mut tx = db.begin().await?;
    let mut closed = RoundCloseOutcome::Closed;
    if let Some(capture) = row.capture.take()
        && !is_captured_now(&mut tx, &row, &capture.execution_id).await?
    {
        (row, closed) = (*capture.unpaid, RoundCloseOutcome::PaidBefore);
    }
    if let Some(words) = row.words
        && is_erased(&mut tx, &row).await?
    {
        row.erase(words)?;
    }
    if end(&mut *tx, &row).await? == RoundCloseOutcome::Lost {
        tx.rollback().await?;
        return Ok(RoundCloseOutcome::Lost);
    }
    if let Some(end) = &row.run_end {
        verifier_runs::end(&mut tx, &row.account_id, end).await?;
    }
    if let Some(part) = &row.returned {
        ledger::give_back(&mut tx, part).await?;
    }
    if let Some(posting) = &row.posting {
        ledger::post(&mut tx, posting).await?;
    }
    tx.commit().await?;
    Ok(closed)
}

/// Whether this round is the one that captures what the execution costs. Another transaction that
/// captures the same is waited for, and a rollback takes the row back.
async fn is_captured_now(
    tx: &mut PgConnection,
    row: &ClosingRow,
    execution_id: &str,
) -> Result<bool> {
    let added = sqlx::query(sql::CAPTURE_ADD)
        .bind(&row.account_id)
        .bind(execution_id)
        .bind(&row.id)
        .bind(row.closed_at)
        .execute(tx)
        .await?;
    Ok(added.rows_affected() == 1)
}

/// Keeps the round from being erased until it has ended.
async fn is_erased(tx: &mut PgConnection, row: &ClosingRow) -> Result<bool> {
    let query = sqlx::query_scalar(ERASED).bind(&row.account_id).bind(&row.id);
    let erased_at: Option<Option<i64>> = query.bind(row.lease_token).fetch_optional(tx).await?;
    Ok(erased_at.flatten().is_some())
}

async fn end(database: impl PgExecutor<'_>, row: &ClosingRow) -> Result<RoundCloseOutcome> {
    let replicas = &row.replicas;
    let ended: i64 = sqlx::query_scalar(CLOSE)
        .bind(&row.account_id)
        .bind(&row.id)
        .bind(row.lease_token)
        .bind(row.state)
        .bind(row.closed_at)
        .bind(row.outcome)
        .bind(row.verdict)
        .bind(row.agreement_bp)
        .bind(row.confidence_bp)
        .bind(&row.consensus)
        .bind(&row.receipt_id)
        .bind(&row.entry)
        .bind(replicas.iter().map(|replica| replica.position).collect::<Vec<_>>())
        .bind(replicas.iter().map(|replica| replica.session_id.as_str()).collect::<Vec<_>>())
        .bind(replicas.iter().map(|replica| replica.executor.as_str()).collect::<Vec<_>>())
        .bind(replicas.iter().map(|replica| replica.label.as_str()).collect::<Vec<_>>())
        .bind(replicas.iter().map(|replica| replica.failure).collect::<Vec<_>>())
        .bind(replicas.iter().map(|replica| replica.latency_ms).collect::<Vec<_>>())
        .bind(replicas.iter().map(|replica| replica.cost_micros).collect::<Vec<_>>())
        .bind(replicas.iter().map(|replica| replica.document.as_str()).collect::<Vec<_>>())
        .fetch_one(database)
        .await?;
    Ok(if ended == 0 { RoundCloseOutcome::Lost } else { RoundCloseOutcome::Closed })
}

pub(super) async fn get(
    db: &mut PgConnection,
    account: &AccountId,
    id: &RoundId,
) -> Result<Option<Round>> {
    let row = sqlx::query(sql::ROUND_GET)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(&mut *db)
        .await?;
    let Some(mut round) = row.as_ref().map(read_round).transpose()? else { return Ok(None) };
    // Needs no transaction with the read of the round: what a round that has ended says, its
    // replicas included, never changes again.
    if let Some(closing) = &mut round.closing {
        closing.replicas = replicas(&mut *db, account, id).await?;
    }
    Ok(Some(round))
}

pub(super) async fn of_task_call(
    db: &mut PgConnection,
    account: &AccountId,
    execution_id: &str,
) -> Result<Option<Round>> {
    let found = sqlx::query(OF_TASK_CALL).bind(account.as_str()).bind(execution_id);
    match found.fetch_optional(&mut *db).await?.as_ref().map(read_id).transpose()? {
        Some(id) => get(db, account, &id).await,
        None => Ok(None),
    }
}

pub(super) async fn replicas(
    db: &mut PgConnection,
    account: &AccountId,
    id: &RoundId,
) -> Result<Vec<Replica>> {
    let replicas = sqlx::query(sql::ROUND_REPLICAS).bind(account.as_str()).bind(id.as_str());
    let rows = replicas.fetch_all(&mut *db).await?;
    rows.iter().map(read_replica).collect()
}

pub(super) async fn list(
    db: &mut PgConnection,
    account: &AccountId,
    filter: &RoundFilter,
) -> Result<Vec<RoundSummary>> {
    let (text, words) = sql::list::round_list(filter);
    let mut query = sqlx::query(text)
        .bind(account.as_str())
        .bind(filter.before.as_ref().map_or(AFTER_ALL, RoundId::as_str))
        .bind(filter.after.as_ref().map_or(BEFORE_ALL, RoundId::as_str));
    for word in words {
        query = query.bind(word);
    }
    let query = query.bind(i64::from(filter.limit));
    query.fetch_all(&mut *db).await?.iter().map(read_summary).collect()
}

pub(super) async fn take_over(
    db: &mut PgConnection,
    claim: &RoundTakeover,
) -> Result<Vec<OpenRound>> {
    for _ in 0..TAKEOVER_TRIES {
        let found = take_over_batch(&mut *db, claim).await?;
        let is_last = found.is_empty();
        let readable: Vec<OpenRound> = found.into_iter().flatten().collect();
        if is_last || !readable.is_empty() {
            return Ok(readable);
        }
    }
    Ok(Vec::new())
}

async fn take_over_batch(
    db: &mut PgConnection,
    claim: &RoundTakeover,
) -> Result<Vec<Option<OpenRound>>> {
    let rows = sqlx::query(TAKE_OVER)
        .bind(claim.node.as_str())
        .bind(claim.lease_token.cast_signed())
        .bind(claim.lease_until.micros().saturating_sub(claim.now.micros()))
        .bind(i64::from(claim.limit))
        .fetch_all(&mut *db)
        .await?;
    rows.iter().map(read_taken_over).collect()
}

pub(super) async fn cancel(
    db: &mut PgConnection,
    account: &AccountId,
    id: &RoundId,
    at: Timestamp,
) -> Result<bool> {
    let asked = sqlx::query(sql::ROUND_CANCEL)
        .bind(at.micros())
        .bind(account.as_str())
        .bind(id.as_str())
        .execute(&mut *db)
        .await?;
    Ok(asked.rows_affected() == 1)
}

pub(super) async fn cancelled(
    db: &mut PgConnection,
    node: &NodeId,
) -> Result<Vec<(AccountId, RoundId)>> {
    let rows = sqlx::query(sql::ROUNDS_CANCELLED).bind(node.as_str()).fetch_all(&mut *db).await?;
    rows.iter().map(read_cancelled).collect()
}

pub(super) async fn entry(
    db: &mut PgConnection,
    account: &AccountId,
    receipt_id: &str,
) -> Result<Option<String>> {
    let entry = sqlx::query_scalar(sql::ENTRY_GET).bind(account.as_str()).bind(receipt_id);
    Ok(entry.fetch_optional(&mut *db).await?)
}
