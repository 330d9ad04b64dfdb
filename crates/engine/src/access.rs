//! Access: the scope that an operation needs, the account that it acts for, and the caller of
//! background work.

use std::collections::BTreeSet;

use jurat_core::{
    account::{
        caller::{Caller, CallerKey, CreditMode, Scope},
        key::Key,
    },
    id::AccountId,
    peer::Peer,
};

use jurat_store::Behalf;

use crate::{Engine, EngineError};

/// Refuses a caller without the scope.
pub(crate) fn require_scope(caller: &Caller, scope: Scope) -> Result<(), EngineError> {
    if caller.may(scope) { Ok(()) } else { Err(EngineError::missing_scope(scope)) }
}

/// Stands for a key in the limits of callers from this machine that have none.
pub(crate) const LOOPBACK_KEY: &str = "loopback";

/// Refuses a program on this machine that sends no key what lasts longer than its rounds.
pub(crate) fn require_key(caller: &Caller) -> Result<(), EngineError> {
    if caller.key().id != LOOPBACK_KEY {
        return Ok(());
    }
    Err(EngineError::denied(
        "this needs a key; without one, rounds are started, read and cancelled",
    ))
}

/// Limits the store to what the caller's account may see.
pub(crate) fn behalf_of(caller: &Caller) -> Behalf {
    Behalf::Account(caller.account().clone())
}

/// The account whose own templates a reader sees besides the published ones. A key that may not
/// read workflows sees only the published ones.
pub(crate) fn viewer(caller: Option<&Caller>) -> Option<AccountId> {
    caller.filter(|caller| caller.may(Scope::WorkflowsRead)).map(|caller| caller.account().clone())
}

/// Without a caller, the store is read on behalf of the platform.
pub(crate) fn behalf_of_viewer(caller: Option<&Caller>) -> Behalf {
    caller.map_or(Behalf::Platform, behalf_of)
}

/// The key that is stored with work that a caller submits.
pub(crate) fn submitting_key(caller: &Caller) -> Option<String> {
    let id = &caller.key().id;
    (*id != without_key(caller.account())).then(|| id.clone())
}

/// No key has such an identifier.
fn without_key(account: &AccountId) -> String {
    format!("tasks:{account}")
}

impl Engine {
    /// The caller of a task or a run: its account, with the scopes and the limits of the key that
    /// submitted it. No work is done under a key that was revoked or has expired, or for an account
    /// that was suspended meanwhile.
    pub async fn caller_of(
        &self,
        account: &AccountId,
        key: Option<&str>,
    ) -> Result<Caller, EngineError> {
        match self.live_submitting_key(account, key).await? {
            Some(key) => self.caller_with(account, key.scopes.clone(), self.caller_key(&key)).await,
            None => self.caller_without_key(account).await,
        }
    }

    /// Like [`Engine::caller_of`], for a task call that starts, which counts as a request of the
    /// key.
    pub(crate) async fn caller_of_task_call(
        &self,
        account: &AccountId,
        key: Option<&str>,
    ) -> Result<Caller, EngineError> {
        if let Some(key) = self.live_submitting_key(account, key).await? {
            self.key_request(&key)?;
        }
        self.caller_of(account, key).await
    }

    /// The caller of work without a key: tasks from before keys were stored, and decisions of
    /// executors about an account's tasks. It has round permits of its own.
    pub async fn caller_without_key(&self, account: &AccountId) -> Result<Caller, EngineError> {
        let key = CallerKey {
            id: without_key(account),
            concurrent_rounds: self.inner.limits.rounds_per_key,
        };
        let scopes = BTreeSet::from([
            Scope::RoundsCreate,
            Scope::VerifiersRun,
            Scope::TasksRead,
            Scope::TasksWrite,
        ]);
        self.caller_with(account, scopes, key).await
    }

    /// The caller that a verified payer is. It has no key, and one scope.
    pub(crate) async fn payer_caller(
        &self,
        account: &AccountId,
        concurrent_rounds: usize,
    ) -> Result<Caller, EngineError> {
        let known = self.inner.store.accounts().get(&Behalf::Platform, account).await?;
        if known.is_some_and(|state| state.suspended_at.is_some()) {
            return Err(EngineError::suspended());
        }
        let key = CallerKey { id: account.to_string(), concurrent_rounds };
        let scopes = BTreeSet::from([Scope::RoundsCreate]);
        #[expect(clippy::disallowed_methods, reason = "the facilitator verified the payer")]
        let caller = Caller::authenticated(account.clone(), scopes, key, CreditMode::Prepaid);
        Ok(caller)
    }

    /// The caller that a trusted node is. It has no key, and one scope.
    pub(crate) async fn peer_caller(&self, peer: &Peer) -> Result<Caller, EngineError> {
        let account = peer.account();
        let known = self.inner.store.accounts().get(&Behalf::Platform, &account).await?;
        if known.is_some_and(|state| state.suspended_at.is_some()) {
            return Err(EngineError::suspended());
        }
        let concurrent_rounds = usize::try_from(peer.terms.concurrent_jobs).unwrap_or(usize::MAX);
        let key = CallerKey { id: account.to_string(), concurrent_rounds };
        let scopes = BTreeSet::from([Scope::RoundsCreate]);
        #[expect(clippy::disallowed_methods, reason = "the signature proved the node")]
        let caller = Caller::authenticated(account, scopes, key, CreditMode::Booked);
        Ok(caller)
    }

    /// The key that submitted some work, if it is known and still valid.
    pub(crate) async fn live_submitting_key(
        &self,
        account: &AccountId,
        key: Option<&str>,
    ) -> Result<Option<Key>, EngineError> {
        let Some(id) = key else { return Ok(None) };
        let record = self.live_key(account, id).await?.ok_or(EngineError::KeyEnded)?;
        Ok(Some(record.key.clone()))
    }

    async fn caller_with(
        &self,
        account: &AccountId,
        scopes: BTreeSet<Scope>,
        key: CallerKey,
    ) -> Result<Caller, EngineError> {
        // The credit mode is read now: the account may have been suspended since.
        let credit = if *account == AccountId::admin() {
            CreditMode::Unmetered
        } else {
            let state = self.inner.store.accounts().get(&Behalf::Platform, account).await?;
            let state = state.ok_or_else(|| EngineError::NotFound {
                what: "account",
                id: account.to_string(),
            })?;
            if state.suspended_at.is_some() {
                return Err(EngineError::suspended());
            }
            CreditMode::Metered
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "an authenticated caller of the account ordered the work"
        )]
        let caller = Caller::authenticated(account.clone(), scopes, key, credit);
        Ok(caller)
    }
}
