//! A payment for one request: the price, what the payer signed, and the states of its settlement.

pub mod network;
pub mod record;
pub mod state;

use std::{fmt, str::FromStr};

use crate::{round::job::AgreementTerms, time::Timestamp};

use self::network::PaymentNetwork;

/// How many seconds before its end an authorization is no longer accepted: settling takes a while.
pub const SETTLING_SECONDS: u64 = 60;

/// How much longer than needed an authorization may be valid: until then it can be settled behind
/// our back, and its payment stays on record.
const SPARE_SECONDS: u64 = 24 * 3_600;

/// An address on an EVM chain, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EvmAddress(String);

impl EvmAddress {
    /// The address in lower case, with `0x`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EvmAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        hex_of(text, 20).map(Self).ok_or("must be `0x` and 40 hexadecimal digits")
    }
}

impl fmt::Display for EvmAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `0x` and exactly so many bytes as hexadecimal digits, in lower case.
pub fn hex_of(text: &str, bytes: usize) -> Option<String> {
    let digits = text.strip_prefix("0x")?;
    let is_hex = digits.len() == 2 * bytes && digits.bytes().all(|it| it.is_ascii_hexdigit());
    is_hex.then(|| text.to_ascii_lowercase())
}

/// The transfer that a payer signed (EIP-3009). Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    pub from: EvmAddress,
    pub to: EvmAddress,
    pub value: u128,
    pub valid_after: u64,
    pub valid_before: u64,
    /// 32 bytes as `0x` and lower-case hexadecimal digits; the chain accepts each only once.
    pub nonce: String,
}

/// What the payer says it pays: the part of its message besides the authorization. Version 1 of the
/// protocol names neither the asset nor the recipient nor the amount there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedTerms {
    pub scheme: String,
    pub network: String,
    pub asset: Option<String>,
    pub pay_to: Option<String>,
    pub amount: Option<String>,
}

/// The demand for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentDemand {
    pub network: PaymentNetwork,
    pub pay_to: EvmAddress,
    /// In base units of the token.
    pub amount: u64,
    /// How long the work may take, in seconds.
    pub work_seconds: u64,
}

impl PaymentDemand {
    /// How long an authorization must be valid from now on, in seconds.
    pub const fn max_timeout_seconds(&self) -> u64 {
        // The clocks of payers differ, and a request takes a moment to arrive.
        self.work_seconds.saturating_add(2 * SETTLING_SECONDS)
    }

    /// Compares what a payer signed with the demand, apart from its time window.
    pub fn check_terms(
        &self,
        accepted: &AcceptedTerms,
        signed: &Authorization,
    ) -> Result<(), PaymentFault> {
        if accepted.scheme != SCHEME {
            return Err(PaymentFault::Scheme);
        }
        if !self.network.is_named(&accepted.network) {
            return Err(PaymentFault::Network);
        }
        let is_other = |given: &Option<String>, ours: &str| {
            given.as_ref().is_some_and(|given| !given.eq_ignore_ascii_case(ours))
        };
        if is_other(&accepted.asset, self.network.asset()) {
            return Err(PaymentFault::Asset);
        }
        if is_other(&accepted.pay_to, self.pay_to.as_str()) || signed.to != self.pay_to {
            return Err(PaymentFault::Recipient);
        }
        let amount = u128::from(self.amount);
        if signed.value < amount {
            return Err(PaymentFault::Underpaid);
        }
        if amount < signed.value || is_other(&accepted.amount, &amount.to_string()) {
            return Err(PaymentFault::Overpaid);
        }
        Ok(())
    }

    /// Checks that the authorization is valid now, and stays so until the payment is settled.
    pub fn check_time(&self, signed: &Authorization, now: Timestamp) -> Result<(), PaymentFault> {
        if seconds(now) < signed.valid_after {
            return Err(PaymentFault::NotYetValid);
        }
        let latest =
            seconds(now).saturating_add(self.max_timeout_seconds()).saturating_add(SPARE_SECONDS);
        if latest < signed.valid_before {
            return Err(PaymentFault::TooLong);
        }
        self.check_end(signed.valid_before, now)
    }

    /// Checks that an authorization that ends then stays valid until the payment is settled.
    pub fn check_end(&self, valid_before: u64, now: Timestamp) -> Result<(), PaymentFault> {
        let now = seconds(now);
        if valid_before <= now {
            return Err(PaymentFault::Expired);
        }
        let needed = now.saturating_add(self.work_seconds).saturating_add(SETTLING_SECONDS);
        if valid_before < needed { Err(PaymentFault::TooShort) } else { Ok(()) }
    }
}

/// Whole seconds since 1970, as authorizations count them.
pub fn seconds(time: Timestamp) -> u64 {
    u64::try_from(time.millis().div_euclid(1_000)).unwrap_or_default()
}

/// The one payment scheme: a transfer of exactly the price.
pub const SCHEME: &str = "exact";

/// Why a payment is not accepted. The payer may sign another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PaymentFault {
    #[error("the scheme of the payment must be `exact`")]
    Scheme,
    #[error("the payment is for another network")]
    Network,
    #[error("the payment is in another token")]
    Asset,
    #[error("the payment is for another recipient")]
    Recipient,
    #[error("the payment is lower than the price")]
    Underpaid,
    #[error("the payment is not exactly the price")]
    Overpaid,
    #[error("the authorization is not valid yet")]
    NotYetValid,
    #[error("the authorization has expired")]
    Expired,
    #[error("the authorization ends before the work can be done and settled")]
    TooShort,
    #[error(
        "the authorization is valid for too long; let it end at most a day after `maxTimeoutSeconds`"
    )]
    TooLong,
    #[error("the authorization was used for another purchase")]
    Used,
    #[error("the facilitator does not accept the payment")]
    Refused,
    #[error("the payment could not be settled, and nothing was paid")]
    Unsettled,
}

/// The price of a request: each replica, and each spare that the request asks for, costs the same.
pub fn price(per_replica: u64, terms: &AgreementTerms) -> u64 {
    let seats = u64::from(terms.replicas) + u64::from(terms.spares.unwrap_or_default());
    per_replica.saturating_mul(seats)
}

/// Whether a text is a payment identifier of the extension: 16 to 128 letters, digits, hyphens and
/// underscores.
pub fn is_identifier(text: &str) -> bool {
    (16..=128).contains(&text.len())
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_790_000_000;

    fn demand() -> PaymentDemand {
        PaymentDemand {
            network: PaymentNetwork::BaseSepolia,
            pay_to: address('b'),
            amount: 3_000,
            work_seconds: 30,
        }
    }

    fn address(digit: char) -> EvmAddress {
        format!("0x{}", digit.to_string().repeat(40)).parse().unwrap()
    }

    fn signed() -> Authorization {
        Authorization {
            from: address('a'),
            to: address('b'),
            value: 3_000,
            valid_after: 0,
            valid_before: NOW.unsigned_abs() + 150,
            nonce: format!("0x{}", "1".repeat(64)),
        }
    }

    fn accepted() -> AcceptedTerms {
        AcceptedTerms {
            scheme: "exact".to_owned(),
            network: "eip155:84532".to_owned(),
            asset: Some("0x036CBD53842c5426634e7929541eC2318f3dCF7e".to_owned()),
            pay_to: Some(address('b').to_string().to_ascii_uppercase().replace('X', "x")),
            amount: Some("3000".to_owned()),
        }
    }

    #[test]
    fn a_payment_must_match_the_demand_in_every_part() {
        type Case = (fn(&mut AcceptedTerms, &mut Authorization), Result<(), PaymentFault>);
        let cases: [Case; 12] = [
            (|_, _| {}, Ok(())),
            (|said, _| said.network = "base-sepolia".to_owned(), Ok(())),
            (|said, _| said.scheme = "upto".to_owned(), Err(PaymentFault::Scheme)),
            (|said, _| said.network = "eip155:8453".to_owned(), Err(PaymentFault::Network)),
            (|said, _| said.asset = Some(format!("0x{:040}", 1)), Err(PaymentFault::Asset)),
            (|said, _| said.pay_to = Some(format!("0x{:040}", 1)), Err(PaymentFault::Recipient)),
            (|_, signed| signed.to = address('c'), Err(PaymentFault::Recipient)),
            (|_, signed| signed.value = 2_999, Err(PaymentFault::Underpaid)),
            (|_, signed| signed.value = 3_001, Err(PaymentFault::Overpaid)),
            (|_, signed| signed.value = u128::MAX, Err(PaymentFault::Overpaid)),
            (|said, _| said.amount = Some("1".to_owned()), Err(PaymentFault::Overpaid)),
            (|said, _| (said.asset, said.pay_to, said.amount) = (None, None, None), Ok(())),
        ];
        for (index, (change, expected)) in cases.into_iter().enumerate() {
            let (mut said, mut signed) = (accepted(), signed());
            change(&mut said, &mut signed);
            assert_eq!(demand().check_terms(&said, &signed), expected, "case {index}");
        }
    }

    #[test]
    fn a_payment_must_be_valid_until_it_is_settled() {
        let now = NOW.unsigned_abs();
        let check = |valid_after, valid_before| {
            let signed = Authorization { valid_after, valid_before, ..signed() };
            demand().check_time(&signed, Timestamp::from_millis(NOW * 1_000 + 999))
        };
        assert_eq!(check(now, now + 90), Ok(()));
        assert_eq!(check(now + 1, now + 90), Err(PaymentFault::NotYetValid));
        assert_eq!(check(0, now + 89), Err(PaymentFault::TooShort));
        assert_eq!(check(0, now), Err(PaymentFault::Expired));
        let latest = now + demand().max_timeout_seconds() + 86_400;
        assert_eq!(check(0, latest), Ok(()));
        assert_eq!(check(0, latest + 1), Err(PaymentFault::TooLong));
        assert_eq!(check(0, u64::MAX), Err(PaymentFault::TooLong));
        assert!(90 <= demand().max_timeout_seconds());
    }

    #[test]
    fn spares_cost_like_replicas_if_they_are_asked_for() {
        let mut terms = AgreementTerms::plain(3, Vec::new());
        assert_eq!(price(1_000, &terms), 3_000);
        terms.spares = Some(2);
        assert_eq!(price(1_000, &terms), 5_000);
        terms.spares = None;
        assert_eq!(price(1_000, &terms), 3_000);
        assert_eq!(price(u64::MAX, &terms), u64::MAX);
    }

    #[test]
    fn addresses_and_identifiers_are_read_strictly() {
        assert!("0x12".parse::<EvmAddress>().is_err());
        assert!("a".repeat(42).parse::<EvmAddress>().is_err());
        assert_eq!(address('A'), address('a'));
        assert!(is_identifier("pay_7d5d747be160e280504c099d984bcfe0"));
        assert!(!is_identifier("too-short"));
        assert!(!is_identifier(&"x".repeat(129)));
        assert!(!is_identifier("sixteen letters!"));
    }
}
