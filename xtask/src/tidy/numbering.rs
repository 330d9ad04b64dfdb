//! Checks numbered files: decision records and migrations without gaps, migrations in pairs, and
//! fixtures for all but the newest.

use std::{collections::BTreeSet, path::Path};

use anyhow::Result;

use super::Violation;
use crate::{migration, tree};

const ADRS: &str = "docs/adr";
const FIXTURES: &str = "crates/store/tests/fixtures";
const FIXTURE: [&str; 4] =
    ["sqlite.sql", "sqlite_program.sql", "postgres.sql", "postgres_program.sql"];

pub(super) fn check(root: &Path) -> Result<Vec<Violation>> {
    let mut found = gaps(ADRS, '-', &tree::names(&root.join(ADRS))?);
    let [first, second] = migration::FOLDERS;
    let left = tree::names(&root.join(first))?;
    let right = tree::names(&root.join(second))?;
    found.extend(gaps(first, '_', &left));
    found.extend(gaps(second, '_', &right));
    found.extend(unpaired(first, &left, second, &right));
    found.extend(without_fixtures(root, &left));
    Ok(found)
}

/// Every schema except the newest has rows as its program wrote them, and the statements of that
/// program: the tests of the store migrate the rows and repeat the statements.
fn without_fixtures(root: &Path, migrations: &[String]) -> Vec<Violation> {
    let Some((_, earlier)) = migrations.split_last() else { return Vec::new() };
    let mut found = Vec::new();
    for migration in earlier {
        let name = migration.trim_end_matches(".sql");
        for file in FIXTURE {
            let path = format!("{FIXTURES}/{name}/{file}");
            if !root.join(&path).is_file() {
                let text = format!(
                    "a migration follows `{name}`, so this file must say what a program of `{name}` left behind"
                );
                found.push(Violation::new(path, 1, text));
            }
        }
    }
    found
}

/// Names must begin with 0001, 0002 and so on, each once.
fn gaps(folder: &str, separator: char, names: &[String]) -> Vec<Violation> {
    let wrong = names.iter().enumerate().find_map(|(index, name)| {
        let expected = format!("{:04}{separator}", index + 1);
        (!name.starts_with(&expected)).then_some((name, expected))
    });
    wrong
        .map(|(name, expected)| {
            let text = format!(
                "the numbers of {folder} have a gap or a double: `{expected}…` was expected here"
            );
            Violation::new(format!("{folder}/{name}"), 1, text)
        })
        .into_iter()
        .collect()
}

fn unpaired(first: &str, left: &[String], second: &str, right: &[String]) -> Vec<Violation> {
    let left: BTreeSet<&String> = left.iter().collect();
    let right: BTreeSet<&String> = right.iter().collect();
    let lonely = |folder: &str, other: &str, name: &str| {
        Violation::new(
            format!("{folder}/{name}"),
            1,
            format!("the migration has no counterpart in {other}"),
        )
    };
    let lonely_left = left.difference(&right).map(|name| lonely(first, second, name));
    let lonely_right = right.difference(&left).map(|name| lonely(second, first, name));
    lonely_left.chain(lonely_right).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_gap_and_a_duplicate_are_found() {
        assert_eq!(gaps("adr", '-', &names(&["0001-a.md", "0002-b.md"])), []);
        assert_eq!(gaps("adr", '-', &names(&["0001-a.md", "0003-b.md"]))[0].path, "adr/0003-b.md");
        assert_eq!(gaps("adr", '-', &names(&["0001-a.md", "0001-b.md"]))[0].path, "adr/0001-b.md");
    }

    #[test]
    fn a_migration_without_its_counterpart_is_found_on_either_side() {
        let found = unpaired("l", &names(&["0001_a.sql"]), "r", &names(&["0001_b.sql"]));
        let paths: Vec<&str> = found.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["l/0001_a.sql", "r/0001_b.sql"]);
    }

    #[test]
    fn a_migration_after_a_schema_without_fixtures_is_found() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(without_fixtures(root.path(), &names(&["0001_a.sql"])), []);
        let migrations = names(&["0001_a.sql", "0002_b.sql"]);
        let found = without_fixtures(root.path(), &migrations);
        assert_eq!(found.len(), FIXTURE.len());
        assert_eq!(found[0].path, "crates/store/tests/fixtures/0001_a/sqlite.sql");
        let folder = root.path().join(FIXTURES).join("0001_a");
        std::fs::create_dir_all(&folder).unwrap();
        for file in FIXTURE {
            std::fs::write(folder.join(file), "").unwrap();
        }
        assert_eq!(without_fixtures(root.path(), &migrations), []);
    }
}
