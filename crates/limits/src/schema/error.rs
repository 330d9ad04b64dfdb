//! Why a schema, or the work of checking an instance, is refused.

use std::fmt;

use super::{MAX_DEPTH, MAX_ENUM, MAX_EXPANSION, MAX_IN_PLACE, MAX_SUBSCHEMAS, MAX_TEXT};
use crate::{
    pattern::{MAX_PATTERNS, PatternError},
    quote::cut,
    work::{MAX_APPLICATIONS, MAX_REGEX_STEPS},
};

const MAX_QUOTE_CHARS: usize = 150;
const MAX_DETAIL_CHARS: usize = 300;

/// A schema that is not compiled. `at` is a JSON Pointer into the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error("the schema has more than {MAX_TEXT} bytes as canonical JSON; make it smaller")]
    TooLarge,
    #[error(
        "the schema nests deeper than {MAX_DEPTH} at `{}`; move parts to `$defs` and refer to them",
        quote(at)
    )]
    TooDeep { at: String },
    #[error(
        "the schema has more than {MAX_SUBSCHEMAS} subschemas; share repeated ones through `$defs`"
    )]
    TooManySubschemas,
    #[error(
        "`enum` at `{}` has more than {MAX_ENUM} values; give fewer, or use a pattern",
        quote(at)
    )]
    EnumTooLarge { at: String },
    #[error(
        "the schema has more than {MAX_PATTERNS} patterns, the first too many at `{}`; use fewer",
        quote(at)
    )]
    TooManyPatterns { at: String },
    #[error("the pattern at `{}` is refused: {why}", quote(at))]
    Pattern { at: String, why: PatternError },
    #[error(
        "`{}` refers to `{reference}`, which is outside this schema and is never fetched; copy it to `$defs` and refer to `#/$defs/<name>`",
        quote(at)
    )]
    RemoteRef { at: String, reference: String },
    #[error(
        "`{}` refers to `{reference}`, which does not exist in this schema; correct the reference",
        quote(at)
    )]
    DanglingRef { at: String, reference: String },
    #[error(
        "`$schema` at `{}` names `{uri}`, which is not a known draft; use draft 4, 6, 7, 2019-09 or 2020-12",
        quote(at)
    )]
    UnknownDraft { at: String, uri: String },
    #[error(
        "the subschema at `{}` refers back to itself for the same value and never terminates; break the cycle",
        quote(at)
    )]
    Cycle { at: String },
    #[error(
        "more than {MAX_IN_PLACE} subschemas apply one another to the same value, starting at `{}`; shorten the chain of references",
        quote(at)
    )]
    ChainTooLong { at: String },
    #[error(
        "the subschema at `{}` may apply more than {MAX_EXPANSION} subschemas to one value; refer to the same ones less often",
        quote(at)
    )]
    Expansion { at: String },
    #[error(
        "compiling the subschema at `{}` would take too much work; use fewer `unevaluatedProperties` and `unevaluatedItems` within one another, and fewer `$id`",
        quote(at)
    )]
    Compilation { at: String },
    #[error("the schema is not valid at `{}`: {detail}", quote(at))]
    Invalid { at: String, detail: String },
}

impl SchemaError {
    /// A short stable name.
    pub const fn slug(&self) -> &'static str {
        match self {
            Self::TooLarge => "schema_too_large",
            Self::TooDeep { .. } => "schema_too_deep",
            Self::TooManySubschemas => "schema_too_many_nodes",
            Self::EnumTooLarge { .. } => "schema_enum_too_large",
            Self::TooManyPatterns { .. } => "schema_too_many_patterns",
            Self::Pattern { .. } => "schema_pattern_refused",
            Self::RemoteRef { .. } => "schema_remote_ref",
            Self::DanglingRef { .. } => "schema_dangling_ref",
            Self::UnknownDraft { .. } => "schema_unknown_draft",
            Self::Cycle { .. } => "schema_cycle",
            Self::ChainTooLong { .. } => "schema_chain_too_long",
            Self::Expansion { .. } | Self::Compilation { .. } => "schema_expansion",
            Self::Invalid { .. } => "schema_invalid",
        }
    }

    pub(super) fn invalid(error: &jsonschema::ValidationError<'_>) -> Self {
        Self::Invalid {
            at: error.instance_path().as_str().to_owned(),
            detail: cut(&error, MAX_DETAIL_CHARS),
        }
    }

    pub(super) fn bad_uri(at: &str, detail: &impl fmt::Display) -> Self {
        Self::Invalid { at: at.to_owned(), detail: cut(detail, MAX_DETAIL_CHARS) }
    }
}

/// Why an instance is not checked: it could take too much work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkLimitError {
    #[error("The output nests deeper than {MAX_DEPTH}.")]
    TooDeep,
    #[error(
        "Checking this output may take more than {MAX_APPLICATIONS} applications of subschemas."
    )]
    Applications,
    #[error(
        "Matching the patterns of the schema against this output may take more than {MAX_REGEX_STEPS} steps."
    )]
    RegexSteps,
}

/// A quotation from a schema, cut so that an error stays readable.
pub(super) fn quote(text: &str) -> String {
    cut(&text, MAX_QUOTE_CHARS)
}
