//! JSON Schemas from callers, compiled within bounds.

mod error;
mod graph;
mod keywords;
mod pattern;
mod rehearsal;
mod scan;
mod unique;
mod wattswarm;
mod work_limit;

use std::{fmt, sync::Arc};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

pub(crate) use self::{
    error::PatternError, graph::MAX_STATES, pattern::compile as compile_pattern,
};
pub use self::{
    error::{SchemaError, WorkLimitError},
    scan::scan as check_limits,
    work_limit::WorkEstimate,
};
use self::{graph::SchemaGraph, scan::InstanceShape, work_limit::WorkLimit};
use crate::canonical;

/// Canonical text of a schema, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// Containers within containers, of a schema and of an instance.
pub const MAX_DEPTH: usize = 64;
pub const MAX_SUBSCHEMAS: usize = 2_000;
pub const MAX_ENUM: usize = 1_000;
pub const MAX_PATTERNS: usize = 50;
pub const MAX_PATTERN_BYTES: usize = 512;
/// Subschemas that apply one another to the same value, one after the other.
pub const MAX_IN_PLACE: usize = 200;
/// Applications of subschemas to one value, by one subschema.
pub const MAX_EXPANSION: u64 = 10_000;
/// Applications of subschemas to the values of one instance.
pub const MAX_APPLICATIONS: u64 = 1_000_000;
/// String bytes times states of the patterns that read them.
pub const MAX_REGEX_STEPS: u64 = 100_000_000;

/// Listing every mismatch costs more than finding one, in time and in memory.
const MAX_LISTED_APPLICATIONS: u64 = 20_000;
const MAX_MESSAGES: usize = 5;
const MAX_MESSAGE_CHARS: usize = 200;
const MAX_REGEX_BYTES: usize = 4 * 1024 * 1024;

/// A compiled schema with a bound on the work it takes. Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    compiled: Arc<CompiledSchema>,
}

struct CompiledSchema {
    source: Value,
    digest: String,
    text_bytes: usize,
    reading: SchemaDialect,
}

/// How a schema is read.
enum SchemaDialect {
    /// Every keyword of its draft.
    Whole { validator: Box<Validator>, bound: WorkLimit },
    /// The few keywords that WattSwarm knows.
    WattSwarm,
}

/// Whether an instance matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaMatch {
    Yes,
    /// The first few mismatches, each with the place in the instance.
    No(Vec<String>),
}

impl Schema {
    /// Compiles a schema, or says why it is refused. Draft 2020-12 unless `$schema` names another.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let text = limited_text(schema)?;
        let graph = SchemaGraph::of(schema)?;
        let bound = WorkLimit::of(&graph)?;
        rehearsal::rehearse(&graph)?;
        let validator = jsonschema::options()
            .with_pattern_options(
                PatternOptions::regex().size_limit(MAX_REGEX_BYTES).dfa_size_limit(MAX_REGEX_BYTES),
            )
            .with_keyword("uniqueItems", unique::keyword)
            .offline()
            .build(schema)
            .map_err(|error| SchemaError::invalid(&error))?;
        let reading = SchemaDialect::Whole { validator: Box::new(validator), bound };
        Ok(Self::read(schema, &text, reading))
    }

    /// Takes a schema as WattSwarm does, which ignores all but a few keywords. Only one that is too
    /// large or too deep is refused.
    pub fn for_wattswarm(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self::read(schema, &limited_text(schema)?, SchemaDialect::WattSwarm))
    }

    fn read(schema: &Value, text: &[u8], reading: SchemaDialect) -> Self {
        let compiled = CompiledSchema {
            source: schema.clone(),
            digest: canonical::digest(text),
            text_bytes: text.len(),
            reading,
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

    /// Whether the schema is `{}` or `true` and so takes anything.
    pub fn is_open(&self) -> bool {
        match self.source() {
            Value::Object(members) => members.is_empty(),
            Value::Bool(takes_all) => *takes_all,
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
        match &self.compiled.reading {
            SchemaDialect::Whole { bound, .. } => bound.states(),
            SchemaDialect::WattSwarm => 0,
        }
    }

    /// The length of its canonical text.
    pub(crate) fn text_bytes(&self) -> usize {
        self.compiled.text_bytes
    }

    /// An upper bound on the work to check this instance.
    pub fn estimate(&self, instance: &Value) -> WorkEstimate {
        match &self.compiled.reading {
            SchemaDialect::Whole { bound, .. } => bound.work(&InstanceShape::of(instance)),
            SchemaDialect::WattSwarm => wattswarm::work(self.source()),
        }
    }

    /// Whether the instance matches as WattSwarm reads the schema, however it was compiled.
    pub(crate) fn matches_as_wattswarm(&self, instance: &Value) -> bool {
        wattswarm::matches(instance, self.source())
    }

    /// Whether the instance matches, unless finding out could take too much work.
    pub fn check(&self, instance: &Value) -> Result<SchemaMatch, WorkLimitError> {
        let SchemaDialect::Whole { validator, bound } = &self.compiled.reading else {
            let mismatch = || vec!["The instance does not match the schema.".to_owned()];
            let is_match = self.matches_as_wattswarm(instance);
            return Ok(if is_match { SchemaMatch::Yes } else { SchemaMatch::No(mismatch()) });
        };
        let shape = InstanceShape::of(instance);
        if MAX_DEPTH < shape.depth() {
            return Err(WorkLimitError::TooDeep);
        }
        let work = bound.work(&shape);
        if MAX_APPLICATIONS < work.applications {
            return Err(WorkLimitError::Applications);
        }
        if MAX_REGEX_STEPS < work.regex_steps {
            return Err(WorkLimitError::RegexSteps);
        }
        if validator.is_valid(instance) {
            return Ok(SchemaMatch::Yes);
        }
        if MAX_LISTED_APPLICATIONS < work.applications {
            return Ok(SchemaMatch::No(vec!["The instance does not match the schema.".to_owned()]));
        }
        let errors = validator.iter_errors(instance);
        Ok(SchemaMatch::No(errors.take(MAX_MESSAGES).map(|error| message(&error)).collect()))
    }
}

/// The canonical text of a schema that is neither too deep nor too large.
fn limited_text(schema: &Value) -> Result<Vec<u8>, SchemaError> {
    scan::scan(schema)?;
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

fn message(error: &jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().as_str();
    let place = if path.is_empty() { "the root" } else { path };
    error::cut(&format_args!("at {place}: {error}"), MAX_MESSAGE_CHARS)
}
