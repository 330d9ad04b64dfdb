//! The house rules that a machine can check.

mod boundaries;
mod dependencies;
mod documents;
mod layers;
mod logs;
mod metadata;
mod names;
mod numbering;
mod operations;
mod prose;
mod sources;

use std::{fmt, path::Path};

use anyhow::Result;

use self::{dependencies::DenyRules, metadata::Metadata};
use crate::{CommandReport, tree};

/// One broken rule: its location, and a sentence with the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    path: String,
    line: usize,
    text: String,
}

impl Violation {
    fn new(path: impl Into<String>, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.into(), line, text: text.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// Checks everything and reports every violation, not only the first.
pub(crate) fn run(root: &Path) -> Result<CommandReport> {
    let files = tree::files(root)?;
    let metadata = Metadata::read(root)?;
    let rules = DenyRules::parse(&tree::read(&root.join("deny.toml"))?)?;

    let mut found = layers::check(root, &metadata)?;
    found.extend(dependencies::check(&metadata, &rules, &tree::read(&root.join("Cargo.lock"))?));
    found.extend(sources::check(root, &files)?);
    found.extend(boundaries::check(root, &files)?);
    found.extend(logs::check(root, &files)?);
    found.extend(names::check(root, &files)?);
    found.extend(prose::check(root, &files)?);
    found.extend(documents::check(root)?);
    found.extend(numbering::check(root)?);
    found.extend(operations::check(root, &files)?);

    let mut lines: Vec<String> = found.iter().map(Violation::to_string).collect();
    if !found.is_empty() {
        lines.push(format!("tidy: {} broken rules", found.len()));
    }
    Ok(CommandReport { lines, is_good: found.is_empty() })
}
