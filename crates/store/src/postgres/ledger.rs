//! Credits and how accounts stand, in PostgreSQL.

use jurat_core::{
    id::AccountId,
    ledger::{AccountState, Balance, Transfer},
    time::Timestamp,
};
use sqlx::{PgConnection, PgExecutor, PgPool};

use super::{PATIENCE, once};
use crate::{
    Grant, Granted, Page, Result, Spending, Suspended, Suspension,
    checkup::MOST_FAULTS,
    rows::{
        ledger::{Posting, fault, read_account, read_balance, read_spending, read_transfer},
        once::OnceRow,
        rounds::AFTER_ALL,
    },
    sql::ledger as sql,
};

/// Writes lines and changes the balance; `None` when less is available than is needed. From the
/// change on the balance is locked until the transaction ends, so this comes last in it.
pub(super) async fn post(tx: &mut PgConnection, posting: &Posting) -> Result<Option<Balance>> {
    let mut changed = change(tx, posting).await?;
    if changed.is_none() && posting.is_for_any() {
        sqlx::query(sql::BALANCE_MAKE).bind(&posting.account_id).execute(&mut *tx).await?;
        changed = change(tx, posting).await?;
    }
    let Some((balance, last)) = changed else { return Ok(None) };
    for (id, line) in posting.numbered(last) {
        sqlx::query(sql::TRANSFER_ADD)
            .bind(&posting.account_id)
            .bind(id)
            .bind(line.movement)
            .bind(line.micros)
            .bind(&line.round_id)
            .bind(&line.note)
            .bind(line.at)
            .execute(&mut *tx)
            .await?;
    }
    Ok(Some(balance))
}

async fn change(tx: &mut PgConnection, posting: &Posting) -> Result<Option<(Balance, i64)>> {
    let change = posting.change;
    let row = sqlx::query(sql::BALANCE_CHANGE)
        .bind(change.granted)
        .bind(change.available)
        .bind(change.held)
        .bind(change.spent)
        .bind(posting.count())
        .bind(&posting.account_id)
        .bind(posting.needed)
        .fetch_optional(tx)
        .await?;
    row.as_ref().map(read_balance).transpose()
}

/// What an account has; nothing, when nothing was ever counted for it.
pub(super) async fn balance(database: impl PgExecutor<'_>, account: &str) -> Result<Balance> {
    let row = sqlx::query(sql::BALANCE_GET).bind(account).fetch_optional(database).await?;
    let found = row.as_ref().map(read_balance).transpose()?;
    Ok(found.map(|(balance, _)| balance).unwrap_or_default())
}

pub(super) async fn grant(pool: &PgPool, grant: &Grant, once: Option<&OnceRow>) -> Result<Granted> {
    let mut tx = pool.begin().await?;
    if !once::note(&mut tx, once, None).await? {
        tx.rollback().await?;
        return Ok(Granted::Repeated);
    }
    if account(&mut *tx, &grant.account).await?.is_none() {
        tx.rollback().await?;
        return Ok(Granted::UnknownAccount);
    }
    let Some(granted) = post(&mut tx, &Posting::of_grant(grant)).await? else {
        let balance = balance(&mut *tx, grant.account.as_str()).await?;
        tx.rollback().await?;
        return Ok(Granted::TooMuch(balance));
    };
    once::complete(&mut tx, once, |answer| answer.of_balance(&granted)).await?;
    tx.commit().await?;
    Ok(Granted::Done(granted))
}

pub(super) async fn suspend(
    pool: &PgPool,
    suspension: &Suspension,
    once: Option<&OnceRow>,
) -> Result<Suspended> {
    let id = suspension.account.as_str();
    let mut tx = pool.begin().await?;
    if !once::note(&mut tx, once, None).await? {
        tx.rollback().await?;
        return Ok(Suspended::Repeated);
    }
    let change = match suspension.since {
        Some(since) => sqlx::query(sql::ACCOUNT_SUSPEND).bind(since.micros()).bind(id),
        None => sqlx::query(sql::ACCOUNT_RESUME).bind(id),
    };
    change.execute(&mut *tx).await?;
    let Some(state) = account(&mut *tx, &suspension.account).await? else {
        tx.rollback().await?;
        return Ok(Suspended::UnknownAccount);
    };
    once::complete(&mut tx, once, |answer| answer.of_account(&state)).await?;
    tx.commit().await?;
    Ok(Suspended::Done(Box::new(state)))
}

pub(super) async fn account(
    database: impl PgExecutor<'_>,
    account: &AccountId,
) -> Result<Option<AccountState>> {
    let query = sqlx::query(sql::ACCOUNT_GET).bind(account.as_str());
    query.fetch_optional(database).await?.as_ref().map(read_account).transpose()
}

pub(super) async fn accounts(pool: &PgPool, page: &Page) -> Result<Vec<AccountState>> {
    let query = sqlx::query(sql::ACCOUNT_LIST)
        .bind(page.after.as_deref().unwrap_or_default())
        .bind(i64::from(page.limit));
    query.fetch_all(pool).await?.iter().map(read_account).collect()
}

pub(super) async fn spent(
    pool: &PgPool,
    account: &AccountId,
    since: Timestamp,
) -> Result<Spending> {
    let query = sqlx::query(sql::SPENT).bind(account.as_str()).bind(since.micros());
    read_spending(&query.fetch_one(pool).await?)
}

pub(super) async fn transfers(
    pool: &PgPool,
    account: &AccountId,
    before: Option<&str>,
    limit: u32,
) -> Result<Vec<Transfer>> {
    let query = sqlx::query(sql::TRANSFER_LIST)
        .bind(account.as_str())
        .bind(before.unwrap_or(AFTER_ALL))
        .bind(i64::from(limit));
    query.fetch_all(pool).await?.iter().map(read_transfer).collect()
}

pub(super) async fn check(pool: &PgPool) -> Result<Vec<String>> {
    let mut tx = pool.begin().await?;
    sqlx::query(PATIENCE).execute(&mut *tx).await?;
    let mut faults = Vec::new();
    for (why, text) in sql::RULES {
        let found: Vec<String> =
            sqlx::query_scalar(text).bind(MOST_FAULTS).fetch_all(&mut *tx).await?;
        faults.extend(found.iter().map(|what| fault(what, why)));
    }
    Ok(faults)
}
