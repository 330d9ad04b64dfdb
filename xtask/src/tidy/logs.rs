//! One style for log lines: a message starts in lower case and has no full stop, and values are
//! fields beside it.

use std::path::Path;

use anyhow::Result;

use super::Violation;
use crate::tree::{self, SourceFile};

const MACRO: &str = "tracing::";
const LEVELS: &[&str] = &["trace!(", "debug!(", "info!(", "warn!(", "error!("];

pub(super) fn check(root: &Path, files: &[SourceFile]) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for file in
        files.iter().filter(|file| file.is_rust_of_ours() && file.path.starts_with("crates/"))
    {
        found.extend(check_text(&file.path, &tree::read(&root.join(&file.path))?));
    }
    Ok(found)
}

fn check_text(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices(MACRO) {
        let rest = &text[start + MACRO.len()..];
        let Some(level) = LEVELS.iter().find(|level| rest.starts_with(**level)) else { continue };
        let problem = message(&rest[level.len()..]).and_then(objection);
        let line = text[..start].matches('\n').count() + 1;
        found.extend(problem.map(|problem| Violation::new(path, line, problem)));
    }
    found
}

/// The last text among the arguments of a call, which is the message.
fn message(arguments: &str) -> Option<&str> {
    let (mut depth, mut opened, mut last) = (1_usize, None, None);
    let mut is_escaped = false;
    for (index, symbol) in arguments.char_indices() {
        if let Some(start) = opened {
            match symbol {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => {
                    last = Some(&arguments[start..index]);
                    opened = None;
                }
                _ => {}
            }
            continue;
        }
        match symbol {
            '"' => opened = Some(index + 1),
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    last
}

fn objection(message: &str) -> Option<&'static str> {
    let first = message.split(' ').next().unwrap_or_default();
    let is_sentence = first.starts_with(|it: char| it.is_uppercase())
        && first.chars().skip(1).all(char::is_lowercase);
    if is_sentence {
        return Some("a log message starts in lower case");
    }
    if message.ends_with('.') {
        return Some("a log message has no full stop");
    }
    // A message that is nothing but a value is text from elsewhere.
    let is_value = message.starts_with('{') && message.ends_with('}');
    (message.contains('{') && !is_value)
        .then_some("a log message holds no values: give them as fields beside it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = check_text("a.rs", text);
        let found: Vec<String> = found.iter().map(Violation::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_message_is_lower_case_without_a_full_stop() {
        check("tracing::warn!(id = %id, \"could not read a file\");", &[]);
        check("tracing::info!(\"SQLite is slow\");", &[]);
        check("\ntracing::info!(\"Done\");", &["a.rs:2: a log message starts in lower case"]);
        check(
            "tracing::error!(\n    error = %text(\"a(\"),\n    \"it broke.\"\n);",
            &["a.rs:1: a log message has no full stop"],
        );
    }

    #[test]
    fn values_are_fields() {
        check(
            "tracing::warn!(\"{} is late\", name);",
            &["a.rs:1: a log message holds no values: give them as fields beside it"],
        );
        check("tracing::info!(\"{text}\");", &[]);
    }
}
