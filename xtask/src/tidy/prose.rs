//! Checks comments and documents for phrases that have a plainer word.

use std::path::Path;

use anyhow::Result;

use super::Violation;
use crate::tree::{self, SourceFile};

/// Each phrase with the better wording.
const PHRASES: &[(&str, &str)] = &[
    ("anew", "again"),
    ("at the least", "at least"),
    ("at the most", "at most"),
    ("call off", "cancel"),
    ("called off", "cancelled"),
    ("calls off", "cancels"),
    ("is not well", "is unhealthy"),
    ("is well", "is healthy"),
    ("put away", "archived"),
    ("stand beside", "come with"),
    ("stand in", "are in"),
    ("stands beside", "comes with"),
    ("stands in", "is in"),
    ("tell of", "report"),
    ("tells of", "reports"),
    ("told of", "notified of"),
    ("under way", "in progress"),
];

pub(super) fn check(root: &Path, files: &[SourceFile]) -> Result<Vec<Violation>> {
    let is_checked = |file: &&SourceFile| file.is_rust_of_ours() || file.is_document();
    let mut found = Vec::new();
    for file in files.iter().filter(is_checked) {
        let text = tree::read(&root.join(&file.path))?;
        found.extend(phrases(&file.path, &text, !file.is_document()));
    }
    Ok(found)
}

/// The phrases in a document, or in the comments of a source. A phrase in backticks is a quotation.
fn phrases(path: &str, text: &str, is_source: bool) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let prose = if is_source { line.trim_start().strip_prefix("//") } else { Some(line) };
        let Some(prose) = prose else { continue };
        let prose: String =
            prose.split('`').step_by(2).collect::<Vec<_>>().join("`").to_lowercase();
        for (phrase, better) in PHRASES.iter().filter(|(phrase, _)| has_words(&prose, phrase)) {
            let text = format!("`{phrase}` has a plainer wording: {better}");
            found.push(Violation::new(path, index + 1, text));
        }
    }
    found
}

/// Whether the text has the phrase as whole words, so that `is well-formed` does not count.
fn has_words(text: &str, phrase: &str) -> bool {
    let is_letter = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '-');
    text.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + phrase.len()..]);
        !is_letter(before.chars().next_back()) && !is_letter(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let is_rust = std::path::Path::new(path).extension().is_some_and(|end| end == "rs");
        let found = phrases(path, text, is_rust);
        let texts: Vec<String> = found.iter().map(Violation::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_phrase_with_a_plainer_wording_is_named() {
        let first = PHRASES[0].0;
        let expected = format!("a.rs:2: `{first}` has a plainer wording: again");
        check("a.rs", &format!("//! A.\n// It begins {first}.\n"), &[&expected]);
        let expected = format!("a.md:1: `{first}` has a plainer wording: again");
        check("a.md", &format!("Begins {first}\n"), &[&expected]);
    }

    #[test]
    fn code_quotations_and_parts_of_words_are_left_alone() {
        let first = PHRASES[0].0;
        check("a.rs", &format!("//! A.\nlet {first} = 1;\n"), &[]);
        check("a.md", &format!("The word `{first}`, and {first}t or {first}-born.\n"), &[]);
    }
}
