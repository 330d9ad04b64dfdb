//! The page of a small document.

use serde_json::{Value, json};

use super::*;

const INTRO_TEXT: &str = "<!-- By hand. -->\n\n# HTTP API\n\n## Routes\n\n<!-- routes -->\n\n## Pages\n\n## Errors\n\n<!-- fields of Problem -->\n\n## Repeating a request\n\n## Labels\n\n`YES` and `NO`.\n";

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn operation(id: &str, summary: &str, security: Value) -> Value {
    json!({
        "operationId": id, "tags": ["things"], "summary": summary,
        "description": format!("{summary} now. It is quick.\n\nNeeds the scope `admin`."),
        "security": security, "responses": {},
    })
}

/// Two families: things, which an alias lists too, and parts, which share an object with them.
fn document() -> Value {
    let key = json!([{ "bearer": ["admin"] }, { "api_key": ["admin"] }]);
    let page = json!({ "description": "A page.", "content": { "application/json": {
        "schema": reference("ThingPage"), "example": { "items": [], "next_cursor": null },
    } } });
    let mut list = operation("thing_list", "List", key.clone());
    list["responses"]["200"] = page.clone();
    let mut alias = operation("thing_list_of_old", "List", key);
    alias["responses"]["200"] = page;
    alias["x-alias-of"] = json!("thing_list");
    let mut add = operation("thing_add", "Add", json!([{}, { "bearer": ["things:write"] }]));
    add["parameters"] = json!([{ "$ref": "#/components/parameters/Idempotency-Key" }]);
    add["requestBody"] = json!({ "required": true, "content": { "application/json": {
        "schema": reference("AddRequest"), "examples": { "plain": { "value": { "name": "a" } } },
    } } });
    add["responses"] = json!({
        "201": { "description": "The thing.", "content": { "application/json": { "schema": reference("Thing") } } },
        "409": { "description": "- `conflict`: the name is taken\n- `idempotency_mismatch`", "content": { "application/problem+json": {
            "examples": { "conflict": {}, "idempotency_mismatch": {} },
        } } },
        "404": { "$ref": "#/components/responses/404-not_found" },
    });
    let mut look = operation("part_show", "Look", Value::Null);
    look["tags"] = json!(["parts"]);
    look["responses"]["200"] = json!({ "description": "The size.", "content": { "application/json": { "schema": reference("Size") } } });
    json!({
        "tags": [
            { "name": "things", "description": "All things." },
            { "name": "parts", "description": "Parts of things." },
        ],
        "paths": {
            "/things": { "get": list, "post": add },
            "/old": { "get": alias },
            "/part": { "get": look },
        },
        "components": {
            "parameters": { "Idempotency-Key": { "name": "Idempotency-Key", "in": "header", "schema": { "type": "string" } } },
            "responses": { "404-not_found": { "description": "`not_found`", "content": { "application/problem+json": { "examples": { "not_found": {} } } } } },
            "schemas": schemas(),
        },
    })
}

fn schemas() -> Value {
    let none = json!({ "type": "null" });
    json!({
        "AddRequest": { "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string", "pattern": r"\S", "maxLength": 9, "description": "Its\nname." },
            "count": { "type": ["integer", "null"], "minimum": 1, "maximum": 5, "default": 2 },
            "color": { "oneOf": [reference("Color"), none] },
        } },
        "Color": { "type": "string", "enum": ["red", "blue"], "description": "A color." },
        "Label": { "type": "string", "enum": ["YES", "NO"] },
        "Problem": { "type": "object", "required": ["code"], "properties": { "code": { "type": "string" } } },
        "Size": { "type": "object", "description": "How large.", "required": ["mm"], "properties": { "mm": { "type": "integer" } } },
        "Thing": { "type": "object", "required": ["label", "size", "at"], "properties": {
            "label": reference("Label"),
            "size": { "oneOf": [reference("Size"), none], "description": "If known." },
            "at": { "type": "string", "format": "date-time" },
            "tags": { "type": "array", "items": { "type": "string" } },
        } },
        "ThingPage": { "type": "object", "properties": {
            "items": { "type": "array", "items": reference("Thing") },
            "next_cursor": { "type": ["string", "null"] },
        } },
    })
}

fn page_of(document: &Value) -> Result<String> {
    written(INTRO_TEXT, &Document::parse(&document.to_string())?)
}

#[track_caller]
fn has_lines(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(page.lines().any(|it| it == *line), "{line}\n{page}");
    }
}

#[test]
fn an_alias_shares_the_row_and_the_section_of_its_operation() {
    let page = page_of(&document()).unwrap();
    has_lines(
        &page,
        &[
            "**[Things](#things).** All things.",
            "| `GET /things`, `GET /old` | [List](#get-things) | `admin` |",
            "| `POST /things` | [Add](#post-things) | none, or `things:write` |",
            "| `GET /part` | [Look](#get-part) | none |",
            "Operation `thing_list`; scope: `admin`; alias: `GET /old`.",
            "**Reply 200**, a page: [page](#pages) of [`Thing`](#object-thing).",
            "{ \"items\": [], \"next_cursor\": null }",
        ],
    );
    assert!(!page.contains("### `GET /old`"), "{page}");
}

#[test]
fn the_fields_of_a_request_have_their_rules_and_those_of_a_reply_do_not() {
    let page = page_of(&document()).unwrap();
    has_lines(
        &page,
        &[
            "| `name` | string | required; not blank; up to 9 characters | Its name. |",
            "| `count` | integer | 1 to 5; default `2` |  |",
            "| `color` | `red` or `blue` |  | A color. |",
            "| `Idempotency-Key` | header | string |  | see [Repeating a request](#repeating-a-request) |",
            "| `label` | [`Label`](#labels) |  |",
            "| `size` | [`Size`](#object-size) or null | If known. |",
            "| `at` | time |  |",
            "| `tags` | list of strings, or left out |  |",
        ],
    );
}

#[test]
fn an_object_is_described_once_where_its_operations_are() {
    let page = page_of(&document()).unwrap();
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}\n{page}"));
    assert_eq!(page.matches("Object `Thing`\n").count(), 1, "{page}");
    assert!(at("## Things\n") < at("### Object `Thing`\n"), "{page}");
    assert!(at("### Object `Thing`\n") < at("## Parts\n"), "{page}");
    assert!(at("## Shared objects\n") < at("### Object `Size`\n"), "{page}");
}

#[test]
fn a_refusal_has_its_case_and_usual_codes_are_left_out() {
    let page = page_of(&document()).unwrap();
    has_lines(
        &page,
        &[
            "| 409 | [`conflict`](errors/conflict.md) | the name is taken |",
            "Also refused with 404 [`not_found`](errors/not_found.md).",
            "Add now.",
            "It is quick.",
        ],
    );
    assert!(!page.contains("errors/idempotency_mismatch.md"), "{page}");
}

#[test]
fn a_value_that_the_chapters_do_not_explain_is_named() {
    let mut document = document();
    document["components"]["schemas"]["Label"]["enum"] = json!(["YES", "NO", "MAYBE"]);
    let error = page_of(&document).unwrap_err();
    assert_eq!(
        error.to_string(),
        "docs/reference/http-api-intro.md does not explain `MAYBE` of `Label`"
    );
}
