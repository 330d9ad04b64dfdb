//! The SQL of accounts and keys.

macro_rules! key_columns {
    () => {
        "id, account_id, secret_hash, scopes, name, created_at, revoked_at, rate_per_minute, \
         concurrent_rounds, expires_at, last_used_at"
    };
}

/// A key with how its account stands.
macro_rules! key_select {
    () => {
        concat!(
            "select ",
            key_columns!(),
            ", (select accounts.suspended_at from accounts \
             where accounts.id = api_keys.account_id) as suspended_at from api_keys "
        )
    };
}

/// A key that opens something at the given time.
macro_rules! is_live {
    ($now:literal) => {
        concat!("revoked_at is null and (expires_at is null or ", $now, " < expires_at)")
    };
}

pub(crate) const ACCOUNT_ENSURE: &str =
    "insert into accounts (id, created_at) values ($1, $2) on conflict do nothing";

macro_rules! key_insert {
    () => {
        concat!(
            "insert into api_keys (",
            key_columns!(),
            ") values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
        )
    };
}

pub(crate) const KEY_ADD: &str = key_insert!();
pub(crate) const KEY_PUT: &str = concat!(
    key_insert!(),
    " on conflict (id) do update set secret_hash = excluded.secret_hash, scopes = excluded.scopes, \
     name = excluded.name, created_at = excluded.created_at, revoked_at = excluded.revoked_at, \
     rate_per_minute = excluded.rate_per_minute, concurrent_rounds = excluded.concurrent_rounds, \
     expires_at = excluded.expires_at, last_used_at = excluded.last_used_at \
     where api_keys.account_id = excluded.account_id"
);
pub(crate) const KEY_GET: &str = concat!(key_select!(), "where id = $1");
/// In the order in which they were made. A cursor that names no key has nothing behind it.
pub(crate) const KEY_LIST: &str = concat!(
    key_select!(),
    "where ($1 is null or account_id = $1) and ($2 is null or (created_at, id) > \
     (select shown.created_at, shown.id from api_keys shown where shown.id = $2)) \
     order by created_at, id limit $3"
);
/// The newest that open something.
pub(crate) const KEY_LIVE: &str = concat!(
    key_select!(),
    "where account_id = $1 and ",
    is_live!("$2"),
    " and name like $3 and scopes like $4 order by created_at desc, id desc limit $5"
);
/// Those that an identifier or a name means. An identifier comes before a name, and the newest of
/// a name first.
pub(crate) const KEY_MEANT: &str = concat!(
    key_select!(),
    "where account_id = $1 and (id = $2 or name = $2) and revoked_at is null \
     order by id = $2 desc, created_at desc, id desc"
);
pub(crate) const KEY_REVOKED: &str = concat!(
    key_select!(),
    "where account_id = $1 and (id = $2 or name = $2) and revoked_at is not null \
     order by id = $2 desc, created_at desc, id desc"
);
pub(crate) const KEY_NAME_TAKEN: &str = concat!(
    "select count(*) from api_keys where account_id = $1 and name = $2 and ",
    is_live!("$3")
);
/// Scopes are written by us, as a list of words in quotes.
pub(crate) const KEY_ADMINS: &str =
    concat!("select count(*) from api_keys where scopes like '%\"admin\"%' and ", is_live!("$1"));
pub(crate) const KEY_REVOKE: &str =
    "update api_keys set revoked_at = $1 where account_id = $2 and id = $3 and revoked_at is null";
pub(crate) const KEY_EXPIRE: &str =
    "update api_keys set expires_at = $1 where account_id = $2 and id = $3";
/// Two nodes may tell in either order, so a time never goes back.
pub(crate) const KEY_USED: &str = "\
    update api_keys set last_used_at = $1 \
    where id = $2 and (last_used_at is null or last_used_at < $1)";
