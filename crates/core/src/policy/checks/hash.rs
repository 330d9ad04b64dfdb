//! The check `hash`: the SHA-256 of a text, or of any value as canonical JSON.

use serde_json::Value;

use super::{Unmet, kind_of, place, read::Members, subject::pointer_work};
use crate::{
    canonical::{canonical, sha256_hex},
    policy::{
        cost::size_within,
        params::{BindError, short},
    },
    reason,
    schema::Work,
};

#[derive(Debug, PartialEq)]
pub(super) struct Hash {
    of: Of,
    wanted: Wanted,
}

/// Which bytes are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// The UTF-8 bytes of a text, the canonical JSON of all else.
    Value,
    Text,
    Canonical,
}

#[derive(Debug, PartialEq)]
enum Wanted {
    /// Bare lower-case hex.
    Literal(String),
    /// A JSON Pointer to where the output says it.
    At(String),
}

impl Hash {
    pub(super) fn read(members: &Members<'_>) -> Result<Self, BindError> {
        let terms = members.terms("hash", &["equals", "equals_path", "of"])?;
        let of =
            terms.optional("of", "\"text\" or \"canonical\"", |value| match value.as_str()? {
                "text" => Some(Of::Text),
                "canonical" => Some(Of::Canonical),
                _ => None,
            })?;
        let digest = "a SHA-256 in hex, with or without the prefix sha256:";
        let literal =
            terms.optional("equals", digest, |value| value.as_str().and_then(bare_digest))?;
        let wanted = match (literal, terms.pointer("equals_path")?) {
            (Some(literal), None) => Wanted::Literal(literal),
            (None, Some(pointer)) => Wanted::At(pointer),
            _ => {
                let problem = "needs exactly one of: equals, equals_path";
                return Err(terms.place().refuse(problem));
            }
        };
        Ok(Self { of: of.unwrap_or(Of::Value), wanted })
    }

    pub(super) fn work(&self, found: &Value, most: u64) -> Work {
        let followed = match &self.wanted {
            Wanted::Literal(_) => 0,
            Wanted::At(pointer) => pointer_work(pointer),
        };
        let applications = size_within(found, most).saturating_add(followed);
        Work { applications, ..Work::default() }
    }

    pub(super) fn judge(&self, found: &Value, output: &Value, at: &str) -> Result<(), Unmet> {
        let hashed = match (self.of, found) {
            (Of::Value | Of::Text, Value::String(text)) => sha256_hex(text.as_bytes()),
            (Of::Value | Of::Canonical, value) => sha256_hex(&canonical(value)),
            (Of::Text, other) => {
                let why = format!("{at} is {}, not a string.", kind_of(other));
                return Err(Unmet::unusable(why));
            }
        };
        let wanted = match &self.wanted {
            Wanted::Literal(wanted) => wanted.clone(),
            Wanted::At(pointer) => declared(output, pointer)?,
        };
        if hashed == wanted {
            return Ok(());
        }
        // The first digits tell two hashes apart.
        let (hashed, wanted) = (&hashed[..12], &wanted[..12]);
        let why = format!("{at} has the SHA-256 {hashed}…; it must be {wanted}….");
        Err(Unmet::new(reason::CHECK_HASH_DIFFERS, why))
    }
}

/// The digest that the output itself declares.
fn declared(output: &Value, pointer: &str) -> Result<String, Unmet> {
    let at = place(pointer);
    match output.pointer(pointer) {
        Some(Value::String(text)) => bare_digest(text).ok_or_else(|| {
            Unmet::unusable(format!("{at} is \"{}\", which is not a SHA-256.", short(text, 40)))
        }),
        Some(other) => Err(Unmet::unusable(format!("{at} is {}, not a string.", kind_of(other)))),
        None => Err(Unmet::unusable(format!("{at} is missing."))),
    }
}

/// Sixty-four hex digits in lower case, if the text is a SHA-256.
fn bare_digest(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let bare = lower.strip_prefix("sha256:").unwrap_or(&lower);
    let is_digest = bare.len() == 64 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| bare.to_owned())
}
