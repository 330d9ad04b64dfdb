//! Labelled cases from a file: one JSON document, or one object in each line.

use std::path::Path;

use jurat_wire::strict;
use serde_json::Value;

use crate::{commands::input, failure::Failure};

/// Many times what a measurement needs.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The cases of a file, each of a shape that can be sent.
pub(super) fn read(file: &Path) -> anyhow::Result<Vec<Value>> {
    let name = format!("`--data {}`", file.display());
    let bytes = input::whole(&name, file, LARGEST)?;
    let wrong = |text: String| Failure::usage(format!("{name} {text}"));
    let cases = cases(&bytes).map_err(wrong)?;
    if cases.is_empty() {
        return Err(wrong("has no cases".to_owned()));
    }
    Ok(cases)
}

fn cases(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let begins_list = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if begins_list {
        let value = strict::parse(bytes).map_err(|error| format!("is not JSON: {error}"))?;
        let Value::Array(items) = value else { return Ok(Vec::new()) };
        for (at, item) in items.iter().enumerate() {
            check(item).map_err(|text| format!("case {}: {text}", at + 1))?;
        }
        return Ok(items);
    }
    // One object over several lines is a document, and its `cases` may be meant.
    if let Ok(value) = strict::parse(bytes)
        && let Some(Value::Array(items)) = value.get("cases")
    {
        for (at, item) in items.iter().enumerate() {
            check(item).map_err(|text| format!("case {}: {text}", at + 1))?;
        }
        return Ok(items.clone());
    }
    lines(bytes)
}

fn lines(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let mut cases = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let number = at + 1;
        let case =
            strict::parse(line).map_err(|error| format!("line {number} is not JSON: {error}"))?;
        check(&case).map_err(|text| format!("line {number}: {text}"))?;
        cases.push(case);
    }
    Ok(cases)
}

/// What the server could only refuse is refused before anything is sent.
fn check(case: &Value) -> Result<(), String> {
    let Some(members) = case.as_object() else { return Err("must be an object".to_owned()) };
    if !members.get("passed").is_some_and(Value::is_boolean) {
        return Err("`passed` must be true or false: whether the case passes".to_owned());
    }
    match members.get("inputs") {
        Some(Value::Object(_)) => Ok(()),
        None if members.contains_key("media_url") => Ok(()),
        Some(_) | None => Err("`inputs` must be an object of texts".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_a_list_a_document_or_lines() {
        let one = r#"{"inputs": {"a": "x"}, "passed": true}"#;
        for text in [
            format!("[{one}, {one}]"),
            format!("{one}\n\n{one}\n"),
            format!("{{\"cases\": [{one},\n{one}]}}"),
        ] {
            assert_eq!(cases(text.as_bytes()).unwrap().len(), 2, "{text}");
        }
        assert_eq!(cases(one.as_bytes()).unwrap().len(), 1);
    }

    #[test]
    fn a_case_that_is_none_is_named() {
        let one = r#"{"inputs": {}, "passed": true}"#;
        for (text, expected) in [
            (format!("[{one}, 1]"), "case 2: must be an object"),
            (format!("{one}\n{{\"inputs\": {{}}}}"), "line 2: `passed` must be true or false"),
            (
                r#"[{"inputs": [], "passed": true}]"#.to_owned(),
                "case 1: `inputs` must be an object",
            ),
            (format!("{one}\n{one} x"), "line 2 is not JSON"),
            ("[".to_owned(), "is not JSON"),
        ] {
            let fault = cases(text.as_bytes()).unwrap_err();
            assert!(fault.starts_with(expected), "{text}: {fault}");
        }
    }
}
