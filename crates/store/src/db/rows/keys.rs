//! Rows of keys.

use std::collections::BTreeSet;

use jurat_core::{
    account::{caller::Scope, key::Key},
    id::AccountId,
    time::Timestamp,
};

use super::{DbRow, RowReader, json};
use crate::{KeyRecord, KeyRevokeOutcome, Result, ops::key::KeyRevocation};

pub(crate) struct KeyRow {
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) secret_hash: String,
    pub(crate) scopes: String,
    pub(crate) name: String,
    pub(crate) created_at: i64,
    pub(crate) revoked_at: Option<i64>,
    pub(crate) rate_per_minute: Option<i64>,
    pub(crate) concurrent_rounds: Option<i64>,
    pub(crate) expires_at: Option<i64>,
    pub(crate) last_used_at: Option<i64>,
}

impl KeyRow {
    pub(crate) fn new(KeyRecord { key, secret_hash, .. }: &KeyRecord) -> Result<Self> {
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
        Ok(Self {
            id: key.id.clone(),
            account_id: key.account.to_string(),
            secret_hash: hex::encode(secret_hash),
            scopes: json(&scopes)?,
            name: key.name.clone(),
            created_at: key.created_at.micros(),
            revoked_at: key.revoked_at.map(Timestamp::micros),
            rate_per_minute: key.rate_per_minute.map(i64::from),
            concurrent_rounds: key.concurrent_rounds.map(i64::from),
            expires_at: key.expires_at.map(Timestamp::micros),
            last_used_at: key.last_used_at.map(Timestamp::micros),
        })
    }
}

pub(crate) fn read_key(cells: &impl DbRow) -> Result<KeyRecord> {
    let columns = RowReader::new(cells, "api_keys", "id")?;
    let mut secret_hash = [0; 32];
    hex::decode_to_slice(columns.text("secret_hash")?, &mut secret_hash)
        .map_err(|why| columns.bad("secret_hash", why))?;
    let scopes: Vec<String> = columns.document("scopes")?;
    let scopes = scopes.iter().map(|scope| columns.parse("scopes", scope));
    let key = Key {
        id: columns.text("id")?,
        account: columns.id("account_id", AccountId::parse)?,
        name: columns.text("name")?,
        scopes: scopes.collect::<Result<BTreeSet<Scope>>>()?,
        rate_per_minute: columns.maybe_count("rate_per_minute")?,
        concurrent_rounds: columns.maybe_count("concurrent_rounds")?,
        created_at: columns.time("created_at")?,
        expires_at: columns.maybe_time("expires_at")?,
        revoked_at: columns.maybe_time("revoked_at")?,
        last_used_at: columns.maybe_time("last_used_at")?,
    };
    let suspended = columns.maybe_time("suspended_at")?.is_some();
    Ok(KeyRecord { key, secret_hash, suspended })
}

/// Of the keys with this identifier or name, the one with the identifier, or all with the name.
pub(crate) fn meant(mut found: Vec<KeyRecord>, id_or_name: &str) -> Vec<Key> {
    if found.first().is_some_and(|first| first.key.id == id_or_name) {
        found.truncate(1);
    }
    found.into_iter().map(|record| record.key).collect()
}

/// Why these keys stay, if they do; `admins` is the number of live keys with the scope.
pub(crate) fn refused(
    revocation: &KeyRevocation,
    keys: &[Key],
    admins: i64,
) -> Option<KeyRevokeOutcome> {
    if keys.is_empty() {
        return Some(KeyRevokeOutcome::Unknown);
    }
    // A login can be repeated, so the key of a login may revoke itself.
    if keys.iter().any(|key| key.id == revocation.by && !key.is_of_login()) {
        return Some(KeyRevokeOutcome::OwnKey);
    }
    if let Some(within) = &revocation.within {
        let mut scopes = keys.iter().flat_map(|key| &key.scopes);
        if let Some(beyond) = scopes.find(|scope| !within.contains(scope)) {
            return Some(KeyRevokeOutcome::Beyond(*beyond));
        }
    }
    let is_admin = |key: &&Key| key.scopes.contains(&Scope::Admin) && key.is_live(revocation.at);
    let going = keys.iter().filter(is_admin).count();
    let is_last = going > 0 && i64::try_from(going).is_ok_and(|going| admins <= going);
    is_last.then_some(KeyRevokeOutcome::LastAdmin)
}
