//! Scans untrusted JSON without recursion, before anything else touches it.

use serde_json::Value;

use super::{MAX_DEPTH, MAX_TEXT, error::SchemaError};
use crate::{size::as_u64, work::MAX_APPLICATIONS};

/// More values than this are refused under any schema, so counting stops.
const MAX_COUNTED: u64 = MAX_APPLICATIONS + 1;

/// Refuses a schema that is too deep or too large for the recursive code that follows.
pub fn scan(schema: &Value) -> Result<(), SchemaError> {
    let mut least_bytes = 0_usize;
    let mut stack = vec![(schema, 1_usize)];
    while let Some((value, depth)) = stack.pop() {
        // The minimum number of bytes that a value is written in.
        least_bytes = least_bytes.saturating_add(1);
        match value {
            Value::String(text) => least_bytes = least_bytes.saturating_add(text.len()),
            Value::Array(items) => {
                stack.extend(items.iter().take(MAX_TEXT + 1).map(|item| (item, depth + 1)));
            }
            Value::Object(members) => {
                for (name, member) in members.iter().take(MAX_TEXT + 1) {
                    least_bytes = least_bytes.saturating_add(name.len());
                    stack.push((member, depth + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => continue,
        }
        if MAX_DEPTH < depth && !value.is_string() {
            return Err(SchemaError::TooDeep { at: deepest(schema) });
        }
        if MAX_TEXT < least_bytes || MAX_TEXT < stack.len() {
            return Err(SchemaError::TooLarge);
        }
    }
    Ok(())
}

/// The pointer to the first container that is too deep. Pointers are built only for an error.
fn deepest(schema: &Value) -> String {
    let mut stack = vec![(schema, 1_usize, String::new())];
    while let Some((value, depth, at)) = stack.pop() {
        if MAX_DEPTH < depth && (value.is_object() || value.is_array()) {
            return at;
        }
        match value {
            Value::Array(items) => {
                let items = items.iter().enumerate();
                stack.extend(items.map(|(n, item)| (item, depth + 1, join(&at, &n.to_string()))));
            }
            Value::Object(members) => {
                stack.extend(members.iter().map(|(name, it)| (it, depth + 1, join(&at, name))));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    String::new()
}

/// A JSON Pointer with one more segment.
pub(super) fn join(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The properties of an instance that determine the work of a schema, by depth.
#[derive(Debug)]
pub(super) struct InstanceShape {
    levels: Vec<ShapeLevel>,
    /// Whether counting stopped early.
    is_cut: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ShapeLevel {
    /// Values at this depth.
    pub(super) values: u64,
    /// Bytes of the strings at this depth and of the names of members at it.
    pub(super) bytes: u64,
}

impl InstanceShape {
    pub(super) fn of(instance: &Value) -> Self {
        let mut shape = Self { levels: Vec::new(), is_cut: false };
        let mut counted = 0_u64;
        let mut stack = vec![(instance, 0_usize)];
        while let Some((value, depth)) = stack.pop() {
            counted += 1;
            shape.level(depth).values += 1;
            // One level too many, or one value too many, is enough to refuse.
            if MAX_DEPTH < depth || MAX_COUNTED <= counted {
                shape.is_cut = true;
                break;
            }
            match value {
                Value::String(text) => shape.level(depth).bytes += as_u64(text.len()),
                Value::Array(items) => stack.extend(items.iter().map(|item| (item, depth + 1))),
                Value::Object(members) => {
                    for (name, member) in members {
                        shape.level(depth + 1).bytes += as_u64(name.len());
                        stack.push((member, depth + 1));
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        shape
    }

    /// How deeply containers are nested; at least the number of levels below the root.
    pub(super) fn depth(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }

    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(super) fn levels(&self) -> &[ShapeLevel] {
        &self.levels
    }

    fn level(&mut self, depth: usize) -> &mut ShapeLevel {
        if self.levels.len() <= depth {
            self.levels.resize(depth + 1, ShapeLevel::default());
        }
        &mut self.levels[depth]
    }
}
