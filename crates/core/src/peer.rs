//! Peers: other nodes whose executors this node hires, or that hire its executors.

pub mod book;
pub mod invitation;
pub mod scope;
pub mod terms;

use std::{fmt, str::FromStr};

use self::terms::PeerTerms;
use crate::{canonical::sha256_hex, id::AccountId, round::job::words, time::Timestamp};

/// How many hexadecimal digits a peer's identity has: those of an Ed25519 public key.
const ID_DIGITS: usize = 64;
/// How many digits the short form of an identity has.
const SHORT_DIGITS: usize = 8;

/// The identity of a node among its peers: its public key in lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(String);

/// The text is not the identity of a peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not the public key of a node, which has 64 hexadecimal digits")]
pub struct PeerIdError {
    /// The beginning of the text.
    text: String,
}

impl PeerId {
    /// Reads an identity that came from outside. Upper case is accepted, and nothing is trimmed.
    pub fn parse(text: &str) -> Result<Self, PeerIdError> {
        let is_key = text.len() == ID_DIGITS && text.bytes().all(|it| it.is_ascii_hexdigit());
        if is_key {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(PeerIdError { text: text.chars().take(80).collect() })
        }
    }

    /// The identity of a public key.
    pub fn of_key(key: &[u8; 32]) -> Self {
        Self(hex::encode(key))
    }

    /// All digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(..SHORT_DIGITS).unwrap_or(&self.0)
    }

    /// The account of the peer: its jobs here belong to it.
    pub fn account(&self) -> AccountId {
        let digest = sha256_hex(format!("jurat peer {self}").as_bytes());
        let bits = digest.get(..32).and_then(|half| u128::from_str_radix(half, 16).ok());
        AccountId::peer(bits.unwrap_or_default())
    }
}

impl FromStr for PeerId {
    type Err = PeerIdError;

    fn from_str(text: &str) -> Result<Self, PeerIdError> {
        Self::parse(text)
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

words!(
    /// Whether this node deals with a peer.
    PeerStanding {
        Trusted => "trusted",
        /// Nothing is sent to it or accepted from it.
        Blocked => "blocked",
    }
);

/// A known peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub id: PeerId,
    /// The operator's label.
    pub name: Option<String>,
    pub standing: PeerStanding,
    /// Socket addresses at which it may be reached.
    pub direct: Vec<String>,
    /// Addresses of relays through which it may be reached.
    pub relays: Vec<String>,
    /// The network that it belongs to.
    pub network: Option<String>,
    pub terms: PeerTerms,
    pub added_at: Timestamp,
    pub changed_at: Timestamp,
}

impl Peer {
    /// The account of the peer: its jobs here belong to it.
    pub fn account(&self) -> AccountId {
        self.id.account()
    }

    /// Whether jobs of the peer are done here.
    pub fn may_ask(&self) -> bool {
        self.standing == PeerStanding::Trusted && self.terms.works_for
    }

    /// Whether jobs are sent to the peer.
    pub fn may_be_asked(&self) -> bool {
        self.standing == PeerStanding::Trusted && self.terms.hires
    }

    /// The name that people see: the label, or else the first digits of the identity.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.id.short())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn peer(standing: PeerStanding, terms: PeerTerms) -> Peer {
        Peer {
            id: PeerId::of_key(&[0xab; 32]),
            name: None,
            standing,
            direct: Vec::new(),
            relays: Vec::new(),
            network: None,
            terms,
            added_at: Timestamp::from_millis(0),
            changed_at: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn an_identity_is_64_hexadecimal_digits_in_any_case() {
        let id = "ab".repeat(32);
        for text in [id.clone(), id.to_ascii_uppercase()] {
            assert_eq!(PeerId::parse(&text).unwrap().as_str(), id);
        }
        let others = [
            String::new(),
            format!(" {id}"),
            format!("{id}\n"),
            format!("0x{}", &id[2..]),
            id[1..].to_owned(),
            format!("{id}a"),
            "g".repeat(64),
            "é".repeat(32),
        ];
        for text in others {
            assert!(PeerId::parse(&text).is_err(), "{text}");
        }
        assert_eq!(
            PeerId::parse("ann").unwrap_err().to_string(),
            "`ann` is not the public key of a node, which has 64 hexadecimal digits"
        );
        let long = PeerId::parse(&"é".repeat(1_000)).unwrap_err().to_string();
        assert!(long.len() < 300, "{long}");
    }

    #[test]
    fn the_account_of_a_peer_follows_from_its_identity() {
        let id = PeerId::of_key(&[0xab; 32]);
        assert_eq!(id.short(), "abababab");
        // `printf 'jurat peer %s' "$(printf 'ab%.0s' {1..32})" | sha256sum | cut -c 1-32`
        assert_eq!(id.account().as_str(), "acct_peerf2778c221d1cae2c9d7b183458712eb3");
        assert_eq!(AccountId::parse(id.account().as_str()), Ok(id.account()));
        assert_ne!(PeerId::of_key(&[0xac; 32]).account(), id.account());
    }

    #[test]
    fn a_blocked_peer_neither_asks_nor_is_asked() {
        let both = PeerTerms::default();
        let trusted = peer(PeerStanding::Trusted, both.clone());
        assert!(trusted.may_ask() && trusted.may_be_asked());
        let blocked = peer(PeerStanding::Blocked, both.clone());
        assert!(!blocked.may_ask() && !blocked.may_be_asked());
        let works = peer(PeerStanding::Trusted, PeerTerms { hires: false, ..both.clone() });
        assert!(works.may_ask() && !works.may_be_asked());
        let hires = peer(PeerStanding::Trusted, PeerTerms { works_for: false, ..both });
        assert!(!hires.may_ask() && hires.may_be_asked());
    }

    #[test]
    fn a_peer_without_a_label_is_named_by_its_first_digits() {
        let plain = peer(PeerStanding::Trusted, PeerTerms::default());
        assert_eq!(plain.label(), "abababab");
        let named = Peer { name: Some("Lab".to_owned()), ..plain };
        assert_eq!(named.label(), "Lab");
    }

    proptest! {
        #[test]
        fn every_key_reads_back(key: [u8; 32]) {
            let id = PeerId::of_key(&key);
            prop_assert_eq!(id.to_string().parse::<PeerId>(), Ok(id.clone()));
            let upper = id.as_str().to_ascii_uppercase();
            prop_assert_eq!(PeerId::parse(&upper), Ok(id));
        }

        #[test]
        fn what_is_read_is_64_lower_case_digits(text in "\\PC{0,70}") {
            if let Ok(id) = PeerId::parse(&text) {
                prop_assert_eq!(id.as_str().len(), 64);
                prop_assert_eq!(id.as_str(), text.to_ascii_lowercase());
            }
        }
    }
}
