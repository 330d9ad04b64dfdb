//! Patterns that match in linear time, with a limit on their size.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};
use regex_automata::nfa::thompson::{Compiler, Config};

/// Patterns of one schema, or of all checks of a policy.
pub const MAX_PATTERNS: usize = 50;
pub const MAX_PATTERN_BYTES: usize = 512;
/// States of all patterns of a schema, or of all checks of a policy.
pub const MAX_STATES: u64 = 100_000;

/// Memory of one compiled pattern.
pub(crate) const MAX_REGEX_BYTES: usize = 4 * 1024 * 1024;
/// Memory of one automaton. The validator's own limit is higher, so this one is reached first.
const MAX_AUTOMATON_BYTES: usize = 512 * 1024;

/// Patterns by their text.
pub type Patterns = BTreeMap<String, Pattern>;

/// A compiled pattern in the syntax of the crate `regex`.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    states: u64,
}

/// Why a pattern is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("it has more than {MAX_PATTERN_BYTES} bytes; make it shorter")]
    TooLong,
    #[error(
        "it is not a regular expression that can be matched in linear time; correct it, and avoid look-around and back-references"
    )]
    Syntax,
    #[error(
        "its automaton is too large, alone or together with those of the other patterns; lower its repetition counts"
    )]
    TooLarge,
}

impl Pattern {
    /// Compiles a pattern if its automaton is small enough.
    pub fn compile(text: &str) -> Result<Self, PatternError> {
        if MAX_PATTERN_BYTES < text.len() {
            return Err(PatternError::TooLong);
        }
        let states = measured(text)?;
        let built = RegexBuilder::new(text)
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_REGEX_BYTES)
            .build();
        built.map(|regex| Self { regex, states }).map_err(|_| PatternError::TooLarge)
    }

    /// The pattern as it was given.
    pub fn text(&self) -> &str {
        self.regex.as_str()
    }

    /// States of its automaton.
    pub const fn states(&self) -> u64 {
        self.states
    }

    /// Whether it matches anywhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

/// Counts the states of a pattern in the syntax of JSON Schema.
pub(crate) fn schema_states(pattern: &str) -> Result<u64, PatternError> {
    if MAX_PATTERN_BYTES < pattern.len() {
        return Err(PatternError::TooLong);
    }
    // The validator translates in the same way, so this is the automaton that it builds.
    let translated = jsonschema_regex::to_rust_regex(pattern).map_err(|()| PatternError::Syntax)?;
    measured(&translated)
}

fn measured(pattern: &str) -> Result<u64, PatternError> {
    let config = Config::new().nfa_size_limit(Some(MAX_AUTOMATON_BYTES));
    match Compiler::new().configure(config).build(pattern) {
        Ok(automaton) => Ok(u64::try_from(automaton.states().len()).unwrap_or(u64::MAX)),
        Err(error) if error.size_limit().is_some() => Err(PatternError::TooLarge),
        Err(_) => Err(PatternError::Syntax),
    }
}
