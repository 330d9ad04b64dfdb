//! `--junit`: a round as a test case, in the form that CI systems read.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use serde_json::Value;

use super::{
    consensus::{is_disagreement, undecided},
    gate,
};
use crate::{
    args::RequestArgs,
    client::Reply,
    failure::Failure,
    output::{Output, round, shortened},
};

const LONGEST_NAME: usize = 120;

/// Where to write, and what the test case is called.
#[derive(Debug)]
pub(super) struct Junit {
    file: PathBuf,
    operation: String,
    name: String,
}

impl Junit {
    /// Refuses a place that cannot be written to before a round is paid for.
    pub(super) fn new(
        operation: &str,
        request: &Value,
        args: &RequestArgs,
    ) -> anyhow::Result<Option<Self>> {
        let Some(file) = args.junit.clone() else { return Ok(None) };
        if !folder(&file).is_dir() || file.is_dir() {
            let text = format!(
                "`--junit {}` cannot be written; name a file in a folder that is there",
                file.display()
            );
            return Err(Failure::usage(text));
        }
        let asked = ["claim", "objective"].iter().find_map(|it| request.get(*it));
        let asked = asked.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
        let name = args.junit_name.clone().or(asked).unwrap_or_default();
        let name = shortened(&name, LONGEST_NAME);
        let name = if name.is_empty() { operation.to_owned() } else { name };
        Ok(Some(Self { file, operation: operation.to_owned(), name }))
    }

    /// Writes the whole file or none, so that nobody reads half of one.
    pub(super) fn write(&self, reply: Result<&Reply, &anyhow::Error>) -> anyhow::Result<()> {
        let wrong = || format!("cannot write the file of `--junit`, {}", self.file.display());
        let mut report = Report::new("jurat");
        let mut suite = TestSuite::new(format!("jurat {}", self.operation));
        suite.add_test_case(self.case(reply));
        report.add_test_suite(suite);
        let mut text = Vec::new();
        report.serialize(&mut text).with_context(wrong)?;
        persist(&self.file, &text).with_context(wrong)
    }

    fn case(&self, reply: Result<&Reply, &anyhow::Error>) -> TestCase {
        let (status, body) = match reply {
            Ok(reply) if reply.is_problem() && is_disagreement(&reply.value) => {
                let body = undecided(&reply.value);
                (decided(&body), Some(body))
            }
            Ok(reply) if reply.is_problem() => (refused(&reply.value), None),
            Ok(reply) => (decided(&reply.value), Some(reply.value.clone())),
            Err(error) => (unanswered("error", &format!("{error:#}")), None),
        };
        let mut case = TestCase::new(clean(&self.name), status);
        case.set_classname(format!("jurat.{}", self.operation));
        if let Some(body) = body {
            case.set_time(Duration::from_millis(longest(&body)));
            case.add_properties(properties(&body));
            case.set_system_out(clean(&round::reply(Output::plain(), &body)));
        }
        case
    }
}

/// What the gate would say.
fn decided(body: &Value) -> TestCaseStatus {
    let word = round::label(body).as_str().unwrap_or("NO_CONSENSUS").to_owned();
    let conclusion = clean(&round::conclusion(Output::plain(), body));
    match gate::exit_code(body) {
        gate::PASSED => TestCaseStatus::success(),
        gate::NEGATIVE => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type(word).set_message(conclusion);
            status
        }
        _ => unanswered(&word, &conclusion),
    }
}

fn refused(problem: &Value) -> TestCaseStatus {
    let text = |name: &str| problem[name].as_str().unwrap_or("error");
    unanswered(text("code"), text("message"))
}

fn unanswered(kind: &str, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type(clean(kind)).set_message(clean(text));
    status
}

fn properties(body: &Value) -> Vec<Property> {
    let consensus = &body["consensus"];
    let given = [
        ("round_id", &body["round_id"]),
        ("receipt_id", &body["receipt_id"]),
        ("outcome", &consensus["outcome"]),
        ("agreement", &consensus["agreement"]),
        ("confidence", &body["confidence"]),
        ("replicas", &consensus["asked"]),
    ];
    given
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            Property::new(format!("jurat.{name}"), clean(&text))
        })
        .collect()
}

/// The round took as long as its slowest replica.
fn longest(body: &Value) -> u64 {
    let replicas = body["replicas"].as_array().into_iter().flatten();
    replicas.filter_map(|replica| replica["latency_ms"].as_u64()).max().unwrap_or(0)
}

/// What others wrote, without the characters that XML cannot hold.
fn clean(text: &str) -> String {
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
    fn what_xml_cannot_hold_is_left_out() {
        assert_eq!(clean("a\u{0}\u{1b}[31m\u{fffe}b\n\u{ffff}\u{9b}<&>"), "a[31mb\n<&>");
    }
}
