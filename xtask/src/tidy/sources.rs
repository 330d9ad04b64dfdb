//! Checks the text of files: the first line, the length, and forbidden words.

use std::path::Path;

use anyhow::Result;

use super::Violation;
use crate::tree::{self, SourceFile};

const MOST_LINES: usize = 700;
const MOST_BYTES: u64 = 1024 * 1024;

/// Marks of unfinished work. Written in two parts, so that this file does not contain them.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("#[ign", "ore")];

/// Files whose types are stored documents: the decision, whose JSON is hashed, tasks with their
/// events, and the specs of agent runs.
const DOCUMENTS: &[&str] = &[
    "crates/core/src/round/decision.rs",
    "crates/core/src/task.rs",
    "crates/core/src/task/",
    "crates/core/src/agent_run/spec_document.rs",
];

pub(super) fn check(root: &Path, files: &[SourceFile]) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for file in files {
        if file.bytes > MOST_BYTES {
            let text = format!("{} bytes are more than the {MOST_BYTES} of one file", file.bytes);
            found.push(Violation::new(file.path.as_str(), 1, text));
        }
        if file.is_rust_of_ours() {
            found.extend(check_rust(&file.path, &tree::read(&root.join(&file.path))?));
        } else if file.is_script() {
            found.extend(unfinished(&file.path, &tree::read(&root.join(&file.path))?));
        }
    }
    Ok(found)
}

fn check_rust(path: &str, text: &str) -> Vec<Violation> {
    let mut found = unfinished(path, text);
    let first = text.lines().next().unwrap_or_default();
    if first.strip_prefix("//!").is_none_or(|purpose| purpose.trim().is_empty()) {
        found.push(Violation::new(
            path,
            1,
            "the file does not open with a `//!` line that says what it is for",
        ));
    }
    let lines = text.lines().count();
    if lines > MOST_LINES {
        let text = format!("{lines} lines are more than {MOST_LINES}: move a concept out");
        found.push(Violation::new(path, lines, text));
    }
    let is_document = DOCUMENTS.iter().any(|place| path.starts_with(place));
    if path.starts_with("crates/core/src/") && !is_document {
        found.extend(serde_derives(path, text));
    }
    found
}

fn unfinished(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for mark in UNFINISHED.iter().filter(|mark| line.contains(**mark)) {
            let text = format!("`{mark}` marks unfinished work: finish it or take it out");
            found.push(Violation::new(path, index + 1, text));
        }
    }
    found
}

/// Derives of serde's traits, even if the list of a derive spans lines.
fn serde_derives(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut is_in_derive = false;
    for (index, line) in text.lines().enumerate() {
        is_in_derive |= line.trim_start().starts_with("#[derive(");
        if is_in_derive && (line.contains("Serialize") || line.contains("Deserialize")) {
            let text =
                "a core type does not derive serde's traits: its JSON form belongs to `wire`";
            found.push(Violation::new(path, index + 1, text));
        }
        is_in_derive &= !line.contains(")]");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = check_rust(path, text);
        let texts: Vec<String> = found.iter().map(Violation::to_string).collect();
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_file_must_open_with_a_doc_line() {
        check("crates/x/src/a.rs", "//! A thing.\n", &[]);
        assert_eq!(check_rust("crates/x/src/a.rs", "//! \n").len(), 1);
        check(
            "crates/x/src/a.rs",
            "use std::fmt;\n",
            &[
                "crates/x/src/a.rs:1: the file does not open with a `//!` line that says what it is for",
            ],
        );
    }

    #[test]
    fn a_long_file_and_unfinished_work_are_named() {
        let long = format!("//! Long.\n{}", "\n".repeat(MOST_LINES));
        check(
            "crates/x/src/a.rs",
            &long,
            &["crates/x/src/a.rs:701: 701 lines are more than 700: move a concept out"],
        );
        let text = format!("//! A.\n// {}: more\n", UNFINISHED[0]);
        let expected = format!(
            "crates/x/src/a.rs:2: `{}` marks unfinished work: finish it or take it out",
            UNFINISHED[0]
        );
        check("crates/x/src/a.rs", &text, &[&expected]);
    }

    #[test]
    fn serde_derives_are_found_in_the_core_only() {
        let text = "//! A.\n#[derive(\n    Debug,\n    Serialize,\n)]\nstruct A;\nimpl Serialize for B {}\n";
        let expected = "crates/core/src/a.rs:4: a core type does not derive serde's traits: its JSON form belongs to `wire`";
        check("crates/core/src/a.rs", text, &[expected]);
        check("crates/wire/src/a.rs", text, &[]);
        check("crates/core/src/round/decision.rs", text, &[]);
        check("crates/core/src/task/event.rs", text, &[]);
        let expected = expected.replace("a.rs", "agent_run.rs");
        check("crates/core/src/agent_run.rs", text, &[&expected]);
    }
}
