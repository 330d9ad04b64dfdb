//! What was done under idempotency keys, in PostgreSQL.

use jurat_core::id::AccountId;
use sqlx::{PgConnection, PgPool};

use crate::{
    Result,
    once::{DoneBefore, SavedAnswer},
    rows::once::{OnceRow, read_done, status},
    sql,
};

pub(super) async fn get(
    pool: &PgPool,
    account: &AccountId,
    key: &str,
) -> Result<Option<DoneBefore>> {
    let row = sqlx::query(sql::ONCE_GET).bind(account.as_str()).bind(key);
    row.fetch_optional(pool).await?.as_ref().map(read_done).transpose()
}

pub(super) async fn answer(
    pool: &PgPool,
    account: &AccountId,
    key: &str,
    answer: &SavedAnswer,
) -> Result<()> {
    sqlx::query(sql::ONCE_ANSWER)
        .bind(status(answer.status))
        .bind(&answer.text)
        .bind(account.as_str())
        .bind(key)
        .execute(pool)
        .await?;
    Ok(())
}

/// Notes the write before it is done; `false` when it was done before. Another transaction that
/// notes the same key is waited for, and a rollback takes the note back.
pub(super) async fn note(
    tx: &mut PgConnection,
    once: Option<&OnceRow>,
    round_id: Option<&str>,
) -> Result<bool> {
    let Some(once) = once else { return Ok(true) };
    let noted = sqlx::query(sql::ONCE_ADD)
        .bind(&once.account_id)
        .bind(&once.key)
        .bind(&once.operation)
        .bind(&once.request_digest)
        .bind(round_id)
        .bind(once.status)
        .bind(&once.answer)
        .bind(once.created_at)
        .execute(tx)
        .await?;
    Ok(noted.rows_affected() == 1)
}
