//! The table of the fields of an object.

use serde_json::Value;

use super::{
    document::word,
    objects::Objects,
    types::{Direction, about, rules_of, type_of},
};
use crate::generate::pages::row;

/// The fields of an object, the required ones first; or its values, or its forms.
pub(super) fn table(objects: &Objects<'_>, schema: &Value, direction: Direction) -> String {
    if schema["enum"].is_array() || schema["properties"].is_null() {
        return format!("It is {}.\n", type_of(objects, schema, direction));
    }
    let mut text = String::from(match direction {
        Direction::Request => "| field | type | rule | meaning |\n|---|---|---|---|\n",
        Direction::Reply => "| field | type | meaning |\n|---|---|---|\n",
    });
    for (name, field, is_required) in fields(schema) {
        let (name, kind) = (format!("`{name}`"), type_of(objects, field, direction));
        let about = about(objects, field);
        match direction {
            Direction::Request => {
                let mut rules = rules_of(objects, field);
                if is_required {
                    rules.insert(0, "required".to_owned());
                }
                row(&mut text, &[&name, &kind, &rules.join("; "), &about]);
            }
            Direction::Reply if is_required => row(&mut text, &[&name, &kind, &about]),
            Direction::Reply => row(&mut text, &[&name, &format!("{kind}, or left out"), &about]),
        }
    }
    text
}

/// Whether the object has fields at all.
pub(super) fn is_empty(schema: &Value) -> bool {
    schema["type"] == "object"
        && schema["properties"].as_object().is_none_or(serde_json::Map::is_empty)
}

/// The list of required fields is in the order of the declaration; the others are by name.
fn fields(schema: &Value) -> Vec<(&str, &Value, bool)> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().map(word).collect();
    let all = schema["properties"].as_object();
    let first = required.iter().map(|name| (*name, &schema["properties"][*name], true));
    let rest = all.into_iter().flatten().filter(|(name, _)| !required.contains(&name.as_str()));
    first.chain(rest.map(|(name, field)| (name.as_str(), field, false))).collect()
}
