//! The subject of checks, and how messages describe it.

use jurat_limits::{quote::short, size::as_u64};
use serde_json::{Value, json};

use crate::{round::candidate::Candidate, schema::MAX_DEPTH};

/// The inline evidence as a list of objects with `mime`, `content`, and `json` for JSON.
///
/// Reading it takes no longer than reading the request did.
pub(super) fn evidence(candidate: &Candidate) -> Value {
    let items = candidate.evidence.inline.iter().map(|item| {
        let mut seen = json!({ "mime": item.mime, "content": item.content });
        let mime = item.mime.split(';').next().unwrap_or_default().trim();
        if mime.eq_ignore_ascii_case("application/json")
            && let Ok(read) = serde_json::from_str::<Value>(&item.content)
            && is_shallow(&read)
        {
            seen["json"] = read;
        }
        seen
    });
    items.collect()
}

/// Whether recursive code can walk the value when it is nested two levels deeper.
fn is_shallow(value: &Value) -> bool {
    let mut stack = vec![(value, 2_usize)];
    while let Some((value, depth)) = stack.pop() {
        if MAX_DEPTH < depth {
            return false;
        }
        match value {
            Value::Array(items) => stack.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => stack.extend(members.values().map(|it| (it, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    true
}

/// The work of following a JSON Pointer.
pub(super) fn pointer_work(pointer: &str) -> u64 {
    1 + as_u64(pointer.len() / 8)
}

/// The name of a part of the output in a note.
pub(super) fn part_name(path: &str) -> String {
    if path.is_empty() { "the output".to_owned() } else { format!("`{}`", short(path, 60)) }
}

/// The type of a value, in words.
pub(super) const fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
