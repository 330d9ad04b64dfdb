//! What is asked for with a task: submitting it, and calling it off.

use std::collections::BTreeSet;

use jurat_core::{code::ProblemCode, task::TermError};
use serde_json::Value;
use utoipa::ToSchema;

use super::{TaskContractBody, TaskOrder, contract};
use crate::{
    api::kit::{
        faults::RequestFaults,
        fields::{RequestFields, short},
        known_fields::{DescribedRequest as _, SearchDepth},
    },
    executor::TaskContract,
    problem::Problem,
};

/// How many executors a task may name.
const MOST_NAMES: usize = 64;
const LONGEST_PROFILE: usize = 128;
const LONGEST_REASON: usize = 500;

/// A task to submit, as it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSubmission {
    pub contract: TaskContract,
    /// Who may work on it; empty for all that declare the task type.
    pub executors: Vec<String>,
    /// Who verifies; empty for those that may work on it.
    pub verifiers: Vec<String>,
    pub profile: Option<String>,
}

/// Reads a contract alone, or with who is to work on it, and says all that nobody could be held to.
/// Whether it has ended is for those to say who know whether the task is there already.
pub fn decode_submit(body: &Value) -> Result<TaskSubmission, Problem> {
    read_submit(body).map_err(|faults| faults.into_problem(ProblemCode::ValidationError))
}

/// The same, with each fault for itself.
pub(in crate::api) fn read_submit(body: &Value) -> Result<TaskSubmission, RequestFaults> {
    let fields =
        RequestFields::of_body(body, ProblemCode::ValidationError).map_err(RequestFaults::from)?;
    let submission = read_shape(body, &fields)?;
    let mut faults = RequestFaults::default();
    for TermError { field, reason } in submission.contract.terms().check_lasting() {
        let field = if is_order(body) { format!("contract.{field}") } else { field.to_owned() };
        faults.add(fields.wrong(&field, &reason));
    }
    if faults.is_empty() { Ok(submission) } else { Err(faults) }
}

/// Names the field of a problem that was found later as it stands in the submission.
#[must_use]
pub fn located(body: &Value, mut problem: Problem) -> Problem {
    let Some(field) = problem.field.take() else { return problem };
    let top = field.split('.').next().unwrap_or_default();
    if !is_order(body) || !TaskContractBody::known_fields().has(top) {
        return problem.at(field);
    }
    if let Some(reason) = problem.detail.strip_prefix(&format!("`{field}` ")) {
        problem.detail = format!("`contract.{field}` {reason}");
    }
    problem.at(format!("contract.{field}"))
}

/// Reads what has the right shape, whether or not somebody could be held to it.
#[cfg(test)]
pub(in crate::api) fn decode_shape(body: &Value) -> Result<TaskSubmission, Problem> {
    let fields = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    read_shape(body, &fields).map_err(|faults| faults.into_problem(ProblemCode::ValidationError))
}

fn read_shape(body: &Value, fields: &RequestFields<'_>) -> Result<TaskSubmission, RequestFaults> {
    let mut faults = RequestFaults::default();
    let read = if is_order(body) {
        order(fields, &mut faults)
    } else {
        let contract = contract::decode(fields, &mut faults);
        contract.map(|contract| TaskSubmission {
            contract,
            executors: Vec::new(),
            verifiers: Vec::new(),
            profile: None,
        })
    };
    match read {
        Some(submission) if faults.is_empty() => Ok(submission),
        // A decoder that gives nothing has said why.
        Some(_) | None => Err(faults),
    }
}

/// Whether the contract comes with who is to work on it.
fn is_order(body: &Value) -> bool {
    body.get("contract").is_some()
}

fn order(fields: &RequestFields<'_>, faults: &mut RequestFaults) -> Option<TaskSubmission> {
    // The decoder of the contract looks further.
    faults.note_unknown::<TaskOrder>(fields, SearchDepth::Top);
    let contract = if let Some(contract) = faults.take(fields.object("contract"))? {
        contract::decode(&contract, faults)
    } else {
        faults.add(fields.wrong("contract", "is required"));
        None
    };
    let executors = faults.take(names(fields, "executors"));
    let verifiers = faults.take(names(fields, "verifiers"));
    let profile = faults.take(profile(fields));
    Some(TaskSubmission {
        contract: contract?,
        executors: executors?,
        verifiers: verifiers?,
        profile: profile?,
    })
}

/// Names of executors, each once; those that verify may be judges too.
pub(in crate::api) fn names(
    fields: &RequestFields<'_>,
    name: &str,
) -> Result<Vec<String>, Problem> {
    let names = fields.texts(name)?;
    if MOST_NAMES < names.len() {
        return Err(fields.wrong(name, &format!("must have at most {MOST_NAMES} names")));
    }
    let mut seen = BTreeSet::new();
    for it in &names {
        let is_known = is_name(it) || (name == "verifiers" && is_judge(it));
        if !is_known {
            let reason = format!("has `{}`, which is not a valid executor name", short(it));
            return Err(fields.wrong(name, &reason));
        }
        if !seen.insert(*it) {
            return Err(fields.wrong(name, &format!("has `{it}` twice")));
        }
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// Whether it may be the name of an executor.
pub(in crate::api) fn is_name(text: &str) -> bool {
    let is_first = |symbol: char| symbol.is_ascii_alphanumeric() || symbol == '_';
    text.len() <= 64
        && text.starts_with(is_first)
        && text.chars().all(|symbol| is_first(symbol) || matches!(symbol, '.' | '-'))
}

/// `judge:provider/model`.
fn is_judge(text: &str) -> bool {
    let Some((provider, model)) = text.strip_prefix("judge:").and_then(|it| it.split_once('/'))
    else {
        return false;
    };
    let is_of_provider =
        |symbol: u8| symbol.is_ascii_lowercase() || symbol.is_ascii_digit() || symbol == b'-';
    (1..=64).contains(&provider.len())
        && provider.bytes().all(is_of_provider)
        && (1..=128).contains(&model.len())
        && model.bytes().all(|symbol| symbol.is_ascii_graphic())
}

fn profile(fields: &RequestFields<'_>) -> Result<Option<String>, Problem> {
    if fields.get("profile").is_none() {
        return Ok(None);
    }
    let profile = fields.plain_text("profile")?;
    if LONGEST_PROFILE < profile.chars().count() {
        let reason = format!("must have at most {LONGEST_PROFILE} characters");
        return Err(fields.wrong("profile", &reason));
    }
    Ok(Some(profile.to_owned()))
}

/// Why a task is cancelled.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelTaskRequest {
    /// Stored with the task.
    #[schema(pattern = r"^[^\x00]*[^\s\x00][^\x00]*$", max_length = 500)]
    pub reason: Option<String>,
}

pub fn decode_cancel(body: &Value) -> Result<Option<String>, Problem> {
    let fields = RequestFields::of_body(body, ProblemCode::ValidationError)?;
    fields.keep_to::<CancelTaskRequest>()?;
    reason(&fields)
}

/// Words that are kept, within bounds.
pub(super) fn reason(fields: &RequestFields<'_>) -> Result<Option<String>, Problem> {
    if fields.get("reason").is_none() {
        return Ok(None);
    }
    let reason = fields.plain_text("reason")?;
    if LONGEST_REASON < reason.chars().count() {
        let longest = format!("must have at most {LONGEST_REASON} characters");
        return Err(fields.wrong("reason", &longest));
    }
    Ok(Some(reason.to_owned()))
}
