//! Checks every reply in a test against the OpenAPI document, so that the document cannot be wrong.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use http::StatusCode;
use jsonschema::{Draft, Validator};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::app::TestReply;

/// The document, with every object closed, so that undescribed members are found, too.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document: Value = serde_json::from_str(jurat_server::openapi()).unwrap();
    for schema in document["components"]["schemas"].as_object_mut().unwrap().values_mut() {
        close(schema);
    }
    document
});

/// Replies of the router before any operation is reached.
const UNDESCRIBED: &[StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED];

/// Fails if a reply does not match the document, or if an error contains markup.
#[track_caller]
pub(crate) fn check(method: &str, path: &str, reply: &TestReply) {
    assert_eq!(markup(reply), None, "{method} {path}: a client reads square brackets as markup");
    let found = compare(method, path, reply);
    let body: String = reply.text().chars().take(2_000).collect();
    assert_eq!(
        found,
        Ok(()),
        "{method} {path} answered {} with what the OpenAPI document does not say; docs/how-to-add/endpoint.md tells how to describe it\n{body}",
        reply.status
    );
}

/// A text for people that contains square brackets.
fn markup(reply: &TestReply) -> Option<String> {
    let content_type = reply.headers.get("content-type").and_then(|value| value.to_str().ok());
    let is_json = |mime: &str| ["application/json", "application/problem+json"].contains(&mime);
    if !content_type.is_some_and(is_json) {
        return None;
    }
    let body = reply.json();
    let texts = ["detail", "message", "hint", "error_message"].map(|name| body[name].as_str());
    let mut texts = texts.into_iter().flatten();
    texts.find(|text| text.contains(['[', ']'])).map(str::to_owned)
}

fn compare(method: &str, path: &str, reply: &TestReply) -> Result<(), String> {
    let Some(operation) = operation(method, path) else {
        // An address of another protocol has errors of its own form.
        if path.starts_with("/a2a/") {
            return valid(&json!({ "$ref": "#/components/schemas/A2aHttpError" }), &reply.json());
        }
        if UNDESCRIBED.contains(&reply.status) {
            let body = reply.json();
            let is_openai = body["error"].is_object();
            let schema = if is_openai { "ChatErrorReply" } else { "Problem" };
            return valid(&json!({ "$ref": format!("#/components/schemas/{schema}") }), &body);
        }
        return Err("there is no such operation".to_owned());
    };
    let status = reply.status.as_u16().to_string();
    let response = operation["responses"]
        .get(&status)
        .map(resolved)
        .ok_or_else(|| format!("the status is not among {:?}", keys(&operation["responses"])))?;
    for name in keys(&response["headers"]) {
        let is_required = resolved(&response["headers"][&name])["required"] == true;
        if is_required && !reply.headers.contains_key(name.as_str()) {
            return Err(format!("the header `{name}` is missing"));
        }
    }
    if response.get("content").is_none() {
        return if reply.body.is_empty() { Ok(()) } else { Err("it has a body".to_owned()) };
    }
    let content_type = reply.headers.get("content-type").and_then(|value| value.to_str().ok());
    let mime = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let content = response["content"].get(mime).ok_or_else(|| {
        format!("the content type `{mime}` is not among {:?}", keys(&response["content"]))
    })?;
    match mime {
        "application/json" | "application/a2a+json" if reply.status.is_success() => {
            valid(&content["schema"], &reply.json())
        }
        // An error in the form of another API, mostly with our code in it.
        "application/json" => foreign_error(response, &content["schema"], &reply.json()),
        // Its status follows from the reason, not from our code.
        "application/a2a+json" => valid(&content["schema"], &reply.json()),
        "application/problem+json" => {
            let body = reply.json();
            let code = body["code"].as_str().unwrap_or_default();
            if content["examples"].get(code).is_none() {
                return Err(format!(
                    "the code `{code}` is not among {:?}",
                    keys(&content["examples"])
                ));
            }
            valid(&content["schema"], &body)
        }
        "text/event-stream" => events(&content["x-events"], &reply.text()),
        _ => Ok(()),
    }
}

/// An error in the form of another API names a described code, if it names one of ours.
fn foreign_error(response: &Value, schema: &Value, body: &Value) -> Result<(), String> {
    let mut places = ["/error/code", "/error/data/0/metadata/code"].into_iter();
    let code = places.find_map(|at| body.pointer(at)?.as_str());
    let codes = response["description"].as_str().unwrap_or_default();
    match code {
        Some(code) if !codes.contains(&format!("`{code}`")) => {
            Err(format!("the code `{code}` is not among {codes}"))
        }
        _ => valid(schema, body),
    }
}

/// The value, or the part of the document that it refers to.
fn resolved(value: &'static Value) -> &'static Value {
    value["$ref"].as_str().and_then(|it| DOCUMENT.pointer(&it[1..])).unwrap_or(value)
}

/// Each event has a described name, and data of its type. An event without a
/// name is a `message`, or an `error`.
fn events(types: &Value, text: &str) -> Result<(), String> {
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        let is_last = field("data: ") == Some("[DONE]");
        let unnamed = types
            .get("message")
            .and(field("data: "))
            .map(|data| if data.starts_with("{\"error\":") { "error" } else { "message" });
        let Some(name) = field("event: ").or(unnamed).filter(|_| !is_last) else { continue };
        let schema =
            types.get(name).ok_or_else(|| format!("the event `{name}` is not described"))?;
        let data = serde_json::from_str(field("data: ").unwrap_or_default());
        valid(schema, &data.map_err(|error| format!("the data of `{name}`: {error}"))?)?;
    }
    Ok(())
}

/// The operation whose path template matches the path.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = whole_names(path.split('?').next().unwrap_or_default());
    // One address is served with a slash at its end, too.
    let path = if path == "/a2a/" { "/a2a" } else { &path };
    let paths = DOCUMENT["paths"].as_object().unwrap();
    // A path without parameters comes first, as in the router.
    let method = method.to_ascii_lowercase();
    let item = paths.get(path).or_else(|| {
        let fitting = paths.iter().filter(|(template, _)| takes(template, path));
        // `{id}:cancel` fits more exactly than `{id}`.
        let fitting = fitting.max_by_key(|(template, _)| template.len());
        fitting.map(|(_, item)| item)
    })?;
    item.get(&method)
}

/// The path with `@owner/name` as one segment: its slash may be sent unescaped.
fn whole_names(path: &str) -> String {
    match path.split_once("/@") {
        None => match path.strip_prefix("/v1/models/") {
            // The slash in the name of a model, too.
            Some(model) => format!("/v1/models/{}", model.replace('/', "%2F")),
            None => path.to_owned(),
        },
        Some((before, rest)) if !before.ends_with("/teams") && !rest.contains("%2F") => {
            format!("{before}/@{}", rest.replacen('/', "%2F", 1))
        }
        _ => path.to_owned(),
    }
}

fn takes(template: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(part), Some(text)) if part == text => {}
            (Some(part), Some(text)) if part.starts_with('{') && !text.is_empty() => {
                let suffix = part.split_once('}').map_or("", |(_, suffix)| suffix);
                if !text.ends_with(suffix) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn valid(schema: &Value, body: &Value) -> Result<(), String> {
    let validator = validator(schema)?;
    let errors: Vec<String> = validator
        .iter_errors(body)
        .take(5)
        .map(|error| format!("`{}`: {error}", error.instance_path()))
        .collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// The validator of a schema, built once: most replies of a test have few types.
fn validator(schema: &Value) -> Result<Arc<Validator>, String> {
    static KNOWN: Mutex<BTreeMap<String, Arc<Validator>>> = Mutex::new(BTreeMap::new());
    let name = schema.to_string();
    if let Some(known) = KNOWN.lock().get(&name) {
        return Ok(Arc::clone(known));
    }
    let made = Arc::new(compile(schema)?);
    KNOWN.lock().insert(name, Arc::clone(&made));
    Ok(made)
}

fn compile(schema: &Value) -> Result<Validator, String> {
    let mut root = schema.as_object().cloned().unwrap_or_default();
    root.insert("components".to_owned(), DOCUMENT["components"].clone());
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .build(&Value::Object(root))
        .map_err(|error| format!("the schema is wrong: {error}"))
}

/// Forbids other properties on an object that lists its properties.
fn close(schema: &mut Value) {
    if let Some(members) = schema.as_object_mut() {
        if members.contains_key("properties") && !members.contains_key("additionalProperties") {
            members.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        members.values_mut().for_each(close);
    } else if let Some(items) = schema.as_array_mut() {
        items.iter_mut().for_each(close);
    }
}

fn keys(value: &Value) -> Vec<String> {
    value.as_object().unwrap_or(&Map::new()).keys().cloned().collect()
}
