//! What was done under idempotency keys, in SQLite.

use jurat_core::{id::AccountId, idempotency::SavedAnswer};
use rusqlite::{Connection, params};

use super::{execute, first};
use crate::{
    Result,
    db::{
        idempotency::{IdempotencyAnswer, PriorWrite},
        rows::idempotency::{IdempotencyRow, read_prior_write, status},
        sql,
    },
};

pub(super) fn get(tx: &Connection, account: &AccountId, key: &str) -> Result<Option<PriorWrite>> {
    first(tx, sql::IDEMPOTENCY_GET, params![account.as_str(), key], |row| read_prior_write(row))
}

pub(super) fn answer(
    tx: &Connection,
    account: &AccountId,
    key: &str,
    answer: &SavedAnswer,
) -> Result<()> {
    let params = params![status(answer.status), answer.text, account.as_str(), key];
    execute(tx, sql::IDEMPOTENCY_ANSWER, params).map(drop)
}

/// Whether the write was done before. Only one thread writes, so what is asked first stays true.
pub(super) fn is_done(tx: &Connection, idempotency: Option<&IdempotencyRow>) -> Result<bool> {
    let Some(idempotency) = idempotency else { return Ok(false) };
    let params = params![idempotency.account_id, idempotency.key];
    let found: Option<Option<String>> =
        first(tx, sql::IDEMPOTENCY_GET, params, |row| Ok(row.get("round_id")?))?;
    Ok(match idempotency.instead_of() {
        Some(before) => found.flatten().as_deref() != Some(before),
        None => found.is_some(),
    })
}

/// Notes that the write is done, with the answer that was known before.
pub(super) fn record_write(
    tx: &Connection,
    idempotency: Option<&IdempotencyRow>,
    round_id: Option<&str>,
) -> Result<()> {
    insert(tx, idempotency, round_id, idempotency.and_then(IdempotencyRow::known).as_ref())
}

/// Notes that the write is done, with the answer that is known now.
pub(super) fn record_answered_write(
    tx: &Connection,
    idempotency: Option<&IdempotencyRow>,
    answer: impl FnOnce(&IdempotencyAnswer) -> Option<SavedAnswer>,
) -> Result<()> {
    insert(
        tx,
        idempotency,
        None,
        idempotency.and_then(|idempotency| answer(&idempotency.answer)).as_ref(),
    )
}

fn insert(
    tx: &Connection,
    idempotency: Option<&IdempotencyRow>,
    round_id: Option<&str>,
    answer: Option<&SavedAnswer>,
) -> Result<()> {
    let Some(idempotency) = idempotency else { return Ok(()) };
    if let Some(before) = idempotency.instead_of() {
        let params = params![round_id, idempotency.account_id, idempotency.key, before];
        return execute(tx, sql::IDEMPOTENCY_REPLACE, params).map(drop);
    }
    let params = params![
        idempotency.account_id,
        idempotency.key,
        idempotency.operation,
        idempotency.request_digest,
        round_id,
        answer.map(|answer| status(answer.status)),
        answer.map(|answer| &answer.text),
        idempotency.created_at
    ];
    execute(tx, sql::IDEMPOTENCY_ADD, params).map(drop)
}
