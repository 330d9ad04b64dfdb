//! `verifier_result_hash`: the digest that binds a verdict to its candidate and policy.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::canonical;

/// The fields under the hash; `policy_hash` enters as it was received.
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

/// What there is to say of a hash that an executor sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashCheck {
    Right,
    /// Left out, blank, or not a digest at all.
    Missing,
    /// A digest, but not of this result.
    Wrong,
}

/// `sha256:` and the digest of the fields as one compact object with sorted keys.
pub fn result_hash(fields: &ResultFields<'_>) -> String {
    digest(fields, Value::from(fields.score))
}

/// Compares a claimed hash; a bare digest will do, and a whole score may be written either way.
pub fn check_result_hash(claimed: &str, fields: &ResultFields<'_>) -> HashCheck {
    let claimed = claimed.trim().to_ascii_lowercase();
    let bare = claimed.strip_prefix("sha256:").unwrap_or(&claimed);
    if bare.len() != 64 || !bare.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return HashCheck::Missing;
    }
    let is_right = |digest: &str| digest.strip_prefix("sha256:") == Some(bare);
    if is_right(&result_hash(fields)) {
        return HashCheck::Right;
    }
    // RFC 8785 writes a whole float without its fraction, and so do many JSON writers.
    let written = canonical::canonical(&Value::from(fields.score));
    match serde_json::from_slice::<Value>(&written) {
        Ok(score) if is_right(&digest(fields, score.clone())) => HashCheck::Right,
        _ => HashCheck::Wrong,
    }
}

/// Not canonical JSON: numbers stay as `serde_json` writes them, so `1.0` keeps its fraction.
fn digest(fields: &ResultFields<'_>, score: Value) -> String {
    let object: BTreeMap<&str, Value> = BTreeMap::from([
        ("candidate_id", Value::from(fields.candidate_id)),
        ("execution_id", Value::from(fields.execution_id)),
        ("model_id", Value::from(fields.model_id)),
        ("passed", Value::from(fields.passed)),
        ("policy_hash", Value::from(fields.policy_hash)),
        ("provider_family", Value::from(fields.provider_family)),
        ("reason_codes", Value::from(fields.reason_codes)),
        ("score", score),
    ]);
    // Text keys and JSON values always serialize.
    canonical::digest(&serde_json::to_vec(&object).unwrap_or_default())
}
