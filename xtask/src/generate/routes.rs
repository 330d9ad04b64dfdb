//! The tables of routes in the HTTP reference, from the OpenAPI document.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result};
use serde_json::Value;

const BEGIN: &str = "<!-- The routes are generated: run `just generate`. -->\n";
const END: &str = "<!-- End of the routes. -->\n";

/// The page with new tables. The text around them is written by hand.
pub(super) fn page(root: &Path, document: &str) -> Result<String> {
    let path = root.join("docs/reference/http-api.md");
    let page = fs::read_to_string(&path).context("cannot read docs/reference/http-api.md")?;
    let document: Value = serde_json::from_str(document).context("the document is not JSON")?;
    with_tables(&page, &document).context("docs/reference/http-api.md has no place for the routes")
}

fn with_tables(page: &str, document: &Value) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{}\n{END}{after}", tables(document)))
}

/// One row of a table: an operation at all its addresses.
struct RouteRow {
    tag: String,
    summary: String,
    text: String,
    addresses: Vec<String>,
    scopes: String,
}

/// One table for each family of operations.
fn tables(document: &Value) -> String {
    let rows = rows(document);
    let mut text = String::new();
    for tag in document["tags"].as_array().into_iter().flatten() {
        let (name, about) = (word(&tag["name"]), word(&tag["description"]));
        // No heading, because other headings of the page have these names.
        let _ = write!(text, "\n**{}.** {about}\n\n", capitalized(name));
        text.push_str("| method and path | does | scope |\n|---|---|---|\n");
        for row in rows.iter().filter(|row| row.tag == name) {
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                row.addresses.join(", "),
                row.summary,
                row.scopes
            );
        }
    }
    text
}

fn rows(document: &Value) -> Vec<RouteRow> {
    let mut rows: Vec<RouteRow> = Vec::new();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let address = format!("`{} {path}`", method.to_uppercase());
            let (summary, text) = (word(&operation["summary"]), word(&operation["description"]));
            // An alias says the same words.
            let same = |row: &&mut RouteRow| row.summary == summary && row.text == text;
            match rows.iter_mut().find(same) {
                Some(row) => row.addresses.push(address),
                None => rows.push(RouteRow {
                    tag: word(&operation["tags"][0]).to_owned(),
                    summary: summary.to_owned(),
                    text: text.to_owned(),
                    addresses: vec![address],
                    scopes: scopes(operation),
                }),
            }
        }
    }
    rows
}

/// The scopes of a key; `none` if no key is needed, and `any key` if any will do.
fn scopes(operation: &Value) -> String {
    let schemes = operation["security"].as_array().map_or(&[][..], Vec::as_slice);
    let needed = schemes.iter().find_map(|it| it["bearer"].as_array());
    let named: Vec<String> =
        needed.into_iter().flatten().map(|it| format!("`{}`", word(it))).collect();
    let takes_visitors =
        schemes.iter().any(|it| it.as_object().is_some_and(serde_json::Map::is_empty));
    match (takes_visitors, needed.is_some(), named.is_empty()) {
        (_, false, _) | (true, true, true) => "none".to_owned(),
        (true, true, false) => format!("none, or {}", named.join(", ")),
        (false, true, true) => "any key".to_owned(),
        (false, true, false) => named.join(", "),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_alias_shares_the_row_of_its_operation() {
        let of = |summary: &str, security: Value| {
            json!({
                "tags": ["things"], "summary": summary, "description": summary,
                "security": security,
            })
        };
        let key = json!([{ "bearer": ["admin"] }, { "api_key": ["admin"] }]);
        let visitor = json!([{}, { "bearer": ["verifiers:run"] }]);
        let document = json!({
            "tags": [{ "name": "things", "description": "All things." }],
            "paths": {
                "/a": { "get": of("List", key.clone()), "post": of("Add", visitor) },
                "/b": { "get": of("List", key) },
                "/c": { "get": of("Look", json!([{ "bearer": [] }])) },
                "/d": { "get": of("Greet", Value::Null) },
            },
        });
        let page = format!("# A\n\n{BEGIN}old\n{END}\nafter\n");
        let page = with_tables(&page, &document).unwrap();
        for line in [
            "**Things.** All things.",
            "| `GET /a`, `GET /b` | List | `admin` |",
            "| `POST /a` | Add | none, or `verifiers:run` |",
            "| `GET /c` | Look | any key |",
            "| `GET /d` | Greet | none |",
            "after",
        ] {
            assert!(page.lines().any(|it| it == line), "{line}\n{page}");
        }
        assert_eq!(with_tables(&page, &document), Some(page.clone()), "again is the same");
        assert_eq!(with_tables("# A\n", &document), None);
    }
}
