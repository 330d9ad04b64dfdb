//! Credits and how accounts stand, in PostgreSQL.

use jurat_core::{
    account::ledger::{AccountState, Balance, Transfer},
    id::AccountId,
    list::ListPage,
    time::Timestamp,
};
use sqlx::{Connection as _, PgConnection, PgExecutor};

use super::{LONG_STATEMENT_TIMEOUT, idempotency};
use crate::{
    CreditGrant, CreditGrantOutcome, Result, Spending, Suspension, SuspensionOutcome,
    db::{
        rows::{
            idempotency::IdempotencyRow,
            ledger::{
                Posting, fault, read_account, read_at_risk, read_balance, read_spending,
                read_transfer,
            },
            rounds::{AFTER_ALL, DayReservation},
        },
        sql::ledger::{self as sql, balance_change},
    },
    ops::checkup::MOST_FAULTS,
};

/// One statement, one round trip: all rounds of an account wait for each other here. The lines are
/// numbered as `rows/ledger.rs` does it.
const POST: &str = concat!(
    "with balance as (",
    balance_change!(),
    "), posted as ( \
     insert into credit_transfers (account_id, id, movement, micros, round_id, note, created_at) \
     select balance.account_id, lpad((balance.lines - $5 + line.number)::text, 16, '0'), \
     line.movement, line.micros, $11, $12, $13 from balance, \
     unnest($9::text[], $10::bigint[]) with ordinality as line (movement, micros, number) \
     ) select * from balance"
);

/// Writes lines and changes the balance; `None` when less is available than is needed. From then
/// on the balance is locked until the transaction ends, so this comes last in it.
pub(super) async fn post(tx: &mut PgConnection, posting: &Posting) -> Result<Option<Balance>> {
    let mut posted = try_post(tx, posting).await?;
    if posted.is_none() && posting.is_for_any() {
        sqlx::query(sql::BALANCE_MAKE).bind(&posting.account_id).execute(&mut *tx).await?;
        posted = try_post(tx, posting).await?;
    }
    Ok(posted)
}

async fn try_post(tx: &mut PgConnection, posting: &Posting) -> Result<Option<Balance>> {
    let (change, lines) = (posting.change, &posting.lines);
    let row = sqlx::query(POST)
        .bind(change.granted)
        .bind(change.available)
        .bind(change.held)
        .bind(change.spent)
        .bind(posting.count())
        .bind(posting.may_owe)
        .bind(&posting.account_id)
        .bind(posting.needed)
        .bind(lines.iter().map(|line| line.movement).collect::<Vec<_>>())
        .bind(lines.iter().map(|line| line.micros).collect::<Vec<_>>())
        .bind(&posting.round_id)
        .bind(&posting.note)
        .bind(posting.at)
        .fetch_optional(tx)
        .await?;
    Ok(row.as_ref().map(read_balance).transpose()?.map(|(balance, _)| balance))
}

/// Reserves a part of the day for a round without a key; `false` when so much is not left of it. All
/// such rounds wait for each other here, so this comes late, and before the balance.
pub(super) async fn reserve(tx: &mut PgConnection, part: &DayReservation) -> Result<bool> {
    sqlx::query(sql::DAY_MAKE).bind(part.day).execute(&mut *tx).await?;
    let reserve = sqlx::query(sql::DAY_RESERVE).bind(part.micros).bind(part.day).bind(part.cap);
    Ok(reserve.execute(tx).await?.rows_affected() == 1)
}

/// Gives back what a round without a key did not cost.
pub(super) async fn give_back(tx: &mut PgConnection, part: &DayReservation) -> Result<()> {
    sqlx::query(sql::DAY_RETURN).bind(part.micros).bind(part.day).execute(tx).await?;
    Ok(())
}

/// What an account has, which stays so until the transaction ends.
pub(super) async fn locked(tx: &mut PgConnection, account: &str) -> Result<Balance> {
    let row = sqlx::query(sql::BALANCE_LOCK).bind(account).fetch_optional(tx).await?;
    let found = row.as_ref().map(read_balance).transpose()?;
    Ok(found.map(|(balance, _)| balance).unwrap_or_default())
}

/// By how much the rounds of the account may cost more than they hold, without this one. It is asked
/// after the balance is locked, so that no round begins in between.
pub(super) async fn at_risk(tx: &mut PgConnection, account: &str, round: &str) -> Result<i64> {
    read_at_risk(&sqlx::query(sql::AT_RISK).bind(account).bind(round).fetch_one(tx).await?)
}

/// What an account has; nothing, when nothing was ever counted for it.
pub(super) async fn balance(database: impl PgExecutor<'_>, account: &str) -> Result<Balance> {
    let row = sqlx::query(sql::BALANCE_GET).bind(account).fetch_optional(database).await?;
    let found = row.as_ref().map(read_balance).transpose()?;
    Ok(found.map(|(balance, _)| balance).unwrap_or_default())
}

pub(super) async fn grant(
    db: &mut PgConnection,
    grant: &CreditGrant,
    idempotency: Option<&IdempotencyRow>,
) -> Result<CreditGrantOutcome> {
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(CreditGrantOutcome::Repeated);
    }
    if account(&mut *tx, &grant.account).await?.is_none() {
        tx.rollback().await?;
        return Ok(CreditGrantOutcome::UnknownAccount);
    }
    let mut posting = Posting::of_grant(grant);
    if posting.needed.is_some() {
        locked(&mut tx, grant.account.as_str()).await?;
        posting = posting.leaving(at_risk(&mut tx, grant.account.as_str(), "").await?);
    }
    let Some(granted) = post(&mut tx, &posting).await? else {
        let balance = balance(&mut *tx, grant.account.as_str()).await?;
        tx.rollback().await?;
        return Ok(CreditGrantOutcome::TooMuch(balance));
    };
    idempotency::save_answer(&mut tx, idempotency, |answer| answer.of_balance(&granted)).await?;
    tx.commit().await?;
    Ok(CreditGrantOutcome::Done(granted))
}

pub(super) async fn suspend(
    db: &mut PgConnection,
    suspension: &Suspension,
    idempotency: Option<&IdempotencyRow>,
) -> Result<SuspensionOutcome> {
    let id = suspension.account.as_str();
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(SuspensionOutcome::Repeated);
    }
    let change = match suspension.since {
        Some(since) => sqlx::query(sql::ACCOUNT_SUSPEND).bind(since.micros()).bind(id),
        None => sqlx::query(sql::ACCOUNT_RESUME).bind(id),
    };
    change.execute(&mut *tx).await?;
    let Some(state) = account(&mut *tx, &suspension.account).await? else {
        tx.rollback().await?;
        return Ok(SuspensionOutcome::UnknownAccount);
    };
    idempotency::save_answer(&mut tx, idempotency, |answer| answer.of_account(&state)).await?;
    tx.commit().await?;
    Ok(SuspensionOutcome::Done(Box::new(state)))
}

pub(super) async fn account(
    database: impl PgExecutor<'_>,
    account: &AccountId,
) -> Result<Option<AccountState>> {
    let query = sqlx::query(sql::ACCOUNT_GET).bind(account.as_str());
    query.fetch_optional(database).await?.as_ref().map(read_account).transpose()
}

pub(super) async fn accounts(db: &mut PgConnection, page: &ListPage) -> Result<Vec<AccountState>> {
    let query = sqlx::query(sql::ACCOUNT_LIST)
        .bind(page.after.as_deref().unwrap_or_default())
        .bind(i64::from(page.limit));
    query.fetch_all(&mut *db).await?.iter().map(read_account).collect()
}

pub(super) async fn spent(
    db: &mut PgConnection,
    account: &AccountId,
    since: Timestamp,
) -> Result<Spending> {
    let query = sqlx::query(sql::SPENT).bind(account.as_str()).bind(since.micros());
    read_spending(&query.fetch_one(&mut *db).await?)
}

pub(super) async fn transfers(
    db: &mut PgConnection,
    account: &AccountId,
    before: Option<&str>,
    limit: u32,
) -> Result<Vec<Transfer>> {
    let query = sqlx::query(sql::TRANSFER_LIST)
        .bind(account.as_str())
        .bind(before.unwrap_or(AFTER_ALL))
        .bind(i64::from(limit));
    query.fetch_all(&mut *db).await?.iter().map(read_transfer).collect()
}

pub(super) async fn check(db: &mut PgConnection) -> Result<Vec<String>> {
    let mut tx = db.begin().await?;
    sqlx::query(LONG_STATEMENT_TIMEOUT).execute(&mut *tx).await?;
    let mut faults = Vec::new();
    for (why, text) in sql::RULES.into_iter().chain([sql::CAPTURED_TWICE_POSTGRES]) {
        let found: Vec<String> =
            sqlx::query_scalar(text).bind(MOST_FAULTS).fetch_all(&mut *tx).await?;
        faults.extend(found.iter().map(|what| fault(what, why)));
    }
    Ok(faults)
}
