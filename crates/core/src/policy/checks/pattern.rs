//! The check `regex`, and the patterns in expressions: linear in time, limited in size.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::{CheckFailure, kind_of, read::CheckMembers};
use crate::{
    policy::{
        cost::as_u64,
        params::{BindError, short},
        schema_thresholds::shown,
    },
    reason,
    schema::{PatternError, WorkEstimate, compile_pattern},
};

/// Patterns by their text.
pub(super) type Patterns = BTreeMap<String, Pattern>;

#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub(super) regex: Regex,
    /// The number of states of its automaton.
    pub(super) states: u64,
}

impl Pattern {
    pub(super) fn compile(text: &str) -> Result<Self, PatternError> {
        let (regex, states) = compile_pattern(text)?;
        Ok(Self { regex, states })
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

/// A pattern, and whether it must match.
#[derive(Debug, PartialEq)]
pub(super) struct RegexCheck {
    pattern: Pattern,
    matches: bool,
}

impl RegexCheck {
    pub(super) fn read(members: &CheckMembers<'_>) -> Result<Self, BindError> {
        let (at, given) = members.get("regex");
        let text = given.as_str().ok_or_else(|| at.refuse("must be a pattern, as a string"))?;
        let pattern = Pattern::compile(text).map_err(|why| at.refuse(&refusal(why)))?;
        let matches = members.optional("matches", "true or false", Value::as_bool)?;
        Ok(Self { pattern, matches: matches.unwrap_or(true) })
    }

    pub(super) fn states(&self) -> u64 {
        self.pattern.states
    }

    pub(super) fn work(&self, found: &Value) -> WorkEstimate {
        let bytes = as_u64(found.as_str().map_or(0, str::len));
        let regex_steps = bytes.saturating_mul(self.pattern.states);
        WorkEstimate { regex_steps, ..WorkEstimate::default() }
    }

    pub(super) fn judge(&self, found: &Value, place: &str) -> Result<(), CheckFailure> {
        let Some(text) = found.as_str() else {
            let why = format!("{place} is {}, not a string.", kind_of(found));
            return Err(CheckFailure::unusable(why));
        };
        if self.pattern.regex.is_match(text) == self.matches {
            return Ok(());
        }
        let must = if self.matches { "must" } else { "must not" };
        let pattern = short(self.pattern.regex.as_str(), 60);
        let why = format!("{place} is {}; it {must} match `{pattern}`.", shown(found));
        Err(CheckFailure::new(reason::CHECK_PATTERN_FAILED, why))
    }
}

/// The reason for refusing a pattern, as part of a message about a field.
pub(super) fn refusal(why: PatternError) -> String {
    format!("is refused: {why}")
}
