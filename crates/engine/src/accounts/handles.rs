//! Operations on handles, the names of users and teams.

use jurat_core::{
    account::{
        self, AccountProfile, HANDLE_CHARS, RENAMES_A_YEAR,
        caller::{Caller, Scope},
    },
    code::ProblemCode,
    time::Timestamp,
};
use jurat_store::{HandleChange, HandleRefusal};

use crate::{
    Engine, EngineError, IdempotentOutcome, IdempotentWrite, Leaves,
    access::{behalf_of, require_scope},
};

const DAY_MICROS: i64 = 24 * 3_600 * 1_000_000;

impl Engine {
    /// Gives the caller's account its first handle.
    pub async fn handle_claim(
        &self,
        caller: &Caller,
        handle: &str,
        keyed: Option<IdempotentWrite<AccountProfile>>,
    ) -> Result<IdempotentOutcome<AccountProfile>, EngineError> {
        let claim = self.handle_claim_of(caller, handle)?;
        let (behalf, people) = (behalf_of(caller), self.inner.store.people());
        let write = async |once: Option<&_>| people.claim_handle(&behalf, &claim, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Note, write).await?;
        done.map_err(|refused| refusal(refused, &claim))
    }

    /// Changes the handle of the caller's account.
    pub async fn handle_rename(
        &self,
        caller: &Caller,
        handle: &str,
        keyed: Option<IdempotentWrite<AccountProfile>>,
    ) -> Result<IdempotentOutcome<AccountProfile>, EngineError> {
        let claim = self.handle_claim_of(caller, handle)?;
        let (behalf, people) = (behalf_of(caller), self.inner.store.people());
        let write = async |once: Option<&_>| people.rename_handle(&behalf, &claim, once).await;
        let done = self.write_idempotent(caller, keyed.as_ref(), Leaves::Note, write).await?;
        done.map_err(|refused| refusal(refused, &claim))
    }

    fn handle_claim_of(&self, caller: &Caller, handle: &str) -> Result<HandleChange, EngineError> {
        require_scope(caller, Scope::AccountWrite)?;
        let account = caller.account().clone();
        Ok(HandleChange { account, handle: new_handle(handle)?, at: self.inner.clock.now() })
    }
}

/// Checks that a handle can be claimed.
pub(crate) fn new_handle(text: &str) -> Result<String, EngineError> {
    if !account::is_handle(text) {
        let (fewest, most) = HANDLE_CHARS;
        return Err(EngineError::refused(
            ProblemCode::HandleInvalid,
            format!(
                "`handle` must have {fewest} to {most} lowercase letters, digits or hyphens, with no hyphen at either end"
            ),
        )
        .at("handle"));
    }
    if account::is_reserved(text) {
        let detail = format!("the handle `{text}` is reserved");
        return Err(EngineError::refused(ProblemCode::HandleReserved, detail));
    }
    Ok(text.to_owned())
}

pub(crate) fn handle_taken(handle: &str) -> EngineError {
    EngineError::refused(ProblemCode::HandleTaken, format!("the handle `{handle}` is taken"))
}

pub(crate) fn no_handle() -> EngineError {
    EngineError::refused(ProblemCode::HandleNotClaimed, "the account has no handle")
}

fn refusal(refused: HandleRefusal, claim: &HandleChange) -> EngineError {
    match refused {
        HandleRefusal::UnknownAccount => EngineError::Bug("the account of a caller is not there"),
        HandleRefusal::Taken => handle_taken(&claim.handle),
        HandleRefusal::Claimed(handle) => {
            let detail = format!("the account already has the handle `{handle}`");
            EngineError::refused(ProblemCode::HandleAlreadyClaimed, detail)
        }
        HandleRefusal::NotClaimed => no_handle(),
        HandleRefusal::TooSoon { until } => {
            let days = days_between(claim.at, until);
            let detail =
                format!("the handle was changed recently; it can be changed again in {days} days");
            EngineError::refused(ProblemCode::HandleRenameTooSoon, detail)
        }
        HandleRefusal::TooOften => {
            let detail = format!("the handle was changed {RENAMES_A_YEAR} times this year");
            EngineError::refused(ProblemCode::HandleRenameLimitExceeded, detail)
        }
    }
}

/// Whole days from one time to another, rounded up.
fn days_between(from: Timestamp, until: Timestamp) -> i64 {
    let micros = until.micros().saturating_sub(from.micros());
    micros.saturating_add(DAY_MICROS - 1) / DAY_MICROS
}
