//! The OpenAPI document, with one entry for each operation.

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The methods in the order in which a section lists them.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

pub(super) struct Document {
    root: Value,
    /// By path and method.
    pub(super) operations: Vec<OperationEntry>,
}

/// An operation at all its addresses.
pub(super) struct OperationEntry {
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) summary: String,
    pub(super) text: String,
    /// Method and path; its own first, then its aliases.
    pub(super) addresses: Vec<String>,
    pub(super) value: Value,
    order: (String, usize),
}

impl Document {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let root: Value = serde_json::from_str(text).context("the document is not JSON")?;
        let operations = operations(&root);
        Ok(Self { root, operations })
    }

    /// The families of operations, with their descriptions.
    pub(super) fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        let tags = self.root["tags"].as_array().into_iter().flatten();
        tags.map(|tag| (word(&tag["name"]), word(&tag["description"])))
    }

    pub(super) fn schema(&self, name: &str) -> &Value {
        &self.root["components"]["schemas"][name]
    }

    /// The value, or the one that it refers to.
    pub(super) fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        let target = value["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
        target.and_then(|pointer| self.root.pointer(pointer)).unwrap_or(value)
    }
}

impl OperationEntry {
    /// The heading of its section.
    pub(super) fn address(&self) -> &str {
        self.addresses.first().map_or("", String::as_str)
    }

    /// The scopes of a key; `none` if no key is needed, and `any key` if any will do.
    pub(super) fn scopes(&self) -> String {
        let schemes = self.value["security"].as_array().map_or(&[][..], Vec::as_slice);
        let needed = schemes.iter().find_map(|it| it["bearer"].as_array());
        let named: Vec<String> =
            needed.into_iter().flatten().map(|it| format!("`{}`", word(it))).collect();
        let takes_visitors =
            schemes.iter().any(|it| it.as_object().is_some_and(serde_json::Map::is_empty));
        match (takes_visitors, needed.is_some(), named.is_empty()) {
            (_, false, _) | (true, true, true) => "none".to_owned(),
            (true, true, false) => format!("none, or {}", named.join(", ")),
            (false, true, true) => "any key".to_owned(),
            (false, true, false) => named.join(", "),
        }
    }
}

pub(super) fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn operations(root: &Value) -> Vec<OperationEntry> {
    let (mut found, mut aliases) = (Vec::<OperationEntry>::new(), Vec::new());
    for (path, methods) in root["paths"].as_object().into_iter().flatten() {
        for (method, value) in methods.as_object().into_iter().flatten() {
            let entry = entry(path, method, value);
            let list = if value["x-alias-of"].is_null() { &mut found } else { &mut aliases };
            list.push(entry);
        }
    }
    for alias in aliases {
        let own = word(&alias.value["x-alias-of"]);
        if let Some(operation) = found.iter_mut().find(|it| it.id == own) {
            operation.addresses.extend(alias.addresses);
        }
    }
    found.sort_by(|left, right| left.order.cmp(&right.order));
    found
}

fn entry(path: &str, method: &str, value: &Value) -> OperationEntry {
    let rank = METHODS.iter().position(|it| *it == method).unwrap_or(METHODS.len());
    let text = word(&value["description"]);
    // The scopes have a line of their own.
    let text = text.split("\n\nNeeds the scope").next().unwrap_or(text);
    OperationEntry {
        id: word(&value["operationId"]).to_owned(),
        tag: word(&value["tags"][0]).to_owned(),
        summary: word(&value["summary"]).to_owned(),
        text: text.to_owned(),
        addresses: vec![format!("{} {path}", method.to_uppercase())],
        value: value.clone(),
        order: (path.to_owned(), rank),
    }
}
