//! JSON Schemas, compiled only if the work that they can cause has a limit.

mod error;
mod graph;
mod keywords;
mod rehearsal;
mod scan;
mod unique;
mod work_limit;

use std::fmt;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

pub use self::{
    error::{SchemaError, WorkLimitError},
    scan::scan as check_limits,
};
use self::{graph::SchemaGraph, scan::InstanceShape, work_limit::WorkLimit};
use crate::{
    pattern::MAX_REGEX_BYTES,
    quote,
    work::{MAX_APPLICATIONS, MAX_REGEX_STEPS, WorkEstimate},
};

/// Bytes of a schema as canonical JSON.
pub const MAX_TEXT: usize = 64 * 1024;
/// Nested containers of a schema and of an instance.
pub const MAX_DEPTH: usize = 64;
pub const MAX_SUBSCHEMAS: usize = 2_000;
pub const MAX_ENUM: usize = 1_000;
/// Length of a chain of subschemas that apply one another to the same value.
pub const MAX_IN_PLACE: usize = 200;
/// Applications of subschemas to one value, by one subschema.
pub const MAX_EXPANSION: u64 = 10_000;

/// Listing every mismatch costs more than finding one, in time and in memory.
const MAX_LISTED_APPLICATIONS: u64 = 20_000;
const MAX_MESSAGES: usize = 5;
const MAX_MESSAGE_CHARS: usize = 200;

/// A compiled schema with an upper limit of the work that it causes.
pub struct LimitedSchema {
    validator: Box<Validator>,
    limit: WorkLimit,
}

/// Whether an instance matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaMatch {
    Yes,
    /// The first few mismatches, each with its path in the instance.
    No(Vec<String>),
}

impl LimitedSchema {
    /// Compiles a schema, as draft 2020-12 unless `$schema` names another draft.
    ///
    /// A caller that knows the canonical text of the schema compares its length with `MAX_TEXT`;
    /// here only a lower limit of that length is counted.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        check_limits(schema)?;
        let graph = SchemaGraph::of(schema)?;
        let limit = WorkLimit::of(&graph)?;
        rehearsal::rehearse(&graph)?;
        let validator = jsonschema::options()
            .with_pattern_options(
                PatternOptions::regex().size_limit(MAX_REGEX_BYTES).dfa_size_limit(MAX_REGEX_BYTES),
            )
            .with_keyword("uniqueItems", unique::keyword)
            .offline()
            .build(schema)
            .map_err(|error| SchemaError::invalid(&error))?;
        Ok(Self { validator: Box::new(validator), limit })
    }

    /// States of all its patterns together.
    pub const fn states(&self) -> u64 {
        self.limit.states()
    }

    /// An upper limit of the work to check this instance.
    pub fn estimate(&self, instance: &Value) -> WorkEstimate {
        self.limit.work(&InstanceShape::of(instance))
    }

    /// Checks an instance, unless that could take too much work.
    pub fn check(&self, instance: &Value) -> Result<SchemaMatch, WorkLimitError> {
        let shape = InstanceShape::of(instance);
        if MAX_DEPTH < shape.depth() {
            return Err(WorkLimitError::TooDeep);
        }
        let work = self.limit.work(&shape);
        if MAX_APPLICATIONS < work.applications {
            return Err(WorkLimitError::Applications);
        }
        if MAX_REGEX_STEPS < work.regex_steps {
            return Err(WorkLimitError::RegexSteps);
        }
        if self.validator.is_valid(instance) {
            return Ok(SchemaMatch::Yes);
        }
        if MAX_LISTED_APPLICATIONS < work.applications {
            return Ok(SchemaMatch::unlisted());
        }
        let errors = self.validator.iter_errors(instance);
        Ok(SchemaMatch::No(errors.take(MAX_MESSAGES).map(|error| message(&error)).collect()))
    }
}

impl fmt::Debug for LimitedSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitedSchema").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl SchemaMatch {
    /// A mismatch without its details.
    pub fn unlisted() -> Self {
        Self::No(vec!["The instance does not match the schema.".to_owned()])
    }
}

fn message(error: &jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().as_str();
    let path = if path.is_empty() { "the root" } else { path };
    quote::cut(&format_args!("at {path}: {error}"), MAX_MESSAGE_CHARS)
}
