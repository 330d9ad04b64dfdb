//! Checks that documents match the code: a page per error code, and a list of all reason codes.

use std::{collections::BTreeSet, path::Path};

use anyhow::Result;
use jurat_core::{code::ProblemCode, reason};
use serde_json::{Value, json};

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
    let wanted: BTreeSet<String> =
        ProblemCode::ALL.iter().map(|code| format!("{code}.md")).collect();
    let missing = wanted.difference(&pages).map(|name| (name, "the error code has no page"));
    let surplus =
        pages.difference(&wanted).map(|name| (name, "there is no error code of this name"));
    let mut found: Vec<Violation> = missing
        .chain(surplus)
        .map(|(name, text)| Violation::new(format!("{ERRORS}/{name}"), 1, text))
        .collect();
    for code in ProblemCode::ALL {
        let name = format!("{code}.md");
        if pages.contains(&name) {
            let text = tree::read(&root.join(ERRORS).join(name))?;
            found.extend(check_opening(*code, &text));
            found.extend(check_example(*code, &text));
        }
    }
    Ok(found)
}

/// Checks that a page starts with the name of its code and gives the same numbers.
fn check_opening(code: ProblemCode, text: &str) -> Option<Violation> {
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

/// Checks that the example on a page is a body that this code could really have.
fn check_example(code: ProblemCode, text: &str) -> Option<Violation> {
    let path = format!("{ERRORS}/{code}.md");
    let Some((before, rest)) = text.split_once("```json\n") else {
        return Some(Violation::new(path, 1, "the page has no example in a block marked `json`"));
    };
    let line = before.lines().count() + 1;
    let body: Value = match serde_json::from_str(rest.split("```").next().unwrap_or_default()) {
        Ok(body) => body,
        Err(error) => {
            return Some(Violation::new(path, line, format!("the example is not JSON: {error}")));
        }
    };
    let expected = [
        ("code", json!(code.as_str())),
        ("status", json!(code.http_status())),
        ("hint", json!(code.hint())),
    ];
    let (name, value) = expected.iter().find(|(name, value)| body[*name] != *value)?;
    Some(Violation::new(path, line, format!("the example's `{name}` must be {value}")))
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
    fn a_page_must_give_the_numbers_of_its_code() {
        let good = "# `not_found`\n\nHTTP status 404, exit code 1.\n\n## What happened\n";
        assert_eq!(check_opening(ProblemCode::NotFound, good), None);
        let stale = good.replace("404", "410");
        assert_eq!(check_opening(ProblemCode::NotFound, &stale).unwrap().line, 3);
        assert_eq!(check_opening(ProblemCode::NotFound, "").unwrap().line, 1);
    }

    #[test]
    fn an_example_must_match_its_code() {
        let body =
            json!({ "code": "not_found", "status": 404, "hint": ProblemCode::NotFound.hint() });
        let page = format!("# Page\n\n```json\n{body}\n```\n");
        assert_eq!(check_example(ProblemCode::NotFound, &page), None);
        let stale = check_example(ProblemCode::NotFound, &page.replace("404", "410")).unwrap();
        assert_eq!((stale.line, stale.text.as_str()), (3, "the example's `status` must be 404"));
        assert!(check_example(ProblemCode::NotFound, "# Page\n").is_some());
        assert!(check_example(ProblemCode::NotFound, "```json\n{\n```\n").is_some());
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
