//! Accounts and keys in SQLite.

use std::collections::BTreeMap;

use jurat_core::{account::key::Key, id::AccountId, list::ListPage, time::Timestamp};
use rusqlite::{Connection, params};

use super::{all, execute, first, idempotency};
use crate::{
    KeyAddOutcome, KeyRecord, KeyRevocation, KeyRevokeOutcome, KeyRotateOutcome, KeyRotation,
    KeySuccession, LiveKeys, Result, StoreError,
    db::{
        rows::{
            idempotency::IdempotencyRow,
            keys::{KeyRow, meant, read_key, refused},
        },
        sql::keys as sql,
    },
};

pub(super) fn account_ensure(tx: &Connection, account: &AccountId, now: Timestamp) -> Result<()> {
    execute(tx, sql::ACCOUNT_ENSURE, params![account.as_str(), now.micros()]).map(drop)
}

pub(super) fn put(tx: &Connection, key: &KeyRow) -> Result<()> {
    if write(tx, sql::KEY_PUT, key)? == 0 {
        return Err(StoreError::conflict("the key belongs to another account"));
    }
    Ok(())
}

pub(super) fn add(
    tx: &Connection,
    key: &KeyRow,
    idempotency: Option<&IdempotencyRow>,
) -> Result<KeyAddOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(KeyAddOutcome::Repeated);
    }
    let names = params![key.account_id, key.name, key.created_at];
    if count(tx, sql::KEY_NAME_TAKEN, names)? > 0 {
        return Ok(KeyAddOutcome::NameTaken);
    }
    execute(tx, sql::ACCOUNT_ENSURE, params![key.account_id, key.created_at])?;
    write(tx, sql::KEY_ADD, key)?;
    idempotency::record_write(tx, idempotency, None)?;
    Ok(KeyAddOutcome::Added)
}

pub(super) fn get(tx: &Connection, id: &str) -> Result<Option<KeyRecord>> {
    first(tx, sql::KEY_GET, params![id], |row| read_key(row))
}

pub(super) fn list(
    tx: &Connection,
    account: Option<&AccountId>,
    page: &ListPage,
) -> Result<Vec<KeyRecord>> {
    let account = account.map(AccountId::as_str);
    all(tx, sql::KEY_LIST, params![account, page.after, page.limit], |row| read_key(row))
}

pub(super) fn live(tx: &Connection, wanted: &LiveKeys) -> Result<Vec<KeyRecord>> {
    let (name, scope) = wanted.patterns();
    let params = params![wanted.account.as_str(), wanted.now.micros(), name, scope, wanted.limit];
    all(tx, sql::KEY_LIVE, params, |row| read_key(row))
}

pub(super) fn revoke(
    tx: &Connection,
    revocation: &KeyRevocation,
    idempotency: Option<&IdempotencyRow>,
) -> Result<KeyRevokeOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(KeyRevokeOutcome::Repeated);
    }
    let (account, at) = (revocation.account.as_str(), revocation.at.micros());
    let mut keys = find(tx, account, &revocation.id_or_name)?;
    if keys.is_empty() {
        keys = find_by(tx, sql::KEY_REVOKED, account, &revocation.id_or_name)?;
    }
    let admins = count(tx, sql::KEY_ADMINS, params![at])?;
    if let Some(refused) = refused(revocation, &keys, admins) {
        return Ok(refused);
    }
    for key in &keys {
        execute(tx, sql::KEY_REVOKE, params![at, account, key.id])?;
    }
    idempotency::record_write(tx, idempotency, None)?;
    Ok(KeyRevokeOutcome::Revoked(keys.into_iter().map(|key| key.id).collect()))
}

pub(super) fn rotate(
    tx: &Connection,
    rotation: &KeyRotation,
    idempotency: Option<&IdempotencyRow>,
) -> Result<KeyRotateOutcome> {
    if idempotency::is_done(tx, idempotency)? {
        return Ok(KeyRotateOutcome::Repeated);
    }
    let keys = find(tx, rotation.account.as_str(), &rotation.id_or_name)?;
    let Some(mut old) = keys.into_iter().find(|key| key.is_live(rotation.at)) else {
        return Ok(KeyRotateOutcome::Unknown);
    };
    let of_name = find(tx, rotation.account.as_str(), &old.name)?;
    if let Some(newer) = rotation.successor(&old, &of_name) {
        return Ok(KeyRotateOutcome::Superseded(newer));
    }
    let new = rotation.replacement(&old);
    write(tx, sql::KEY_ADD, &KeyRow::new(&new)?)?;
    let end = rotation.end_of(&old);
    let predecessors = rotation.predecessors(&old, &of_name);
    let ended: Vec<String> = predecessors.iter().map(|key| key.id.clone()).collect();
    for id in ended.iter().chain([&old.id]) {
        execute(tx, sql::KEY_EXPIRE, params![end.micros(), old.account.as_str(), id])?;
    }
    old.expires_at = Some(end);
    let succession = KeySuccession { old, new: new.key, ended };
    idempotency::record_answered_write(tx, idempotency, |answer| answer.of_rotation(&succession))?;
    Ok(KeyRotateOutcome::Done(Box::new(succession)))
}

pub(super) fn used(tx: &Connection, uses: &BTreeMap<String, Timestamp>) -> Result<()> {
    for (id, at) in uses {
        execute(tx, sql::KEY_USED, params![at.micros(), id])?;
    }
    Ok(())
}

fn find(tx: &Connection, account: &str, id_or_name: &str) -> Result<Vec<Key>> {
    find_by(tx, sql::KEY_MEANT, account, id_or_name)
}

fn find_by(tx: &Connection, text: &str, account: &str, id_or_name: &str) -> Result<Vec<Key>> {
    let found = all(tx, text, params![account, id_or_name], |row| read_key(row))?;
    Ok(meant(found, id_or_name))
}

fn count(tx: &Connection, sql: &str, params: impl rusqlite::Params) -> Result<i64> {
    Ok(tx.prepare_cached(sql)?.query_row(params, |row| row.get(0))?)
}

fn write(tx: &Connection, sql: &str, key: &KeyRow) -> Result<usize> {
    execute(
        tx,
        sql,
        params![
            key.id,
            key.account_id,
            key.secret_hash,
            key.scopes,
            key.name,
            key.created_at,
            key.revoked_at,
            key.rate_per_minute,
            key.concurrent_rounds,
            key.expires_at,
            key.last_used_at
        ],
    )
}
