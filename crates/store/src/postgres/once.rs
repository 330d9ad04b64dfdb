//! What was done under idempotency keys, in PostgreSQL.

use jurat_core::id::AccountId;
use sqlx::{PgConnection, PgExecutor};

use crate::{
    Result,
    once::{DoneBefore, OnceAnswer, SavedAnswer},
    rows::once::{OnceRow, read_done, status},
    sql,
};

pub(super) async fn get(
    db: &mut PgConnection,
    account: &AccountId,
    key: &str,
) -> Result<Option<DoneBefore>> {
    let row = sqlx::query(sql::ONCE_GET).bind(account.as_str()).bind(key);
    row.fetch_optional(&mut *db).await?.as_ref().map(read_done).transpose()
}

pub(super) async fn answer(
    database: impl PgExecutor<'_>,
    account: &str,
    key: &str,
    answer: &SavedAnswer,
) -> Result<()> {
    sqlx::query(sql::ONCE_ANSWER)
        .bind(status(answer.status))
        .bind(&answer.text)
        .bind(account)
        .bind(key)
        .execute(database)
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
    if let Some(before) = once.instead_of() {
        let replace = sqlx::query(sql::ONCE_REPLACE).bind(round_id);
        let replace = replace.bind(&once.account_id).bind(&once.key).bind(before);
        return Ok(replace.execute(tx).await?.rows_affected() == 1);
    }
    let answer = once.known();
    let noted = sqlx::query(sql::ONCE_ADD)
        .bind(&once.account_id)
        .bind(&once.key)
        .bind(&once.operation)
        .bind(&once.request_digest)
        .bind(round_id)
        .bind(answer.as_ref().map(|answer| status(answer.status)))
        .bind(answer.as_ref().map(|answer| &answer.text))
        .bind(once.created_at)
        .execute(tx)
        .await?;
    Ok(noted.rows_affected() == 1)
}

/// Adds the answer that is known only after the write, in the transaction of the write.
pub(super) async fn complete(
    tx: &mut PgConnection,
    once: Option<&OnceRow>,
    known: impl FnOnce(&OnceAnswer) -> Option<SavedAnswer>,
) -> Result<()> {
    let Some(once) = once else { return Ok(()) };
    match known(&once.answer) {
        Some(saved) => answer(tx, &once.account_id, &once.key, &saved).await,
        None => Ok(()),
    }
}
