//! The commands in the guides: each guide cleans up after itself, and no name means two things.

use std::{collections::BTreeMap, fs, path::Path};

/// The lines of the blocks that readers type.
fn typed(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut is_typed = false;
    for line in text.lines().map(str::trim) {
        match line {
            "```sh" => is_typed = true,
            "```" => is_typed = false,
            _ if is_typed => lines.push(line),
            _ => {}
        }
    }
    lines
}

fn documents() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guides = fs::read_dir(root.join("docs/guide")).unwrap().map(|file| file.unwrap().path());
    let files = guides.chain([root.join("README.md")]);
    let read = |file: std::path::PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(file).unwrap())
    };
    let mut documents: Vec<_> = files.map(read).collect();
    documents.sort();
    documents
}

fn names<'a>(lines: &[&'a str], command: &str) -> Vec<&'a str> {
    let rest = lines.iter().filter_map(|line| line.strip_prefix(command));
    rest.filter_map(|rest| rest.split_whitespace().next()).collect()
}

#[test]
fn a_guide_removes_the_executors_that_it_adds_and_shares_their_names_with_none() {
    let mut owners: BTreeMap<String, String> = BTreeMap::new();
    for (document, text) in documents() {
        let lines = typed(&text);
        let added = names(&lines, "jurat executors add ");
        let removed = names(&lines, "jurat executors remove ");
        for name in &added {
            assert!(removed.contains(name), "{document} adds `{name}` and does not remove it");
            let owner = owners.entry((*name).to_owned()).or_insert_with(|| document.clone());
            assert_eq!(*owner, document, "two guides add `{name}`");
        }
    }
    assert!(3 <= owners.len(), "{owners:?}");
}
