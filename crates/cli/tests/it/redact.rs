//! Removes the parts of a body that differ from run to run.

use serde_json::{Value, json};

pub(crate) fn redacted(text: &str) -> Value {
    let mut value = serde_json::from_str(text).unwrap();
    redact(&mut value);
    value
}

fn redact(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                match (name.as_str(), &*member) {
                    ("latency_ms", _) => *member = json!(0),
                    (
                        "at" | "created_at" | "opened_at" | "deadline_at" | "closed_at",
                        Value::String(_),
                    ) => *member = json!("TIME"),
                    _ => redact(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::String(text) => {
            for (prefix, word) in [
                ("rnd_", "ROUND"),
                ("sha256:", "DIGEST"),
                ("http://127.0.0.1:", "http://127.0.0.1:PORT"),
            ] {
                if text.starts_with(prefix) {
                    word.clone_into(text);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
