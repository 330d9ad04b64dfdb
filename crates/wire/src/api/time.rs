//! Times as RFC 3339 text in UTC.

use jurat_core::time::Timestamp;
use serde_json::Value;

pub fn text(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.micros())
        .map_or_else(|_| String::new(), |at| at.to_string())
}

pub fn value(at: Timestamp) -> Value {
    Value::String(text(at))
}

/// Reads RFC 3339 text with any offset.
pub fn parse(text: &str) -> Option<Timestamp> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(Timestamp::from_micros(at.as_microsecond()))
}
