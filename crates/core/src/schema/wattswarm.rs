//! WattSwarm's small part of JSON Schema: `type`, `required`, and `type` of each property.

use jurat_limits::size::as_u64;
use serde_json::{Map, Value};

use super::WorkEstimate;

/// Whether a value matches. No value matches a schema that is not an object. All other keywords are
/// ignored, even if they are not valid JSON Schema.
pub(super) fn matches(value: &Value, schema: &Value) -> bool {
    let Value::Object(schema) = schema else { return false };
    if !has_type(value, schema) {
        return false;
    }
    if let Some(required) = schema.get("required").and_then(Value::as_array) {
        let Value::Object(members) = value else { return false };
        let mut names = required.iter().filter_map(Value::as_str);
        if !names.all(|name| members.contains_key(name)) {
            return false;
        }
    }
    match (schema.get("properties"), value) {
        (Some(Value::Object(properties)), Value::Object(members)) => {
            properties.iter().all(|(name, property)| match (members.get(name), property) {
                (Some(member), Value::Object(property)) => has_type(member, property),
                _ => true,
            })
        }
        _ => true,
    }
}

fn has_type(value: &Value, schema: &Map<String, Value>) -> bool {
    match schema.get("type").and_then(Value::as_str) {
        None => true,
        Some("object") => value.is_object(),
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("null") => value.is_null(),
        Some(_) => false,
    }
}

/// An upper limit of the work of `matches`.
pub(super) fn work(schema: &Value) -> WorkEstimate {
    let named = |name: &str| match schema.get(name) {
        Some(Value::Object(members)) => members.len(),
        Some(Value::Array(items)) => items.len(),
        Some(_) | None => 0,
    };
    WorkEstimate::of_applications(as_u64(1 + named("required") + named("properties")))
}
