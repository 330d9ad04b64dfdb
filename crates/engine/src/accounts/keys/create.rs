//! Decides which keys a caller may create: a new key never has more rights than its creator.

use std::collections::BTreeSet;

use jurat_core::{
    account::{
        caller::{Caller, Scope},
        key::{Key, NewKey},
    },
    list::ListPage,
};
use jurat_store::Behalf;

use super::within_own;
use crate::{Engine, EngineError, access::require_scope};

/// How many live keys an account may create for itself, and how many it may ever have had.
const MOST_LIVE: usize = 100;
const MOST_EVER: u32 = 1_000;

impl Engine {
    /// Completes the new key within the rights of its creator.
    pub(super) async fn allowed_key(
        &self,
        caller: &Caller,
        new: NewKey,
    ) -> Result<NewKey, EngineError> {
        within_own(caller, new.account.as_ref())?;
        let is_admin = caller.may(Scope::Admin);
        let new = if is_admin { new } else { self.limited_by_maker(caller, new).await? };
        let is_limited = new.rate_per_minute.is_some()
            || new.concurrent_rounds.is_some()
            || new.expires_at.is_some();
        let usual = || match is_admin {
            // A limit would be useless if its key could create others.
            true if is_limited => {
                Scope::OWN.into_iter().filter(|scope| *scope != Scope::KeysWrite).collect()
            }
            true => Scope::OWN.into(),
            false => caller.scopes().clone(),
        };
        let scopes: BTreeSet<Scope> = new.scopes.unwrap_or_else(usual);
        for scope in &scopes {
            require_scope(caller, *scope)?;
        }
        Ok(NewKey { scopes: Some(scopes), ..new })
    }

    /// Gives the key the limits and the expiry of its creator's key, unless it asks for less.
    async fn limited_by_maker(&self, caller: &Caller, new: NewKey) -> Result<NewKey, EngineError> {
        let store = &self.inner.store;
        let page = ListPage { after: None, limit: MOST_EVER };
        let of_account =
            store.keys().list(&Behalf::Platform, Some(caller.account()), &page).await?;
        let now = self.inner.clock.now();
        let live = of_account.iter().filter(|record| record.key.is_live(now)).count();
        let is_full = u32::try_from(of_account.len()).is_ok_and(|ever| MOST_EVER <= ever);
        if is_full || MOST_LIVE <= live {
            return Err(EngineError::denied(
                "the account has created as many keys as it may; ask the operator for more",
            ));
        }
        let maker = store.keys().get(&Behalf::Platform, &caller.key().id).await?;
        let maker = maker.ok_or(EngineError::Bug("the key of a caller is not there"))?.key;
        limited(new, &maker)
    }
}

fn limited(new: NewKey, maker: &Key) -> Result<NewKey, EngineError> {
    Ok(NewKey {
        rate_per_minute: within_limit(
            "rate_per_minute",
            new.rate_per_minute,
            maker.rate_per_minute,
        )?,
        concurrent_rounds: within_limit(
            "concurrent_rounds",
            new.concurrent_rounds,
            maker.concurrent_rounds,
        )?,
        expires_at: within_limit("expires_at", new.expires_at, maker.expires_at)?,
        ..new
    })
}

fn within_limit<T: PartialOrd>(
    field: &'static str,
    wanted: Option<T>,
    of_maker: Option<T>,
) -> Result<Option<T>, EngineError> {
    match (wanted, of_maker) {
        (Some(wanted), Some(of_maker)) if of_maker < wanted => {
            Err(EngineError::invalid(field, "must not exceed that of the creating key"))
        }
        (None, of_maker) => Ok(of_maker),
        (wanted, _) => Ok(wanted),
    }
}
