//! Estimates how much memory parsed JSON takes, which can be a hundred times the size of its text.

use serde_json::Value;

/// The size of a value in a list with spare capacity, or of a value that its object stores
/// elsewhere.
const VALUE_BYTES: usize = 64;
/// The size of a tree node of an object, with room for eleven members.
const NODE_BYTES: usize = 640;
/// A node is at least half full.
const LEAST_IN_NODE: usize = 6;

/// Estimates the memory of a value in bytes. The strict reader limits the depth of the value.
pub fn footprint(value: &Value) -> usize {
    let beneath = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(footprint).sum(),
        Value::Object(members) if members.is_empty() => 0,
        Value::Object(members) => {
            let nodes = NODE_BYTES * (1 + members.len() / LEAST_IN_NODE);
            let held = members.iter().map(|(name, member)| name.len() + footprint(member));
            nodes + held.sum::<usize>()
        }
    };
    VALUE_BYTES + beneath
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn small_objects_weigh_far_more_than_their_text() {
        let many = Value::Array(vec![json!({"": 0}); 1_000]);
        assert_eq!(many.to_string().len(), 7_001);
        assert!(700_000 < footprint(&many));
        // A long text takes little more than its own length.
        assert!(footprint(&json!("x".repeat(1_000_000))) < 1_001_000);
    }
}
