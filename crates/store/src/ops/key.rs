//! A stored API key, with its secret only as a hash.

use std::{collections::BTreeSet, fmt};

use jurat_core::{
    account::{caller::Scope, key::Key},
    id::AccountId,
    time::Timestamp,
};

#[derive(Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub key: Key,
    /// The SHA-256 of the secret.
    pub secret_hash: [u8; 32],
    /// Whether the account of the key is suspended. It is only read, never written with a key.
    pub suspended: bool,
}

impl fmt::Debug for KeyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRecord").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Selects live keys of an account, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveKeys {
    pub account: AccountId,
    pub now: Timestamp,
    /// The prefix of their names; empty for any.
    pub name_prefix: String,
    /// A scope that they have.
    pub scope: Option<Scope>,
    pub limit: u32,
}

impl LiveKeys {
    /// Names and scopes as patterns. The prefix is ours and contains no special characters.
    pub(crate) fn patterns(&self) -> (String, String) {
        let scope =
            self.scope.map_or_else(|| "%".to_owned(), |it| format!("%\"{}\"%", it.as_str()));
        (format!("{}%", self.name_prefix), scope)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAddOutcome {
    Added,
    /// A live key of the account has the name.
    NameTaken,
    /// Its idempotency key was used before; nothing changed.
    Repeated,
}

/// Which keys to revoke, and on whose behalf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRevocation {
    pub account: AccountId,
    /// The id of one key, or the name of all keys to revoke.
    pub id_or_name: String,
    pub at: Timestamp,
    /// The caller's own key, which stays, unless a login created it.
    pub by: String,
    /// The scopes beyond which a key cannot be revoked; `None` for a caller that may revoke any.
    pub within: Option<BTreeSet<Scope>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyRevokeOutcome {
    /// With the identifiers of the keys.
    Revoked(Vec<String>),
    Unknown,
    /// The caller's own key would be among them.
    OwnKey,
    /// No live key with the scope `admin` would be left.
    LastAdmin,
    /// One of them has a scope that the caller lacks, such as this.
    Beyond(Scope),
    /// Its idempotency key was used before; nothing changed.
    Repeated,
}

/// Which key to replace, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRotation {
    pub account: AccountId,
    /// The id of a live key, or a name; of several with the name the newest is meant.
    pub id_or_name: String,
    pub at: Timestamp,
    /// When the old key ends, unless it ends before.
    pub old_until: Timestamp,
    pub new_id: String,
    pub new_secret_hash: [u8; 32],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyRotateOutcome {
    Done(Box<KeySuccession>),
    Unknown,
    /// The key with this id has already replaced it.
    Superseded(String),
    /// Its idempotency key was used before; nothing changed.
    Repeated,
}

/// A key and its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySuccession {
    pub old: Key,
    pub new: Key,
    /// Earlier keys of the name that would have outlived the old one.
    pub ended: Vec<String>,
}

impl KeyRotation {
    /// The new key: it has the scopes and the lifetime of the old one.
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

    /// The key that replaced `old`: a live one of the same name that is no older and lives longer.
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

    /// The live keys of the same name that must not outlive the old one: after a leak, the caller
    /// need not know how many rotations there were.
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
