//! Operations on API keys. They need an admin, who may make keys for every account.

mod limits;
mod owner;

use std::collections::BTreeSet;

use jurat_core::{
    caller::{Caller, Scope},
    id::AccountId,
    key::{ApiKey, Key, NewKey},
};
use jurat_store::{KeyAdded, KeyRecord, Page, Revocation, Revoked, Rotated, Rotation};

pub use self::{
    limits::{Allowance, Limit},
    owner::Admitted,
};
pub(crate) use self::{
    limits::{InUse, RoundPlace},
    owner::KeyCache,
};
use crate::{Engine, EngineError, executors::require};

/// A key that was made a moment ago, with its clear text, which nobody will see again.
#[derive(Debug, Clone)]
pub struct Issued {
    pub key: Key,
    pub clear: ApiKey,
    /// The identifier of the key that it takes the place of.
    pub replaces: Option<String>,
}

/// Which key is meant: by its identifier in any account, or by its name in one.
#[derive(Debug, Clone)]
pub struct KeyRef {
    pub id_or_name: String,
    /// The account of the name; that of the caller when left out.
    pub account: Option<AccountId>,
}

impl Engine {
    /// Makes a key, and its account if that is not there.
    pub async fn key_create(&self, caller: &Caller, new: NewKey) -> Result<Issued, EngineError> {
        require(caller, Scope::Admin)?;
        // A key never may do more than its maker.
        for scope in &new.scopes {
            require(caller, *scope)?;
        }
        let clear = self.draw_key();
        let key = Key {
            id: clear.id().to_owned(),
            account: new.account.unwrap_or_else(|| caller.account().clone()),
            name: new.name,
            scopes: new.scopes,
            rate_per_minute: new.rate_per_minute,
            concurrent_rounds: new.concurrent_rounds,
            created_at: self.inner.clock.now(),
            expires_at: new.expires_at,
            revoked_at: None,
            last_used_at: None,
        };
        let record = KeyRecord { key, secret_hash: clear.secret_hash() };
        match self.inner.store.key_add(&record).await? {
            KeyAdded::Added => Ok(Issued { key: record.key, clear, replaces: None }),
            KeyAdded::NameTaken => Err(EngineError::Conflict(format!(
                "the account `{}` has a key `{}` already",
                record.key.account, record.key.name
            ))),
        }
    }

    /// The keys of an account, or of all, also those that have ended, in the order they were made.
    pub async fn key_list(
        &self,
        caller: &Caller,
        account: Option<&AccountId>,
        page: &Page,
    ) -> Result<Vec<Key>, EngineError> {
        require(caller, Scope::Admin)?;
        let records = self.inner.store.key_list(account, page).await?;
        Ok(records.into_iter().map(|record| record.key).collect())
    }

    /// Revokes one key, or every key with a name, at once and for ever.
    pub async fn key_revoke(&self, caller: &Caller, key: KeyRef) -> Result<(), EngineError> {
        require(caller, Scope::Admin)?;
        let revocation = Revocation {
            account: self.account_of(caller, &key).await?,
            id_or_name: key.id_or_name.clone(),
            at: self.inner.clock.now(),
            by: caller.key().id.clone(),
        };
        match self.inner.store.key_revoke(&revocation).await? {
            Revoked::Revoked(ids) => {
                for id in &ids {
                    self.inner.keys.forget(id);
                }
                Ok(())
            }
            Revoked::Unknown => Err(unknown(key)),
            Revoked::OwnKey => Err(EngineError::Conflict(
                "this is the key of the request itself; revoke it with another one".to_owned(),
            )),
            Revoked::LastAdmin => Err(EngineError::Conflict(
                "this is the last live key with the scope `admin`; make another one first"
                    .to_owned(),
            )),
        }
    }

    /// Makes a key that takes the place of another, which ends after a time of grace.
    pub async fn key_rotate(
        &self,
        caller: &Caller,
        key: KeyRef,
        grace_ms: u64,
    ) -> Result<Issued, EngineError> {
        require(caller, Scope::Admin)?;
        let clear = self.draw_key();
        let now = self.inner.clock.now();
        let rotation = Rotation {
            account: self.account_of(caller, &key).await?,
            id_or_name: key.id_or_name.clone(),
            at: now,
            old_until: now.plus_millis(grace_ms),
            new_id: clear.id().to_owned(),
            new_secret_hash: clear.secret_hash(),
        };
        let rotated = self.inner.store.key_rotate(&rotation).await?;
        let Rotated { old, new } = rotated.ok_or_else(|| unknown(key))?;
        self.inner.keys.forget(&old.id);
        Ok(Issued { key: new, clear, replaces: Some(old.id) })
    }

    /// Makes sure that the key of the installation's operator is known.
    pub async fn key_ensure_admin(&self, key: &ApiKey) -> Result<(), EngineError> {
        let now = self.inner.clock.now();
        let account = AccountId::admin();
        self.inner.store.account_ensure(&account, now).await?;
        if let Some(known) = self.inner.store.key_get(key.id()).await? {
            if !known.key.is_live(now) {
                tracing::warn!(
                    key.id = key.id(),
                    "The key in `admin.key` has ended; remove the file, and the next start draws a new one."
                );
            }
            return Ok(());
        }
        let record = KeyRecord {
            key: Key {
                id: key.id().to_owned(),
                account,
                name: "admin".to_owned(),
                scopes: BTreeSet::from([Scope::Admin]),
                rate_per_minute: None,
                concurrent_rounds: None,
                created_at: now,
                expires_at: None,
                revoked_at: None,
                last_used_at: None,
            },
            secret_hash: key.secret_hash(),
        };
        Ok(self.inner.store.key_put(&record).await?)
    }

    fn draw_key(&self) -> ApiKey {
        let clock = &self.inner.clock;
        ApiKey::new(clock.bits(), [clock.bits(), clock.bits()])
    }

    /// The account of a key. That of an identifier never changes.
    async fn account_of(&self, caller: &Caller, key: &KeyRef) -> Result<AccountId, EngineError> {
        if let Some(account) = &key.account {
            return Ok(account.clone());
        }
        let known = self.inner.store.key_get(&key.id_or_name).await?;
        Ok(known.map_or_else(|| caller.account().clone(), |record| record.key.account))
    }
}

fn unknown(key: KeyRef) -> EngineError {
    EngineError::NotFound { what: "live key", id: key.id_or_name }
}
