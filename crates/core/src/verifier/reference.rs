//! Parses the names of verifiers: `id`, `name`, `@owner/name` or `system:name`, each with an
//! optional `@version`.

use std::fmt;

use super::is_name;
use crate::account::{self, AccountName};

/// The prefix of platform-managed verifiers.
pub const SYSTEM_PREFIX: &str = "system:";

/// The verifier that a reference selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifierSelector {
    /// A UUID in lower case.
    Id(String),
    /// The name of one of the caller's own verifiers.
    Name(String),
    /// A verifier of another owner, or one of the caller's own by its full name.
    Of { owner: AccountName, name: String },
    /// The name after `system:`.
    System(String),
}

/// A verifier, with the pinned version if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierRef {
    pub which: VerifierSelector,
    pub version: Option<u32>,
}

/// Why a text is not a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifierRefError {
    #[error(
        "must be a verifier id, a name, `@owner/name` or `system:` and a name; append `@` and a version to pin one"
    )]
    Form,
    #[error("pins a version with `@`, which must be a whole number, 1 or more")]
    Version,
}

impl VerifierRef {
    /// Parses a reference.
    pub fn parse(text: &str) -> Result<Self, VerifierRefError> {
        let (name, version) = match text.rsplit_once('@') {
            // The `@` before an owner is not a version.
            None | Some(("", _)) => (text, None),
            Some((name, version)) => (name, Some(pinned(version)?)),
        };
        let which = if let Some((owner, name)) = account::owned(name) {
            is_name(name).then(|| VerifierSelector::Of { owner, name: name.to_owned() })
        } else if let Some(name) = name.strip_prefix(SYSTEM_PREFIX) {
            is_name(name).then(|| VerifierSelector::System(name.to_owned()))
        } else if is_uuid(name) {
            Some(VerifierSelector::Id(name.to_ascii_lowercase()))
        } else {
            is_name(name).then(|| VerifierSelector::Name(name.to_owned()))
        };
        which.map(|which| Self { which, version }).ok_or(VerifierRefError::Form)
    }
}

impl fmt::Display for VerifierRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.which {
            VerifierSelector::Id(text) | VerifierSelector::Name(text) => f.write_str(text)?,
            VerifierSelector::Of { owner, name } => write!(f, "@{}/{name}", owner.as_str())?,
            VerifierSelector::System(name) => write!(f, "{SYSTEM_PREFIX}{name}")?,
        }
        match self.version {
            Some(version) => write!(f, "@{version}"),
            None => Ok(()),
        }
    }
}

fn pinned(text: &str) -> Result<u32, VerifierRefError> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    let version = if is_plain { text.parse().ok() } else { None };
    version.ok_or(VerifierRefError::Version)
}

pub(crate) fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0198c1f0-0000-7000-8000-000000000001";

    #[test]
    fn references_name_an_id_a_name_or_a_system_verifier_and_may_pin_a_version() {
        let read = |text: &str| VerifierRef::parse(text).map(|it| (it.which, it.version));
        assert_eq!(read(ID), Ok((VerifierSelector::Id(ID.to_owned()), None)));
        assert_eq!(
            read(&format!("{}@2", ID.to_uppercase())),
            Ok((VerifierSelector::Id(ID.to_owned()), Some(2)))
        );
        assert_eq!(
            read("claims-cite@7"),
            Ok((VerifierSelector::Name("claims-cite".to_owned()), Some(7)))
        );
        assert_eq!(read("system:qa"), Ok((VerifierSelector::System("qa".to_owned()), None)));
        let ann = AccountName::Handle("ann".to_owned());
        assert_eq!(
            read("@ann/cites@2"),
            Ok((VerifierSelector::Of { owner: ann, name: "cites".to_owned() }, Some(2)))
        );
        for text in [
            ID,
            "claims-cite@7",
            "system:qa",
            "system:qa@1",
            "@ann/cites",
            "@ann/cites@2",
            "@acct_admin/cites",
        ] {
            assert_eq!(VerifierRef::parse(text).map(|it| it.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn an_invalid_reference_is_refused() {
        for text in [
            "", "Name", "a b", "system:", "system:A", "@1", "naïve", "@ann", "@an/x", "@ann/X",
            "ann/x",
        ] {
            assert_eq!(VerifierRef::parse(text), Err(VerifierRefError::Form), "{text}");
        }
        for text in ["a@", "a@0", "a@01", "a@-1", "a@+1", "a@x", "a@4294967296"] {
            assert_eq!(VerifierRef::parse(text), Err(VerifierRefError::Version), "{text}");
        }
    }
}
