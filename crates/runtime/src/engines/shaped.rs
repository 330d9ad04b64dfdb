//! Gives a plain answer the form of a simple schema.

use serde_json::{Map, Value, json};

/// Wraps the text as the schema asks; without a schema as `{answer, confidence}`.
///
/// Only simple schemas are supported: types, enumerations and the required members of one object.
/// The policy still checks whether the output matches.
pub(super) fn shaped(text: &str, schema: &Value) -> Value {
    let root = schema.get("type").and_then(Value::as_str).unwrap_or("object");
    if root != "object" {
        return sample(text, schema);
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let known = |name: &str| properties.is_some_and(|all| all.contains_key(name));
    let mut output = Map::new();
    for (name, value) in [("answer", json!(text)), ("confidence", json!(0.9))] {
        if !closed || known(name) {
            let value = properties.and_then(|all| all.get(name)).map_or(value.clone(), |schema| {
                if schema.get("type").is_some_and(|kind| !fits(kind, &value)) {
                    sample(text, schema)
                } else {
                    value
                }
            });
            output.insert(name.to_owned(), value);
        }
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !output.contains_key(name) {
            let member = properties.and_then(|all| all.get(name)).unwrap_or(&Value::Null);
            output.insert(name.to_owned(), sample(text, member));
        }
    }
    Value::Object(output)
}

fn fits(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64(),
        Some("boolean") => value.is_boolean(),
        Some(_) => false,
        None => true,
    }
}

fn sample(text: &str, schema: &Value) -> Value {
    if let Some(first) = schema.get("enum").and_then(|all| all.get(0)) {
        return first.clone();
    }
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("number") => json!(0.9),
        Some("integer") => json!(0),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("null") => Value::Null,
        Some(_) | None => json!(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simple_schema_is_met() {
        for (schema, expect) in [
            (json!({}), json!({"answer": "hi", "confidence": 0.9})),
            (json!({"type": "string"}), json!("hi")),
            (
                json!({"type": "object", "required": ["answer"], "additionalProperties": false,
                       "properties": {"answer": {"type": "string"}}}),
                json!({"answer": "hi"}),
            ),
            (
                json!({"required": ["n", "kind"], "properties": {"n": {"type": "integer"}, "kind": {"enum": ["a", "b"]}}}),
                json!({"answer": "hi", "confidence": 0.9, "n": 0, "kind": "a"}),
            ),
            (
                json!({"required": ["answer"], "properties": {"answer": {"type": "boolean"}}}),
                json!({"answer": true, "confidence": 0.9}),
            ),
        ] {
            assert_eq!(shaped("hi", &schema), expect, "for {schema}");
        }
    }
}
