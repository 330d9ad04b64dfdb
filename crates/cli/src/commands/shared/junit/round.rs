//! A round as a test case.

use std::time::Duration;

use quick_junit::{TestCase, TestCaseStatus};
use serde_json::Value;

use super::{JunitFile, clean, failed, of_error, properties, refused, unanswered};
use crate::{
    args::RequestArgs,
    client::ApiReply,
    commands::{
        consensus::{is_disagreement, least, undecided},
        rounds::show,
        shared::gate,
    },
    output::Output,
};

/// Where to write, and what the test case is called.
#[derive(Debug)]
pub(in crate::commands) struct JunitReport {
    file: JunitFile,
    operation: String,
    name: String,
    /// How sure an answer must be to be one.
    least: f64,
}

impl JunitReport {
    pub(in crate::commands) fn new(
        operation: &str,
        request: &Value,
        args: &RequestArgs,
    ) -> anyhow::Result<Option<Self>> {
        let Some(file) = JunitFile::new(args.junit.as_deref())? else { return Ok(None) };
        let asked = ["claim", "objective"].iter().find_map(|it| request.get(*it));
        let asked = asked.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
        let name = args.junit_name.clone().or(asked).unwrap_or_default();
        let name = if name.trim().is_empty() { operation.to_owned() } else { name };
        Ok(Some(Self { file, operation: operation.to_owned(), name, least: least(args) }))
    }

    pub(in crate::commands) fn write(
        &self,
        reply: Result<&ApiReply, &anyhow::Error>,
    ) -> anyhow::Result<()> {
        self.file.write(&self.operation, [self.case(reply)])
    }

    fn case(&self, reply: Result<&ApiReply, &anyhow::Error>) -> TestCase {
        let (status, body) = match reply {
            Ok(reply) if reply.is_problem() && is_disagreement(&reply.value) => {
                let body = undecided(&reply.value);
                (decided(&body, self.least), Some(body))
            }
            Ok(reply) if reply.is_problem() => (refused(&reply.value), None),
            Ok(reply) => (decided(&reply.value, self.least), Some(reply.value.clone())),
            Err(error) => (of_error(error), None),
        };
        let mut case = super::case(&self.operation, &self.name, status);
        if let Some(body) = body {
            case.set_time(Duration::from_millis(longest(&body)));
            case.add_properties(properties(&[
                ("round_id", &body["round_id"]),
                ("receipt_id", &body["receipt_id"]),
                ("outcome", &body["consensus"]["outcome"]),
                ("agreement", &body["consensus"]["agreement"]),
                ("confidence", &body["confidence"]),
                ("replicas", &body["consensus"]["asked"]),
            ]));
            case.set_system_out(clean(&show::reply(Output::plain(), &body)));
        }
        case
    }
}

/// What the gate would say.
fn decided(body: &Value, least: f64) -> TestCaseStatus {
    let word = show::label(body).as_str().unwrap_or("NO_CONSENSUS").to_owned();
    let conclusion = show::conclusion(Output::plain(), body);
    match gate::exit_code(body, least) {
        gate::PASSED => TestCaseStatus::success(),
        gate::NEGATIVE => failed(&word, &conclusion),
        _ => unanswered(&word, &conclusion),
    }
}

/// The round took as long as its slowest replica.
fn longest(body: &Value) -> u64 {
    let replicas = body["replicas"].as_array().into_iter().flatten();
    replicas.filter_map(|replica| replica["latency_ms"].as_u64()).max().unwrap_or(0)
}
