//! Visitors: each network address without a key is an account with a little credit of its own.

use std::{collections::BTreeSet, net::IpAddr};

use aws_lc_rs::hmac;
use jurat_core::{
    account::caller::{Caller, CallerKey, CreditMode, Scope},
    id::AccountId,
};
use jurat_store::{Behalf, CreditGrant};

use super::logins::KeylessRequest;
use crate::{Engine, EngineError, KeyAdmission};

/// How many rounds one address may have in progress.
const VISITOR_ROUNDS: usize = 4;

/// The minimum timeout of a visitor's judge call. An abandoned call costs its prompt all the same,
/// and a visitor does not pay for many of them.
const TIMEOUT_FLOOR_MS: u64 = 10_000;

impl Engine {
    /// Admits a visitor, who may run published verifiers and nothing else, at a limited rate.
    pub fn admit_visitor(&self, address: IpAddr) -> Result<KeyAdmission, EngineError> {
        self.admit_keyless(Some(address), KeylessRequest::Visit)?;
        let account = self.visitor_account(address);
        Ok(KeyAdmission {
            key: CallerKey { id: account.to_string(), concurrent_rounds: VISITOR_ROUNDS },
            account,
            scopes: BTreeSet::from([Scope::VerifiersRun]),
            credit: CreditMode::Anonymous,
            allowance: None,
        })
    }

    /// The account of an address. The address itself is not stored, and without the node's key
    /// nobody can find it by trying all addresses.
    fn visitor_account(&self, address: IpAddr) -> AccountId {
        let secret = self.inner.node_key.secret("jurat: accounts of network addresses");
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let tag = hmac::sign(&key, visitor_network(address).to_string().as_bytes());
        let mut bits = [0; 16];
        bits.copy_from_slice(&tag.as_ref()[..16]);
        AccountId::anonymous(u128::from_be_bytes(bits))
    }

    /// Grants a visitor the credit of the month, once.
    pub(crate) async fn grant_visitor_credit(&self, caller: &Caller) -> Result<(), EngineError> {
        if caller.credit() != CreditMode::Anonymous {
            return Ok(());
        }
        let account = caller.account().clone();
        let behalf = Behalf::Account(account.clone());
        let monthly = CreditGrant {
            account,
            micros: self.inner.limits.anonymous_grant_micros,
            note: Some("without a key, for a month".to_owned()),
            at: self.inner.clock.now(),
        };
        Ok(self.inner.store.templates().admit_visitor(&behalf, &monthly).await?)
    }
}

/// Checks that a visitor gives the judge enough time.
pub(crate) fn check_visitor_timeout(caller: &Caller, timeout_ms: u64) -> Result<(), EngineError> {
    if caller.credit() != CreditMode::Anonymous || TIMEOUT_FLOOR_MS <= timeout_ms {
        return Ok(());
    }
    Err(EngineError::invalid(
        "timeout_ms",
        format!(
            "must be at least {TIMEOUT_FLOOR_MS} without a key, and is {timeout_ms}; leave it out, or send a key"
        ),
    ))
}

/// The network that counts as one address: an IPv6 user has a whole network.
pub(crate) fn visitor_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_is_one_visitor() {
        let of = |text: &str| visitor_network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
