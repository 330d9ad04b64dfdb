//! Where a schema holds subschemas, and what each place means for the work.

use serde_json::{Map, Value};

use super::scan::join;

/// How a subschema is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// To the same value.
    Same,
    /// To a member with a certain name; at most one of these applies to a member.
    Named,
    /// To an item at a certain index; at most one of these applies to an item.
    Indexed,
    /// To members or items in addition to all others.
    Each,
    /// To each item, and again when unevaluated items are looked for.
    Contains,
    /// To what nothing else has evaluated.
    Unevaluated,
    /// Nowhere, unless something refers to it.
    Kept,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    One,
    List,
    OneOrList,
    Map,
}

/// The union over all drafts: a keyword too many makes the bound larger, never wrong.
const KEYWORDS: &[(&str, Form, Place)] = &[
    ("allOf", Form::List, Place::Same),
    ("anyOf", Form::List, Place::Same),
    ("oneOf", Form::List, Place::Same),
    ("not", Form::One, Place::Same),
    ("if", Form::One, Place::Same),
    ("then", Form::One, Place::Same),
    ("else", Form::One, Place::Same),
    ("dependentSchemas", Form::Map, Place::Same),
    ("dependencies", Form::Map, Place::Same),
    ("properties", Form::Map, Place::Named),
    ("additionalProperties", Form::One, Place::Named),
    ("patternProperties", Form::Map, Place::Each),
    ("propertyNames", Form::One, Place::Each),
    ("prefixItems", Form::List, Place::Indexed),
    ("items", Form::OneOrList, Place::Indexed),
    ("additionalItems", Form::One, Place::Indexed),
    ("contains", Form::One, Place::Contains),
    ("unevaluatedItems", Form::One, Place::Unevaluated),
    ("unevaluatedProperties", Form::One, Place::Unevaluated),
    ("$defs", Form::Map, Place::Kept),
    ("definitions", Form::Map, Place::Kept),
    ("contentSchema", Form::One, Place::Kept),
];

/// The direct subschemas of a schema object, with their pointers.
pub(super) fn subschemas<'a>(
    schema: &'a Map<String, Value>,
    at: &str,
) -> Vec<(Place, String, &'a Value)> {
    let mut found = Vec::new();
    for (keyword, form, place) in KEYWORDS {
        let Some(held) = schema.get(*keyword) else { continue };
        let here = join(at, keyword);
        match (form, held) {
            (Form::List | Form::OneOrList, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    found.push((*place, join(&here, &index.to_string()), item));
                }
            }
            (Form::One | Form::OneOrList, one) => found.push((*place, here, one)),
            (Form::Map, Value::Object(members)) => {
                for (name, member) in members {
                    found.push((*place, join(&here, name), member));
                }
            }
            // The check against the meta-schema names what has a wrong form.
            (Form::Map | Form::List, _) => {}
        }
    }
    found.retain(|(_, _, held)| held.is_object() || held.is_boolean());
    found
}

/// How much one application costs beside its subschemas: names and values that are compared.
pub(super) fn weight(schema: &Map<String, Value>) -> u64 {
    /// About this many comparisons cost as much as applying a subschema.
    const COMPARISONS: u64 = 16;
    let compared = ["enum", "const", "required", "dependentRequired", "dependencies", "type"];
    let values = compared.iter().filter_map(|keyword| schema.get(*keyword)).map(count).sum::<u64>();
    let named = ["properties", "patternProperties", "dependentSchemas"];
    let names = named
        .iter()
        .filter_map(|keyword| schema.get(*keyword).and_then(Value::as_object))
        .map(|members| u64::try_from(members.len()).unwrap_or(u64::MAX))
        .sum::<u64>();
    1 + values.saturating_add(names) / COMPARISONS
}

/// How many values there are in a value; it is no deeper than the scan allows.
fn count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<u64>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
