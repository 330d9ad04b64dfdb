//! Asks a person for confirmation, but not a script.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _, Write as _, stderr, stdin};

/// Maximum length of an answer in bytes; a longer answer counts as a no.
const LONGEST_ANSWER: u64 = 100;

/// Asks for confirmation if standard input is a terminal; otherwise the answer is yes.
pub(crate) fn is_wanted(is_sure: bool, question: &str) -> io::Result<bool> {
    if is_sure || !stdin().is_terminal() {
        return Ok(true);
    }
    write!(stderr().lock(), "{question} [y/N] ")?;
    let mut answer = String::new();
    stdin().lock().take(LONGEST_ANSWER).read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
