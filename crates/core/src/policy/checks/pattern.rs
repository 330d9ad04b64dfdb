//! The check `regex`, and the patterns in expressions: linear in time, limited in size.

use jurat_limits::{pattern::Pattern, quote::short, size::as_u64};
use serde_json::Value;

use super::{CheckFailure, kind_of, read::CheckMembers};
use crate::{
    policy::{params::BindError, schema_thresholds::shown},
    reason,
    schema::WorkEstimate,
};

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
        let pattern =
            Pattern::compile(text).map_err(|why| at.refuse(&format!("is refused: {why}")))?;
        let matches = members.optional("matches", "true or false", Value::as_bool)?;
        Ok(Self { pattern, matches: matches.unwrap_or(true) })
    }

    pub(super) fn states(&self) -> u64 {
        self.pattern.states()
    }

    pub(super) fn work(&self, found: &Value) -> WorkEstimate {
        let bytes = as_u64(found.as_str().map_or(0, str::len));
        let regex_steps = bytes.saturating_mul(self.pattern.states());
        WorkEstimate { regex_steps, ..WorkEstimate::default() }
    }

    pub(super) fn judge(&self, found: &Value, part: &str) -> Result<(), CheckFailure> {
        let Some(text) = found.as_str() else {
            let why = format!("{part} is {}, not a string.", kind_of(found));
            return Err(CheckFailure::unusable(why));
        };
        if self.pattern.is_match(text) == self.matches {
            return Ok(());
        }
        let must = if self.matches { "must" } else { "must not" };
        let pattern = short(self.pattern.text(), 60);
        let why = format!("{part} is {}; it {must} match `{pattern}`.", shown(found));
        Err(CheckFailure::new(reason::CHECK_PATTERN_FAILED, why))
    }
}
