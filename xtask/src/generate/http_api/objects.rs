//! Where the page describes each object: in its one operation, in its family, or at the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde_json::Value;

use super::{
    anchors::anchor,
    document::{Document, OperationEntry, word},
    fields,
    types::Direction,
};

/// Schemas that other text explains, with the place of that text.
const EXPLAINED: &[(&str, &str)] = &[
    ("ErrorCode", "error-codes.md"),
    ("FailureCode", "#failures"),
    ("Label", "#labels"),
    ("Problem", "#errors"),
];

/// A longer list of values gets a section of its own.
const MOST_WORDS: usize = 7;

/// The part of the page that describes an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectHome<'a> {
    /// The body of this operation.
    Body(&'a str),
    /// Part of a body of this operation.
    Operation(&'a str),
    Tag(&'a str),
    Shared,
}

pub(super) struct Objects<'a> {
    document: &'a Document,
    homes: BTreeMap<&'a str, ObjectHome<'a>>,
    in_requests: BTreeSet<&'a str>,
}

impl<'a> Objects<'a> {
    pub(super) fn of(document: &'a Document) -> Self {
        let mut users: BTreeMap<&str, Vec<&OperationEntry>> = BTreeMap::new();
        let mut in_requests = BTreeSet::new();
        let mut bodies = BTreeSet::new();
        for operation in &document.operations {
            let mut reached = BTreeSet::new();
            for schema in schemas(&operation.value["requestBody"]) {
                reach(document, schema, &mut reached);
                bodies.extend(name(schema));
            }
            in_requests.extend(reached.iter().copied());
            for (_, response) in operation.replies() {
                for schema in schemas(response) {
                    reach(document, schema, &mut reached);
                    bodies.extend(name(schema));
                }
            }
            for (_, response) in operation.errors() {
                for schema in schemas(document.resolved(response)) {
                    reach(document, schema, &mut reached);
                }
            }
            for name in reached {
                users.entry(name).or_default().push(operation);
            }
        }
        let home = |(name, users): (&'a str, Vec<&'a OperationEntry>)| {
            let first = *users.first()?;
            let home = match users.as_slice() {
                [_] if bodies.contains(name) => ObjectHome::Body(first.address()),
                [_] => ObjectHome::Operation(first.address()),
                all if all.iter().all(|it| it.tag == first.tag) => ObjectHome::Tag(&first.tag),
                _ => ObjectHome::Shared,
            };
            Some((name, home))
        };
        Self { document, homes: users.into_iter().filter_map(home).collect(), in_requests }
    }

    pub(super) const fn document(&self) -> &'a Document {
        self.document
    }

    pub(super) fn schema(&self, name: &str) -> &'a Value {
        self.document.schema(name)
    }

    /// The name of the schema that this one refers to.
    pub(super) fn name_of<'b>(&self, schema: &'b Value) -> Option<&'b str> {
        name(schema)
    }

    /// The schema of the items, if this is a page of a list.
    pub(super) fn page_item(&self, name: &str) -> Option<&'a Value> {
        let fields = self.schema(name)["properties"].as_object()?;
        let is_page = fields.len() == 2 && fields.contains_key("next_cursor");
        fields.get("items").filter(|_| is_page).map(|items| &items["items"])
    }

    /// Whether the object has a place of its own, to which others link.
    pub(super) fn has_link(&self, name: &str) -> bool {
        let schema = self.schema(name);
        let has_fields = schema["properties"].as_object().is_some_and(|it| !it.is_empty());
        let has_many = schema["enum"].as_array().is_some_and(|it| MOST_WORDS < it.len());
        explained(name).is_some() || (has_fields || has_many) && self.page_item(name).is_none()
    }

    pub(super) fn link(&self, name: &str) -> String {
        let target = match (explained(name), self.homes.get(name)) {
            (Some(place), _) => place.to_owned(),
            (None, Some(ObjectHome::Body(address))) => format!("#{}", anchor(address)),
            (None, _) => format!("#{}", anchor(&heading(name))),
        };
        format!("[`{name}`]({target})")
    }

    /// Whether the object is described in the section of this operation, as its body.
    pub(super) fn is_body_of(&self, name: &str, operation: &OperationEntry) -> bool {
        self.homes.get(name) == Some(&ObjectHome::Body(operation.address()))
    }

    /// The table that the chapters have in one place.
    pub(super) fn problem_fields(&self) -> String {
        fields::table(self, self.schema("Problem"), Direction::Reply)
    }

    /// The objects that only this operation uses.
    pub(super) fn sections_of(&self, operation: &OperationEntry) -> String {
        self.sections(ObjectHome::Operation(operation.address()), "####")
    }

    pub(super) fn sections_of_tag(&self, tag: &str) -> String {
        self.sections(ObjectHome::Tag(tag), "###")
    }

    pub(super) fn shared_sections(&self) -> String {
        self.sections(ObjectHome::Shared, "###")
    }

    fn sections(&self, home: ObjectHome<'_>, level: &str) -> String {
        let mut text = String::new();
        for (name, _) in self.homes.iter().filter(|(_, it)| **it == home) {
            if !self.has_link(name) || explained(name).is_some() {
                continue;
            }
            let schema = self.schema(name);
            let _ = write!(text, "\n{level} {}\n\n", heading(name));
            let about = word(&schema["description"]).replace('\n', " ");
            if !about.is_empty() {
                let _ = write!(text, "{about}\n\n");
            }
            let is_sent = self.in_requests.contains(name);
            let direction = if is_sent { Direction::Request } else { Direction::Reply };
            text.push_str(&fields::table(self, schema, direction));
        }
        text
    }

    /// The values that the chapters by hand should explain, and do not.
    pub(super) fn missing_in(&self, chapters: &str) -> Vec<String> {
        let mut missing = Vec::new();
        for (name, _) in EXPLAINED.iter().filter(|(_, place)| place.starts_with('#')) {
            let values = self.schema(name)["enum"].as_array().into_iter().flatten().map(word);
            let is_missing = |word: &&str| !chapters.contains(&format!("`{word}`"));
            missing.extend(values.filter(is_missing).map(|word| format!("`{word}` of `{name}`")));
        }
        missing
    }
}

impl OperationEntry {
    /// The replies that are no errors.
    pub(super) fn replies(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.responses().filter(|(status, _)| *status < "400")
    }

    pub(super) fn errors(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.responses().filter(|(status, _)| "400" <= *status)
    }

    fn responses(&self) -> impl Iterator<Item = (&str, &Value)> {
        let responses = self.value["responses"].as_object().into_iter().flatten();
        responses.map(|(status, response)| (status.as_str(), response))
    }
}

fn heading(name: &str) -> String {
    format!("Object `{name}`")
}

fn explained(name: &str) -> Option<&'static str> {
    EXPLAINED.iter().find(|(of, _)| *of == name).map(|(_, place)| *place)
}

fn name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().and_then(|it| it.strip_prefix("#/components/schemas/"))
}

/// The schemas of a request or of a response, and those of its events.
fn schemas(body: &Value) -> impl Iterator<Item = &Value> {
    let contents = body["content"].as_object().into_iter().flat_map(|it| it.values());
    contents.flat_map(|content| {
        let events = content["x-events"].as_object().into_iter().flat_map(|it| it.values());
        [&content["schema"]].into_iter().chain(events)
    })
}

/// Every named schema that a schema needs.
fn reach<'a>(document: &'a Document, schema: &'a Value, found: &mut BTreeSet<&'a str>) {
    if let Some(name) = name(schema)
        && found.insert(name)
    {
        reach(document, document.schema(name), found);
    }
    match schema {
        Value::Object(members) => members.values().for_each(|it| reach(document, it, found)),
        Value::Array(items) => items.iter().for_each(|it| reach(document, it, found)),
        _ => {}
    }
}
