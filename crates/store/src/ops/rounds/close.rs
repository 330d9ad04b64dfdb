//! Closes a round: its replicas, its decision, its run, and its credit.

use const_format::concatcp;
use jurat_core::{id::AccountId, time::Timestamp};

use super::{
    RoundCharge, RoundLost,
    rows::{CaptureRow, ClosingRow, REPLICA_COLUMNS, ReplicaRow},
};
use crate::{
    Result,
    db::{
        row::{DbRow, read_number},
        tx::{SqlArg, Tx, args},
    },
    ops::{
        ledger,
        peers::book,
        verifier_runs,
        webhooks::announce::{announce, announcement},
    },
};

const END: &str = "\
    update rounds set state = $4, closed_at = $5, outcome = $6, verdict = $7, \
    agreement_bp = $8, confidence_bp = $9, consensus = $10, receipt_id = $11 \
    where account_id = $1 and id = $2 and state = 'open' and lease_token = $3";
/// One statement and one message for PostgreSQL: a close that does not end the round writes
/// nothing. On SQLite three statements cost less than a combined one.
const CLOSE_POSTGRES: &str = concatcp!(
    "with ended as (",
    END,
    " returning account_id, id \
     ), answered as ( \
     insert into replicas (account_id, ",
    REPLICA_COLUMNS,
    ") select ended.account_id, ended.id, answer.* from ended, unnest( \
     $13::bigint[], $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[], \
     $19::bigint[], $20::text[]) as answer \
     ), recorded as ( \
     insert into entries (account_id, round_id, receipt_id, entry, recorded_at) \
     select account_id, id, $11, $12, $5 from ended \
     ), announced as (",
    announcement!("$21", "$22", "$23", "$24", "$5", "(select account_id from ended)"),
    ") select 'rounds' as name, count(*) as number from ended"
);
/// SQLite numbers parameters by their first use. The statement also reads whether the account has a
/// webhook, so that others pay for no further statement.
const END_SQLITE: &str = "\
    update rounds set state = $1, closed_at = $2, outcome = $3, verdict = $4, \
    agreement_bp = $5, confidence_bp = $6, consensus = $7, receipt_id = $8 \
    where account_id = $9 and id = $10 and state = 'open' and lease_token = $11 \
    returning 'rounds' as name, \
    exists (select 1 from webhooks where webhooks.account_id = rounds.account_id) as number";
const REPLICA: &str = concatcp!(
    "insert into replicas (account_id, ",
    REPLICA_COLUMNS,
    ") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
);
const ENTRY: &str = "\
    insert into entries (account_id, round_id, receipt_id, entry, recorded_at) \
    values ($1, $2, $3, $4, $5)";

/// Whether the texts of an open round are to be erased.
const ERASED_SQLITE: &str = "\
    select erased_at from rounds \
    where account_id = $1 and id = $2 and state = 'open' and lease_token = $3";
const ERASED: (&str, &str) = (ERASED_SQLITE, concatcp!(ERASED_SQLITE, " for update"));
/// The transaction that adds the row captures the cost.
const CAPTURE: &str = "\
    insert into execution_captures (account_id, execution_id, round_id, captured_at) \
    values ($1, $2, $3, $4) on conflict do nothing";

pub(super) async fn close(
    tx: &mut Tx<'_>,
    mut row: ClosingRow,
) -> Result<Result<RoundCharge, RoundLost>> {
    let mut charge = RoundCharge::Own;
    if let Some(CaptureRow { execution_id, unpaid }) = row.capture.take() {
        // Waits for another transaction that captures the same execution; a rollback removes the
        // row.
        let args = args![&row.account_id, execution_id, &row.id, row.closed_at];
        if tx.run(CAPTURE, args).await? == 0 {
            (row, charge) = (*unpaid, RoundCharge::PaidBefore);
        }
    }
    if let Some(texts) = row.words
        && is_erased(tx, &row).await?
    {
        row.erase(texts)?;
    }
    let ClosingRow { run_end, returned, posting, booked, .. } = &mut row;
    let (run_end, returned, posting) = (run_end.take(), returned.take(), posting.take());
    let booked = booked.take();
    let account_id = row.account_id.clone();
    if !end(tx, row).await? {
        return Ok(Err(RoundLost));
    }
    // Waits for another transaction that books the same job, so it comes before the locks that the
    // rounds of an account share.
    if let Some(booked) = &booked {
        book::add(tx, booked).await?;
    }
    if let Some(end) = &run_end {
        verifier_runs::end(tx, &account_id, end).await?;
    }
    if let Some(part) = &returned {
        ledger::give_back(tx, part).await?;
    }
    if let Some(posting) = &posting {
        ledger::post(tx, posting).await?;
    }
    Ok(Ok(charge))
}

/// Whether the texts of the round are to be erased. The lock keeps this unchanged until the round
/// ends.
async fn is_erased(tx: &mut Tx<'_>, row: &ClosingRow) -> Result<bool> {
    let read = |cells: &dyn DbRow| {
        let erased_at = cells.number("erased_at").map_err(crate::StoreError::unavailable)?;
        Ok(erased_at.is_some())
    };
    let args = args![&row.account_id, &row.id, row.lease_token];
    Ok(tx.first(tx.own(ERASED), args, read).await?.unwrap_or(false))
}

/// Ends a round; `false` if it has ended already or belongs to another node.
pub(super) async fn end(tx: &mut Tx<'_>, row: ClosingRow) -> Result<bool> {
    if tx.is_sqlite() { end_in_steps(tx, row).await } else { end_in_one(tx, row).await }
}

async fn end_in_one(tx: &mut Tx<'_>, row: ClosingRow) -> Result<bool> {
    let replicas = row.replicas;
    let texts = |text: fn(&ReplicaRow) -> Option<&str>| {
        SqlArg::Texts(replicas.iter().map(|it| text(it).map(str::to_owned)).collect())
    };
    let numbers =
        |number: fn(&ReplicaRow) -> i64| SqlArg::Numbers(replicas.iter().map(number).collect());
    let mut args = args![
        row.account_id,
        row.id,
        row.lease_token,
        row.state,
        row.closed_at,
        row.outcome,
        row.verdict,
        row.agreement_bp,
        row.confidence_bp,
        row.consensus,
        row.receipt_id,
        row.entry
    ];
    args.extend([
        numbers(|it| it.position),
        texts(|it| Some(&it.session_id)),
        texts(|it| Some(&it.executor)),
        texts(|it| Some(it.label.as_str())),
        texts(|it| it.failure),
        numbers(|it| it.latency_ms),
        numbers(|it| it.cost_micros),
        texts(|it| Some(&it.document)),
    ]);
    let event = row.event.as_ref();
    args.extend(args![
        event.map(|it| it.id.as_str()),
        event.map(|it| it.event_type.as_str()),
        event.and_then(|it| it.subject.as_deref()),
        event.map(|it| it.body.as_str())
    ]);
    let ended = tx.first(CLOSE_POSTGRES, args, read_number).await?;
    Ok(ended == Some(1))
}

async fn end_in_steps(tx: &mut Tx<'_>, row: ClosingRow) -> Result<bool> {
    let ClosingRow { account_id, id, closed_at, receipt_id, event, .. } = row;
    let args = args![
        row.state,
        closed_at,
        row.outcome,
        row.verdict,
        row.agreement_bp,
        row.confidence_bp,
        row.consensus,
        &receipt_id,
        &account_id,
        &id,
        row.lease_token
    ];
    let Some(has_webhooks) = tx.first(END_SQLITE, args, read_number).await? else {
        return Ok(false);
    };
    for replica in row.replicas {
        let args = args![
            &account_id,
            &id,
            replica.position,
            replica.session_id,
            replica.executor,
            replica.label.as_str(),
            replica.failure,
            replica.latency_ms,
            replica.cost_micros,
            replica.document
        ];
        tx.run(REPLICA, args).await?;
    }
    tx.run(ENTRY, args![&account_id, id, receipt_id, row.entry, closed_at]).await?;
    if let Some(event) = event.filter(|_| has_webhooks != 0)
        && let Ok(account) = AccountId::parse(&account_id)
    {
        announce(tx, &account, &event, Timestamp::from_micros(closed_at)).await?;
    }
    Ok(true)
}
