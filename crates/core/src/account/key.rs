//! The form of API keys: `jrt_live_<id>_<secret><checksum>`.
//!
//! The prefix lets secret scanners recognize a key, and the checksum lets them drop false hits
//! offline. The identifier finds the row that holds the hash of the secret.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::caller::Scope;
use crate::{id::AccountId, time::Timestamp};

const PREFIX: &str = "jrt_live_";
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const WORD: usize = 22;
const CHECKSUM: usize = 6;

/// The record of an API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub id: String,
    pub account: AccountId,
    pub name: String,
    pub scopes: BTreeSet<Scope>,
    /// Requests per minute; `None` is the default of the installation.
    pub rate_per_minute: Option<u32>,
    /// Rounds in progress; `None` is the default of the installation.
    pub concurrent_rounds: Option<u32>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// Rounded to the minute.
    pub last_used_at: Option<Timestamp>,
}

/// The prefix in the name of every key that a login created.
pub const LOGIN_NAME: &str = "login ";

impl Key {
    /// Whether a login created the key, so that its owner can log in again for another one.
    pub fn is_of_login(&self) -> bool {
        self.name.starts_with(LOGIN_NAME)
    }

    /// Whether the key is neither revoked nor expired.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// The wanted properties of a new key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    pub name: String,
    /// If absent, the scopes of the key's creator, without `admin`.
    pub scopes: Option<BTreeSet<Scope>>,
    /// If absent, the account of the key's creator.
    pub account: Option<AccountId>,
    pub rate_per_minute: Option<u32>,
    pub concurrent_rounds: Option<u32>,
    pub expires_at: Option<Timestamp>,
}

/// A key in clear text. It is shown once and never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    id: String,
    secret: String,
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ApiKey {
    /// Builds a key from random bits.
    pub fn new(id: u128, secret: [u128; 2]) -> Self {
        let secret = format!("{}{}", base62(secret[0], WORD), base62(secret[1], WORD));
        Self { id: base62(id, WORD), secret }
    }

    /// Reads a key; `None` if its form or its checksum is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, rest) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_formed = text.is_ascii() && id.len() == WORD && rest.len() == 2 * WORD + CHECKSUM;
        if !is_formed {
            return None;
        }
        let (secret, checksum) = rest.split_at(2 * WORD);
        let key = Self { id: id.to_owned(), secret: secret.to_owned() };
        (key.checksum() == checksum).then_some(key)
    }

    /// The public part of the key, which finds its record.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The full text of the key, for its owner.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}_{}{}", self.id, self.secret, self.checksum())
    }

    /// The stored hash. A secret of 256 random bits needs no slow hash.
    pub fn secret_hash(&self) -> [u8; 32] {
        Sha256::digest(self.secret.as_bytes()).into()
    }

    fn checksum(&self) -> String {
        let sum = crc32fast::hash(format!("{}_{}", self.id, self.secret).as_bytes());
        base62(u128::from(sum), CHECKSUM)
    }
}

fn base62(mut number: u128, width: usize) -> String {
    let mut digits = vec![b'0'; width];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[usize::try_from(number % 62).unwrap_or_default()];
        number /= 62;
    }
    digits.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_a_typo_does_not() {
        let key = ApiKey::new(7, [u128::MAX, 1]);
        let text = key.reveal();
        assert_eq!(ApiKey::parse(&text), Some(key));
        let typo = text.replace("_0", "_1");
        assert_eq!(ApiKey::parse(&typo), None);
        assert_eq!(ApiKey::parse("jrt_live_"), None);
        assert_eq!(ApiKey::parse("good_live_é"), None);
    }

    #[test]
    fn debug_output_hides_the_secret() {
        let key = ApiKey::new(7, [8, 9]);
        assert!(!format!("{key:?}").contains(&key.secret));
    }
}
