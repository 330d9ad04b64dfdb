//! The section of one operation.

use std::fmt::Write as _;

use serde_json::Value;

use super::{
    document::{OperationEntry, word},
    fields, json,
    objects::{self, Objects},
    types::{self, Direction, about, rules_of, type_of},
};
use crate::generate::pages::row;

/// Codes that every operation of a kind has; a chapter by hand explains them.
const USUAL: &[&str] = &[
    "auth_required",
    "forbidden",
    "idempotency_mismatch",
    "internal_error",
    "invalid_json",
    "overloaded",
    "payload_too_large",
    "quota_exceeded",
    "rate_limited",
    "request_timeout",
    "store_unavailable",
    "unsupported_media_type",
];

/// Headers of every reply, or of every reply of a kind.
const USUAL_HEADERS: &[&str] = &[
    "Idempotent-Replayed",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "WWW-Authenticate",
    "X-Request-Id",
];

pub(super) fn section(operation: &OperationEntry, objects: &Objects<'_>) -> String {
    let mut text = format!("\n### `{}`\n\n", operation.address());
    let _ = write!(text, "**{}.**\n{}\n\n", operation.summary, sentences(&operation.text));
    let _ = write!(text, "Operation `{}`; scope: {}", operation.id, operation.scopes());
    for alias in operation.addresses.iter().skip(1) {
        let _ = write!(text, "; alias: `{alias}`");
    }
    text.push_str(".\n");
    text.push_str(&parameters(operation, objects));
    text.push_str(&request(operation, objects));
    text.push_str(&replies(operation, objects));
    text.push_str(&refusals(operation, objects));
    text.push_str(&objects.sections_of(operation));
    text
}

/// One sentence on each line, as in every document. Tables and lists stay as they are.
fn sentences(text: &str) -> String {
    let mut lines = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(". ") {
        let (sentence, next) = rest.split_at(at + 1);
        lines.push_str(sentence);
        rest = &next[1..];
        let begins = rest.starts_with(|it: char| it.is_uppercase() || it == '`');
        lines.push(if begins { '\n' } else { ' ' });
    }
    lines + rest
}

fn parameters(operation: &OperationEntry, objects: &Objects<'_>) -> String {
    let mut text = String::new();
    for parameter in operation.value["parameters"].as_array().into_iter().flatten() {
        let parameter = objects.document().resolved(parameter);
        let (name, place) = (word(&parameter["name"]), word(&parameter["in"]));
        if name == "X-Request-Id" {
            continue;
        }
        let mut rules = rules_of(objects, &parameter["schema"]);
        if parameter["required"] == true {
            rules.insert(0, "required".to_owned());
        }
        let mut about = about(objects, parameter);
        if name == "Idempotency-Key" {
            "see [Repeating a request](#repeating-a-request)".clone_into(&mut about);
            rules.clear();
        }
        // A path without the parameter is another path.
        if place == "path" {
            rules.clear();
        }
        let rule = rules.join("; ");
        let kind = type_of(objects, &parameter["schema"], Direction::Request);
        row(&mut text, &[&format!("`{name}`"), place, &kind, &rule, &about]);
    }
    if text.is_empty() {
        return text;
    }
    format!("\n| parameter | in | type | rule | meaning |\n|---|---|---|---|---|\n{text}")
}

fn request(operation: &OperationEntry, objects: &Objects<'_>) -> String {
    let body = &operation.value["requestBody"];
    let Some((kind, content)) = first_content(body) else { return String::new() };
    let schema = &content["schema"];
    let mut text = String::from("\n**Request**");
    if kind != "application/json" {
        let _ = write!(text, ", `{kind}`");
    }
    if body["required"] != true {
        text.push_str(", which may be left out");
    }
    text.push_str(&body_of(operation, objects, schema, Direction::Request));
    let examples = content["examples"].as_object().into_iter().flat_map(|it| it.values());
    if let Some(example) = examples.map(|it| &it["value"]).next() {
        text.push_str(&block(example));
    }
    text
}

/// The fields of a body that only this operation has, or the name of its object.
fn body_of(
    operation: &OperationEntry,
    objects: &Objects<'_>,
    schema: &Value,
    direction: Direction,
) -> String {
    let name = objects::name(schema).filter(|name| objects.is_body_of(name, operation));
    match name {
        Some(name) if fields::is_empty(objects.schema(name)) => {
            format!(": an object. {}\n", about(objects, schema))
        }
        Some(name) if objects.has_link(name) => {
            let schema = objects.schema(name);
            format!(":\n\n{}", fields::table(objects, schema, direction))
        }
        _ => format!(": {}.\n", type_of(objects, schema, direction)),
    }
}

fn replies(operation: &OperationEntry, objects: &Objects<'_>) -> String {
    let mut text = String::new();
    let mut has_example = false;
    let mut known: Vec<&Value> = Vec::new();
    for (status, response) in operation.replies() {
        let response = objects.document().resolved(response);
        let about = word(&response["description"]).trim_end_matches('.');
        let _ = write!(text, "\n**Reply {status}**, {}", lowered(about));
        let json = &response["content"]["application/json"];
        let schema = &json["schema"];
        if schema.is_null() {
            text.push_str(".\n");
        } else if known.contains(&schema) {
            text.push_str(": the same fields.\n");
        } else {
            text.push_str(&body_of(operation, objects, schema, Direction::Reply));
            known.push(schema);
        }
        text.push_str(&other_forms(objects, response));
        text.push_str(&headers(objects, response));
        if !has_example && !json["example"].is_null() {
            text.push_str(&block(&json["example"]));
            has_example = true;
        }
    }
    text
}

/// The forms of a reply besides JSON.
fn other_forms(objects: &Objects<'_>, response: &Value) -> String {
    let mut text = String::new();
    for (kind, content) in response["content"].as_object().into_iter().flatten() {
        let about = word(&content["schema"]["description"]);
        match (kind.as_str(), content["x-events"].as_object()) {
            ("application/json" | "application/problem+json", _) => {}
            (_, Some(events)) => {
                let named: Vec<String> = events
                    .iter()
                    .map(|(name, schema)| {
                        format!("`{name}` ({})", type_of(objects, schema, Direction::Reply))
                    })
                    .collect();
                let is_only_form = response["content"].as_object().is_some_and(|it| it.len() == 1);
                let it_is = if is_only_form {
                    "It is".to_owned()
                } else {
                    format!("With `Accept: {kind}` it is")
                };
                let _ = write!(
                    text,
                    "\n{it_is} an [event stream](#event-streams) of {}.\n",
                    named.join(", ")
                );
            }
            (kind, None) if about.is_empty() => {
                let _ = write!(text, "\nIt can be `{kind}`.\n");
            }
            (kind, None) => {
                let _ = write!(text, "\nAs `{kind}`: {about}\n");
            }
        }
    }
    text
}

fn headers(objects: &Objects<'_>, response: &Value) -> String {
    let all = response["headers"].as_object().into_iter().flatten();
    let named: Vec<String> = all
        .filter(|(name, _)| !USUAL_HEADERS.contains(&name.as_str()))
        .map(|(name, header)| {
            let about = word(&objects.document().resolved(header)["description"]);
            format!("`{name}`: {}", lowered(about.trim_end_matches('.')))
        })
        .collect();
    if named.is_empty() { String::new() } else { format!("\nHeaders: {}.\n", named.join("; ")) }
}

/// The codes of this operation, with the cases that it tells.
fn refusals(operation: &OperationEntry, objects: &Objects<'_>) -> String {
    let (mut cases, mut codes, mut forms) = (String::new(), Vec::new(), Vec::new());
    for (status, response) in operation.errors() {
        let response = objects.document().resolved(response);
        for content in response["content"].as_object().into_iter().flat_map(|it| it.values()) {
            let form = objects::name(&content["schema"]).filter(|name| *name != "Problem");
            forms.extend(form.map(|name| objects.link(name)));
        }
        for code in problem_codes(response) {
            let link = format!("[`{code}`](errors/{code}.md)");
            match case(word(&response["description"]), code) {
                Some(case) => row(&mut cases, &[status, &link, case]),
                None if USUAL.contains(&code.as_str()) => {}
                None => codes.push(format!("{status} {link}")),
            }
        }
    }
    forms.sort();
    forms.dedup();
    let mut text = String::new();
    if !forms.is_empty() {
        let _ = write!(text, "\nThe body of an error is {}.\n", types::joined(&forms, "or"));
    }
    if !cases.is_empty() {
        let _ = write!(text, "\n| status | code | when |\n|---|---|---|\n{cases}");
    }
    if !codes.is_empty() {
        let also = if cases.is_empty() { "Refused with" } else { "Also refused with" };
        let _ = write!(text, "\n{also} {}.\n", codes.join(", "));
    }
    text
}

/// The codes of an error response, in any form: it has an example of each.
fn problem_codes(response: &Value) -> Vec<&String> {
    let contents = response["content"].as_object().into_iter().flat_map(|it| it.values());
    let examples = contents.filter_map(|content| content["examples"].as_object());
    examples.flat_map(|it| it.keys()).collect()
}

/// When the operation answers with a code, from a line of the description of the response.
fn case<'a>(description: &'a str, code: &str) -> Option<&'a str> {
    let start = format!("`{code}`: ");
    description.lines().find_map(|line| line.trim_start_matches("- ").strip_prefix(start.as_str()))
}

fn first_content(body: &Value) -> Option<(&str, &Value)> {
    let (kind, content) = body["content"].as_object()?.iter().next()?;
    Some((kind, content))
}

fn block(value: &Value) -> String {
    format!("\n```json\n{}\n```\n", json::written(value))
}

/// The text with a small first letter, unless it is a name.
fn lowered(text: &str) -> String {
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return String::new() };
    if letters.clone().next().is_some_and(char::is_uppercase) {
        return text.to_owned();
    }
    first.to_lowercase().chain(letters).collect()
}
