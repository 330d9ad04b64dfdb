//! Typed, prefixed identifiers that sort by creation time.

use std::fmt;

use crate::time::Timestamp;

/// The text does not have the form of the identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an identifier of the form `{prefix}_…`")]
pub struct IdError {
    text: String,
    prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Builds an identifier from a time and 80 of the given random bits.
            pub fn new(at: Timestamp, bits: u128) -> Self {
                let ulid = ulid::Ulid::from_parts(at.millis().unsigned_abs(), bits);
                let mut buffer = [0; ulid::ULID_LEN];
                Self(format!(concat!($prefix, "_{}"), ulid.array_to_str(&mut buffer)))
            }

            /// Reads an identifier that came from outside.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                let rest = text.strip_prefix(concat!($prefix, "_"));
                let known = rest.is_some_and(|rest| {
                    !rest.is_empty()
                        && rest.len() <= 40
                        && rest.bytes().all(|b| b.is_ascii_alphanumeric())
                });
                if known {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(IdError { text: text.chars().take(80).collect(), prefix: $prefix })
                }
            }

            /// The text of the identifier, with its prefix.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// One pass of a job.
    RoundId, "rnd"
);
id!(
    /// A tenant: a user or a team.
    AccountId, "acct"
);
id!(
    /// A payment for one request. Its random part is secret: whoever knows it may fetch the reply.
    PaymentId, "pay"
);
id!(
    /// A running server; every start has a new id.
    NodeId, "node"
);
id!(
    /// A webhook: an address that receives the events of an account.
    WebhookId, "whk"
);

/// The start of the milliseconds in the number of a round: the beginning of 2020.
const NUMBERS_FROM_MS: u64 = 1_577_836_800_000;
/// How many random bits the number of a round has.
const NUMBER_BITS: u32 = 12;
/// The first whole number that not every JSON reader keeps exact.
const NUMBERS_END: u64 = 1 << 53;

impl RoundId {
    /// When the round was opened, in milliseconds since 1970; `None` for an id of another form.
    pub fn millis(&self) -> Option<u64> {
        self.ulid().map(|ulid| ulid.timestamp_ms())
    }

    /// A whole number for clients that know only numbers. It sorts by time, and two rounds of the
    /// same millisecond rarely have the same one.
    pub fn number(&self) -> Option<u64> {
        let ulid = self.ulid()?;
        let millis = ulid.timestamp_ms().checked_sub(NUMBERS_FROM_MS)?;
        let random = u64::try_from(ulid.random() & ((1 << NUMBER_BITS) - 1)).ok()?;
        let number = millis.checked_mul(1 << NUMBER_BITS)? | random;
        (number < NUMBERS_END).then_some(number)
    }

    /// The millisecond in which the rounds with this number were opened.
    pub fn opened_at(number: u64) -> Option<Timestamp> {
        let millis = (number >> NUMBER_BITS) + NUMBERS_FROM_MS;
        i64::try_from(millis).ok().filter(|_| number < NUMBERS_END).map(Timestamp::from_millis)
    }

    fn ulid(&self) -> Option<ulid::Ulid> {
        ulid::Ulid::from_string(self.0.split_once('_')?.1).ok()
    }
}

/// Builds a version 7 UUID from a time and random bits, for objects in the registry.
pub fn uuid(at: Timestamp, bits: u128) -> String {
    const VERSION: u128 = 7 << 76;
    const VARIANT: u128 = 2 << 62;
    // 48 bits of time, 12 random bits after the version, 62 after the variant.
    let time = u128::from(at.millis().unsigned_abs() & 0xffff_ffff_ffff) << 80;
    let number = time | VERSION | (bits >> 116 << 64) | VARIANT | (bits & ((1 << 62) - 1));
    let hex = format!("{number:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

impl AccountId {
    /// The account of the installation's operator, which exists from the first start.
    pub fn admin() -> Self {
        Self("acct_admin".to_owned())
    }

    /// The account of a network address, derived from a digest of the address.
    pub fn anonymous(bits: u128) -> Self {
        Self(format!("acct_anon{bits:032x}"))
    }

    /// The account of a payer without a key, derived from a digest of the payer's address.
    pub fn payer(bits: u128) -> Self {
        Self(format!("acct_payer{bits:032x}"))
    }

    /// The account of a peer, derived from a digest of the peer's identity.
    pub fn peer(bits: u128) -> Self {
        Self(format!("acct_peer{bits:032x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_sort_by_time_and_read_back() {
        let early = RoundId::new(Timestamp::from_millis(1_000), u128::MAX);
        let late = RoundId::new(Timestamp::from_millis(2_000), 0);
        assert!(early < late);
        assert_eq!(RoundId::parse(early.as_str()).unwrap(), early);
    }

    #[test]
    fn the_number_of_a_round_sorts_by_time_and_leads_back_to_its_millisecond() {
        let opened_at = Timestamp::from_millis(1_790_000_000_123);
        let [first, last] = [0, u128::MAX].map(|bits| RoundId::new(opened_at, bits));
        let later = RoundId::new(opened_at.plus_millis(1), 0).number().unwrap();
        let [first, last] = [first, last].map(|id| id.number().unwrap());
        assert!(first < last && last < later && later < NUMBERS_END);
        assert_eq!(RoundId::opened_at(first), Some(opened_at));
        assert_eq!(RoundId::opened_at(last), Some(opened_at));
        assert_eq!(RoundId::opened_at(NUMBERS_END), None);
        // An id that this program did not make has none.
        assert_eq!(RoundId::parse("rnd_short").unwrap().number(), None);
        assert_eq!(RoundId::new(Timestamp::from_millis(1_000), 0).number(), None);
    }

    #[test]
    fn uuids_sort_by_time_and_carry_their_version() {
        let early = uuid(Timestamp::from_millis(1_700_000_000_000), u128::MAX);
        let late = uuid(Timestamp::from_millis(1_700_000_000_001), 0);
        assert!(early < late);
        assert_eq!(early, "018bcfe5-6800-7fff-bfff-ffffffffffff");
        assert_eq!(late, "018bcfe5-6801-7000-8000-000000000000");
    }

    #[test]
    fn a_foreign_prefix_is_refused() {
        let error = RoundId::parse("acct_admin").unwrap_err();
        assert_eq!(error.to_string(), "`acct_admin` is not an identifier of the form `rnd_…`");
        assert!(RoundId::parse("rnd_").is_err());
        assert!(RoundId::parse("rnd_a'b").is_err());
    }
}
