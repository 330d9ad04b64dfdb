//! Accounts and keys in PostgreSQL.

use std::collections::BTreeMap;

use jurat_core::{account::key::Key, id::AccountId, list::ListPage, time::Timestamp};
use sqlx::{Connection as _, PgConnection};

use super::idempotency;
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

/// Names are unique, and an admin key is left, only among keys that are there already. So those
/// who add, replace or revoke keys take turns.
const LOCK_INSTALLATION: &str = "select id from installation where id = 1 for update";

pub(super) async fn account_ensure(
    db: &mut PgConnection,
    account: &AccountId,
    now: Timestamp,
) -> Result<()> {
    let ensure = sqlx::query(sql::ACCOUNT_ENSURE).bind(account.as_str()).bind(now.micros());
    ensure.execute(&mut *db).await?;
    Ok(())
}

pub(super) async fn put(db: &mut PgConnection, key: &KeyRow) -> Result<()> {
    if write(db, sql::KEY_PUT, key).await? == 0 {
        return Err(StoreError::conflict("the key belongs to another account"));
    }
    Ok(())
}

pub(super) async fn add(
    db: &mut PgConnection,
    key: &KeyRow,
    idempotency: Option<&IdempotencyRow>,
) -> Result<KeyAddOutcome> {
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(KeyAddOutcome::Repeated);
    }
    sqlx::query(LOCK_INSTALLATION).execute(&mut *tx).await?;
    let taken: i64 = sqlx::query_scalar(sql::KEY_NAME_TAKEN)
        .bind(&key.account_id)
        .bind(&key.name)
        .bind(key.created_at)
        .fetch_one(&mut *tx)
        .await?;
    if taken > 0 {
        tx.rollback().await?;
        return Ok(KeyAddOutcome::NameTaken);
    }
    let account = sqlx::query(sql::ACCOUNT_ENSURE).bind(&key.account_id).bind(key.created_at);
    account.execute(&mut *tx).await?;
    write(&mut tx, sql::KEY_ADD, key).await?;
    tx.commit().await?;
    Ok(KeyAddOutcome::Added)
}

pub(super) async fn get(db: &mut PgConnection, id: &str) -> Result<Option<KeyRecord>> {
    let row = sqlx::query(sql::KEY_GET).bind(id).fetch_optional(&mut *db).await?;
    row.as_ref().map(read_key).transpose()
}

pub(super) async fn list(
    db: &mut PgConnection,
    account: Option<&AccountId>,
    page: &ListPage,
) -> Result<Vec<KeyRecord>> {
    let rows = sqlx::query(sql::KEY_LIST)
        .bind(account.map(AccountId::as_str))
        .bind(page.after.as_deref())
        .bind(i64::from(page.limit))
        .fetch_all(&mut *db)
        .await?;
    rows.iter().map(read_key).collect()
}

pub(super) async fn live(db: &mut PgConnection, wanted: &LiveKeys) -> Result<Vec<KeyRecord>> {
    let (name, scope) = wanted.patterns();
    let rows = sqlx::query(sql::KEY_LIVE)
        .bind(wanted.account.as_str())
        .bind(wanted.now.micros())
        .bind(name)
        .bind(scope)
        .bind(i64::from(wanted.limit))
        .fetch_all(&mut *db)
        .await?;
    rows.iter().map(read_key).collect()
}

pub(super) async fn revoke(
    db: &mut PgConnection,
    revocation: &KeyRevocation,
    idempotency: Option<&IdempotencyRow>,
) -> Result<KeyRevokeOutcome> {
    let (account, at) = (revocation.account.as_str(), revocation.at.micros());
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(KeyRevokeOutcome::Repeated);
    }
    sqlx::query(LOCK_INSTALLATION).execute(&mut *tx).await?;
    let mut keys = find(&mut tx, account, &revocation.id_or_name).await?;
    if keys.is_empty() {
        keys = find_by(&mut tx, sql::KEY_REVOKED, account, &revocation.id_or_name).await?;
    }
    let admins = sqlx::query_scalar(sql::KEY_ADMINS).bind(at).fetch_one(&mut *tx).await?;
    if let Some(refused) = refused(revocation, &keys, admins) {
        tx.rollback().await?;
        return Ok(refused);
    }
    // In the order of the identifiers, like the notes of use, so that neither waits for the other.
    let mut ids: Vec<&str> = keys.iter().map(|key| key.id.as_str()).collect();
    ids.sort_unstable();
    for id in ids {
        let revoke = sqlx::query(sql::KEY_REVOKE).bind(at).bind(account).bind(id);
        revoke.execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(KeyRevokeOutcome::Revoked(keys.into_iter().map(|key| key.id).collect()))
}

pub(super) async fn rotate(
    db: &mut PgConnection,
    rotation: &KeyRotation,
    idempotency: Option<&IdempotencyRow>,
) -> Result<KeyRotateOutcome> {
    let mut tx = db.begin().await?;
    if !idempotency::reserve_key(&mut tx, idempotency, None).await? {
        tx.rollback().await?;
        return Ok(KeyRotateOutcome::Repeated);
    }
    sqlx::query(LOCK_INSTALLATION).execute(&mut *tx).await?;
    let keys = find(&mut tx, rotation.account.as_str(), &rotation.id_or_name).await?;
    let Some(mut old) = keys.into_iter().find(|key| key.is_live(rotation.at)) else {
        tx.rollback().await?;
        return Ok(KeyRotateOutcome::Unknown);
    };
    let of_name = find(&mut tx, rotation.account.as_str(), &old.name).await?;
    if let Some(newer) = rotation.successor(&old, &of_name) {
        tx.rollback().await?;
        return Ok(KeyRotateOutcome::Superseded(newer));
    }
    let new = rotation.replacement(&old);
    write(&mut tx, sql::KEY_ADD, &KeyRow::new(&new)?).await?;
    let end = rotation.end_of(&old);
    let predecessors = rotation.predecessors(&old, &of_name);
    let ended: Vec<String> = predecessors.iter().map(|key| key.id.clone()).collect();
    // In the order of the identifiers, like the notes of use, so that neither waits for the other.
    let mut ids: Vec<&String> = ended.iter().chain([&old.id]).collect();
    ids.sort_unstable();
    for id in ids {
        let expire = sqlx::query(sql::KEY_EXPIRE).bind(end.micros());
        expire.bind(old.account.as_str()).bind(id).execute(&mut *tx).await?;
    }
    old.expires_at = Some(end);
    let succession = KeySuccession { old, new: new.key, ended };
    idempotency::save_answer(&mut tx, idempotency, |answer| answer.of_rotation(&succession))
        .await?;
    tx.commit().await?;
    Ok(KeyRotateOutcome::Done(Box::new(succession)))
}

pub(super) async fn used(db: &mut PgConnection, uses: &BTreeMap<String, Timestamp>) -> Result<()> {
    let mut tx = db.begin().await?;
    // In the order of the identifiers, so that two nodes cannot wait for each other.
    for (id, at) in uses {
        sqlx::query(sql::KEY_USED).bind(at.micros()).bind(id).execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(())
}

async fn find(tx: &mut PgConnection, account: &str, id_or_name: &str) -> Result<Vec<Key>> {
    find_by(tx, sql::KEY_MEANT, account, id_or_name).await
}

async fn find_by(
    tx: &mut PgConnection,
    text: &'static str,
    account: &str,
    id_or_name: &str,
) -> Result<Vec<Key>> {
    let rows = sqlx::query(text).bind(account).bind(id_or_name).fetch_all(tx).await?;
    let found = rows.iter().map(read_key).collect::<Result<_>>()?;
    Ok(meant(found, id_or_name))
}

async fn write(tx: &mut PgConnection, sql: &'static str, key: &KeyRow) -> Result<u64> {
    let written = sqlx::query(sql)
        .bind(&key.id)
        .bind(&key.account_id)
        .bind(&key.secret_hash)
        .bind(&key.scopes)
        .bind(&key.name)
        .bind(key.created_at)
        .bind(key.revoked_at)
        .bind(key.rate_per_minute)
        .bind(key.concurrent_rounds)
        .bind(key.expires_at)
        .bind(key.last_used_at)
        .execute(tx)
        .await?;
    Ok(written.rows_affected())
}
