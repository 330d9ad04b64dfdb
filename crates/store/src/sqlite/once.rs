//! What was done under idempotency keys, in SQLite.

use jurat_core::id::AccountId;
use rusqlite::{Connection, params};

use super::{execute, first};
use crate::{
    Result,
    once::{DoneBefore, SavedAnswer},
    rows::once::{OnceRow, read_done, status},
    sql,
};

pub(super) fn get(tx: &Connection, account: &AccountId, key: &str) -> Result<Option<DoneBefore>> {
    first(tx, sql::ONCE_GET, params![account.as_str(), key], |row| read_done(row))
}

pub(super) fn answer(
    tx: &Connection,
    account: &AccountId,
    key: &str,
    answer: &SavedAnswer,
) -> Result<()> {
    let params = params![status(answer.status), answer.text, account.as_str(), key];
    execute(tx, sql::ONCE_ANSWER, params).map(drop)
}

/// Whether the write was done before. Only one thread writes, so what is asked first stays true.
pub(super) fn is_done(tx: &Connection, once: Option<&OnceRow>) -> Result<bool> {
    let Some(once) = once else { return Ok(false) };
    let found = first(tx, sql::ONCE_GET, params![once.account_id, once.key], |_| Ok(()))?;
    Ok(found.is_some())
}

/// Notes that the write is done.
pub(super) fn note(tx: &Connection, once: Option<&OnceRow>, round_id: Option<&str>) -> Result<()> {
    let Some(once) = once else { return Ok(()) };
    let params = params![
        once.account_id,
        once.key,
        once.operation,
        once.request_digest,
        round_id,
        once.status,
        once.answer,
        once.created_at
    ];
    execute(tx, sql::ONCE_ADD, params).map(drop)
}
