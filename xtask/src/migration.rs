//! Creates a pair of migrations with the next number, one for each database.

use std::{fs, path::Path};

use anyhow::{Result, bail};

use crate::{CommandReport, tree};

pub(crate) const FOLDERS: [&str; 2] =
    ["crates/store/migrations/sqlite", "crates/store/migrations/postgres"];

pub(crate) fn run(root: &Path, name: &str) -> Result<CommandReport> {
    let is_plain =
        name.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_');
    if name.is_empty() || !is_plain {
        bail!(
            "`{name}` is no name for a migration: use lower-case letters, digits and `_`, such as `add_runs`"
        );
    }
    let mut last = 0;
    for folder in FOLDERS {
        last = last.max(last_number(&tree::names(&root.join(folder))?));
    }
    let mut lines = Vec::new();
    for folder in FOLDERS {
        let path = format!("{folder}/{:04}_{name}.sql", last + 1);
        fs::create_dir_all(root.join(folder))?;
        fs::write(
            root.join(&path),
            "-- Why this change is needed. The previous binary must still run on the result.\n",
        )?;
        lines.push(format!("made {path}"));
    }
    Ok(CommandReport { lines, is_good: true })
}

fn last_number(names: &[String]) -> u32 {
    let numbers = names.iter().filter_map(|name| name.split('_').next()?.parse().ok());
    numbers.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_gets_the_next_number_in_both_folders() {
        let root = tempfile::tempdir().unwrap();
        run(root.path(), "first").unwrap();
        let report = run(root.path(), "add_runs").unwrap();
        let expected = FOLDERS.map(|folder| format!("made {folder}/0002_add_runs.sql"));
        assert_eq!(report.lines, expected);
        for folder in FOLDERS {
            let names = tree::names(&root.path().join(folder)).unwrap();
            assert_eq!(names, ["0001_first.sql", "0002_add_runs.sql"]);
        }
    }

    #[test]
    fn an_invalid_name_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let error = run(root.path(), "../x").unwrap_err();
        assert!(error.to_string().starts_with("`../x` is no name for a migration"), "{error}");
    }
}
