//! Helpers for JSON values from callers.

use serde_json::Value;

/// A whole number that is not negative, in any notation: `3.0` is 3 in JSON.
pub fn whole_number(value: &Value) -> Option<u64> {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and in range"
    )]
    let of_float = |number: f64| {
        let is_whole = number.fract() == 0.0 && (0.0..=LARGEST).contains(&number);
        is_whole.then_some(number as u64)
    };
    value.as_u64().or_else(|| value.as_f64().and_then(of_float))
}

/// The type of a value, in words.
pub const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The beginning of a caller's text, short enough for a message.
pub fn short(text: &str) -> String {
    text.chars().take(80).collect()
}
