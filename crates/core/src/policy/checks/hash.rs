//! The check `hash`: the SHA-256 of a text, or of any value as canonical JSON.

use jurat_limits::{quote::short, size::size_within};
use serde_json::Value;

use super::{CheckFailure, kind_of, part_name, read::CheckMembers, subject::pointer_work};
use crate::{
    canonical::{canonical, sha256_hex},
    policy::params::BindError,
    reason,
    schema::WorkEstimate,
};

#[derive(Debug, PartialEq)]
pub(super) struct DigestCheck {
    of: DigestSource,
    wanted: ExpectedDigest,
}

/// The bytes to hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DigestSource {
    /// The UTF-8 bytes of a text, or the canonical JSON of any other value.
    Value,
    Text,
    Canonical,
}

#[derive(Debug, PartialEq)]
enum ExpectedDigest {
    /// Bare lower-case hex.
    Literal(String),
    /// A JSON Pointer to the output member that declares it.
    At(String),
}

impl DigestCheck {
    pub(super) fn read(members: &CheckMembers<'_>) -> Result<Self, BindError> {
        let terms = members.terms("hash", &["equals", "equals_path", "of"])?;
        let of =
            terms.optional("of", "\"text\" or \"canonical\"", |value| match value.as_str()? {
                "text" => Some(DigestSource::Text),
                "canonical" => Some(DigestSource::Canonical),
                _ => None,
            })?;
        let digest = "a SHA-256 in hex, with or without the prefix sha256:";
        let literal =
            terms.optional("equals", digest, |value| value.as_str().and_then(bare_digest))?;
        let wanted = match (literal, terms.pointer("equals_path")?) {
            (Some(literal), None) => ExpectedDigest::Literal(literal),
            (None, Some(pointer)) => ExpectedDigest::At(pointer),
            _ => {
                let problem = "needs exactly one of: equals, equals_path";
                return Err(terms.path().refuse(problem));
            }
        };
        Ok(Self { of: of.unwrap_or(DigestSource::Value), wanted })
    }

    pub(super) fn work(&self, found: &Value, most: u64) -> WorkEstimate {
        let followed = match &self.wanted {
            ExpectedDigest::Literal(_) => 0,
            ExpectedDigest::At(pointer) => pointer_work(pointer),
        };
        let applications = size_within(found, most).saturating_add(followed);
        WorkEstimate { applications, ..WorkEstimate::default() }
    }

    pub(super) fn judge(
        &self,
        found: &Value,
        output: &Value,
        at: &str,
    ) -> Result<(), CheckFailure> {
        let hashed = match (self.of, found) {
            (DigestSource::Value | DigestSource::Text, Value::String(text)) => {
                sha256_hex(text.as_bytes())
            }
            (DigestSource::Value | DigestSource::Canonical, value) => sha256_hex(&canonical(value)),
            (DigestSource::Text, other) => {
                let why = format!("{at} is {}, not a string.", kind_of(other));
                return Err(CheckFailure::unusable(why));
            }
        };
        let wanted = match &self.wanted {
            ExpectedDigest::Literal(wanted) => wanted.clone(),
            ExpectedDigest::At(pointer) => declared(output, pointer)?,
        };
        if hashed == wanted {
            return Ok(());
        }
        // The first digits are enough to tell two hashes apart.
        let (hashed, wanted) = (&hashed[..12], &wanted[..12]);
        let why = format!("{at} has the SHA-256 {hashed}…; it must be {wanted}….");
        Err(CheckFailure::new(reason::CHECK_HASH_DIFFERS, why))
    }
}

/// The digest that the output itself declares.
fn declared(output: &Value, pointer: &str) -> Result<String, CheckFailure> {
    let at = part_name(pointer);
    match output.pointer(pointer) {
        Some(Value::String(text)) => bare_digest(text).ok_or_else(|| {
            CheckFailure::unusable(format!(
                "{at} is \"{}\", which is not a SHA-256.",
                short(text, 40)
            ))
        }),
        Some(other) => {
            Err(CheckFailure::unusable(format!("{at} is {}, not a string.", kind_of(other))))
        }
        None => Err(CheckFailure::unusable(format!("{at} is missing."))),
    }
}

/// Returns 64 hex digits in lower case if the text is a SHA-256.
fn bare_digest(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let bare = lower.strip_prefix("sha256:").unwrap_or(&lower);
    let is_digest = bare.len() == 64 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| bare.to_owned())
}
