//! The schemas of tools, from the types and parameters that describe their operations.

use rmcp::model::JsonObject;
use serde_json::{Value, json};
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use super::watch::LONGEST_CALL_S;
use crate::operation::{Argument, Operation, StandIn, Tool, ToolBody};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
const IN_OPENAPI: &str = "#/components/schemas/";
const IN_SCHEMA: &str = "#/$defs/";
/// Keywords that OpenAPI adds to JSON Schema.
const ONLY_OPENAPI: &[&str] = &["discriminator", "example", "externalDocs", "xml"];
/// Number formats that only OpenAPI knows.
const NUMBERS: &[&str] = &["double", "float", "int32", "int64", "uint32", "uint64"];

/// Keywords that say more about a reply than a client needs to know.
const WORDY: &[&str] = &["$schema", "description", "format", "maximum", "minimum", "pattern"];

/// Members of a problem, which may have other types in a reply.
const OF_PROBLEMS: &[&str] =
    &["code", "detail", "error", "errors", "field", "hint", "message", "status", "title", "type"];

type NamedSchemas = Vec<(String, RefOr<Schema>)>;

/// The arguments of a tool: the body of its operation, plus the path and query parameters.
pub(super) fn arguments(operation: &Operation, tool: &Tool) -> JsonObject {
    let mut schema = tool.body_schema(operation).unwrap_or_else(|| {
        let mut schema = members(json!({ "$schema": DIALECT, "type": "object", "properties": {} }));
        if !tool.ignores_unknown {
            schema.insert("additionalProperties".to_owned(), json!(false));
        }
        schema
    });
    schema.remove("description");
    // It is the dialect of the protocol.
    schema.remove("$schema");
    let mut properties = match schema.remove("properties") {
        Some(Value::Object(properties)) => properties,
        Some(_) | None => JsonObject::new(),
    };
    let mut required = match schema.remove("required") {
        Some(Value::Array(required)) => required,
        Some(_) | None => Vec::new(),
    };
    if let ToolBody::Only(names) = tool.body {
        properties.retain(|name, _| names.contains(&name.as_str()));
        required.retain(|name| name.as_str().is_some_and(|name| names.contains(&name)));
    }
    for argument in &tool.arguments {
        add(operation, argument, &mut properties, &mut required);
    }
    if let Some(StandIn { tool: other, lacks, has }) = tool.stand_in {
        required.retain(|name| name != lacks);
        for name in has {
            let text = format!("With this instead of `{lacks}`, the tool is `{other}`.");
            properties.insert((*name).to_owned(), json!({ "description": text }));
        }
    }
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::Array(required));
    }
    schema
}

fn add(
    operation: &Operation,
    argument: &Argument,
    properties: &mut JsonObject,
    required: &mut Vec<Value>,
) {
    match argument {
        Argument::Path { names, text, pattern } => {
            if let [only] = names.as_slice() {
                required.push(json!(only));
            }
            for (nth, name) in names.iter().enumerate() {
                let first = names.first().copied().unwrap_or_default();
                let text =
                    if nth == 0 { (*text).to_owned() } else { format!("Alias of `{first}`.") };
                let mut schema = members(json!({ "type": "string", "description": text }));
                if let Some(pattern) = pattern {
                    schema.insert("pattern".to_owned(), json!(pattern));
                }
                properties.insert((*name).to_owned(), Value::Object(schema));
            }
        }
        Argument::MaybePath { name, text } => {
            let schema = json!({ "type": "string", "description": text });
            properties.insert((*name).to_owned(), schema);
        }
        Argument::PathVersion(text) => {
            required.push(json!("version"));
            let schema = json!({
                "type": "integer", "minimum": 1, "maximum": u32::MAX, "description": text,
            });
            properties.insert("version".to_owned(), schema);
        }
        Argument::Query { argument, parameter, is_required } => {
            let described = json!(operation.parameters.iter().find(|it| it.name == *parameter));
            let mut schema = described["schema"].clone();
            schema["description"] = described["description"].clone();
            properties.insert((*argument).to_owned(), schema);
            if *is_required {
                required.push(json!(argument));
            }
        }
        Argument::Wait { default_s } => {
            let mut schema = json!({
                "type": "integer", "minimum": 0, "maximum": LONGEST_CALL_S,
                "description": "Seconds to wait for the end.",
            });
            if let Some(seconds) = default_s {
                schema["default"] = json!(seconds);
            }
            properties.insert("wait".to_owned(), schema);
        }
        Argument::OwnAccount => {}
    }
}

/// The input of a tool: the body that the type describes.
pub(crate) fn input<T: ToSchema>() -> JsonObject {
    let mut types = NamedSchemas::new();
    T::schemas(&mut types);
    let mut schema = Value::Object(whole(json!(T::schema()), types));
    // Null counts as left out, and many clients cannot express it.
    each(&mut schema, &mut without_null);
    let mut schema = members(schema);
    // Some clients expect this member, even if it is empty.
    schema.entry("properties").or_insert_with(|| json!({}));
    schema
}

/// The output of a tool: a reply or a problem. Problems are included because some clients validate
/// them against the schema too, and are not spelled out because they are the same for all tools.
pub(crate) fn output<T: ToSchema>() -> JsonObject {
    let mut types: NamedSchemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut types);
    let reply = json!({ "$ref": format!("{IN_OPENAPI}{}", T::name()) });
    let problem = json!({ "type": "object", "required": ["code", "detail"] });
    let choice = json!({ "type": "object", "anyOf": [reply, problem] });
    let mut schema = Value::Object(whole(choice, types));
    // A model reads the whole list before it does anything, and the field names explain a reply.
    each(&mut schema, &mut |schema| schema.retain(|name, _| !WORDY.contains(&name.as_str())));
    members(schema)
}

/// A short form of an output schema: the names of the members of a reply and their types. A model
/// reads all schemas before it calls a tool, and a reply explains itself. None is required, so that a
/// problem fits too, and with `is_nullable` a round that is still open.
pub(crate) fn brief(schema: &JsonObject, is_nullable: bool) -> JsonObject {
    let none = JsonObject::new();
    let defs = schema.get("$defs").and_then(Value::as_object).unwrap_or(&none);
    let reply = schema.get("anyOf").and_then(|choices| choices.get(0));
    let reply = reply.map(|reply| followed(reply, defs));
    let Some(properties) = reply.and_then(|reply| reply["properties"].as_object()) else {
        return any_object();
    };
    let typed = properties.iter().map(|(name, member)| {
        let kind = followed(member, defs).get("type").filter(|_| !OF_PROBLEMS.contains(&&**name));
        (
            name.clone(),
            kind.map_or_else(|| json!({}), |kind| json!({ "type": or_null(kind, is_nullable) })),
        )
    });
    members(json!({ "type": "object", "properties": typed.collect::<JsonObject>() }))
}

/// A type, or a list of types, with null.
fn or_null(kind: &Value, is_nullable: bool) -> Value {
    let mut kinds = kind.as_array().cloned().unwrap_or_else(|| vec![kind.clone()]);
    if !is_nullable || kinds.contains(&json!("null")) {
        return kind.clone();
    }
    kinds.push(json!("null"));
    Value::Array(kinds)
}

/// The schema that a reference leads to.
fn followed<'a>(schema: &'a Value, defs: &'a JsonObject) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|it| it.strip_prefix(IN_SCHEMA));
    name.and_then(|name| defs.get(name)).unwrap_or(schema)
}

/// A reply that is not spelled out, because it is large and its tool is rarely called: a model
/// reads the whole list of tools before it does anything, so the list must be short.
pub(crate) fn any_object() -> JsonObject {
    members(json!({ "type": "object" }))
}

/// A self-contained schema, which includes all types that it refers to.
fn whole(mut root: Value, types: NamedSchemas) -> JsonObject {
    let defs: JsonObject = types.into_iter().map(|(name, it)| (name, json!(it))).collect();
    if let Some(members) = root.as_object_mut() {
        members.insert("$schema".to_owned(), json!(DIALECT));
        if !defs.is_empty() {
            members.insert("$defs".to_owned(), Value::Object(defs));
        }
    }
    each(&mut root, &mut translate);
    members(root)
}

fn members(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            JsonObject::new()
        }
    }
}

/// Applies a change to a schema and to every schema within it.
fn each(schema: &mut Value, change: &mut impl FnMut(&mut JsonObject)) {
    let Some(members) = schema.as_object_mut() else { return };
    change(members);
    for (name, value) in members {
        match (name.as_str(), value) {
            // The members of these are schemas under arbitrary names.
            ("properties" | "$defs" | "patternProperties", Value::Object(named)) => {
                named.values_mut().for_each(|schema| each(schema, change));
            }
            // These hold values, not schemas.
            ("enum" | "const" | "default" | "examples", _) => {}
            (_, Value::Array(schemas)) => schemas.iter_mut().for_each(|it| each(it, change)),
            (_, schema) => each(schema, change),
        }
    }
}

/// Translates OpenAPI's dialect into plain JSON Schema.
fn translate(schema: &mut JsonObject) {
    schema.retain(|name, value| {
        let is_number = value.as_str().is_some_and(|format| NUMBERS.contains(&format));
        let is_foreign = ONLY_OPENAPI.contains(&name.as_str()) || (name == "format" && is_number);
        !is_foreign
    });
    if let Some(Value::String(reference)) = schema.get_mut("$ref") {
        *reference = reference.replace(IN_OPENAPI, IN_SCHEMA);
    }
}

/// Removes null from the types that a field may have.
fn without_null(schema: &mut JsonObject) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|it| it != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("oneOf") {
        choices.retain(|it| it.get("type").is_none_or(|it| it != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.remove("oneOf");
            schema.extend(only);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "it only has a schema")]
    struct Inner {
        #[schema(example = "a")]
        example: String,
        count: u32,
    }

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "it only has a schema")]
    struct Outer {
        /// What is inside.
        inner: Inner,
        list: Option<Vec<Inner>>,
        /// Another one.
        other: Option<Inner>,
    }

    #[test]
    fn a_schema_is_self_contained_and_free_of_openapi() {
        let schema = Value::Object(input::<Outer>());
        assert_eq!(schema["type"], "object");
        let text = schema.to_string();
        assert!(!text.contains("#/components") && text.contains("#/$defs/Inner"), "{text}");
        let inner = &schema["$defs"]["Inner"];
        assert_eq!(inner["properties"]["example"], json!({ "type": "string" }));
        assert!(inner["properties"]["count"].get("format").is_none(), "{inner}");
        assert_eq!(schema["properties"]["list"]["type"], "array");
        let other = json!({ "$ref": "#/$defs/Inner", "description": "Another one." });
        assert_eq!(schema["properties"]["other"], other);
        assert!(!text.contains("null"), "{text}");
    }
}
