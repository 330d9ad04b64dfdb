//! Canonical JSON (RFC 8785) and digests over it.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The canonical bytes of a JSON value.
pub fn canonical(value: &Value) -> Vec<u8> {
    // A `Value` holds no maps with other keys than strings and no non-finite numbers,
    // which are the only ways to fail; an empty text would then still not equal any value's.
    serde_json_canonicalizer::to_vec(value).unwrap_or_default()
}

/// `sha256:` and the hex digest of the bytes.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

/// `sha256:` and the hex digest of the value's canonical bytes.
pub fn digest_json(value: &Value) -> String {
    digest(&canonical(value))
}

/// The bare lower-case hex digest of the bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_floats_and_key_order_do_not_matter() {
        let left = digest_json(&json!({"b": 1.0, "a": [true, null]}));
        let right = digest_json(&json!({"a": [true, null], "b": 1}));
        assert_eq!(left, right);
        assert_eq!(canonical(&json!({"b": 1.0, "a": "é"})), "{\"a\":\"é\",\"b\":1}".as_bytes());
    }
}
