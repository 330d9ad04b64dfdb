//! The resource `/v1/runs`: runs of several agents.

mod described;
mod reply;
mod spec;
mod step;

use jurat_core::{agent_run::AgentRunSpec, code::ProblemCode, time::Timestamp};
use serde_json::Value;

pub use self::{
    described::{AgentRunRequestBody, AgentRunSpecBody, CancelRunRequest, SubmitRun},
    reply::{
        AgentRunBody, AgentRunCounts, AgentRunEventBody, AgentRunLine, AgentRunResultBody,
        AgentRunSubmitted, AgentStepBody, RUN, RUN_EVENT, body, event, line, result_body,
        submitted,
    },
    spec::decode_spec,
    step::step_submission,
};
use super::{
    kit::{fields::RequestFields, known_fields::SearchDepth},
    tasks,
};
use crate::problem::Problem;

/// A run to submit, as it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRunRequest {
    pub kickoff: bool,
    pub spec: AgentRunSpec,
    /// The spec as it came.
    pub document: Value,
}

/// Reads a spec alone, or with the word to begin. The contract of every step is tried.
pub fn decode_submit(body: &Value, now: Timestamp) -> Result<AgentRunRequest, Problem> {
    let order = read(body)?;
    let fields = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    let inner = fields.object(wrapped(body))?.unwrap_or(fields);
    spec::check_steps(&inner, order.spec.clone(), now)?;
    Ok(order)
}

/// Names the field of a problem that was found later as it stands in the submission.
#[must_use]
pub fn located(body: &Value, mut problem: Problem) -> Problem {
    let Some(field) = problem.field.take() else { return problem };
    let name = wrapped(body);
    let (spec, before) = match body.get(name) {
        Some(spec) => (spec, format!("{name}.")),
        None => (body, String::new()),
    };
    let within = match field.as_str() {
        // All that is known of a schema is that it stands in some contract.
        "output_schema" => spec::holder(spec, &field),
        _ => String::new(),
    };
    let path = format!("{before}{within}{field}");
    if let Some(reason) = problem.detail.strip_prefix(&format!("`{field}` ")) {
        problem.detail = format!("`{path}` {reason}");
    }
    problem.at(path)
}

/// The member that holds the spec where it does not stand alone.
fn wrapped(body: &Value) -> &'static str {
    if body.get("run_spec").is_some() { "run_spec" } else { "spec" }
}

pub(super) fn read(body: &Value) -> Result<AgentRunRequest, Problem> {
    let fields = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    let name = wrapped(body);
    let Some(document) = body.get(name) else {
        return Ok(AgentRunRequest {
            kickoff: false,
            spec: incoming(&fields)?,
            document: body.clone(),
        });
    };
    if let Some(stranger) =
        fields.unknown_fields::<AgentRunRequestBody>(SearchDepth::Top).into_iter().next()
    {
        return Err(stranger);
    }
    if name == "run_spec" && fields.get("spec").is_some() {
        return Err(
            fields.wrong("spec", "contradicts `run_spec`, which means the same; leave one out")
        );
    }
    let kickoff = fields.flag("kickoff")?.unwrap_or(false);
    let inner = fields.object(name)?.ok_or_else(|| fields.wrong(name, "is required"))?;
    Ok(AgentRunRequest { kickoff, spec: incoming(&inner)?, document: document.clone() })
}

/// A spec that comes in. What is stored already may have a name that is refused here.
fn incoming(fields: &RequestFields<'_>) -> Result<AgentRunSpec, Problem> {
    let spec = spec::read(fields)?;
    if tasks::is_reserved(&spec.run_id) {
        return Err(fields.wrong("run_id", "must not be `.`, `..` or `sample`"));
    }
    Ok(spec)
}

/// Reads why a run is called off.
pub fn decode_cancel(body: &Value) -> Result<Option<String>, Problem> {
    tasks::decode_cancel(body)
}
