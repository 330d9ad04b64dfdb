//! The files of the checkout, without the output of builds and tools.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// Folders without files of ours. Hidden folders are skipped as well, with the exceptions below.
const SKIPPED: &[&str] = &["target", "node_modules"];
const DOTTED: &[&str] = &[".cargo", ".ci", ".config"];

/// A file, by its path from the root with `/` between the parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
}

impl SourceFile {
    pub(crate) fn is_rust_of_ours(&self) -> bool {
        let folder = ["crates/", "xtask/", "bench/"].iter().any(|it| self.path.starts_with(it));
        folder && self.has_extension("rs")
    }

    pub(crate) fn is_script(&self) -> bool {
        self.path.starts_with("scripts/")
            || self.path.starts_with(".ci/")
            || self.path == "justfile"
    }

    pub(crate) fn is_document(&self) -> bool {
        self.has_extension("md")
    }

    fn has_extension(&self, wanted: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|it| it == wanted)
    }
}

/// Every file under `root`, in the order of its path.
pub(crate) fn files(root: &Path) -> Result<Vec<SourceFile>> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            let kind = fs::symlink_metadata(&path)?;
            if kind.is_dir() {
                if is_ours(&path) {
                    folders.push(path);
                }
            } else if kind.is_file() {
                found.push(SourceFile { path: relative(root, &path), bytes: kind.len() });
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The names in a folder, sorted; empty if there is no such folder.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut names: Vec<String> = entries(folder)?
        .iter()
        .filter_map(|path| path.file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The path from the root, as messages show it.
pub(crate) fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let listing =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    listing.map(|entry| Ok(entry?.path())).collect()
}

fn is_ours(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with('.') { DOTTED.contains(&&*name) } else { !SKIPPED.contains(&&*name) }
}
