//! A round as a test case.

use std::time::Duration;

use quick_junit::{TestCase, TestCaseStatus};
use serde_json::Value;

use super::{JunitFile, clean, failed, of_error, property, unanswered};
use crate::{
    args::RequestArgs,
    commands::{
        consensus::{RoundAnswer, disagreement, least},
        rounds::show::{self, RoundView},
        shared::gate,
    },
    output::Output,
};

/// The report file, and the name of its test case.
#[derive(Debug)]
pub(in crate::commands) struct JunitReport {
    file: JunitFile,
    operation: String,
    name: String,
    /// Minimum confidence of an answer.
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
        asked: &anyhow::Result<RoundAnswer>,
    ) -> anyhow::Result<()> {
        self.file.write(&self.operation, [self.case(asked)])
    }

    fn case(&self, asked: &anyhow::Result<RoundAnswer>) -> TestCase {
        let round = match asked {
            Ok(RoundAnswer::Open(round)) => RoundView::from(&round.value),
            Ok(RoundAnswer::Ended(reply)) => RoundView::from(&reply.value),
            Err(error) => match disagreement(error) {
                Some(refusal) => RoundView::from(refusal.problem),
                None => return super::case(&self.operation, &self.name, of_error(error)),
            },
        };
        let status = decided(&round, self.least);
        let mut case = super::case(&self.operation, &self.name, status);
        let consensus = round.consensus;
        case.set_time(Duration::from_millis(longest(&round)));
        let properties = [
            property("round_id", &round.round_id),
            property("receipt_id", &round.receipt_id),
            property("outcome", &consensus.map(|it| it.outcome)),
            property("agreement", &consensus.map(|it| it.agreement)),
            property("confidence", &round.confidence),
            property("replicas", &consensus.map(|it| it.asked)),
        ];
        case.add_properties(properties.into_iter().flatten());
        case.set_system_out(clean(&show::reply(Output::plain(), &round)));
        case
    }
}

/// The status that corresponds to the exit code of the gate.
fn decided(round: &RoundView<'_>, least: f64) -> TestCaseStatus {
    let word = round.label.unwrap_or("NO_CONSENSUS");
    let conclusion = show::conclusion(Output::plain(), round);
    match gate::exit_code(round, least) {
        gate::PASSED => TestCaseStatus::success(),
        gate::NEGATIVE => failed(word, &conclusion),
        _ => unanswered(word, &conclusion),
    }
}

/// The latency of the slowest replica, which is how long the round took.
fn longest(round: &RoundView<'_>) -> u64 {
    let replicas = round.replicas.unwrap_or_default();
    replicas.iter().map(|replica| replica.latency_ms).max().unwrap_or(0)
}
