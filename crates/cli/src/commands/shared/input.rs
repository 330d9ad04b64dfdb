//! Reads input files with a size limit, and as strict JSON, which has exactly one meaning.

use std::{
    collections::BTreeMap,
    io::{self, Read as _},
    path::Path,
};

use jurat_wire::strict_json;
use serde_json::{Map, Value};

use crate::failure::CliFailure;

/// Maximum size of an input: more than the server accepts, so the server can refuse it.
pub(crate) const LARGEST: u64 = 2 * 1024 * 1024;

/// The first `most` bytes of a file; `-` is standard input.
pub(crate) fn read(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(file)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// A whole file. Error messages call it `name`.
pub(crate) fn whole(name: &str, file: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let bytes = read(file, most)
        .map_err(|error| CliFailure::usage(format!("{name} cannot be read: {error}")))?;
    if most <= u64::try_from(bytes.len()).unwrap_or(u64::MAX) {
        let text = format!("{name} is larger than {} MiB, which is too large", most >> 20);
        return Err(CliFailure::usage(text));
    }
    Ok(bytes)
}

/// Reads a file as one JSON object.
pub(crate) fn object(name: &str, file: &Path) -> anyhow::Result<Map<String, Value>> {
    object_of(name, &whole(name, file, LARGEST)?)
}

/// Parses a text as one JSON object.
pub(crate) fn object_of(name: &str, bytes: &[u8]) -> anyhow::Result<Map<String, Value>> {
    let value = strict_json::parse(bytes)
        .map_err(|error| CliFailure::usage(format!("{name} is not JSON: {error}")))?;
    match value {
        Value::Object(members) => Ok(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(CliFailure::usage(format!("{name} must contain one JSON object")))
        }
    }
}

/// Parses a text as one JSON object whose members are strings.
pub(crate) fn texts_of(name: &str, bytes: &[u8]) -> anyhow::Result<BTreeMap<String, String>> {
    let text = |(member, value): (String, Value)| match value {
        Value::String(text) => Ok((member, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(CliFailure::usage(format!("`{member}` in {name} must be a string")))
        }
    };
    object_of(name, bytes)?.into_iter().map(text).collect()
}
