//! Labelled cases from a file: one JSON document, or one object in each line.

use std::{collections::BTreeMap, path::Path};

use jurat_wire::{api::verifier_tests::ReportBody, strict_json};
use serde_json::Value;

use crate::{commands::shared::input, failure::CliFailure};

/// Maximum size of a file: many times more than a measurement needs.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Names for the cases of a measurement that have none of their own.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CaseNames {
    /// The cases already have names.
    Known,
    /// The examples of the version, in their order.
    Examples,
    /// The position of each case in its file; `None` for a case with a name.
    Given(Vec<Option<String>>),
}

impl CaseNames {
    /// The report, with names by which people can find the cases.
    pub(super) fn put<'a>(&self, report: &ReportBody<'a>) -> ReportBody<'a> {
        let mut report = report.clone();
        let mut known = BTreeMap::new();
        for (at, case) in report.cases.iter_mut().enumerate() {
            if let Some(name) = self.of(at) {
                known.insert(case.id.clone(), name.clone());
                case.id = name.into();
            }
        }
        for flip in report.compared.iter_mut().flat_map(|compared| &mut compared.flips) {
            if let Some(name) = known.get(&flip.id) {
                flip.id = name.clone().into();
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

/// The cases of a file, ready to be sent, and their names.
pub(super) fn read(file: &Path) -> anyhow::Result<(Vec<Value>, CaseNames)> {
    let name = format!("`--data {}`", file.display());
    let bytes = input::whole(&name, file, LARGEST)?;
    let wrong = |text: String| CliFailure::usage(format!("{name} {text}"));
    let cases = cases(&bytes).map_err(wrong)?;
    if cases.is_empty() {
        return Err(wrong("has no cases".to_owned()));
    }
    let names = cases.iter().map(|case| case.id().is_none().then(|| case.line.clone()));
    let names = CaseNames::Given(names.collect());
    Ok((cases.into_iter().map(|case| case.document).collect(), names))
}

/// A case of a file.
#[derive(Debug)]
struct FileCase {
    /// Its position, such as `line 4`.
    line: String,
    document: Value,
}

impl FileCase {
    fn id(&self) -> Option<&str> {
        self.document.get("id")?.as_str()
    }
}

fn cases(bytes: &[u8]) -> Result<Vec<FileCase>, String> {
    let begins_list = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if begins_list {
        let value = strict_json::parse(bytes).map_err(|error| format!("is not JSON: {error}"))?;
        return listed(value);
    }
    // An object over several lines is a document whose member `cases` holds the cases.
    if let Ok(mut value) = strict_json::parse(bytes)
        && let Some(items) = value.get_mut("cases").filter(|items| items.is_array())
    {
        return listed(items.take());
    }
    lines(bytes)
}

fn listed(items: Value) -> Result<Vec<FileCase>, String> {
    let Value::Array(items) = items else { return Ok(Vec::new()) };
    let cases = items.into_iter().zip(1..);
    let cases =
        cases.map(|(document, number)| FileCase { line: format!("case {number}"), document });
    checked(cases.collect())
}

fn lines(bytes: &[u8]) -> Result<Vec<FileCase>, String> {
    let mut cases = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let name = format!("line {}", at + 1);
        let document =
            strict_json::parse(line).map_err(|error| format!("{name} is not JSON: {error}"))?;
        cases.push(FileCase { line: name, document });
    }
    checked(cases)
}

fn checked(cases: Vec<FileCase>) -> Result<Vec<FileCase>, String> {
    let mut ids: BTreeMap<&str, &str> = BTreeMap::new();
    for case in &cases {
        let line = &case.line;
        check(&case.document).map_err(|text| format!("{line}: {text}"))?;
        let Some(id) = case.id() else { continue };
        if let Some(first) = ids.insert(id, line) {
            return Err(format!(
                "{line}: the id `{id}` is already used by {first}; give each case its own"
            ));
        }
    }
    Ok(cases)
}

/// Refuses a case that the server would refuse, before anything is sent.
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
    use serde_json::json;

    use super::*;
    use crate::commands::verifiers::show_measurement::samples::{case, report};

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
        let report = report(json!({
            "cases": [case(json!({"id": "0f3a"})), case(json!({"id": "b"}))],
            "compared": {"with_version": 1, "is_worse": false, "p_value": 1.0, "flips": [
                {"id": "0f3a", "expected": true, "before": true, "after": false},
            ]},
        }));
        let ids = |report: &ReportBody<'_>| -> Vec<String> {
            let flips = report.compared.iter().flat_map(|it| &it.flips).map(|flip| &flip.id);
            report.cases.iter().map(|case| &case.id).chain(flips).map(ToString::to_string).collect()
        };
        let names = CaseNames::Given(vec![Some("line 4".to_owned()), None]);
        assert_eq!(ids(&names.put(&report)), ["line 4", "b", "line 4"]);
        let examples = ["example 1", "example 2", "example 1"];
        assert_eq!(ids(&CaseNames::Examples.put(&report)), examples);
        assert_eq!(ids(&CaseNames::Known.put(&report)), ids(&report));
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
