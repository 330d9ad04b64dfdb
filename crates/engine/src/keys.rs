//! Whose key it is. The server turns the answer into a `Caller`.

use std::{collections::BTreeSet, time::Duration};

use jurat_core::{caller::Scope, id::AccountId, key::ApiKey};
use jurat_store::KeyRecord;
use subtle::ConstantTimeEq as _;

use crate::{Engine, EngineError};

/// How long a key that was revoked elsewhere may still be believed.
const BELIEVED: Duration = Duration::from_secs(5);

/// Who a key speaks for, and what it may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyOwner {
    pub account: AccountId,
    pub scopes: BTreeSet<Scope>,
}

pub(crate) struct KeyCache(moka::sync::Cache<String, Option<KeyRecord>>);

impl KeyCache {
    pub(crate) fn new() -> Self {
        Self(moka::sync::Cache::builder().max_capacity(10_000).time_to_live(BELIEVED).build())
    }
}

impl Engine {
    /// The owner of a key; `None` for one that is unknown, revoked or wrong.
    pub async fn key_owner(&self, text: &str) -> Result<Option<KeyOwner>, EngineError> {
        let Some(key) = ApiKey::parse(text) else { return Ok(None) };
        let record = if let Some(record) = self.inner.keys.0.get(key.id()) {
            record
        } else {
            let record = self.inner.store.key_get(key.id()).await?;
            self.inner.keys.0.insert(key.id().to_owned(), record.clone());
            record
        };
        // An unknown key is compared too, so that it takes as long as a wrong secret.
        let stored = record.as_ref().map_or([0; 32], |record| record.secret_hash);
        let is_right: bool = key.secret_hash().ct_eq(&stored).into();
        Ok(record
            .filter(|record| is_right && record.revoked_at.is_none())
            .map(|record| KeyOwner { account: record.account, scopes: record.scopes }))
    }

    /// Makes sure that the key of the installation's operator is known.
    pub async fn key_ensure_admin(&self, key: &ApiKey) -> Result<(), EngineError> {
        let now = self.inner.clock.now();
        let account = AccountId::admin();
        self.inner.store.account_ensure(&account, now).await?;
        if self.inner.store.key_get(key.id()).await?.is_some() {
            return Ok(());
        }
        let record = KeyRecord {
            id: key.id().to_owned(),
            account,
            secret_hash: key.secret_hash(),
            scopes: BTreeSet::from([Scope::Admin]),
            name: "admin".to_owned(),
            created_at: now,
            revoked_at: None,
        };
        Ok(self.inner.store.key_put(&record).await?)
    }
}
