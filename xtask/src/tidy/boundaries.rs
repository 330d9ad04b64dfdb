//! Which modules of our crates a crate may name: finer than the layers, which know whole crates.

use std::path::Path;

use anyhow::Result;

use super::Violation;
use crate::tree::{self, SourceFile};

/// A module that the sources below a folder do not import.
struct Boundary {
    sources: &'static str,
    /// Matches a `use` of this crate, with the visibility in front of it.
    start: &'static str,
    /// A member of that crate; empty for all of them.
    member: &'static str,
    reason: &'static str,
}

const BOUNDARIES: &[Boundary] = &[
    Boundary {
        sources: "crates/engine/src/",
        start: "pub use jurat_store::",
        member: "",
        reason: "the engine re-exports no type of the store: move the type to the core",
    },
    Boundary {
        sources: "crates/engine/src/",
        start: "jurat_wire::",
        member: "api",
        reason: "the engine does not know the JSON of our API: take and return types of the core",
    },
];

pub(super) fn check(root: &Path, files: &[SourceFile]) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is_rust_of_ours()) {
        let rules = BOUNDARIES.iter().filter(|rule| file.path.starts_with(rule.sources));
        for rule in rules {
            found.extend(crossings(&file.path, &tree::read(&root.join(&file.path))?, rule));
        }
    }
    Ok(found)
}

/// The lines of a file that name the module: in a `use` of one line or several, or in a path.
fn crossings(path: &str, text: &str, rule: &Boundary) -> Vec<Violation> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices(rule.start) {
        let rest = &text[start + rule.start.len()..];
        let statement = &rest[..rest.find(';').unwrap_or(rest.len())];
        if names(statement, rule.member) {
            let line = text[..start].lines().count().max(1);
            let line = if text[..start].ends_with('\n') { line + 1 } else { line };
            found.push(Violation::new(path, line, rule.reason));
        }
    }
    found
}

/// Whether the rest of a path or of a group of paths has the member at its top.
fn names(rest: &str, member: &str) -> bool {
    let Some(group) = rest.strip_prefix('{') else { return begins_with(rest, member) };
    let mut depth = 0_usize;
    let mut is_top = true;
    for (index, symbol) in group.char_indices() {
        if is_top && depth == 0 && !symbol.is_whitespace() {
            is_top = false;
            if begins_with(&group[index..], member) {
                return true;
            }
        }
        match symbol {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' => is_top = true,
            _ => {}
        }
    }
    false
}

fn begins_with(path: &str, member: &str) -> bool {
    let rest = path.strip_prefix(member);
    rest.is_some_and(|rest| {
        member.is_empty() || !rest.starts_with(|it: char| it.is_alphanumeric() || it == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Boundary = Boundary {
        sources: "crates/engine/src/",
        start: "jurat_wire::",
        member: "api",
        reason: "no API here",
    };

    #[track_caller]
    fn check(text: &str, lines: &[usize]) {
        let found = crossings("a.rs", text, &RULE);
        assert_eq!(found.iter().map(|it| it.line).collect::<Vec<_>>(), lines, "{text}");
    }

    #[test]
    fn a_module_is_found_in_every_form_of_a_path() {
        check("//! A.\nuse jurat_wire::api::tasks;\n", &[2]);
        check("use jurat_wire::{\n    api::{tasks, runs},\n    executor,\n};\n", &[1]);
        check("//! A.\n\nuse jurat_wire::{executor::{a, b}, api};\n", &[3]);
        check("fn a() {\n    jurat_wire::api::text()\n}\n", &[2]);
    }

    #[test]
    fn other_modules_of_the_crate_are_free() {
        check("use jurat_wire::executor::api;\n", &[]);
        check("use jurat_wire::{executor::{api, b}, problem};\nuse x::api;\n", &[]);
        check("use jurat_wire::apis;\n", &[]);
    }

    #[test]
    fn an_empty_member_stands_for_the_whole_crate() {
        let rule = &BOUNDARIES[0];
        assert_eq!(crossings("a.rs", "pub use jurat_store::Store;\n", rule).len(), 1);
        assert_eq!(crossings("a.rs", "use jurat_store::Store;\n", rule).len(), 0);
    }
}
