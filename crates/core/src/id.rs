//! Typed, prefixed identifiers that sort by the time they were made.

use std::fmt;

use crate::time::Timestamp;

/// An identifier whose text does not have the form of its type.
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
            /// Makes an identifier from a time and 80 of the given random bits.
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
    /// One walk of a job.
    RoundId, "rnd"
);
id!(
    /// A tenant: a user or a team.
    AccountId, "acct"
);
id!(
    /// A running server, new with every start.
    NodeId, "node"
);

impl AccountId {
    /// The account of the installation's operator, there from the first start.
    pub fn admin() -> Self {
        Self("acct_admin".to_owned())
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
    fn a_foreign_prefix_is_refused() {
        let error = RoundId::parse("acct_admin").unwrap_err();
        assert_eq!(error.to_string(), "`acct_admin` is not an identifier of the form `rnd_…`");
        assert!(RoundId::parse("rnd_").is_err());
        assert!(RoundId::parse("rnd_a'b").is_err());
    }
}
