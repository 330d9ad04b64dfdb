//! The keywords that hold subschemas, and how each affects the work.

use serde_json::{Map, Value};

use super::scan::join;

/// How a subschema is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApplicationTarget {
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
    /// To members or items that nothing else has evaluated.
    Unevaluated,
    /// Nowhere, unless a reference names it.
    Kept,
}

#[derive(Debug, Clone, Copy)]
enum SubschemaForm {
    One,
    List,
    OneOrList,
    Map,
}

/// The union over all drafts: a surplus keyword makes the limit larger, never wrong.
const KEYWORDS: &[(&str, SubschemaForm, ApplicationTarget)] = &[
    ("allOf", SubschemaForm::List, ApplicationTarget::Same),
    ("anyOf", SubschemaForm::List, ApplicationTarget::Same),
    ("oneOf", SubschemaForm::List, ApplicationTarget::Same),
    ("not", SubschemaForm::One, ApplicationTarget::Same),
    ("if", SubschemaForm::One, ApplicationTarget::Same),
    ("then", SubschemaForm::One, ApplicationTarget::Same),
    ("else", SubschemaForm::One, ApplicationTarget::Same),
    ("dependentSchemas", SubschemaForm::Map, ApplicationTarget::Same),
    ("dependencies", SubschemaForm::Map, ApplicationTarget::Same),
    ("properties", SubschemaForm::Map, ApplicationTarget::Named),
    ("additionalProperties", SubschemaForm::One, ApplicationTarget::Named),
    ("patternProperties", SubschemaForm::Map, ApplicationTarget::Each),
    ("propertyNames", SubschemaForm::One, ApplicationTarget::Each),
    ("prefixItems", SubschemaForm::List, ApplicationTarget::Indexed),
    ("items", SubschemaForm::OneOrList, ApplicationTarget::Indexed),
    ("additionalItems", SubschemaForm::One, ApplicationTarget::Indexed),
    ("contains", SubschemaForm::One, ApplicationTarget::Contains),
    ("unevaluatedItems", SubschemaForm::One, ApplicationTarget::Unevaluated),
    ("unevaluatedProperties", SubschemaForm::One, ApplicationTarget::Unevaluated),
    ("$defs", SubschemaForm::Map, ApplicationTarget::Kept),
    ("definitions", SubschemaForm::Map, ApplicationTarget::Kept),
    ("contentSchema", SubschemaForm::One, ApplicationTarget::Kept),
];

/// The direct subschemas of a schema object, with their pointers.
pub(super) fn subschemas<'a>(
    schema: &'a Map<String, Value>,
    at: &str,
) -> Vec<(ApplicationTarget, String, &'a Value)> {
    let mut found = Vec::new();
    for (keyword, form, place) in KEYWORDS {
        let Some(held) = schema.get(*keyword) else { continue };
        let here = join(at, keyword);
        match (form, held) {
            (SubschemaForm::List | SubschemaForm::OneOrList, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    found.push((*place, join(&here, &index.to_string()), item));
                }
            }
            (SubschemaForm::One | SubschemaForm::OneOrList, one) => found.push((*place, here, one)),
            (SubschemaForm::Map, Value::Object(members)) => {
                for (name, member) in members {
                    found.push((*place, join(&here, name), member));
                }
            }
            // The check against the meta-schema names a keyword of the wrong form.
            (SubschemaForm::Map | SubschemaForm::List, _) => {}
        }
    }
    found.retain(|(_, _, held)| held.is_object() || held.is_boolean());
    found
}

/// The cost of one application besides its subschemas: names and values that are compared.
pub(super) fn weight(schema: &Map<String, Value>) -> u64 {
    /// About this many comparisons cost as much as one application.
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

/// How many values a value contains; the scan limits its depth.
fn count(value: &Value) -> u64 {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<u64>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<u64>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
