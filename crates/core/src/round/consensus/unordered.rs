//! Compares lists without order: sorts every list of a value once, the innermost first.

use std::cmp::Ordering;

use serde_json::Value;

/// The value with the items of all its lists sorted, so that values that differ only in order
/// become equal.
///
/// Items are compared after their own lists are sorted. A comparison reads no more than the smaller
/// of two items, so nested lists are not read again at every level: the whole takes little more
/// time than sorting one long list.
pub(super) fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            items.sort_by(order);
            Value::Array(items)
        }
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, item)| (name.clone(), sorted(item))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// A total order in which values with the same canonical JSON are equal.
fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => {
            left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => left.len().cmp(&right.len()).then_with(|| {
            let orders = left.iter().zip(right).map(|(left, right)| order(left, right));
            first_difference(orders)
        }),
        (Value::Object(left), Value::Object(right)) => {
            left.len().cmp(&right.len()).then_with(|| {
                let orders = left
                    .iter()
                    .zip(right)
                    .map(|(left, right)| left.0.cmp(right.0).then_with(|| order(left.1, right.1)));
                first_difference(orders)
            })
        }
        _ => kind(left).cmp(&kind(right)),
    }
}

fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Ordering {
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::canonical::same_json;

    #[test]
    fn inner_lists_are_sorted_before_outer_ones() {
        let left = sorted(&json!([[3, [2, 1]], {"a": [true, null]}, [1.0]]));
        let right = sorted(&json!([[1], [[1, 2.0], 3], {"a": [null, true]}]));
        assert!(same_json(&left, &right));
        assert!(!same_json(&left, &sorted(&json!([[1], [[1, 3], 2], {"a": [null, true]}]))));
    }

    #[test]
    fn the_order_covers_all_values() {
        let values = [
            json!(null),
            json!(false),
            json!(true),
            json!(-1),
            json!(0.5),
            json!(2),
            json!(""),
            json!("a"),
            json!([]),
            json!([1]),
            json!([2]),
            json!([1, 1]),
            json!({}),
            json!({"a": 1}),
            json!({"a": 2}),
            json!({"b": 0}),
        ];
        for (index, left) in values.iter().enumerate() {
            for (other, right) in values.iter().enumerate() {
                assert_eq!(order(left, right), index.cmp(&other), "{left} and {right}");
            }
        }
        assert!(order(&json!(-0.0), &json!(0)).is_eq() && order(&json!(1), &json!(1.0)).is_eq());
    }
}
