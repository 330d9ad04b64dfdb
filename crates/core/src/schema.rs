//! JSON Schemas from callers, with their digest and the dialect in which they are read.

mod wattswarm;

use std::{fmt, sync::Arc};

use jurat_limits::schema::LimitedSchema;
pub use jurat_limits::{
    schema::{MAX_DEPTH, MAX_TEXT, SchemaError, SchemaMatch, WorkLimitError, check_limits},
    work::WorkEstimate,
};
use serde_json::Value;

use crate::canonical;

/// A compiled schema with a limit on the work that it causes. Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    compiled: Arc<CompiledSchema>,
}

struct CompiledSchema {
    source: Value,
    digest: String,
    text_bytes: usize,
    dialect: SchemaDialect,
}

/// How a schema is read.
enum SchemaDialect {
    /// Every keyword of its draft.
    Whole(LimitedSchema),
    /// The few keywords that WattSwarm knows.
    WattSwarm,
}

impl Schema {
    /// Compiles a schema, as draft 2020-12 unless `$schema` names another draft.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let text = limited_text(schema)?;
        let dialect = SchemaDialect::Whole(LimitedSchema::compile(schema)?);
        Ok(Self::read(schema, &text, dialect))
    }

    /// Reads a schema as WattSwarm does, which ignores all but a few keywords. Refuses only a schema
    /// that is too large or too deep.
    pub fn for_wattswarm(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self::read(schema, &limited_text(schema)?, SchemaDialect::WattSwarm))
    }

    fn read(schema: &Value, text: &[u8], dialect: SchemaDialect) -> Self {
        let compiled = CompiledSchema {
            source: schema.clone(),
            digest: canonical::digest(text),
            text_bytes: text.len(),
            dialect,
        };
        Self { compiled: Arc::new(compiled) }
    }

    /// `sha256:` and the digest of the schema's canonical JSON.
    pub fn digest(&self) -> &str {
        &self.compiled.digest
    }

    /// The schema as it was given.
    pub fn source(&self) -> &Value {
        &self.compiled.source
    }

    /// Whether the schema is `{}` or `true`, and so accepts any value.
    pub fn is_open(&self) -> bool {
        match self.source() {
            Value::Object(members) => members.is_empty(),
            Value::Bool(accepts_all) => *accepts_all,
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
        }
    }

    /// Roughly how many bytes of memory the compiled schema takes, for caches.
    pub fn footprint(&self) -> u64 {
        let text = u64::try_from(self.compiled.text_bytes).unwrap_or(u64::MAX);
        let states = self.states();
        4096_u64.saturating_add(text.saturating_mul(64)).saturating_add(states.saturating_mul(256))
    }

    /// States of all its patterns together.
    pub(crate) fn states(&self) -> u64 {
        match &self.compiled.dialect {
            SchemaDialect::Whole(schema) => schema.states(),
            SchemaDialect::WattSwarm => 0,
        }
    }

    /// The length of its canonical text.
    pub(crate) fn text_bytes(&self) -> usize {
        self.compiled.text_bytes
    }

    /// An upper limit of the work to check this instance.
    pub fn estimate(&self, instance: &Value) -> WorkEstimate {
        match &self.compiled.dialect {
            SchemaDialect::Whole(schema) => schema.estimate(instance),
            SchemaDialect::WattSwarm => wattswarm::work(self.source()),
        }
    }

    /// Whether the instance matches as WattSwarm reads the schema, however it was compiled.
    pub(crate) fn matches_as_wattswarm(&self, instance: &Value) -> bool {
        wattswarm::matches(instance, self.source())
    }

    /// Checks an instance, unless that could take too much work.
    pub fn check(&self, instance: &Value) -> Result<SchemaMatch, WorkLimitError> {
        match &self.compiled.dialect {
            SchemaDialect::Whole(schema) => schema.check(instance),
            SchemaDialect::WattSwarm if self.matches_as_wattswarm(instance) => Ok(SchemaMatch::Yes),
            SchemaDialect::WattSwarm => Ok(SchemaMatch::unlisted()),
        }
    }
}

/// The canonical text of a schema that is neither too deep nor too large.
fn limited_text(schema: &Value) -> Result<Vec<u8>, SchemaError> {
    // Writing a value is recursive, so its depth is checked first.
    check_limits(schema)?;
    let text = canonical::canonical(schema);
    if MAX_TEXT < text.len() { Err(SchemaError::TooLarge) } else { Ok(text) }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.digest()).finish()
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_schemas_have_equal_digests() {
        let one = Schema::compile(&json!({"type": "number", "minimum": 1.0})).unwrap();
        let same = Schema::compile(&json!({"minimum": 1, "type": "number"})).unwrap();
        assert_eq!(one.digest(), same.digest());
        assert!(one.digest().starts_with("sha256:"));
        assert!(Schema::compile(&json!({})).unwrap().is_open());
        assert!(!one.is_open());
    }

    #[test]
    fn the_length_of_the_canonical_text_is_limited() {
        // Shorter than the limit without its punctuation, and longer with it.
        let members: Vec<String> = (0..9_000).map(|n| format!("m{n}")).collect();
        let long = json!({ "required": members });
        assert_eq!(check_limits(&long), Ok(()));
        assert_eq!(Schema::compile(&long).unwrap_err(), SchemaError::TooLarge);
        assert_eq!(Schema::for_wattswarm(&long).unwrap_err(), SchemaError::TooLarge);
    }
}
