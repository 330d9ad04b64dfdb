//! Regular expressions in schemas: only those that match in linear time, and not too large.

use regex::{Regex, RegexBuilder};
use regex_automata::nfa::thompson::{Compiler, Config};

use super::{MAX_PATTERN_BYTES, MAX_REGEX_BYTES, error::PatternError};

/// Memory of one automaton. The validator's own limit is higher, so that this one speaks first.
const MAX_AUTOMATON_BYTES: usize = 512 * 1024;

/// How many states the automaton of a schema's pattern has.
pub(super) fn states(pattern: &str) -> Result<u64, PatternError> {
    if MAX_PATTERN_BYTES < pattern.len() {
        return Err(PatternError::TooLong);
    }
    // The same translation as in the validator, so that the same automaton is measured.
    let translated = jsonschema_regex::to_rust_regex(pattern).map_err(|()| PatternError::Syntax)?;
    measured(&translated)
}

/// A pattern in the syntax of the crate `regex`, with the number of its states.
pub(crate) fn compile(pattern: &str) -> Result<(Regex, u64), PatternError> {
    if MAX_PATTERN_BYTES < pattern.len() {
        return Err(PatternError::TooLong);
    }
    let states = measured(pattern)?;
    let built = RegexBuilder::new(pattern)
        .size_limit(MAX_REGEX_BYTES)
        .dfa_size_limit(MAX_REGEX_BYTES)
        .build();
    built.map(|regex| (regex, states)).map_err(|_| PatternError::TooLarge)
}

fn measured(pattern: &str) -> Result<u64, PatternError> {
    let config = Config::new().nfa_size_limit(Some(MAX_AUTOMATON_BYTES));
    match Compiler::new().configure(config).build(pattern) {
        Ok(automaton) => Ok(u64::try_from(automaton.states().len()).unwrap_or(u64::MAX)),
        Err(error) if error.size_limit().is_some() => Err(PatternError::TooLarge),
        Err(_) => Err(PatternError::Syntax),
    }
}
