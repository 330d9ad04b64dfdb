//! `--junit`: results as test cases, in the form that CI systems read.

mod round;

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use serde::Serialize;
use serde_json::{Value, json};

pub(in crate::commands) use self::round::JunitReport;
use crate::{
    client::Refusal,
    failure::{CliFailure, refusal, sentence},
    output::shortened,
};

const LONGEST_NAME: usize = 120;

/// The report file.
#[derive(Debug)]
pub(crate) struct JunitFile {
    file: PathBuf,
}

impl JunitFile {
    /// Refuses an unwritable path before any paid work starts.
    pub(crate) fn new(file: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let Some(file) = file else { return Ok(None) };
        if !folder(file).is_dir() || file.is_dir() {
            let text = format!(
                "`--junit {}` cannot be written; name a file in an existing folder",
                file.display()
            );
            return Err(CliFailure::usage(text));
        }
        Ok(Some(Self { file: file.to_owned() }))
    }

    /// Writes the whole file or nothing.
    pub(crate) fn write(
        &self,
        operation: &str,
        cases: impl IntoIterator<Item = TestCase>,
    ) -> anyhow::Result<()> {
        let wrong = || format!("cannot write the `--junit` file {}", self.file.display());
        let mut report = Report::new("jurat");
        let mut suite = TestSuite::new(format!("jurat {operation}"));
        suite.add_test_cases(cases);
        report.add_test_suite(suite);
        let mut text = Vec::new();
        report.serialize(&mut text).with_context(wrong)?;
        persist(&self.file, &text).with_context(wrong)
    }
}

/// A test case of a class, with its name shortened to fit.
pub(crate) fn case(class: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(clean(&shortened(name, LONGEST_NAME)), status);
    case.set_classname(format!("jurat.{class}"));
    case
}

/// The status of a test case with a negative answer.
pub(crate) fn failed(kind: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(clean(kind)).set_message(clean(text));
    status
}

/// The status of a test case without an answer.
pub(crate) fn unanswered(kind: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type(clean(kind)).set_message(clean(text));
    status
}

/// The status for a refusal of the server or an error of this process.
pub(crate) fn of_error(error: &anyhow::Error) -> TestCaseStatus {
    match refusal(error) {
        Some(refusal) => refused(refusal),
        None => unanswered("error", &sentence(error)),
    }
}

fn refused(refusal: &Refusal) -> TestCaseStatus {
    match &refusal.problem {
        Some(problem) => unanswered(&problem.code, &problem.message),
        None => unanswered("error", "error"),
    }
}

/// A property of a case, unless the value is null.
pub(crate) fn property<T: Serialize + ?Sized>(name: &str, value: &T) -> Option<Property> {
    let text = match json!(value) {
        Value::Null => return None,
        Value::String(text) => text,
        value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            value.to_string()
        }
    };
    Some(Property::new(format!("jurat.{name}"), clean(&text)))
}

/// Text without the characters that XML cannot hold.
pub(crate) fn clean(text: &str) -> String {
    let is_allowed = |symbol: &char| {
        matches!(symbol, '\n' | '\t')
            || !symbol.is_control() && !matches!(symbol, '\u{fffe}' | '\u{ffff}')
    };
    text.chars().filter(is_allowed).collect()
}

fn folder(file: &Path) -> &Path {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn persist(file: &Path, text: &[u8]) -> io::Result<()> {
    use std::{io::Write as _, os::unix::fs::PermissionsExt as _};
    let mut whole = tempfile::Builder::new()
        // Unlike a temporary file, the report is for other users to read.
        .permissions(std::fs::Permissions::from_mode(0o644))
        .tempfile_in(folder(file))?;
    whole.write_all(text)?;
    whole.persist(file).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_xml_forbids_are_left_out() {
        assert_eq!(clean("a\u{0}\u{1b}[31m\u{fffe}b\n\u{ffff}\u{9b}<&>"), "a[31mb\n<&>");
    }
}
