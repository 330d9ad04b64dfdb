//! Who asks in the background: an account whose task goes on without a request.

use std::collections::BTreeSet;

use jurat_core::{
    caller::{Caller, CallerKey, Credit, Scope},
    id::AccountId,
};

use crate::{Engine, EngineError};

impl Engine {
    /// The caller of work that an account ordered earlier. Its credit is read now: nothing is done
    /// for an account that was suspended in the meantime. It has places for rounds of its own, so
    /// that tasks and requests of an account do not take them from each other.
    pub async fn caller_for(&self, account: &AccountId) -> Result<Caller, EngineError> {
        let credit = if *account == AccountId::admin() {
            Credit::Unmetered
        } else {
            let state = self.inner.store.account_get(account).await?;
            let state = state.ok_or_else(|| EngineError::NotFound {
                what: "account",
                id: account.to_string(),
            })?;
            if state.suspended_at.is_some() {
                return Err(EngineError::Suspended);
            }
            Credit::Metered
        };
        let key = CallerKey {
            id: format!("tasks:{account}"),
            concurrent_rounds: self.inner.limits.rounds_per_key,
        };
        let scopes = BTreeSet::from([
            Scope::RoundsCreate,
            Scope::VerifiersRun,
            Scope::TasksRead,
            Scope::TasksWrite,
        ]);
        #[expect(
            clippy::disallowed_methods,
            reason = "an authenticated caller of the account ordered the work"
        )]
        let caller = Caller::authenticated(account.clone(), scopes, key, credit);
        Ok(caller)
    }
}
