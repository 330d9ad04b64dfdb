//! Checks that a public type name is declared once in the workspace.

use std::{collections::BTreeMap, path::Path};

use anyhow::Result;

use super::Violation;
use crate::tree::{self, SourceFile};

const KEYWORDS: &[&str] = &["struct", "enum", "trait", "type", "union"];

pub(super) fn check(root: &Path, files: &[SourceFile]) -> Result<Vec<Violation>> {
    let mut sources = Vec::new();
    for file in files.iter().filter(|file| file.is_rust_of_ours() && is_source(&file.path)) {
        sources.push((file.path.as_str(), tree::read(&root.join(&file.path))?));
    }
    Ok(duplicates(sources.iter().map(|(path, text)| (*path, text.as_str()))))
}

fn is_source(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/")
}

/// Every declaration after the first one of the same name.
fn duplicates<'a>(sources: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Violation> {
    let mut first: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    let mut found = Vec::new();
    for (path, text) in sources {
        for (index, line) in text.lines().enumerate() {
            let Some(name) = declared(line) else { continue };
            if let Some((other, at)) = first.get(name) {
                let text = format!(
                    "`{name}` is also declared in {other}:{at}: name each after what it is"
                );
                found.push(Violation::new(path, index + 1, text));
            } else {
                first.insert(name, (path, index + 1));
            }
        }
    }
    found
}

/// The name of the type that a line declares, if other modules can see it.
fn declared(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let (keyword, rest) = rest.strip_prefix(' ')?.split_once(' ')?;
    let end = rest.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(rest.len());
    KEYWORDS.contains(&keyword).then(|| &rest[..end]).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_type_name_is_reported_at_its_second_declaration() {
        let sources = [
            ("crates/a/src/x.rs", "//! A.\npub struct Page<T>(T);\nstruct Own;\n"),
            ("crates/b/src/y.rs", "//! B.\npub(crate) enum Page {}\nstruct Own;\ntype Err = ();\n"),
            ("crates/b/src/z.rs", "//! C.\npub fn page() {}\npub const PAGE: u8 = 0;\n"),
        ];
        let texts: Vec<String> =
            duplicates(sources.into_iter()).iter().map(Violation::to_string).collect();
        let expected = "crates/b/src/y.rs:2: `Page` is also declared in crates/a/src/x.rs:2: name each after what it is";
        assert_eq!(texts, [expected]);
    }
}
