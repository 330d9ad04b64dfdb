//! Operations on accounts and their credit, for the account itself and for an admin.

use jurat_core::{
    account::{
        AccountName, AccountProfile,
        caller::{Caller, CreditMode, Scope},
        key::Key,
        ledger::{AccountState, Balance, Transfer, usd},
    },
    id::AccountId,
    list::ListPage,
    time::Timestamp,
};
use jurat_store::{
    Behalf, CreditGrant, CreditGrantRefusal, NotFound, Spending, Suspension, WriteOutcome,
};

use crate::access::behalf_of;
use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves, access::require_scope,
};

/// The identity of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerIdentity {
    /// The key of the request, with its account.
    pub key: Key,
    pub profile: AccountProfile,
    pub is_suspended: bool,
}

/// The credit of an account, and its usage in a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountUsage {
    pub balance: Balance,
    /// Whether paid work is refused without credit.
    pub is_metered: bool,
    /// The start of the month, in UTC.
    pub since: Timestamp,
    pub until: Timestamp,
    pub spent: Spending,
}

/// Credit that an operator grants, or takes back if it is negative.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCreditGrant {
    pub micros: i64,
    pub note: Option<String>,
}

impl Engine {
    /// The identity of the caller; any key may ask.
    pub async fn me_show(&self, caller: &Caller) -> Result<CallerIdentity, EngineError> {
        let known = self.inner.store.keys().get(&Behalf::Platform, &caller.key().id).await?;
        let known = known.ok_or(EngineError::Bug("the key of a caller is not there"))?;
        let is_suspended = known.suspended && known.key.account != AccountId::admin();
        let (name, now) = (AccountName::Id(known.key.account.clone()), self.inner.clock.now());
        let profile = self.inner.store.people().profile(&behalf_of(caller), &name, &now).await?;
        let profile = profile.ok_or(EngineError::Bug("the account of a caller is not there"))?;
        Ok(CallerIdentity { key: known.key, profile, is_suspended })
    }

    /// The credit and usage of the account; any key of the account may ask.
    pub async fn usage_show(&self, caller: &Caller) -> Result<AccountUsage, EngineError> {
        let store = &self.inner.store;
        let state = store.accounts().get(&Behalf::Platform, caller.account()).await?;
        let (since, until) = self.inner.clock.now().month();
        Ok(AccountUsage {
            balance: state.map(|state| state.balance).unwrap_or_default(),
            is_metered: caller.credit() != CreditMode::Unmetered,
            since,
            until,
            spent: store
                .ledger()
                .spending(&Behalf::from(caller.account()), caller.account(), &since)
                .await?,
        })
    }

    /// The account's ledger, newest first; `before` starts after an entry.
    pub async fn transfer_list(
        &self,
        caller: &Caller,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Transfer>, EngineError> {
        require_scope(caller, Scope::UsageRead)?;
        Ok(self
            .inner
            .store
            .ledger()
            .transfers(&Behalf::from(caller.account()), caller.account(), before, limit)
            .await?)
    }

    /// The ledger of any account, for the operator.
    pub async fn account_transfers(
        &self,
        caller: &Caller,
        id: &str,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Transfer>, EngineError> {
        let account = self.account_show(caller, id).await?.account;
        Ok(self
            .inner
            .store
            .ledger()
            .transfers(&Behalf::from(&account), &account, before, limit)
            .await?)
    }

    /// All accounts, by identifier.
    pub async fn account_list(
        &self,
        caller: &Caller,
        page: &ListPage,
    ) -> Result<Vec<AccountState>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        Ok(self.inner.store.accounts().list(&Behalf::Platform, page).await?)
    }

    pub async fn account_show(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<AccountState, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let account = parse_account(id)?;
        let found = self.inner.store.accounts().get(&Behalf::Platform, &account).await?;
        found.ok_or_else(|| unknown_account(id))
    }

    /// Grants credit to an account, or takes some back.
    pub async fn credit_grant(
        &self,
        caller: &Caller,
        id: &str,
        new: NewCreditGrant,
        keyed: Option<IdempotentWrite<Balance>>,
    ) -> Result<IdempotentOutcome<Balance>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        let account = parse_account(id)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Note).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        let once = self.result_record(caller, keyed);
        let NewCreditGrant { micros, note } = new;
        let grant = CreditGrant { account, micros, note, at: self.inner.clock.now() };
        match self.inner.store.ledger().grant(&Behalf::Platform, &grant, once.as_ref()).await? {
            WriteOutcome::Done(balance) => {
                tracing::info!(account.id = id, micros, by = %caller.key().id, "granted credit");
                Ok(IdempotentOutcome::Now(balance))
            }
            WriteOutcome::Refused(CreditGrantRefusal::UnknownAccount) => Err(unknown_account(id)),
            WriteOutcome::Refused(CreditGrantRefusal::TooMuch(balance)) => {
                Err(EngineError::invalid(
                    "amount_usd",
                    format!(
                        "takes back more than the available credit, which is {}",
                        usd(balance.available)
                    ),
                ))
            }
            WriteOutcome::Repeated => self.concurrent_answer(caller, keyed).await,
        }
    }

    /// Suspends an account: paid work is refused, and rounds in progress continue.
    pub async fn account_suspend(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<IdempotentWrite<AccountState>>,
    ) -> Result<IdempotentOutcome<AccountState>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        if parse_account(id)? == AccountId::admin() {
            return Err(EngineError::Conflict(
                "the operator's account cannot be suspended".to_owned(),
            ));
        }
        self.set_suspension(caller, id, Some(self.inner.clock.now()), keyed).await
    }

    /// Lifts a suspension.
    pub async fn account_resume(
        &self,
        caller: &Caller,
        id: &str,
        keyed: Option<IdempotentWrite<AccountState>>,
    ) -> Result<IdempotentOutcome<AccountState>, EngineError> {
        require_scope(caller, Scope::Admin)?;
        self.set_suspension(caller, id, None, keyed).await
    }

    async fn set_suspension(
        &self,
        caller: &Caller,
        id: &str,
        since: Option<Timestamp>,
        keyed: Option<IdempotentWrite<AccountState>>,
    ) -> Result<IdempotentOutcome<AccountState>, EngineError> {
        let account = parse_account(id)?;
        let keyed = keyed.as_ref();
        if let Some(answer) = self.done_already(caller, keyed, Leaves::Note).await? {
            return Ok(IdempotentOutcome::Before(answer));
        }
        let once = self.result_record(caller, keyed);
        let suspension = Suspension { account, since };
        match self
            .inner
            .store
            .accounts()
            .suspend(&Behalf::Platform, &suspension, once.as_ref())
            .await?
        {
            WriteOutcome::Done(state) => {
                self.inner.keys.forget_account(&suspension.account);
                let is_suspended = state.suspended_at.is_some();
                tracing::info!(account.id = id, is_suspended, by = %caller.key().id, "changed an account");
                Ok(IdempotentOutcome::Now(state))
            }
            WriteOutcome::Refused(NotFound) => Err(unknown_account(id)),
            WriteOutcome::Repeated => self.concurrent_answer(caller, keyed).await,
        }
    }
}

/// A text that is not an account id names no account.
fn parse_account(id: &str) -> Result<AccountId, EngineError> {
    AccountId::parse(id).map_err(|_| unknown_account(id))
}

fn unknown_account(id: &str) -> EngineError {
    EngineError::NotFound { what: "account", id: id.chars().take(80).collect() }
}
