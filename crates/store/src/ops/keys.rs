//! API keys: stored with a hash of the secret, listed, revoked and rotated.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use const_format::concatcp;
use jurat_core::{
    account::{caller::Scope, key::Key},
    id::AccountId,
    list::ListPage,
    time::Timestamp,
};

use super::accounts;
use crate::{
    Behalf, Result, StoreError,
    db::{
        row::{DbRow, RowReader, json, read_number},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// API keys of all accounts.
    pub struct KeyOps = store.keys();
    reads {
        /// Finds a key by its identifier alone, because its account is not known yet.
        fn get(id: &str) -> Option<KeyRecord> = get;
        /// The newest live keys of an account.
        fn live(wanted: &LiveKeys) -> Vec<KeyRecord> = live;
    }
    changes {
        /// Adds a key, or replaces the one of the same account with the same identifier.
        fn put(key: &KeyRecord) -> () = put;
        /// Records when keys were last used, and ignores unknown identifiers.
        fn note_uses(uses: &BTreeMap<String, Timestamp>) -> () = note_uses;
    }
    writes {
        /// Adds a key, and its account if that is missing. The name of a live key is unique within
        /// its account, except for keys that a rotation keeps for a while.
        fn add(key: &KeyRecord) -> (), or KeyNameTaken = add;
        /// Permanently revokes one key, or all keys with a name. Returns their identifiers.
        fn revoke(revocation: &KeyRevocation) -> Vec<String>, or KeyRevokeRefusal = revoke;
        /// Adds a key that replaces a live one, and lets the old key expire.
        fn rotate(rotation: &KeyRotation) -> KeySuccession, or KeyRotateRefusal = rotate;
    }
}

impl KeyOps<'_> {
    /// The keys of an account, or of all accounts, in the order of their creation.
    pub async fn list(
        self,
        behalf: &Behalf,
        account: Option<&AccountId>,
        page: &ListPage,
    ) -> Result<Vec<KeyRecord>> {
        let (account, page) = (account.cloned(), page.clone());
        let list = Box::pin(self.0.read(("keys", "list"), behalf, move |tx| {
            Box::pin(async move { list(tx, account.as_ref(), &page).await })
        }));
        list.await
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub key: Key,
    /// SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// Whether the account of the key is suspended. Writing a key does not change it.
    pub suspended: bool,
}

impl fmt::Debug for KeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRecord").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Selects live keys of an account, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveKeys {
    pub account: AccountId,
    pub now: Timestamp,
    /// The prefix of their names; empty for any name.
    pub name_prefix: String,
    /// Leaves out keys without the scope `admin`.
    pub admins_only: bool,
    pub limit: u32,
}

/// A live key of the account has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyNameTaken;

/// The keys to revoke, and the caller who revokes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRevocation {
    pub account: AccountId,
    /// The identifier of one key, or a name, which selects all keys that have it.
    pub id_or_name: String,
    pub at: Timestamp,
    /// The caller's key, which cannot be revoked this way unless it is the key of a login.
    pub by: String,
    /// The scopes that a revoked key must not exceed; `None` if any key may be revoked.
    pub within: Option<BTreeSet<Scope>>,
}

/// Why no key was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRevokeRefusal {
    Unknown,
    /// The caller's own key is among them.
    OwnKey,
    /// No live key with the scope `admin` would be left.
    LastAdmin,
    /// One of them has a scope that the caller lacks.
    Beyond(Scope),
}

/// The key to replace, and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRotation {
    pub account: AccountId,
    /// The identifier of a live key, or a name, which selects the newest live key that has it.
    pub id_or_name: String,
    pub at: Timestamp,
    /// When the old key expires, unless it expires earlier.
    pub old_until: Timestamp,
    pub new_id: String,
    pub new_secret_hash: [u8; 32],
}

/// Why no key was rotated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyRotateRefusal {
    Unknown,
    /// The key with this identifier has replaced it already.
    Superseded(String),
}

/// A key and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySuccession {
    pub old: Key,
    pub new: Key,
    /// Earlier keys of the name that would have outlived the old key.
    pub ended: Vec<String>,
}

impl KeyRotation {
    /// The new key, with the scopes and the lifetime of the old one.
    pub(crate) fn replacement(&self, old: &Key) -> KeyRecord {
        let lifetime = |end: Timestamp| end.micros().saturating_sub(old.created_at.micros());
        let ends = |end| Timestamp::from_micros(self.at.micros().saturating_add(lifetime(end)));
        let key = Key {
            id: self.new_id.clone(),
            created_at: self.at,
            expires_at: old.expires_at.map(ends),
            revoked_at: None,
            last_used_at: None,
            ..old.clone()
        };
        KeyRecord { key, secret_hash: self.new_secret_hash, suspended: false }
    }

    /// The key that has replaced `old`: a live key of the same name that is no older and lives
    /// longer.
    pub(crate) fn successor(&self, old: &Key, of_name: &[Key]) -> Option<String> {
        let outlives = |key: &Key| match (key.expires_at, old.expires_at) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(end), Some(of_old)) => of_old < end,
        };
        let successor = of_name.iter().find(|key| {
            let is_other = key.id != old.id && key.name == old.name;
            is_other && old.created_at <= key.created_at && key.is_live(self.at) && outlives(key)
        });
        successor.map(|key| key.id.clone())
    }

    /// The live keys of the same name that must not outlive the old key: a rotation after a leak
    /// must not depend on how often the key was rotated before.
    pub(crate) fn predecessors<'a>(&self, old: &Key, of_name: &'a [Key]) -> Vec<&'a Key> {
        let (end, at) = (self.end_of(old), self.at);
        let outlives = |key: &Key| key.expires_at.is_none_or(|expires_at| end < expires_at);
        let is_meant = |key: &&Key| {
            key.id != old.id && key.name == old.name && key.is_live(at) && outlives(key)
        };
        of_name.iter().filter(is_meant).collect()
    }

    pub(crate) fn end_of(&self, old: &Key) -> Timestamp {
        old.expires_at.map_or(self.old_until, |end| end.min(self.old_until))
    }
}

const COLUMNS: &str = "\
    id, account_id, secret_hash, scopes, name, created_at, revoked_at, rate_per_minute, \
    concurrent_rounds, expires_at, last_used_at";
/// Keys, with the suspension of their accounts.
const SELECT: &str = concatcp!(
    "select ",
    COLUMNS,
    ", (select accounts.suspended_at from accounts where accounts.id = api_keys.account_id) \
     as suspended_at from api_keys "
);
const ADD: &str = concatcp!(
    "insert into api_keys (",
    COLUMNS,
    ") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
);
const PUT: &str = concatcp!(
    ADD,
    " on conflict (id) do update set secret_hash = excluded.secret_hash, scopes = excluded.scopes, \
     name = excluded.name, created_at = excluded.created_at, revoked_at = excluded.revoked_at, \
     rate_per_minute = excluded.rate_per_minute, concurrent_rounds = excluded.concurrent_rounds, \
     expires_at = excluded.expires_at, last_used_at = excluded.last_used_at \
     where api_keys.account_id = excluded.account_id"
);
const GET: &str = concatcp!(SELECT, "where id = $1");
/// In the order of creation. A cursor that names no key gives an empty page.
const LIST: &str = concatcp!(
    SELECT,
    "where ($1 is null or account_id = $1) and ($2 is null or (created_at, id) > \
     (select shown.created_at, shown.id from api_keys shown where shown.id = $2)) \
     order by created_at, id limit $3"
);
const LIVE: &str = concatcp!(
    SELECT,
    "where account_id = $1 and revoked_at is null and (expires_at is null or $2 < expires_at) \
     and name like $3 and ($4 = 0 or is_admin = 1) order by created_at desc, id desc limit $5"
);
/// The keys with an identifier or a name: the identifier first, then the newest of the name.
const OF_NAME: &str = concatcp!(
    SELECT,
    "where account_id = $1 and (id = $2 or name = $2) and revoked_at is null \
     order by id = $2 desc, created_at desc, id desc"
);
const REVOKED: &str = concatcp!(
    SELECT,
    "where account_id = $1 and (id = $2 or name = $2) and revoked_at is not null \
     order by id = $2 desc, created_at desc, id desc"
);
const NAME_TAKEN: &str = "\
    select 'keys' as name, count(*) as number from api_keys \
    where account_id = $1 and name = $2 \
    and revoked_at is null and (expires_at is null or $3 < expires_at)";
const ADMINS: &str = "\
    select 'keys' as name, count(*) as number from api_keys where is_admin = 1 \
    and revoked_at is null and (expires_at is null or $1 < expires_at)";
const REVOKE: &str =
    "update api_keys set revoked_at = $1 where account_id = $2 and id = $3 and revoked_at is null";
const EXPIRE: &str = "update api_keys set expires_at = $1 where account_id = $2 and id = $3";
/// Nodes report in any order, so the time never moves back.
const NOTE_USE: &str = "\
    update api_keys set last_used_at = $1 \
    where id = $2 and (last_used_at is null or last_used_at < $1)";
/// Makes operations that add, replace or revoke keys wait for each other: the checks that a name is
/// unique and that an admin key remains see only the keys that exist.
const LOCK: (&str, &str) = (
    "select 'installation' as name, id as number from installation where id = 1",
    "select 'installation' as name, id as number from installation where id = 1 for update",
);

async fn get(tx: &mut Tx<'_>, id: &str) -> Result<Option<KeyRecord>> {
    tx.first(GET, args![id], read).await
}

async fn list(
    tx: &mut Tx<'_>,
    account: Option<&AccountId>,
    page: &ListPage,
) -> Result<Vec<KeyRecord>> {
    let args = args![account.map(AccountId::as_str), page.after.as_deref(), page.limit];
    tx.all(LIST, args, read).await
}

async fn live(tx: &mut Tx<'_>, wanted: &LiveKeys) -> Result<Vec<KeyRecord>> {
    // The program chooses the prefix, so it has no wildcards.
    let name = format!("{}%", wanted.name_prefix);
    let args = args![&wanted.account, wanted.now, name, wanted.admins_only, wanted.limit];
    tx.all(LIVE, args, read).await
}

async fn put(tx: &mut Tx<'_>, key: &KeyRecord) -> Result<()> {
    if insert(tx, PUT, key).await? == 0 {
        return Err(StoreError::conflict("the key belongs to another account"));
    }
    Ok(())
}

async fn add(tx: &mut Tx<'_>, record: &KeyRecord) -> Result<Result<(), KeyNameTaken>> {
    lock(tx).await?;
    let Key { account, name, created_at, .. } = &record.key;
    let taken = tx.first(NAME_TAKEN, args![account, name, *created_at], read_number).await?;
    if 0 < taken.unwrap_or_default() {
        return Ok(Err(KeyNameTaken));
    }
    accounts::ensure(tx, account, created_at).await?;
    insert(tx, ADD, record).await?;
    Ok(Ok(()))
}

async fn revoke(
    tx: &mut Tx<'_>,
    revocation: &KeyRevocation,
) -> Result<Result<Vec<String>, KeyRevokeRefusal>> {
    lock(tx).await?;
    let KeyRevocation { account, id_or_name, at, .. } = revocation;
    let mut keys = find(tx, OF_NAME, account, id_or_name).await?;
    if keys.is_empty() {
        keys = find(tx, REVOKED, account, id_or_name).await?;
    }
    let admins = tx.first(ADMINS, args![*at], read_number).await?;
    if let Some(refused) = refused(revocation, &keys, admins.unwrap_or_default()) {
        return Ok(Err(refused));
    }
    for id in in_order(keys.iter().map(|key| &key.id)) {
        tx.run(REVOKE, args![*at, account, id]).await?;
    }
    Ok(Ok(keys.into_iter().map(|key| key.id).collect()))
}

async fn rotate(
    tx: &mut Tx<'_>,
    rotation: &KeyRotation,
) -> Result<Result<KeySuccession, KeyRotateRefusal>> {
    lock(tx).await?;
    let keys = find(tx, OF_NAME, &rotation.account, &rotation.id_or_name).await?;
    let Some(mut old) = keys.into_iter().find(|key| key.is_live(rotation.at)) else {
        return Ok(Err(KeyRotateRefusal::Unknown));
    };
    let of_name = find(tx, OF_NAME, &rotation.account, &old.name).await?;
    if let Some(newer) = rotation.successor(&old, &of_name) {
        return Ok(Err(KeyRotateRefusal::Superseded(newer)));
    }
    let new = rotation.replacement(&old);
    insert(tx, ADD, &new).await?;
    let end = rotation.end_of(&old);
    let predecessors = rotation.predecessors(&old, &of_name);
    let ended: Vec<String> = predecessors.iter().map(|key| key.id.clone()).collect();
    for id in in_order(ended.iter().chain([&old.id])) {
        tx.run(EXPIRE, args![end, &old.account, id]).await?;
    }
    old.expires_at = Some(end);
    Ok(Ok(KeySuccession { old, new: new.key, ended }))
}

async fn note_uses(tx: &mut Tx<'_>, uses: &BTreeMap<String, Timestamp>) -> Result<()> {
    // In the order of the identifiers, so that two nodes cannot deadlock.
    for (id, at) in uses {
        tx.run(NOTE_USE, args![*at, id]).await?;
    }
    Ok(())
}

async fn lock(tx: &mut Tx<'_>) -> Result<()> {
    tx.first(tx.own(LOCK), args![], read_number).await.map(drop)
}

/// Identifiers in the order in which `note_uses` updates them, so that the two cannot deadlock.
fn in_order<'a>(ids: impl Iterator<Item = &'a String>) -> BTreeSet<&'a String> {
    ids.collect()
}

/// The key with the identifier, or else all keys with the name.
async fn find(
    tx: &mut Tx<'_>,
    text: &'static str,
    account: &AccountId,
    id_or_name: &str,
) -> Result<Vec<Key>> {
    let mut found = tx.all(text, args![account, id_or_name], read).await?;
    if found.first().is_some_and(|first| first.key.id == id_or_name) {
        found.truncate(1);
    }
    Ok(found.into_iter().map(|record| record.key).collect())
}

/// The reason to keep these keys, if any; `admins` is the number of live keys with the scope
/// `admin`.
fn refused(revocation: &KeyRevocation, keys: &[Key], admins: i64) -> Option<KeyRevokeRefusal> {
    if keys.is_empty() {
        return Some(KeyRevokeRefusal::Unknown);
    }
    // A person can log in again, so the key of a login may revoke itself.
    if keys.iter().any(|key| key.id == revocation.by && !key.is_of_login()) {
        return Some(KeyRevokeRefusal::OwnKey);
    }
    if let Some(within) = &revocation.within {
        let mut scopes = keys.iter().flat_map(|key| &key.scopes);
        if let Some(beyond) = scopes.find(|scope| !within.contains(scope)) {
            return Some(KeyRevokeRefusal::Beyond(*beyond));
        }
    }
    let is_admin = |key: &&Key| key.scopes.contains(&Scope::Admin) && key.is_live(revocation.at);
    let going = keys.iter().filter(is_admin).count();
    let is_last = going > 0 && i64::try_from(going).is_ok_and(|going| admins <= going);
    is_last.then_some(KeyRevokeRefusal::LastAdmin)
}

async fn insert(tx: &mut Tx<'_>, text: &'static str, record: &KeyRecord) -> Result<u64> {
    let key = &record.key;
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let args = args![
        &key.id,
        &key.account,
        hex::encode(record.secret_hash),
        json(&scopes)?,
        &key.name,
        key.created_at,
        key.revoked_at,
        key.rate_per_minute,
        key.concurrent_rounds,
        key.expires_at,
        key.last_used_at
    ];
    tx.run(text, args).await
}

fn read(cells: &dyn DbRow) -> Result<KeyRecord> {
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
