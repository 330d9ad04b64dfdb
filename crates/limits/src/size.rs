//! The size of a value, which is the cost of comparing it.

use serde_json::Value;

/// Bytes of text that cost about as much as one value.
const BYTES_A_VALUE: usize = 64;

/// Counts the values within a value, without recursion; long texts and names count for more.
///
/// Comparing two values costs no more than the size of the smaller one.
pub fn size(value: &Value) -> u64 {
    size_within(value, u64::MAX)
}

/// Like `size`, but stops counting soon after `most`, so that counting itself has a limit.
pub fn size_within(value: &Value, most: u64) -> u64 {
    let mut total = 0_u64;
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        total += 1;
        let beneath = match value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        };
        if most < total.saturating_add(as_u64(beneath)) {
            return total.saturating_add(as_u64(beneath));
        }
        match value {
            Value::String(text) => total += text_size(text),
            Value::Array(items) => stack.extend(items),
            Value::Object(members) => {
                total += members.keys().map(|name| text_size(name)).sum::<u64>();
                stack.extend(members.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    total
}

/// The extra size of a long text.
pub fn text_size(text: &str) -> u64 {
    as_u64(text.len() / BYTES_A_VALUE)
}

/// A length as a number to count with.
pub fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_texts_and_names_count() {
        assert_eq!(size(&json!([1, [2, {"a": null}]])), 6);
        assert_eq!(size(&json!("x".repeat(640))), 11);
        assert_eq!(size(&json!({ "x".repeat(128): 1 })), 4);
    }

    #[test]
    fn counting_stops_soon_after_the_limit() {
        let large = json!(vec![json!([1, 2, 3]); 1_000]);
        assert_eq!(size_within(&large, 10), 1_001);
        assert_eq!(size_within(&json!([[1, [2]], 3]), 3), 5);
        assert_eq!(size_within(&large, 5_000), 4_001);
    }
}
