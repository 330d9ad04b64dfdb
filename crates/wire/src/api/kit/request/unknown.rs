//! Finds fields of a request that its declaration does not contain.
//!
//! Compares the name of an unknown field with the known names, so that the message can suggest the
//! correct field if one is misspelt or misplaced.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::api::kit::json::short;

/// Maximum number of unknown fields to report per request.
const MOST: usize = 20;
/// Maximum number of paths to suggest for a misplaced field.
const SUGGESTIONS: usize = 3;
/// Maximum length of a name that can be a misspelling: field names are short.
const LONGEST: usize = 64;
/// Prefix of names that are reserved for the caller.
const PRIVATE: &str = "x_";

/// The known fields of a request.
#[derive(Debug)]
pub struct KnownFields(FieldShape);

/// The known fields within a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldShape {
    /// A value without fields.
    Leaf,
    /// A value in which the caller may use any fields.
    Free,
    /// An object with these fields.
    Members(BTreeMap<String, FieldShape>),
    /// A list of values with this shape.
    Items(Box<FieldShape>),
}

/// An unknown field, with the known fields of the same object.
#[derive(Debug)]
pub struct UnknownField<'a> {
    /// Path from the object that was searched.
    pub path: String,
    name: &'a str,
    beside: &'a BTreeMap<String, FieldShape>,
}

impl UnknownField<'_> {
    /// Whether the name is most likely a misspelt field.
    pub fn is_slip(&self) -> bool {
        closest(self.name, self.beside.keys().cloned()).is_some()
    }
}

/// How deep to look for unknown fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchDepth {
    /// Only among the members of the object itself.
    Top,
    /// Also among the members of inner objects.
    All,
}

impl From<FieldShape> for KnownFields {
    fn from(shape: FieldShape) -> Self {
        Self(shape)
    }
}

impl FromIterator<(&'static str, FieldShape)> for KnownFields {
    fn from_iter<I: IntoIterator<Item = (&'static str, FieldShape)>>(fields: I) -> Self {
        let named = fields.into_iter().map(|(name, shape)| (name.to_owned(), shape));
        Self(FieldShape::Members(named.collect()))
    }
}

impl KnownFields {
    /// The shape of the request.
    pub const fn shape(&self) -> &FieldShape {
        &self.0
    }

    /// Adds the fields of another declaration.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        Self(self.0.or(other.0.clone()))
    }

    /// Whether the request itself has this field.
    pub fn has(&self, name: &str) -> bool {
        matches!(&self.0, FieldShape::Members(members) if members.contains_key(name))
    }

    /// The unknown fields of a request, up to a limit.
    pub fn unknown_fields<'a>(
        &'a self,
        members: &'a Map<String, Value>,
        depth: SearchDepth,
    ) -> Vec<UnknownField<'a>> {
        let mut found = Vec::new();
        if let FieldShape::Members(known) = &self.0 {
            look(known, members, ("", depth), &mut found);
        }
        found
    }

    /// The request without its unknown fields.
    pub fn strip(&self, mut request: Value) -> Value {
        self.0.strip(&mut request);
        request
    }

    /// Advice about an unknown field, as the end of a sentence about the field. `within` is the
    /// prefix of every path in the advice.
    pub fn advice(&self, stranger: &UnknownField<'_>, within: &str) -> String {
        let all = self.paths();
        let placed = |path: &str| {
            if within.is_empty() { path.to_owned() } else { format!("{within}.{path}") }
        };
        let last = |path: &str| path.rsplit('.').next().map(str::to_owned).unwrap_or_default();
        let places = all.iter().filter(|path| last(path) == stranger.name).take(SUGGESTIONS);
        let places: Vec<String> = places.map(|path| format!("`{}`", placed(path))).collect();
        if !places.is_empty() {
            return format!("; it belongs in {}", places.join(" or "));
        }
        let parent = stranger.path.rsplit_once('.').map(|(parent, _)| parent);
        let beside = stranger.beside.keys().map(|name| match parent {
            Some(parent) => format!("{parent}.{name}"),
            None => name.clone(),
        });
        if let Some(path) = closest(stranger.name, beside).or_else(|| closest(stranger.name, all)) {
            return format!("; did you mean `{}`?", placed(&path));
        }
        let names: Vec<&str> = stranger.beside.keys().map(String::as_str).collect();
        if names.is_empty() { String::new() } else { format!("; known are {}", names.join(", ")) }
    }

    /// The paths of all fields, outer fields first, without those of list items.
    fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut level = vec![(String::new(), &self.0)];
        while !level.is_empty() {
            let mut next = Vec::new();
            for (path, shape) in level {
                let FieldShape::Members(members) = shape else { continue };
                for (name, inner) in members {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    found.push(path.clone());
                    next.push((path, inner));
                }
            }
            level = next;
        }
        found
    }
}

/// The path whose last name is most similar, if it is similar enough to be meant.
fn closest(name: &str, paths: impl IntoIterator<Item = String>) -> Option<String> {
    if LONGEST < name.len() {
        return None;
    }
    let distance = |path: &String| {
        let last = path.rsplit('.').next().unwrap_or(path);
        let distance = strsim::damerau_levenshtein(name, last);
        (distance <= last.len().div_ceil(4)).then_some(distance)
    };
    let near = paths.into_iter().filter_map(|path| distance(&path).map(|it| (it, path)));
    near.min_by_key(|(distance, _)| *distance).map(|(_, path)| path)
}

fn look<'a>(
    known: &'a BTreeMap<String, FieldShape>,
    members: &'a Map<String, Value>,
    (path, depth): (&str, SearchDepth),
    found: &mut Vec<UnknownField<'a>>,
) {
    for (name, value) in members {
        if MOST <= found.len() {
            return;
        }
        let at = |name: &str| {
            if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
        };
        match known.get(name) {
            Some(shape) if depth == SearchDepth::All => look_within(shape, value, &at(name), found),
            Some(_) => {}
            None if name.starts_with(PRIVATE) => {}
            None => found.push(UnknownField { path: at(&short(name)), name, beside: known }),
        }
    }
}

fn look_within<'a>(
    shape: &'a FieldShape,
    value: &'a Value,
    path: &str,
    found: &mut Vec<UnknownField<'a>>,
) {
    match (shape, value) {
        (FieldShape::Members(known), Value::Object(members)) => {
            look(known, members, (path, SearchDepth::All), found);
        }
        (FieldShape::Items(shape), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                look_within(shape, item, &format!("{path}.{index}"), found);
            }
        }
        // The field's reader reports a wrong type.
        (
            FieldShape::Leaf | FieldShape::Free | FieldShape::Members(_) | FieldShape::Items(_),
            _,
        ) => {}
    }
}

impl FieldShape {
    /// The shape of a value that may have either shape.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Leaf, shape) | (shape, Self::Leaf) => shape,
            (Self::Members(mut all), Self::Members(more)) => {
                for (name, shape) in more {
                    let shape = match all.remove(&name) {
                        Some(known) => known.or(shape),
                        None => shape,
                    };
                    all.insert(name, shape);
                }
                Self::Members(all)
            }
            (Self::Items(one), Self::Items(other)) => Self::Items(Box::new(one.or(*other))),
            (Self::Free | Self::Members(_) | Self::Items(_), _) => Self::Free,
        }
    }

    fn strip(&self, value: &mut Value) {
        match (self, value) {
            (Self::Members(known), Value::Object(members)) => {
                members.retain(|name, _| known.contains_key(name));
                for (name, value) in members {
                    if let Some(shape) = known.get(name) {
                        shape.strip(value);
                    }
                }
            }
            (Self::Items(shape), Value::Array(items)) => {
                for item in items {
                    shape.strip(item);
                }
            }
            (Self::Leaf | Self::Free | Self::Members(_) | Self::Items(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{
        consensus_request::{self, DelegateRequest, ValidateRequest},
        keys::RotateKeyRequest,
        kit::request::{RequestBody, read},
        tasks::decode_submit,
    };
    use jurat_core::code::ProblemCode;
    use serde_json::json;

    fn refusal<R: RequestBody>(body: &Value) -> String {
        read::<R>(body, ProblemCode::ValidationError).map(drop).unwrap_err().detail
    }

    #[test]
    fn a_misplaced_field_is_answered_with_its_path() {
        for (body, said) in [
            (
                json!({ "replicas": 3 }),
                "`replicas` is not a known field; it belongs in `consensus.replicas`",
            ),
            (
                json!({ "policy": { "replicas": 3 } }),
                "`policy.replicas` is not a known field; it belongs in `consensus.replicas`",
            ),
            (
                json!({ "output_schema": {} }),
                "`output_schema` is not a known field; it belongs in `execution.output_schema`",
            ),
            (
                json!({ "consensus": { "tier": "safe" } }),
                "`consensus.tier` is not a known field; it belongs in `policy.tier`",
            ),
            (
                json!({ "timeout_ms": 5 }),
                "`timeout_ms` is not a known field; it belongs in `execution.timeout_ms` or `policy.timeout_ms`",
            ),
        ] {
            assert_eq!(refusal::<DelegateRequest>(&body), said);
        }
    }

    #[test]
    fn a_misspelt_field_is_answered_with_the_nearest() {
        for (body, said) in [
            (
                json!({ "consensu": {} }),
                "`consensu` is not a known field; did you mean `consensus`?",
            ),
            (
                json!({ "consensus": { "replica": 3 } }),
                "`consensus.replica` is not a known field; did you mean `consensus.replicas`?",
            ),
            (
                json!({ "replica": 3 }),
                "`replica` is not a known field; did you mean `consensus.replicas`?",
            ),
            (
                json!({ "evidence_refs": [{ "url": "a" }] }),
                "`evidence_refs.0.url` is not a known field; did you mean `evidence_refs.0.uri`?",
            ),
        ] {
            assert_eq!(refusal::<ValidateRequest>(&body), said);
        }
        let far = refusal::<RotateKeyRequest>(&json!({ "colour": 1 }));
        assert_eq!(far, "`colour` is not a known field; known are grace_seconds");
    }

    #[test]
    fn free_values_and_names_of_the_callers_own_are_not_checked() {
        let anything = json!({ "replicas": 1, "a": { "b": [{ "c": 1 }] } });
        let body = json!({
            "objective": "a", "input": anything, "context": anything, "metadata": anything,
            "x_trace": anything, "tools": [anything], "workflow": anything, "actor": anything,
            "policy": { "policy_id": "a.b", "policy_params": anything, "x_mine": 1 },
            "execution": { "output_schema": anything, "x_mine": 1 },
            "consensus": { "replicas": 1, "x_mine": 1 },
        });
        consensus_request::delegate(&body).unwrap();
        consensus_request::validate(&json!({ "claim": anything, "x_": 1 })).unwrap();
    }

    #[test]
    fn long_names_and_many_names_make_no_long_message() {
        let many: Map<String, Value> =
            (0..100_000).map(|number| (format!("{number}{}", "a".repeat(200)), json!(1))).collect();
        let problem = decode_submit(&Value::Object(many)).unwrap_err();
        assert!(problem.detail.len() < 5_000, "{}", problem.detail.len());
    }
}
