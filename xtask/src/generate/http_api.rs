//! Generates the HTTP reference: chapters by hand, then every operation of the OpenAPI document.

mod anchors;
mod document;
mod fields;
mod json;
mod objects;
mod operation;
mod routes;
mod types;

use std::{fmt::Write as _, path::Path};

use anyhow::{Context as _, Result, bail};

use self::{document::Document, objects::Objects};
use super::pages::NOTICE;
use crate::tree;

/// The chapters that are written by hand.
const INTRO: &str = "docs/reference/http-api-intro.md";

/// Ends the comment at the top of the chapters, which is not part of the page.
const INTRO_BEGINS: &str = "-->\n\n";

/// The place of the route tables in the chapters.
const ROUTES: &str = "<!-- routes -->\n";

/// The place of the fields of an error.
const PROBLEM: &str = "<!-- fields of Problem -->\n";

/// The guides of each family of operations.
const GUIDES: &[(&str, &[&str])] = &[
    ("consensus", &["consensus", "policies"]),
    ("chat", &["openai"]),
    ("rounds", &["consensus"]),
    ("tasks", &["tasks"]),
    ("executors", &["executors", "sessions"]),
    ("agent events", &["agent-events"]),
    ("sessions", &["sessions"]),
    ("verifiers", &["verifiers", "judges"]),
    ("runs", &["runs"]),
    ("workflows", &["workflows"]),
    ("templates", &["templates"]),
    ("instructions", &["workflows"]),
    ("keys", &["keys"]),
    ("webhooks", &["webhooks"]),
    ("payments", &["x402"]),
    ("agents", &["a2a"]),
    ("credits", &["credits"]),
    ("people", &["accounts"]),
    ("models", &["mcp"]),
    ("prompts", &["shims"]),
    ("operations", &["operating", "observability"]),
];

pub(super) fn page(root: &Path, document: &str) -> Result<String> {
    let intro = tree::read(&root.join(INTRO))?;
    written(&intro, &Document::parse(document)?)
}

fn written(intro: &str, document: &Document) -> Result<String> {
    let (_, chapters) = intro
        .split_once(INTRO_BEGINS)
        .with_context(|| format!("{INTRO} has no comment at its top"))?;
    let (before, after) = chapters
        .split_once(ROUTES)
        .with_context(|| format!("{INTRO} has no place for the routes"))?;
    let objects = Objects::of(document);
    let missing = objects.missing_in(chapters);
    if !missing.is_empty() {
        bail!("{INTRO} does not explain {}", missing.join(", "));
    }
    let after = after.replace(PROBLEM, &objects.problem_fields());
    let mut page = format!("{NOTICE}{before}{}{after}", routes::tables(document));
    for (tag, about) in document.tags() {
        let _ = write!(page, "\n## {}\n\n{about}\n{}", capitalized(tag), guides(tag));
        for operation in document.operations.iter().filter(|it| it.tag == tag) {
            page.push_str(&operation::section(operation, &objects));
        }
        page.push_str(&objects.sections_of_tag(tag));
    }
    let shared = objects.shared_sections();
    if !shared.is_empty() {
        let _ = write!(
            page,
            "\n## Shared objects\n\nOperations of several families use these.\n{shared}"
        );
    }
    let faults = anchors::faults(&page);
    if !faults.is_empty() {
        bail!("the HTTP reference has bad links: {}", faults.join("; "));
    }
    Ok(page)
}

fn guides(tag: &str) -> String {
    let names = GUIDES.iter().find(|(of, _)| *of == tag).map_or(&[][..], |(_, names)| names);
    let links: Vec<String> = names
        .iter()
        .map(|name| format!("[{}](../guide/{name}.md)", capitalized(&name.replace('-', " "))))
        .collect();
    match links.as_slice() {
        [] => String::new(),
        [one] => format!("The guide is {one}.\n"),
        _ => format!("The guides are {}.\n", types::joined(&links, "and")),
    }
}

fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
