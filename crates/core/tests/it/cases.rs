//! Reads case files: each holds one story, with the input and the expected result.

use std::{fs, path::Path};

/// All case files of a folder, sorted by name.
pub(crate) fn read(folder: &str) -> Vec<(String, toml::Table)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cases").join(folder);
    let mut files: Vec<(String, toml::Table)> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            (name, text.parse().unwrap())
        })
        .collect();
    files.sort_by(|left, right| left.0.cmp(&right.0));
    files
}

/// Decides every story of a folder and compares the result with its `expect`. `at_least` fails the
/// test if the folder was moved or emptied.
pub(crate) fn check(folder: &str, at_least: usize, decide: impl Fn(&toml::Table) -> toml::Table) {
    let files = read(folder);
    assert!(at_least <= files.len(), "only {} stories in `{folder}`", files.len());
    let mut wrong = Vec::new();
    for (name, file) in &files {
        let found = decide(file);
        if found != *file["expect"].as_table().unwrap() {
            wrong.push(format!("{name}: found\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Refuses unknown keys, because a misspelt key would leave a story without its point.
#[track_caller]
pub(crate) fn refuse_others(table: &toml::Table, known: &[&str]) {
    for key in table.keys() {
        assert!(known.contains(&key.as_str()), "`{key}` is not a key of a story");
    }
}
