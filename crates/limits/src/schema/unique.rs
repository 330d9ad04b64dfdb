//! Implements `uniqueItems` by sorting. The validator hashes items to find equal ones, and a sender
//! can choose items with equal hashes, which it would then compare each with each.

use std::cmp::Ordering;

use jsonschema::{Keyword, ValidationError, paths::Location};
use serde_json::{Map, Number, Value};

struct UniqueItems;

/// Accepts everything, like the keyword unless it is `true`.
struct AlwaysValid;

/// Builds the keyword, which the meta-schema has already checked.
#[expect(clippy::unnecessary_wraps, reason = "the validator wants it")]
pub(super) fn keyword<'a>(
    _: &'a Map<String, Value>,
    is_wanted: &'a Value,
    _: Location,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    Ok(if *is_wanted == Value::Bool(true) { Box::new(UniqueItems) } else { Box::new(AlwaysValid) })
}

impl<'i> Keyword<'i> for UniqueItems {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        Err(ValidationError::custom("two items of the list are equal"))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let Value::Array(items) = instance else { return true };
        let mut sorted: Vec<&Value> = items.iter().collect();
        sorted.sort_unstable_by(|left, right| order(left, right));
        sorted.is_sorted_by(|left, right| order(left, right) == Ordering::Less)
    }
}

impl<'i> Keyword<'i> for AlwaysValid {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        true
    }
}

/// A total order in which values that are equal in JSON Schema are equal. It takes no longer than
/// reading the smaller value; the scan limits the depth of an instance.
fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => order_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right).map(|(left, right)| order(left, right));
            first(pairs).then(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let pairs = left
                .iter()
                .zip(right)
                .map(|(left, right)| left.0.cmp(right.0).then_with(|| order(left.1, right.1)));
            first(pairs).then(left.len().cmp(&right.len()))
        }
        _ => kind(left).cmp(&kind(right)),
    }
}

fn first(mut pairs: impl Iterator<Item = Ordering>) -> Ordering {
    pairs.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

const fn kind(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// By value: `1` equals `1.0`, and an integer that no float represents equals no float.
fn order_numbers(left: &Number, right: &Number) -> Ordering {
    let ((whole, rest), (other_whole, other_rest)) = (parts(left), parts(right));
    whole.cmp(&other_whole).then(rest.total_cmp(&other_rest))
}

/// The integer part of a number and the rest. Floats whose integer part fits no integer all have
/// the largest or the smallest one, and differ in the rest.
fn parts(number: &Number) -> (i128, f64) {
    if let Some(whole) = number.as_i64() {
        return (whole.into(), 0.0);
    }
    if let Some(whole) = number.as_u64() {
        return (whole.into(), 0.0);
    }
    let float = number.as_f64().unwrap_or_default();
    let whole = float.floor();
    #[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
    let integer = whole as i128;
    let is_beyond = integer == i128::MAX || integer == i128::MIN;
    // Zero has no sign here.
    (integer, if is_beyond { float } else { float - whole + 0.0 })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(items: &Value, is_unique: bool) {
        assert_eq!(UniqueItems.is_valid(items), is_unique, "{items}");
    }

    #[test]
    fn items_are_compared_as_in_json_schema() {
        check(&json!([1, 2.5, "1", true, null, [], {}, [1], {"a": 1}, [[1]]]), true);
        check(&json!([0, -0.0]), false);
        check(&json!([1, 1.0]), false);
        check(&json!([true, 1, false, 0]), true);
        check(&json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]), false);
        check(&json!([1e300, 1.5e300, -1e300, 1e39]), true);
        check(&json!([1e300, 1e300]), false);
        check(&json!([9_007_199_254_740_993_u64, 9_007_199_254_740_992_u64]), true);
        check(&json!([9_007_199_254_740_992_u64, 9_007_199_254_740_992.0]), false);
        check(&json!([-1, -1.5, -2]), true);
        check(&json!([[1, 2], [1], [1, 2, 3], []]), true);
        check(&json!("not a list"), true);
    }
}
