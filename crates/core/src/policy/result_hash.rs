//! `verifier_result_hash`: the digest that binds a verdict to its candidate and policy.

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::canonical;

/// The hashed fields; `policy_hash` is used as it was received.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResultFields<'a> {
    pub candidate_id: &'a str,
    pub execution_id: &'a str,
    pub passed: bool,
    pub score: f64,
    pub reason_codes: &'a [u16],
    pub provider_family: &'a str,
    pub model_id: &'a str,
    pub policy_hash: &'a str,
}

/// The result of checking a hash that an executor sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashCheck {
    Right,
    /// Absent, blank, or not a digest.
    Missing,
    /// A digest, but not of this result.
    Wrong,
}

/// Returns `sha256:` and the digest of the fields as one compact object with sorted keys.
pub fn result_hash(fields: &ResultFields<'_>) -> String {
    format!("sha256:{}", digest(fields, HashedScore::AsWritten))
}

/// Compares a claimed hash. A bare digest is accepted, and a whole score may be written either way.
pub fn check_result_hash(claimed: &str, fields: &ResultFields<'_>) -> HashCheck {
    let claimed = claimed.trim();
    let bare = claimed.strip_prefix("sha256:").unwrap_or(claimed);
    if bare.len() != 64 || !bare.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return HashCheck::Missing;
    }
    let is_right = |score| digest(fields, score).eq_ignore_ascii_case(bare);
    // RFC 8785 writes a whole float without its fraction, and so do many JSON writers.
    let whole = [0, 1].into_iter().find(|whole| f64::from(*whole).total_cmp(&fields.score).is_eq());
    if is_right(HashedScore::AsWritten)
        || whole.is_some_and(|whole| is_right(HashedScore::Whole(whole)))
    {
        HashCheck::Right
    } else {
        HashCheck::Wrong
    }
}

/// How the score is written in the hashed text.
#[derive(Clone, Copy)]
enum HashedScore {
    /// As `serde_json` writes it: `1.0` keeps its fraction.
    AsWritten,
    /// Without a fraction, which only 0 and 1 can be written as.
    Whole(u8),
}

/// The bare digest. The text is not canonical JSON, because numbers stay as `serde_json` writes
/// them.
fn digest(fields: &ResultFields<'_>, score: HashedScore) -> String {
    // Text keys and JSON values always serialize.
    let text = serde_json::to_vec(&HashedFields(fields, score)).unwrap_or_default();
    canonical::sha256_hex(&text)
}

/// The hashed object, with sorted keys.
struct HashedFields<'a>(&'a ResultFields<'a>, HashedScore);

impl Serialize for HashedFields<'_> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        let Self(fields, score) = self;
        let mut object = writer.serialize_map(Some(8))?;
        object.serialize_entry("candidate_id", fields.candidate_id)?;
        object.serialize_entry("execution_id", fields.execution_id)?;
        object.serialize_entry("model_id", fields.model_id)?;
        object.serialize_entry("passed", &fields.passed)?;
        object.serialize_entry("policy_hash", fields.policy_hash)?;
        object.serialize_entry("provider_family", fields.provider_family)?;
        object.serialize_entry("reason_codes", fields.reason_codes)?;
        match score {
            HashedScore::AsWritten => object.serialize_entry("score", &fields.score)?,
            HashedScore::Whole(whole) => object.serialize_entry("score", whole)?,
        }
        object.end()
    }
}
