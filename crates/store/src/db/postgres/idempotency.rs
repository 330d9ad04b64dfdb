//! What was done under idempotency keys, in PostgreSQL.

use jurat_core::{id::AccountId, idempotency::SavedAnswer};
use sqlx::{PgConnection, PgExecutor};

use crate::{
    Result,
    db::{
        idempotency::{IdempotencyAnswer, PriorWrite},
        rows::idempotency::{IdempotencyRow, read_prior_write, status},
        sql,
    },
};

pub(super) async fn get(
    db: &mut PgConnection,
    account: &AccountId,
    key: &str,
) -> Result<Option<PriorWrite>> {
    let row = sqlx::query(sql::IDEMPOTENCY_GET).bind(account.as_str()).bind(key);
    row.fetch_optional(&mut *db).await?.as_ref().map(read_prior_write).transpose()
}

pub(super) async fn answer(
    database: impl PgExecutor<'_>,
    account: &str,
    key: &str,
    answer: &SavedAnswer,
) -> Result<()> {
    sqlx::query(sql::IDEMPOTENCY_ANSWER)
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
pub(super) async fn reserve_key(
    tx: &mut PgConnection,
    idempotency: Option<&IdempotencyRow>,
    round_id: Option<&str>,
) -> Result<bool> {
    let Some(idempotency) = idempotency else { return Ok(true) };
    if let Some(before) = idempotency.instead_of() {
        let replace = sqlx::query(sql::IDEMPOTENCY_REPLACE).bind(round_id);
        let replace = replace.bind(&idempotency.account_id).bind(&idempotency.key).bind(before);
        return Ok(replace.execute(tx).await?.rows_affected() == 1);
    }
    let answer = idempotency.known();
    let noted = sqlx::query(sql::IDEMPOTENCY_ADD)
        .bind(&idempotency.account_id)
        .bind(&idempotency.key)
        .bind(&idempotency.operation)
        .bind(&idempotency.request_digest)
        .bind(round_id)
        .bind(answer.as_ref().map(|answer| status(answer.status)))
        .bind(answer.as_ref().map(|answer| &answer.text))
        .bind(idempotency.created_at)
        .execute(tx)
        .await?;
    Ok(noted.rows_affected() == 1)
}

/// Adds the answer that is known only after the write, in the transaction of the write.
pub(super) async fn save_answer(
    tx: &mut PgConnection,
    idempotency: Option<&IdempotencyRow>,
    known: impl FnOnce(&IdempotencyAnswer) -> Option<SavedAnswer>,
) -> Result<()> {
    let Some(idempotency) = idempotency else { return Ok(()) };
    match known(&idempotency.answer) {
        Some(saved) => answer(tx, &idempotency.account_id, &idempotency.key, &saved).await,
        None => Ok(()),
    }
}
