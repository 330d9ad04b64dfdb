//! Asks a person for confirmation, and trusts a script.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _, stderr, stdin};

/// A longer answer counts as none.
const LONGEST_ANSWER: u64 = 100;

/// Asks, if standard input is a terminal.
pub(crate) fn is_wanted(is_sure: bool, question: &str) -> io::Result<bool> {
    if is_sure || !stdin().is_terminal() {
        return Ok(true);
    }
    write!(stderr().lock(), "{question} [y/N] ")?;
    let mut answer = String::new();
    stdin().lock().take(LONGEST_ANSWER).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
