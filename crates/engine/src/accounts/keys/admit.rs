//! Finds the account of a key and admits its request. The server turns the result into a `Caller`.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jurat_core::{
    account::{
        caller::{CallerKey, CreditMode, Scope},
        key::{ApiKey, Key},
    },
    id::AccountId,
};
use jurat_store::{Behalf, KeyRecord};
use parking_lot::{Mutex, MutexGuard};
use subtle::ConstantTimeEq as _;

use super::Allowance;
use crate::{Engine, EngineError, access::LOOPBACK_KEY};

/// How long a key that was revoked on another node may still be accepted.
const BELIEVED: Duration = Duration::from_secs(5);

/// The account of a key, its rights, and its remaining allowance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyAdmission {
    pub account: AccountId,
    pub scopes: BTreeSet<Scope>,
    pub key: CallerKey,
    pub credit: CreditMode,
    /// `None` for a key without a rate limit.
    pub allowance: Option<Allowance>,
}

type CachedKey = Option<Arc<KeyRecord>>;

pub(crate) struct KeyCache {
    records: moka::sync::Cache<String, CachedKey>,
    /// How many times an entry was invalidated.
    forgotten: Mutex<u64>,
}

impl KeyCache {
    pub(crate) fn new() -> Self {
        let records = moka::sync::Cache::builder().max_capacity(10_000).time_to_live(BELIEVED);
        Self { records: records.build(), forgotten: Mutex::new(0) }
    }

    /// Makes the next request read the key again.
    pub(crate) fn forget(&self, id: &str) {
        let mut forgotten = self.forgotten();
        *forgotten += 1;
        self.records.invalidate(id);
    }

    /// Makes the next request of each key of an account read it again.
    pub(crate) fn forget_account(&self, account: &AccountId) {
        let mut forgotten = self.forgotten();
        *forgotten += 1;
        for (id, known) in &self.records {
            if known.is_some_and(|record| record.key.account == *account) {
                self.records.invalidate(id.as_str());
            }
        }
    }

    /// The account that a recently used key claims. The secret is not checked.
    pub(crate) fn account_of(&self, text: &str) -> Option<AccountId> {
        let known = self.records.get(ApiKey::parse(text)?.id())?;
        known.map(|record| record.key.account.clone())
    }

    /// Caches a record, unless something was invalidated meanwhile: the record could be outdated.
    fn keep(&self, id: &str, record: &CachedKey, forgotten_before: u64) {
        let forgotten = self.forgotten();
        if *forgotten == forgotten_before {
            self.records.insert(id.to_owned(), record.clone());
        }
    }

    fn forgotten(&self) -> MutexGuard<'_, u64> {
        self.forgotten.lock()
    }
}

/// The operator's own account is never refused.
fn credit(account: &AccountId, is_suspended: bool) -> CreditMode {
    if *account == AccountId::admin() {
        CreditMode::Unmetered
    } else if is_suspended {
        CreditMode::Suspended
    } else {
        CreditMode::Metered
    }
}

impl Engine {
    /// Admits one request of a key; `None` for a key that is unknown, wrong, revoked or expired,
    /// which all look alike.
    pub async fn key_admit(&self, text: &str) -> Result<Option<KeyAdmission>, EngineError> {
        let Some(given) = ApiKey::parse(text) else { return Ok(None) };
        let known = self.key_record(given.id()).await?;
        // An unknown key is compared, too, so that it takes as long as a wrong secret.
        let stored = known.as_ref().map_or([0; 32], |record| record.secret_hash);
        let is_right: bool = given.secret_hash().ct_eq(&stored).into();
        let now = self.inner.clock.now();
        let is_good = |record: &Arc<KeyRecord>| is_right && record.key.is_live(now);
        let Some(record) = known.filter(is_good) else { return Ok(None) };
        let allowance = self.key_request(&record.key)?;
        Ok(Some(KeyAdmission {
            account: record.key.account.clone(),
            scopes: record.key.scopes.clone(),
            key: self.caller_key(&record.key),
            credit: credit(&record.key.account, record.suspended),
            allowance,
        }))
    }

    /// Admits a request without a key from this machine, for the account that the operator named;
    /// `None` if there is no such account. It may start rounds and read them, and nothing else.
    pub async fn admit_loopback(
        &self,
        account: &AccountId,
    ) -> Result<Option<KeyAdmission>, EngineError> {
        let found = self.inner.store.accounts().get(&Behalf::Platform, account).await?;
        let Some(found) = found else { return Ok(None) };
        let (limits, now) = (&self.inner.limits, self.inner.clock.now());
        let of_account = limits.requests_per_minute_per_account;
        self.inner.keys_in_use.request_of_account(account, of_account, now)?;
        Ok(Some(KeyAdmission {
            account: account.clone(),
            scopes: BTreeSet::from([Scope::RoundsCreate, Scope::RoundsRead]),
            key: CallerKey {
                id: LOOPBACK_KEY.to_owned(),
                concurrent_rounds: limits.rounds_per_key,
            },
            credit: credit(account, found.suspended_at.is_some()),
            allowance: None,
        }))
    }

    /// Counts a request of a key, or a call of a task that it submitted.
    pub(crate) fn key_request(&self, key: &Key) -> Result<Option<Allowance>, EngineError> {
        let (limits, now) = (&self.inner.limits, self.inner.clock.now());
        let of_account = limits.requests_per_minute_per_account;
        self.inner.keys_in_use.request_of_account(&key.account, of_account, now)?;
        let rate = key.rate_per_minute.or(limits.requests_per_minute_per_key);
        Ok(self.inner.keys_in_use.request(key, rate, now)?)
    }

    pub(crate) fn caller_key(&self, key: &Key) -> CallerKey {
        let rounds = key.concurrent_rounds.map(usize::try_from);
        let usual = self.inner.limits.rounds_per_key;
        let concurrent_rounds = rounds.and_then(Result::ok).unwrap_or(usual);
        CallerKey { id: key.id.clone(), concurrent_rounds }
    }

    /// A valid key of an account; a key that another node revoked a moment ago may still be
    /// accepted.
    pub(crate) async fn live_key(
        &self,
        account: &AccountId,
        id: &str,
    ) -> Result<Option<Arc<KeyRecord>>, EngineError> {
        let now = self.inner.clock.now();
        let is_good =
            |record: &Arc<KeyRecord>| record.key.account == *account && record.key.is_live(now);
        Ok(self.key_record(id).await?.filter(is_good))
    }

    async fn key_record(&self, id: &str) -> Result<CachedKey, EngineError> {
        if let Some(known) = self.inner.keys.records.get(id) {
            return Ok(known);
        }
        let forgotten = *self.inner.keys.forgotten();
        let known = self.inner.store.keys().get(&Behalf::Platform, id).await?.map(Arc::new);
        self.inner.keys.keep(id, &known, forgotten);
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_read_before_a_revocation_is_not_cached_after_it() {
        let cache = KeyCache::new();
        let before = *cache.forgotten();
        cache.forget("k1");
        cache.keep("k1", &None, before);
        assert!(cache.records.get("k1").is_none());
        let after = *cache.forgotten();
        cache.keep("k1", &None, after);
        assert!(cache.records.get("k1").is_some());
    }
}
