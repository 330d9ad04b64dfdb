//! `--junit`: results as test cases, in the form that CI systems read.

mod round;

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use serde_json::Value;

pub(in crate::commands) use self::round::JunitReport;
use crate::{
    failure::{CliFailure, sentence},
    output::shortened,
};

const LONGEST_NAME: usize = 120;

/// Where to write.
#[derive(Debug)]
pub(crate) struct JunitFile {
    file: PathBuf,
}

impl JunitFile {
    /// Refuses a place that cannot be written to before anything is paid for.
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

    /// Writes the whole file or none, so that nobody reads half of one.
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

/// A case of a class, with a name that fits.
pub(crate) fn case(class: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(clean(&shortened(name, LONGEST_NAME)), status);
    case.set_classname(format!("jurat.{class}"));
    case
}

/// The answer is negative.
pub(crate) fn failed(kind: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(clean(kind)).set_message(clean(text));
    status
}

/// There is no answer.
pub(crate) fn unanswered(kind: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type(clean(kind)).set_message(clean(text));
    status
}

/// What the server refused, or what went wrong here.
pub(crate) fn of_error(error: &anyhow::Error) -> TestCaseStatus {
    match error.downcast_ref::<CliFailure>() {
        Some(CliFailure::Refused(problem)) => refused(problem),
        Some(CliFailure::Usage(_)) | None => unanswered("error", &sentence(error)),
    }
}

fn refused(problem: &Value) -> TestCaseStatus {
    let text = |name: &str| problem[name].as_str().unwrap_or("error");
    unanswered(text("code"), text("message"))
}

/// Those that have a value.
pub(crate) fn properties(given: &[(&str, &Value)]) -> Vec<Property> {
    given
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Property::new(format!("jurat.{name}"), clean(&text))
        })
        .collect()
}

/// What others wrote, without the characters that XML cannot hold.
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
        // Others read it, unlike the files that are temporary.
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
