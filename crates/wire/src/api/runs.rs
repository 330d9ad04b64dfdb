//! The resource `/v1/runs`: runs of several agents.

mod described;
mod reply;
mod spec;
mod step;

use jurat_core::{code::Code, task_run::RunSpec, time::Timestamp};
use serde_json::Value;

pub use self::{
    described::{CancelRunRequest, RunOrderBody, RunSpecBody, SubmitRun},
    reply::{
        RUN, RUN_EVENT, RunBody, RunCounts, RunEventBody, RunLine, RunResultBody, RunStepBody,
        RunSubmitted, body, event, line, result_body, submitted,
    },
    spec::decode_spec,
    step::step_order,
};
use super::{fields::Fields, known::Depth, tasks};
use crate::problem::Problem;

/// A run to submit, as it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOrder {
    pub kickoff: bool,
    pub spec: RunSpec,
    /// The spec as it came.
    pub document: Value,
}

/// Reads a spec alone, or with the word to begin. The contract of every step is tried.
pub fn decode_submit(body: &Value, now: Timestamp) -> Result<RunOrder, Problem> {
    let order = read(body)?;
    let fields = Fields::of_body(body, Code::ValidationError)?;
    let inner = fields.object(wrapped(body))?.unwrap_or(fields);
    spec::check_steps(&inner, order.spec.clone(), now)?;
    Ok(order)
}

/// Names the field of a problem that was found later as it stands in the submission.
#[must_use]
pub fn placed(body: &Value, mut problem: Problem) -> Problem {
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

pub(super) fn read(body: &Value) -> Result<RunOrder, Problem> {
    let fields = Fields::of_body(body, Code::ValidationError)?;
    let name = wrapped(body);
    let Some(document) = body.get(name) else {
        return Ok(RunOrder { kickoff: false, spec: incoming(&fields)?, document: body.clone() });
    };
    if let Some(stranger) = fields.strangers::<RunOrderBody>(Depth::Top).into_iter().next() {
        return Err(stranger);
    }
    if name == "run_spec" && fields.get("spec").is_some() {
        return Err(
            fields.wrong("spec", "contradicts `run_spec`, which means the same; leave one out")
        );
    }
    let kickoff = fields.flag("kickoff")?.unwrap_or(false);
    let inner = fields.object(name)?.ok_or_else(|| fields.wrong(name, "is required"))?;
    Ok(RunOrder { kickoff, spec: incoming(&inner)?, document: document.clone() })
}

/// A spec that comes in. What is stored already may have a name that is refused here.
fn incoming(fields: &Fields<'_>) -> Result<RunSpec, Problem> {
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
