//! The resource `/v1/runs`: runs of several agents.

mod reply;
mod spec;
mod step;

use jurat_core::{
    agent_run::{AgentRunOrder, AgentRunSpec},
    canonical::digest_json,
    code::ProblemCode,
    time::Timestamp,
};
use serde_json::Value;

pub use self::{
    reply::{
        AgentRunBody, AgentRunCounts, AgentRunEventBody, AgentRunLine, AgentRunResultBody,
        AgentRunSubmitted, AgentStepBody, BucketCandidate, RUN, RUN_EVENT, ResultAggregation,
        ResultBucket, body, event, line, result_body, submitted,
    },
    spec::{AgentRunRequestBody, AgentRunSpecBody, CancelRunDraft, CancelRunRequest, SubmitRun},
};
use super::{
    kit::{
        faults::RequestFaults,
        request::{self, FieldPath},
    },
    tasks,
};
use crate::problem::Problem;

const CODE: ProblemCode = ProblemCode::ValidationError;

/// Reads a spec alone or with `kickoff`, and checks that the contract of every step can be made.
pub fn decode_submit(body: &Value, now: Timestamp) -> Result<AgentRunOrder, Problem> {
    let order = read(body)?;
    let whole = FieldPath::body(CODE);
    let name = wrapped(body);
    let at = if body.get(name).is_some() { whole.member(name) } else { whole };
    spec::check_steps(&at, order.spec.clone(), now)?;
    Ok(order)
}

/// Rewrites the field of a problem that was found after decoding as a path in the submission.
#[must_use]
pub fn located(body: &Value, mut problem: Problem) -> Problem {
    let Some(field) = problem.field.take() else { return problem };
    let name = wrapped(body);
    let (spec, before) = match body.get(name) {
        Some(spec) => (spec, format!("{name}.")),
        None => (body, String::new()),
    };
    let within = match field.as_str() {
        // The problem does not say which contract the schema belongs to.
        "output_schema" => spec::holder(spec, &field),
        _ => String::new(),
    };
    let path = format!("{before}{within}{field}");
    if let Some(reason) = problem.detail.strip_prefix(&format!("`{field}` ")) {
        problem.detail = format!("`{path}` {reason}");
    }
    problem.at(path)
}

/// Name of the member with the spec, if the spec is not the whole body.
fn wrapped(body: &Value) -> &'static str {
    if body.get("run_spec").is_some() { "run_spec" } else { "spec" }
}

/// Reads a submission without checking the contracts of its steps.
pub(super) fn read(body: &Value) -> Result<AgentRunOrder, Problem> {
    let problem = |faults: RequestFaults| faults.into_problem(CODE);
    let at = FieldPath::body(CODE);
    let name = wrapped(body);
    let Some(document) = body.get(name) else {
        let spec = request::read_all(body, CODE).map_err(problem)?;
        return Ok(order(false, incoming(spec, &at)?, body));
    };
    let whole: AgentRunRequestBody = request::read_all(body, CODE).map_err(problem)?;
    let spec = incoming(whole.spec, &at.member(name))?;
    Ok(order(whole.kickoff.unwrap_or(false), spec, document))
}

fn order(kickoff: bool, spec: AgentRunSpec, document: &Value) -> AgentRunOrder {
    let labels = spec::LABELS.iter().filter_map(|name| {
        let text = document.get(name)?.as_str()?;
        Some(((*name).to_owned(), text.to_owned()))
    });
    AgentRunOrder { kickoff, spec, labels: labels.collect(), spec_digest: digest_json(document) }
}

fn incoming(spec: AgentRunSpecBody, at: &FieldPath<'_>) -> Result<AgentRunSpec, Problem> {
    let spec = spec::checked(spec, at)?;
    if tasks::is_reserved(&spec.run_id) {
        return Err(at.member("run_id").wrong("must not be `.`, `..` or `sample`"));
    }
    Ok(spec)
}

/// Reads the reason for cancelling a run.
pub fn decode_cancel(body: &Value) -> Result<Option<String>, Problem> {
    let cancel: CancelRunRequest = request::read(body, CODE)?;
    Ok(cancel.reason.map(|reason| reason.0))
}
