//! Operations on API keys: of every account for an admin, and of the own account for others.

mod admit;
mod create;
mod limits;

use std::collections::BTreeSet;

use jurat_core::{
    account::{
        caller::{Caller, Scope},
        key::{ApiKey, Key, NewKey},
    },
    id::AccountId,
    list::ListPage,
};
use jurat_store::{
    Behalf, IdempotencyAnswer, KeyNameTaken, KeyRecord, KeyRevocation, KeyRevokeRefusal,
    KeyRotateRefusal, KeyRotation, KeySuccession, LiveKeys, WriteOutcome,
};

pub use self::{
    admit::KeyAdmission,
    limits::{Allowance, LimitExceeded},
};
pub(crate) use self::{
    admit::KeyCache,
    limits::{KeysInUse, RoundPermit},
};
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, access::require_scope,
};

/// A new key with its clear text, which is shown only now.
#[derive(Debug, Clone)]
pub struct IssuedKey {
    pub key: Key,
    pub clear: ApiKey,
    /// The identifier of the key that it replaces.
    pub replaces: Option<String>,
}

impl IssuedKey {
    fn in_place_of(succession: KeySuccession, clear: ApiKey) -> Self {
        Self { key: succession.new, clear, replaces: Some(succession.old.id) }
    }
}

/// Selects a key: by its identifier in any account, or by its name in one.
#[derive(Debug, Clone)]
pub struct KeyRef {
    pub id_or_name: String,
    /// The account of the name; if absent, that of the caller.
    pub account: Option<AccountId>,
}

impl Engine {
    /// Creates a key, and its account if necessary.
    pub async fn key_create(
        &self,
        caller: &Caller,
        new: NewKey,
        keyed: Option<IdempotentWrite<IssuedKey>>,
    ) -> Result<IdempotentOutcome<IssuedKey>, EngineError> {
        require_scope(caller, Scope::KeysWrite)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Rows).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        let new = self.allowed_key(caller, new).await?;
        let clear = self.draw_key();
        let key = Key {
            id: clear.id().to_owned(),
            account: new.account.unwrap_or_else(|| caller.account().clone()),
            name: new.name,
            scopes: new.scopes.unwrap_or_default(),
            rate_per_minute: new.rate_per_minute,
            concurrent_rounds: new.concurrent_rounds,
            created_at: self.inner.clock.now(),
            expires_at: new.expires_at,
            revoked_at: None,
            last_used_at: None,
        };
        let record = KeyRecord { key, secret_hash: clear.secret_hash(), suspended: false };
        let issued = IssuedKey { key: record.key.clone(), clear, replaces: None };
        let once = self.idempotency_record(caller, keyed, &issued);
        match self.inner.store.keys().add(&Behalf::Platform, &record, once.as_ref()).await? {
            WriteOutcome::Done(()) => {
                let (id, by) = (&issued.key.id, &caller.key().id);
                tracing::info!(jurat.key.id = %id, by = %by, "created a key");
                Ok(IdempotentOutcome::Now(issued))
            }
            WriteOutcome::Repeated => self.concurrent_answer(caller, keyed).await,
            WriteOutcome::Refused(KeyNameTaken) => Err(EngineError::Conflict(format!(
                "the account `{}` already has a key `{}`",
                record.key.account, record.key.name
            ))),
        }
    }

    /// The keys of an account, or of all, including ended ones, in the order of creation. A caller
    /// who is not an admin sees those of their own account.
    pub async fn key_list(
        &self,
        caller: &Caller,
        account: Option<&AccountId>,
        page: &ListPage,
    ) -> Result<Vec<Key>, EngineError> {
        require_scope(caller, Scope::KeysWrite)?;
        within_own(caller, account)?;
        let account = if caller.may(Scope::Admin) { account } else { Some(caller.account()) };
        let records = self.inner.store.keys().list(&Behalf::Platform, account, page).await?;
        Ok(records.into_iter().map(|record| record.key).collect())
    }

    /// Revokes one key, or every key with a name, immediately and permanently.
    pub async fn key_revoke(
        &self,
        caller: &Caller,
        key: KeyRef,
        keyed: Option<IdempotentWrite<()>>,
    ) -> Result<IdempotentOutcome<()>, EngineError> {
        require_scope(caller, Scope::KeysWrite)?;
        within_own(caller, key.account.as_ref())?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Less).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        let revocation = KeyRevocation {
            account: self.account_of(caller, &key).await?,
            id_or_name: key.id_or_name.clone(),
            at: self.inner.clock.now(),
            by: caller.key().id.clone(),
            within: (!caller.may(Scope::Admin)).then(|| caller.scopes().clone()),
        };
        let once = self.idempotency_record(caller, keyed, &());
        match self.inner.store.keys().revoke(&Behalf::Platform, &revocation, once.as_ref()).await? {
            WriteOutcome::Done(ids) => {
                for id in &ids {
                    self.inner.keys.forget(id);
                    tracing::info!(jurat.key.id = %id, by = %caller.key().id, "revoked a key");
                }
                Ok(IdempotentOutcome::Now(()))
            }
            WriteOutcome::Repeated => self.concurrent_answer(caller, keyed).await,
            WriteOutcome::Refused(KeyRevokeRefusal::Unknown) => Err(unknown_key(key)),
            WriteOutcome::Refused(KeyRevokeRefusal::Beyond(scope)) => {
                Err(EngineError::missing_scope(scope))
            }
            WriteOutcome::Refused(KeyRevokeRefusal::OwnKey) => Err(EngineError::Conflict(
                "this is the key of the request itself; revoke it with another key".to_owned(),
            )),
            WriteOutcome::Refused(KeyRevokeRefusal::LastAdmin) => Err(EngineError::Conflict(
                "this is the last active key with the scope `admin`; create another one first"
                    .to_owned(),
            )),
        }
    }

    /// Creates a key that replaces another, which ends after a grace period.
    pub async fn key_rotate(
        &self,
        caller: &Caller,
        key: KeyRef,
        grace_ms: u64,
        keyed: Option<IdempotentWrite<IssuedKey>>,
    ) -> Result<IdempotentOutcome<IssuedKey>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Note).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        let clear = self.draw_key();
        let now = self.inner.clock.now();
        let rotation = KeyRotation {
            account: self.account_of(caller, &key).await?,
            id_or_name: key.id_or_name.clone(),
            at: now,
            old_until: now.plus_millis(grace_ms),
            new_id: clear.id().to_owned(),
            new_secret_hash: clear.secret_hash(),
        };
        let drawn = clear.clone();
        let once = self.pending_record(caller, keyed, |saving| {
            IdempotencyAnswer::of(move |succession: &KeySuccession| {
                saving.encode(&IssuedKey::in_place_of(succession.clone(), drawn.clone()))
            })
        });
        let succession = match self
            .inner
            .store
            .keys()
            .rotate(&Behalf::Platform, &rotation, once.as_ref())
            .await?
        {
            WriteOutcome::Done(succession) => succession,
            WriteOutcome::Refused(KeyRotateRefusal::Unknown) => return Err(unknown_key(key)),
            WriteOutcome::Repeated => return self.concurrent_answer(caller, keyed).await,
            WriteOutcome::Refused(KeyRotateRefusal::Superseded(newer)) => {
                return Err(EngineError::Conflict(format!(
                    "the key was already replaced by `{newer}`; rotate that key instead"
                )));
            }
        };
        for id in succession.ended.iter().chain([&succession.old.id]) {
            self.inner.keys.forget(id);
        }
        tracing::info!(
            jurat.key.id = %succession.new.id,
            replaces = %succession.old.id,
            by = %caller.key().id,
            "replaced a key"
        );
        let issued = IssuedKey::in_place_of(succession, clear);
        Ok(IdempotentOutcome::Now(issued))
    }

    /// Whether the installation's operator has a live key.
    pub async fn key_has_admin(&self) -> Result<bool, EngineError> {
        let (account, now) = (AccountId::admin(), self.inner.clock.now());
        let name_prefix = String::new();
        let wanted = LiveKeys { account, now, name_prefix, admins_only: true, limit: 1 };
        Ok(!self.inner.store.keys().live(&Behalf::Platform, &wanted).await?.is_empty())
    }

    /// Ensures that the key of the installation's operator is stored.
    pub async fn key_ensure_admin(&self, key: &ApiKey) -> Result<(), EngineError> {
        let now = self.inner.clock.now();
        let account = AccountId::admin();
        self.inner.store.accounts().ensure(&Behalf::Platform, &account, &now).await?;
        if let Some(known) = self.inner.store.keys().get(&Behalf::Platform, key.id()).await? {
            if !known.key.is_live(now) {
                tracing::warn!(
                    key.id = key.id(),
                    "the key in `admin.key` has expired or was revoked; remove the file to create a new key at the next start"
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
            suspended: false,
        };
        Ok(self.inner.store.keys().put(&Behalf::Platform, &record).await?)
    }

    pub(crate) fn draw_key(&self) -> ApiKey {
        let clock = &self.inner.clock;
        ApiKey::new(clock.bits(), [clock.bits(), clock.bits()])
    }

    /// The account of a key. An identifier never changes its account. For a caller who is not an
    /// admin, other accounts do not exist.
    async fn account_of(&self, caller: &Caller, key: &KeyRef) -> Result<AccountId, EngineError> {
        if let Some(account) = &key.account {
            return Ok(account.clone());
        }
        if !caller.may(Scope::Admin) {
            return Ok(caller.account().clone());
        }
        let known = self.inner.store.keys().get(&Behalf::Platform, &key.id_or_name).await?;
        Ok(known.map_or_else(|| caller.account().clone(), |record| record.key.account))
    }
}

/// Refuses an account that is not the caller's own, unless the caller is an admin.
fn within_own(caller: &Caller, account: Option<&AccountId>) -> Result<(), EngineError> {
    match account {
        Some(account) if account != caller.account() => require_scope(caller, Scope::Admin),
        Some(_) | None => Ok(()),
    }
}

fn unknown_key(key: KeyRef) -> EngineError {
    EngineError::NotFound { what: "active key", id: key.id_or_name }
}
