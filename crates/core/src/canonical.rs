//! Canonical JSON (RFC 8785) and digests over it.

use std::io;

use serde::Serialize;
use serde_json::{Value, ser::Formatter};
use sha2::{Digest as _, Sha256};

/// The canonical bytes of a JSON value.
pub fn canonical(value: &Value) -> Vec<u8> {
    if is_plain(value) {
        return in_order(value);
    }
    // Only non-string keys and non-finite numbers can fail, and a `Value` has neither. If it ever
    // failed, an empty text would still not equal the text of any value.
    serde_json_canonicalizer::to_vec(value).unwrap_or_default()
}

/// The canonical bytes of a document whose members already are in canonical order.
///
/// Canonical JSON differs from the output of `serde_json` only in the order of members and the form
/// of floats. With the members in order there is nothing to sort, and writing takes a third of the
/// time.
pub(crate) fn in_order(document: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, Es6Numbers);
    // Writing to memory cannot fail, and the documents hold finite numbers only.
    match document.serialize(&mut writer) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

/// Writes floats as RFC 8785 requires: like ECMAScript, `1` instead of `1.0`.
struct Es6Numbers;

impl Formatter for Es6Numbers {
    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let mut buffer = ryu_js::Buffer::new();
        writer.write_all(buffer.format_finite(value).as_bytes())
    }
}

/// Whether the byte order of the names is also their UTF-16 order, and every integer is small
/// enough to equal its float.
fn is_plain(value: &Value) -> bool {
    const EXACT: u64 = 1 << 53;
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(whole), _) => whole <= EXACT,
            (None, Some(whole)) => whole.unsigned_abs() <= EXACT,
            (None, None) => true,
        },
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(members) => {
            members.iter().all(|(name, value)| name.is_ascii() && is_plain(value))
        }
    }
}

/// Whether two values have the same canonical bytes, without writing them.
///
/// Takes no longer than reading the smaller value.
pub fn same_json(left: &Value, right: &Value) -> bool {
    match (left, right) {
        // Canonical JSON has only floats, and no negative zero.
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same_json(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            // Both maps are sorted by name, so equal names come in the same order.
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| left.0 == right.0 && same_json(left.1, right.1))
        }
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => left == right,
        _ => false,
    }
}

/// Returns `sha256:` and the hex digest of the bytes.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

/// Returns `sha256:` and the hex digest of the value's canonical bytes.
pub fn digest_json(value: &Value) -> String {
    digest(&canonical(value))
}

/// Returns the bare lower-case hex digest of the bytes.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_digest_is_that_of_the_canonical_bytes() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256_hex(b""), empty);
        assert_eq!(digest(b""), format!("sha256:{empty}"));
        let object = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(digest_json(&json!({})), object);
    }

    #[test]
    fn whole_numbers_beyond_the_floats_are_written_as_floats() {
        let exact = 9_007_199_254_740_992_i64;
        for (number, text) in [
            (json!(exact), "9007199254740992"),
            (json!(-exact), "-9007199254740992"),
            (json!(exact + 1), "9007199254740992"),
            (json!(-exact - 1), "-9007199254740992"),
            (json!(u64::MAX), "18446744073709552000"),
        ] {
            assert_eq!(canonical(&number), text.as_bytes(), "{number}");
        }
    }

    #[test]
    fn whole_floats_and_key_order_do_not_matter() {
        let left = digest_json(&json!({"b": 1.0, "a": [true, null]}));
        let right = digest_json(&json!({"a": [true, null], "b": 1}));
        assert_eq!(left, right);
        assert_eq!(canonical(&json!({"b": 1.0, "a": "é"})), "{\"a\":\"é\",\"b\":1}".as_bytes());
    }
}
