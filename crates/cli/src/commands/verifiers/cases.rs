//! Labelled cases from a file: one JSON document, or one object in each line.

use std::{collections::BTreeMap, path::Path};

use jurat_wire::strict_json;
use serde_json::{Value, json};

use crate::{commands::shared::input, failure::CliFailure};

/// Many times what a measurement needs.
const LARGEST: u64 = 16 * 1024 * 1024;

/// What people call the cases of a measurement that have no name of their own.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CaseNames {
    /// They were named before.
    Known,
    /// The examples of the version, in their order.
    Examples,
    /// Where each stands in its file; `None` for one with a name.
    Given(Vec<Option<String>>),
}

impl CaseNames {
    /// The report with names that people can find again.
    pub(super) fn put(&self, report: &Value) -> Value {
        let mut report = report.clone();
        let mut known = BTreeMap::new();
        for (at, case) in items(&mut report["cases"]).iter_mut().enumerate() {
            if let (Some(name), Some(id)) = (self.of(at), case["id"].as_str()) {
                known.insert(id.to_owned(), name.clone());
                case["id"] = json!(name);
            }
        }
        // Not by index: that would insert an empty comparison.
        let flips = report.pointer_mut("/compared/flips").map_or(&mut [][..], items);
        for flip in flips {
            if let Some(name) = flip["id"].as_str().and_then(|id| known.get(id)) {
                flip["id"] = json!(name);
            }
        }
        report
    }

    fn of(&self, at: usize) -> Option<String> {
        match self {
            Self::Known => None,
            Self::Examples => Some(format!("example {}", at + 1)),
            Self::Given(names) => names.get(at)?.clone(),
        }
    }
}

fn items(list: &mut Value) -> &mut [Value] {
    list.as_array_mut().map_or(&mut [], Vec::as_mut_slice)
}

/// The cases of a file, each of a shape that can be sent, and what to call them.
pub(super) fn read(file: &Path) -> anyhow::Result<(Vec<Value>, CaseNames)> {
    let name = format!("`--data {}`", file.display());
    let bytes = input::whole(&name, file, LARGEST)?;
    let wrong = |text: String| CliFailure::usage(format!("{name} {text}"));
    let cases = cases(&bytes).map_err(wrong)?;
    if cases.is_empty() {
        return Err(wrong("has no cases".to_owned()));
    }
    let names = cases.iter().map(|(place, case)| case["id"].is_null().then(|| place.clone()));
    let names = CaseNames::Given(names.collect());
    Ok((cases.into_iter().map(|(_, case)| case).collect(), names))
}

/// Each case, with its place in the file.
fn cases(bytes: &[u8]) -> Result<Vec<(String, Value)>, String> {
    let begins_list = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if begins_list {
        let value = strict_json::parse(bytes).map_err(|error| format!("is not JSON: {error}"))?;
        return listed(value);
    }
    // One object over several lines is a document, and its `cases` may be meant.
    if let Ok(mut value) = strict_json::parse(bytes)
        && let Some(items) = value.get_mut("cases").filter(|items| items.is_array())
    {
        return listed(items.take());
    }
    lines(bytes)
}

fn listed(items: Value) -> Result<Vec<(String, Value)>, String> {
    let Value::Array(items) = items else { return Ok(Vec::new()) };
    let cases = items.into_iter().zip(1..).map(|(case, number)| (format!("case {number}"), case));
    checked(cases.collect())
}

fn lines(bytes: &[u8]) -> Result<Vec<(String, Value)>, String> {
    let mut cases = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let place = format!("line {}", at + 1);
        let case =
            strict_json::parse(line).map_err(|error| format!("{place} is not JSON: {error}"))?;
        cases.push((place, case));
    }
    checked(cases)
}

fn checked(cases: Vec<(String, Value)>) -> Result<Vec<(String, Value)>, String> {
    let mut ids: BTreeMap<&str, &str> = BTreeMap::new();
    for (place, case) in &cases {
        check(case).map_err(|text| format!("{place}: {text}"))?;
        let Some(id) = case["id"].as_str() else { continue };
        if let Some(first) = ids.insert(id, place) {
            return Err(format!(
                "{place}: the id `{id}` is already used by {first}; give each case its own"
            ));
        }
    }
    Ok(cases)
}

/// What the server could only refuse is refused before anything is sent.
fn check(case: &Value) -> Result<(), String> {
    let Some(members) = case.as_object() else { return Err("must be an object".to_owned()) };
    if !members.get("passed").is_some_and(Value::is_boolean) {
        return Err("`passed` must be true or false: the expected verdict".to_owned());
    }
    match members.get("inputs") {
        Some(Value::Object(_)) => Ok(()),
        None if members.contains_key("media_url") => Ok(()),
        Some(_) | None => Err("`inputs` must be an object of strings".to_owned()),
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
    fn an_unnamed_case_is_named_by_its_position() {
        let report = json!({
            "cases": [{"id": "0f3a"}, {"id": "b"}], "compared": {"flips": [{"id": "0f3a"}]},
        });
        let names = CaseNames::Given(vec![Some("line 4".to_owned()), None]);
        let put = names.put(&report);
        let flips = json!([{"id": "line 4"}]);
        assert_eq!(put["cases"], json!([{"id": "line 4"}, {"id": "b"}]));
        assert_eq!(put["compared"]["flips"], flips);
        assert_eq!(CaseNames::Examples.put(&report)["cases"][1]["id"], "example 2");
        assert_eq!(CaseNames::Known.put(&report), report);
    }

    #[test]
    fn an_invalid_case_is_named() {
        let one = r#"{"inputs": {}, "passed": true}"#;
        let named = r#"{"id": "a", "inputs": {}, "passed": true}"#;
        for (text, expected) in [
            (format!("{named}\n\n{named}"), "line 3: the id `a` is already used by line 1"),
            (format!("[{named}, {named}]"), "case 2: the id `a` is already used by case 1"),
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
