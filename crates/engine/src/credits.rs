//! Operations on accounts and their credit: what an account sees of its own, and what an admin does.

use std::sync::Arc;

use jurat_core::{
    account::{AccountName, Profile},
    caller::{Caller, Credit, Scope},
    id::AccountId,
    key::Key,
    ledger::{AccountState, Balance, Transfer, usd},
    time::Timestamp,
};
use jurat_store::{Grant, Granted, OnceAnswer, Page, Spending, Suspended, Suspension};

use crate::{Done, Engine, EngineError, Keyed, Leaves, executors::require, people::behalf};

/// Who a caller is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Me {
    /// The key of the request, with its account.
    pub key: Key,
    pub profile: Profile,
    pub is_suspended: bool,
}

/// What an account has, and what it used in a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    pub balance: Balance,
    /// Whether it is refused what it has no credit for.
    pub is_metered: bool,
    /// The month, in UTC.
    pub since: Timestamp,
    pub until: Timestamp,
    pub spent: Spending,
}

/// Credit that an operator gives, or takes back when it is negative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGrant {
    pub micros: i64,
    pub note: Option<String>,
}

impl Engine {
    /// Who the caller is: any key may ask.
    pub async fn me_show(&self, caller: &Caller) -> Result<Me, EngineError> {
        let known = self.inner.store.key_get(&caller.key().id).await?;
        let known = known.ok_or(EngineError::Bug("the key of a caller is not there"))?;
        let is_suspended = known.suspended && known.key.account != AccountId::admin();
        let (name, now) = (AccountName::Id(known.key.account.clone()), self.inner.clock.now());
        let profile = self.inner.store.sharing().profile_get(&behalf(caller), &name, &now).await?;
        let profile = profile.ok_or(EngineError::Bug("the account of a caller is not there"))?;
        Ok(Me { key: known.key, profile, is_suspended })
    }

    /// What the account has and used: any key of it may ask.
    pub async fn usage_show(&self, caller: &Caller) -> Result<Usage, EngineError> {
        let store = &self.inner.store;
        let state = store.account_get(caller.account()).await?;
        let (since, until) = self.inner.clock.now().month();
        Ok(Usage {
            balance: state.map(|state| state.balance).unwrap_or_default(),
            is_metered: caller.credit() != Credit::Unmetered,
            since,
            until,
            spent: store.credit_spent(caller.account(), since).await?,
        })
    }

    /// The lines of the account's ledger, newest first; `before` starts behind a line.
    pub async fn transfer_list(
        &self,
        caller: &Caller,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Transfer>, EngineError> {
        require(caller, Scope::UsageRead)?;
        Ok(self.inner.store.credit_transfers(caller.account(), before, limit).await?)
    }

    /// The same of any account, for the operator.
    pub async fn account_transfers(
        &self,
        caller: &Caller,
        id: &str,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Transfer>, EngineError> {
        let account = self.account_show(caller, id).await?.account;
        Ok(self.inner.store.credit_transfers(&account, before, limit).await?)
    }

    /// All accounts by identifier.
    pub async fn account_list(
        &self,
        caller: &Caller,
        page: &Page,
    ) -> Result<Vec<AccountState>, EngineError> {
        require(caller, Scope::Admin)?;
        Ok(self.inner.store.account_list(page).await?)
    }

    pub async fn account_show(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<AccountState, EngineError> {
        require(caller, Scope::Admin)?;
        let account = named(id)?;
        let found = self.inner.store.account_get(&account).await?;
        found.ok_or_else(|| unknown(id))
    }

    /// Gives credit to an account, or takes some back.
    pub async fn credit_grant(
        &self,
        caller: &Caller,
        id: &str,
        new: NewGrant,
        keyed: Option<Keyed<Balance>>,
    ) -> Result<Done<Balance>, EngineError> {
        require(caller, Scope::Admin)?;
        let account = named(id)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Note).await? {
            return Ok(Done::Before(answer));
        }
        let once = self.note_for(caller, keyed, |saving| {
            OnceAnswer::OfBalance(Arc::new(move |balance| saving.of(balance)))
        });
        let NewGrant { micros, note } = new;
        let grant = Grant { account, micros, note, at: self.inner.clock.now() };
        match self.inner.store.credit_grant(&grant, once.as_ref()).await? {
            Granted::Done(balance) => {
                tracing::info!(account.id = id, micros, by = %caller.key().id, "granted credit");
                Ok(Done::Now(balance))
            }
            Granted::UnknownAccount => Err(unknown(id)),
            Granted::TooMuch(balance) => Err(EngineError::Invalid {
                field: "amount_usd",
                reason: format!(
                    "takes back more than the available credit, which is {}",
                    usd(balance.available)
                ),
            }),
            Granted::Repeated => self.answered_meanwhile(caller, keyed).await,
        }
    }

    /// Lets nothing that costs be done for an account any more; rounds under way go on.
    pub async fn account_suspend(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<Keyed<AccountState>>,
    ) -> Result<Done<AccountState>, EngineError> {
        require(caller, Scope::Admin)?;
        if named(id)? == AccountId::admin() {
            return Err(EngineError::Conflict(
                "the operator's account cannot be suspended".to_owned(),
            ));
        }
        self.suspension(caller, id, Some(self.inner.clock.now()), keyed).await
    }

    /// Lifts a suspension.
    pub async fn account_resume(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<Keyed<AccountState>>,
    ) -> Result<Done<AccountState>, EngineError> {
        require(caller, Scope::Admin)?;
        self.suspension(caller, id, None, keyed).await
    }

    async fn suspension(
        &self,
        caller: &Caller,
        id: &str,
        since: Option<Timestamp>,
        keyed: Option<Keyed<AccountState>>,
    ) -> Result<Done<AccountState>, EngineError> {
        let account = named(id)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Note).await? {
            return Ok(Done::Before(answer));
        }
        let once = self.note_for(caller, keyed, |saving| {
            OnceAnswer::OfAccount(Arc::new(move |state| saving.of(state)))
        });
        let suspension = Suspension { account, since };
        match self.inner.store.account_suspend(&suspension, once.as_ref()).await? {
            Suspended::Done(state) => {
                self.inner.keys.forget_account(&suspension.account);
                let is_suspended = state.suspended_at.is_some();
                tracing::info!(account.id = id, is_suspended, by = %caller.key().id, "changed an account");
                Ok(Done::Now(*state))
            }
            Suspended::UnknownAccount => Err(unknown(id)),
            Suspended::Repeated => self.answered_meanwhile(caller, keyed).await,
        }
    }
}

/// What has not the form of an account names none.
fn named(id: &str) -> Result<AccountId, EngineError> {
    AccountId::parse(id).map_err(|_| unknown(id))
}

fn unknown(id: &str) -> EngineError {
    EngineError::NotFound { what: "account", id: id.chars().take(80).collect() }
}
