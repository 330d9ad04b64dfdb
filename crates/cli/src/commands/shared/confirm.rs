//! Asks a person, and trusts a script.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _, stderr, stdin};

/// Longer answers are none.
const LONGEST_ANSWER: u64 = 100;

/// Asks where somebody can answer.
pub(crate) fn is_wanted(is_sure: bool, question: &str) -> io::Result<bool> {
    if is_sure || !stdin().is_terminal() {
        return Ok(true);
    }
    write!(stderr().lock(), "{question} [y/N] ")?;
    let mut answer = String::new();
    stdin().lock().take(LONGEST_ANSWER).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
