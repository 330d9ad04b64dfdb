//! Documents that must keep step with the code: a page per error code, every reason code listed.

use std::{collections::BTreeSet, path::Path};

use anyhow::Result;
use jurat_core::{code::Code, reason};

use super::Violation;
use crate::tree;

const ERRORS: &str = "docs/reference/errors";
const REASONS: &str = "docs/reference/reason-codes.md";

pub(super) fn check(root: &Path) -> Result<Vec<Violation>> {
    let mut found = error_pages(root)?;
    found.extend(unlisted_reasons(&tree::read(&root.join(REASONS)).unwrap_or_default()));
    Ok(found)
}

fn error_pages(root: &Path) -> Result<Vec<Violation>> {
    let pages: BTreeSet<String> = tree::names(&root.join(ERRORS))?.into_iter().collect();
    let wanted: BTreeSet<String> = Code::ALL.iter().map(|code| format!("{code}.md")).collect();
    let missing = wanted.difference(&pages).map(|name| (name, "the error code has no page"));
    let surplus =
        pages.difference(&wanted).map(|name| (name, "there is no error code of this name"));
    let mut found: Vec<Violation> = missing
        .chain(surplus)
        .map(|(name, text)| Violation::new(format!("{ERRORS}/{name}"), 1, text))
        .collect();
    for code in Code::ALL {
        let name = format!("{code}.md");
        if pages.contains(&name) {
            found.extend(check_page(*code, &tree::read(&root.join(ERRORS).join(name))?));
        }
    }
    Ok(found)
}

/// A page opens with the code's name and says the same numbers as the code.
fn check_page(code: Code, text: &str) -> Option<Violation> {
    let expected = [
        format!("# `{code}`"),
        String::new(),
        format!("HTTP status {}, exit code {}.", code.http_status(), code.exit_code()),
    ];
    let differs =
        expected.iter().zip(text.lines().chain([""; 3])).position(|(left, right)| left != right)?;
    let text = format!("the page must open with the lines {expected:?}");
    Some(Violation::new(format!("{ERRORS}/{code}.md"), differs + 1, text))
}

fn unlisted_reasons(text: &str) -> Vec<Violation> {
    let is_listed = |code: u16| text.lines().any(|line| line.starts_with(&format!("| {code} |")));
    let unlisted = reason::ALL.iter().filter(|(code, _, _)| !is_listed(*code));
    unlisted
        .map(|(code, name, _)| {
            Violation::new(REASONS, 1, format!("the reason code {code} `{name}` is not listed"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_the_numbers_of_its_code() {
        let good = "# `not_found`\n\nHTTP status 404, exit code 1.\n\n## What happened\n";
        assert_eq!(check_page(Code::NotFound, good), None);
        let stale = good.replace("404", "410");
        assert_eq!(check_page(Code::NotFound, &stale).unwrap().line, 3);
        assert_eq!(check_page(Code::NotFound, "").unwrap().line, 1);
    }

    #[test]
    fn an_unlisted_reason_is_named() {
        let rows: Vec<String> =
            reason::ALL.iter().map(|(code, name, _)| format!("| {code} | `{name}` |")).collect();
        let all = rows.join(
            "
",
        );
        assert_eq!(unlisted_reasons(&all), []);
        let found = unlisted_reasons(&all.replace("| 101 |", "| 1101 |"));
        assert_eq!(found[0].text, "the reason code 101 `SCHEMA_INVALID` is not listed");
    }
}
