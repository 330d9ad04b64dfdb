//! Decodes documents, and names the field that is wrong.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A field with the wrong shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct ShapeError {
    /// Path of the field, such as `candidate.evidence_refs[0].digest`; `body` for the whole
    /// document.
    pub field: String,
    pub problem: String,
}

impl ShapeError {
    /// An error about the field with this path.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

pub(super) fn decode<T: DeserializeOwned>(body: Value) -> Result<T, ShapeError> {
    if !body.is_object() {
        return Err(ShapeError::new("body", "must be a JSON object"));
    }
    serde_path_to_error::deserialize(body).map_err(|error| {
        let path = error.path().to_string();
        named(&path, &error.inner().to_string())
    })
}

/// Moves the name of a missing field from serde's message into the path, which is easier to read.
fn named(path: &str, problem: &str) -> ShapeError {
    let root = path.is_empty() || path == ".";
    let missing = problem.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    match missing {
        Some(name) if root => ShapeError::new(name, "is missing"),
        Some(name) => ShapeError::new(format!("{path}.{name}"), "is missing"),
        None if root => ShapeError::new("body", plain(problem)),
        None => ShapeError::new(path, plain(problem)),
    }
}

/// Replaces the Rust types in serde's message with plain words.
fn plain(problem: &str) -> String {
    let Some((before, expected)) = problem.rsplit_once("expected ") else {
        return problem.to_owned();
    };
    let plain = match expected {
        "u16" => "a whole number from 0 to 65535",
        "u32" | "u64" => "a whole number that is not negative",
        "i64" => "a whole number",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        other if other.starts_with("struct ") => "an object",
        other => other,
    };
    format!("{before}expected {plain}")
}

/// Reads null as the default, as if the member were absent.
pub(super) fn null_is_default<'de, D, T>(reader: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(reader)?.unwrap_or_default())
}
