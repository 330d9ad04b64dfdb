//! Complete replies for scripted servers, from the examples of the OpenAPI document.

use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../../docs/reference/openapi.json");

/// The example of a reply, with other values for some of its members.
pub(crate) fn sample(schema: &str, members: Value) -> Value {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let reference = format!("#/components/schemas/{schema}");
    let example = find(&document["paths"], &reference);
    with(example.unwrap_or_else(|| panic!("no example of `{schema}`")).clone(), members)
}

/// A document with other values for some of its members.
pub(crate) fn with(mut whole: Value, members: Value) -> Value {
    let Value::Object(members) = members else { panic!("{members} has no members") };
    whole.as_object_mut().unwrap().extend(members);
    whole
}

fn find<'a>(value: &'a Value, reference: &str) -> Option<&'a Value> {
    if let Some(example) = value.get("example")
        && value["schema"]["$ref"] == reference
    {
        return Some(example);
    }
    value.as_object()?.values().find_map(|inner| find(inner, reference))
}
