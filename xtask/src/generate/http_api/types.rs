//! The type, the rule and the description of a value, in the words of a table.

use serde_json::Value;

use super::{document::word, objects::Objects};

/// The largest number that JSON programs agree on, and the largest of 32 bits: no rules of ours.
const UNLIMITED: [f64; 2] = [9_007_199_254_740_991.0, 4_294_967_295.0];

/// A longer pattern tells a reader less than its description.
const LONGEST_PATTERN: usize = 60;

/// Patterns that refuse blank text.
const BLANK: [&str; 2] = [r"\S", r"^[^\x00]*[^\s\x00][^\x00]*$"];

/// Whether a value is sent or received: a null that is sent counts as left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Reply,
}

/// `a, b or c`.
pub(super) fn joined(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., end] => format!("{} {last} {end}", most.join(", ")),
    }
}

/// The type of a value, with links to objects.
pub(super) fn type_of(objects: &Objects<'_>, schema: &Value, direction: Direction) -> String {
    let mut words = Vec::new();
    for word in parts(objects, schema) {
        let is_noise = direction == Direction::Request && word == "null";
        if !is_noise && !words.contains(&word) {
            words.push(word);
        }
    }
    // Null comes last, wherever the schema has it.
    words.sort_by_key(|word| word == "null");
    joined(&words, "or")
}

fn parts(objects: &Objects<'_>, schema: &Value) -> Vec<String> {
    if let Some(name) = objects.name_of(schema) {
        return match objects.page_item(name) {
            Some(item) => vec![format!("[page](#pages) of {}", plural(&parts(objects, item)))],
            None if objects.has_link(name) => vec![objects.link(name)],
            None => parts(objects, objects.schema(name)),
        };
    }
    if let Some(choices) = choices(schema) {
        return choices.iter().flat_map(|choice| parts(objects, choice)).collect();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(quoted).collect();
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().map(word).collect(),
        Value::String(one) => vec![one.as_str()],
        _ => vec!["any"],
    };
    types.into_iter().map(|kind| simple(objects, kind, schema)).collect()
}

fn simple(objects: &Objects<'_>, kind: &str, schema: &Value) -> String {
    match kind {
        "string" if word(&schema["format"]) == "date-time" => "time".to_owned(),
        "array" => match plural(&parts(objects, &schema["items"])) {
            items if items.is_empty() => "list".to_owned(),
            items => format!("list of {items}"),
        },
        "object" if schema["additionalProperties"].is_object() => {
            match plural(&parts(objects, &schema["additionalProperties"])) {
                values if values.is_empty() => kind.to_owned(),
                values => format!("object of {values}"),
            }
        }
        _ => kind.to_owned(),
    }
}

/// The kinds of items of a list; nothing if they may be anything.
fn plural(items: &[String]) -> String {
    let words: Vec<String> = items
        .iter()
        .map(|item| match item.as_str() {
            "string" | "integer" | "number" | "boolean" | "time" | "object" | "list" => {
                format!("{item}s")
            }
            _ => item.clone(),
        })
        .collect();
    if words.iter().any(|it| it == "any") { String::new() } else { joined(&words, "or") }
}

/// The rules of a value, without those that its type already tells.
pub(super) fn rules_of(objects: &Objects<'_>, schema: &Value) -> Vec<String> {
    if schema.is_null() {
        return Vec::new();
    }
    if let Some(name) = objects.name_of(schema) {
        return if objects.has_link(name) {
            Vec::new()
        } else {
            rules_of(objects, objects.schema(name))
        };
    }
    if let Some(choices) = choices(schema) {
        let mut values = choices.iter().filter(|it| it["type"] != "null");
        return match (values.next(), values.next()) {
            (Some(one), None) => rules_of(objects, one),
            _ => Vec::new(),
        };
    }
    let mut rules = Vec::new();
    rules.extend(range(&schema["minimum"], &schema["maximum"]));
    rules.extend(schema["exclusiveMinimum"].as_f64().map(|it| format!("above {it}")));
    if schema["minimum"].is_null() && schema["maximum"].is_number() {
        rules.push(format!("at most {}", schema["maximum"]));
    }
    rules.extend(lengths(schema));
    rules.extend(counts(schema, "minItems", "maxItems", "item"));
    if schema["uniqueItems"] == true {
        rules.push("each once".to_owned());
    }
    let of_items = rules_of(objects, &schema["items"]).join(", ");
    if !of_items.is_empty() {
        rules.push(format!("each {of_items}"));
    }
    if !schema["default"].is_null() {
        rules.push(format!("default {}", quoted(&schema["default"])));
    }
    rules
}

fn range(smallest: &Value, largest: &Value) -> Option<String> {
    let from = smallest.as_f64()?;
    let to = largest.as_f64().filter(|to| !UNLIMITED.contains(to));
    match to {
        Some(_) => Some(format!("{smallest} to {largest}")),
        None if from == 0.0 => None,
        None => Some(format!("at least {smallest}")),
    }
}

/// The length and the pattern of a text.
fn lengths(schema: &Value) -> Vec<String> {
    let pattern = word(&schema["pattern"]);
    let is_blank_rule = BLANK.contains(&pattern);
    let mut rules = Vec::new();
    if is_blank_rule {
        rules.push("not blank".to_owned());
        rules.extend(schema["maxLength"].as_u64().map(|most| format!("up to {most} characters")));
    } else {
        rules.extend(counts(schema, "minLength", "maxLength", "character"));
    }
    if !pattern.is_empty() && !is_blank_rule && pattern.len() <= LONGEST_PATTERN {
        rules.push(format!("matches `{pattern}`"));
    }
    rules
}

fn counts(schema: &Value, least: &str, most: &str, of: &str) -> Option<String> {
    match (schema[least].as_u64().filter(|it| *it != 0), schema[most].as_u64()) {
        (Some(least), Some(most)) => Some(format!("{least} to {most} {of}s")),
        (None, Some(most)) => Some(format!("up to {most} {of}s")),
        (Some(1), None) => Some("not empty".to_owned()),
        (Some(least), None) => Some(format!("at least {least} {of}s")),
        (None, None) => None,
    }
}

/// The description of a value: its own, or that of the named value that has no section.
pub(super) fn about(objects: &Objects<'_>, schema: &Value) -> String {
    let own = word(&schema["description"]);
    if !own.is_empty() {
        return own.replace('\n', " ");
    }
    if let Some(name) = objects.name_of(schema) {
        let text = word(&objects.schema(name)["description"]);
        return text.replace('\n', " ");
    }
    let inner = choices(schema).into_iter().flatten().map(|it| about(objects, it));
    inner.into_iter().find(|it| !it.is_empty()).unwrap_or_default()
}

fn choices(schema: &Value) -> Option<&Vec<Value>> {
    ["oneOf", "anyOf", "allOf"].into_iter().find_map(|name| schema[name].as_array())
}

fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        Value::Null => "null".to_owned(),
        other => format!("`{other}`"),
    }
}
