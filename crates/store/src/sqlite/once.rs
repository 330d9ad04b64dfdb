//! What was done under idempotency keys, in SQLite.

use jurat_core::id::AccountId;
use rusqlite::{Connection, params};

use super::{execute, first};
use crate::{
    Result,
    once::{DoneBefore, OnceAnswer, SavedAnswer},
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
    let params = params![once.account_id, once.key];
    let found: Option<Option<String>> =
        first(tx, sql::ONCE_GET, params, |row| Ok(row.get("round_id")?))?;
    Ok(match once.instead_of() {
        Some(before) => found.flatten().as_deref() != Some(before),
        None => found.is_some(),
    })
}

/// Notes that the write is done, with the answer that was known before.
pub(super) fn note(tx: &Connection, once: Option<&OnceRow>, round_id: Option<&str>) -> Result<()> {
    insert(tx, once, round_id, once.and_then(OnceRow::known).as_ref())
}

/// Notes that the write is done, with the answer that is known now.
pub(super) fn note_answered(
    tx: &Connection,
    once: Option<&OnceRow>,
    answer: impl FnOnce(&OnceAnswer) -> Option<SavedAnswer>,
) -> Result<()> {
    insert(tx, once, None, once.and_then(|once| answer(&once.answer)).as_ref())
}

fn insert(
    tx: &Connection,
    once: Option<&OnceRow>,
    round_id: Option<&str>,
    answer: Option<&SavedAnswer>,
) -> Result<()> {
    let Some(once) = once else { return Ok(()) };
    if let Some(before) = once.instead_of() {
        let params = params![round_id, once.account_id, once.key, before];
        return execute(tx, sql::ONCE_REPLACE, params).map(drop);
    }
    let params = params![
        once.account_id,
        once.key,
        once.operation,
        once.request_digest,
        round_id,
        answer.map(|answer| status(answer.status)),
        answer.map(|answer| &answer.text),
        once.created_at
    ];
    execute(tx, sql::ONCE_ADD, params).map(drop)
}
