//! Operations on handles: what users and teams are known by.

use jurat_core::{
    account::{self, HANDLE_CHARS, Profile, RENAMES_A_YEAR},
    caller::{Caller, Scope},
    code::Code,
    time::Timestamp,
};
use jurat_store::{Behalf, HandleClaim, HandleRefused};

use crate::{Done, Engine, EngineError, Keyed, Leaves, executors::require};

const DAY_MICROS: i64 = 24 * 3_600 * 1_000_000;

impl Engine {
    /// Gives the caller's account its first handle.
    pub async fn handle_claim(
        &self,
        caller: &Caller,
        handle: &str,
        keyed: Option<Keyed<Profile>>,
    ) -> Result<Done<Profile>, EngineError> {
        let claim = self.claim(caller, handle)?;
        let (behalf, sharing) = (behalf(caller), self.inner.store.sharing());
        let write = async |once: Option<&_>| sharing.handle_claim(&behalf, &claim, once).await;
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Note, write).await?;
        done.map_err(|refused| refusal(refused, &claim))
    }

    /// Gives the caller's account another handle.
    pub async fn handle_rename(
        &self,
        caller: &Caller,
        handle: &str,
        keyed: Option<Keyed<Profile>>,
    ) -> Result<Done<Profile>, EngineError> {
        let claim = self.claim(caller, handle)?;
        let (behalf, sharing) = (behalf(caller), self.inner.store.sharing());
        let write = async |once: Option<&_>| sharing.handle_rename(&behalf, &claim, once).await;
        let done = self.write_once(caller, keyed.as_ref(), Leaves::Note, write).await?;
        done.map_err(|refused| refusal(refused, &claim))
    }

    fn claim(&self, caller: &Caller, handle: &str) -> Result<HandleClaim, EngineError> {
        require(caller, Scope::AccountWrite)?;
        let account = caller.account().clone();
        Ok(HandleClaim { account, handle: new_handle(handle)?, at: self.inner.clock.now() })
    }
}

pub(crate) fn behalf(caller: &Caller) -> Behalf {
    Behalf::Account(caller.account().clone())
}

/// A handle that somebody may claim.
pub(crate) fn new_handle(text: &str) -> Result<String, EngineError> {
    if !account::is_handle(text) {
        let (fewest, most) = HANDLE_CHARS;
        return Err(EngineError::Refused {
            code: Code::HandleInvalid,
            field: Some("handle"),
            detail: format!(
                "`handle` must have {fewest} to {most} lowercase letters, digits or hyphens, with no hyphen at either end"
            ),
        });
    }
    if account::is_reserved(text) {
        let detail = format!("the handle `{text}` is reserved");
        return Err(EngineError::refused(Code::HandleReserved, detail));
    }
    Ok(text.to_owned())
}

pub(crate) fn taken(handle: &str) -> EngineError {
    EngineError::refused(Code::HandleTaken, format!("the handle `{handle}` is taken"))
}

pub(crate) fn no_handle() -> EngineError {
    EngineError::refused(Code::HandleNotClaimed, "the account has no handle")
}

fn refusal(refused: HandleRefused, claim: &HandleClaim) -> EngineError {
    match refused {
        HandleRefused::UnknownAccount => EngineError::Bug("the account of a caller is not there"),
        HandleRefused::Taken => taken(&claim.handle),
        HandleRefused::Claimed(handle) => {
            let detail = format!("the account already has the handle `{handle}`");
            EngineError::refused(Code::HandleAlreadyClaimed, detail)
        }
        HandleRefused::NotClaimed => no_handle(),
        HandleRefused::TooSoon { until } => {
            let days = days_between(claim.at, until);
            let detail =
                format!("the handle was changed recently; it can be changed again in {days} days");
            EngineError::refused(Code::HandleRenameTooSoon, detail)
        }
        HandleRefused::TooOften => {
            let detail = format!("the handle was changed {RENAMES_A_YEAR} times this year");
            EngineError::refused(Code::HandleRenameLimitExceeded, detail)
        }
    }
}

/// Whole days from one time to another, and a part of one counts.
fn days_between(from: Timestamp, until: Timestamp) -> i64 {
    let micros = until.micros().saturating_sub(from.micros());
    micros.saturating_add(DAY_MICROS - 1) / DAY_MICROS
}
