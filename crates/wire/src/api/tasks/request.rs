//! Requests to submit and to cancel tasks.

use std::collections::BTreeSet;

use jurat_core::{code::ProblemCode, task::TermError};
use serde_json::Value;

use super::TaskContractBody;
use crate::{
    api::kit::{
        faults::RequestFaults,
        json::short,
        request::{
            self, FieldFault, FieldPath, RequestBody as _, component, named, one_of, request, text,
            values,
            values::{NAME, PlainText, is_name, list_of, text_of, texts_of},
        },
    },
    executor::TaskSubmission,
    problem::Problem,
};

/// Maximum number of names in a list of executors.
const MOST_NAMES: usize = 64;
/// Pattern of a voter: an executor, or a judge by its provider and model.
const VERIFIER: &str = "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,63}|judge:[a-z0-9-]{1,64}/[!-~]{1,128})$";

/// A task to submit: its contract alone, or with the executors for it.
#[derive(Debug)]
pub struct SubmitTask;

named!(
    SubmitTask:
        one_of("A contract, alone or with the executors for it.")
            .item(component::<TaskContractBody>())
            .item(component::<TaskOrder>()),
    with TaskContractBody, TaskOrder
);

request! {
    /// A contract with the executors for it.
    pub strict struct TaskOrder {
        contract: TaskContractBody,
        /// Executors that may propose and vote; defaults to all that declare the task type.
        executors: Option<ExecutorList>,
        /// Executors that vote; defaults to those of `executors`.
        verifiers: Option<VoterList>,
        /// Profile that the executors use; defaults to `default`.
        profile: Option<PlainText<128>>,
    }

    /// Why a task is cancelled.
    pub strict struct CancelTaskRequest, draft CancelTaskDraft {
        /// Stored with the task.
        reason: Option<PlainText<500>>,
    }
}

values! {
    /// The name of an executor.
    pub named struct ExecutorName(String):
        text().pattern(Some(NAME)).description(Some("The name of an executor.")) => executor;

    /// Executors, each once.
    pub struct ExecutorList(Vec<String>):
        list_of::<ExecutorName>().max_items(Some(MOST_NAMES)) => executors, with ExecutorName;

    /// The name of an executor or a judge that votes.
    pub(crate) named struct VerifierName(String):
        text().pattern(Some(VERIFIER)).description(Some("The name of an executor, or `judge:provider/model` for a judge of this node."))
        => voter;

    /// Voters, each once.
    pub struct VoterList(Vec<String>):
        list_of::<VerifierName>().max_items(Some(MOST_NAMES)) => voters, with VerifierName;
}

/// Reads a contract alone or with its executors; a problem names all terms that cannot be met. The
/// engine checks the expiry, because it knows whether the task already exists.
pub fn decode_submit(body: &Value) -> Result<TaskSubmission, Problem> {
    read_submit(body).map_err(|faults| faults.into_problem(ProblemCode::ValidationError))
}

/// Like [`decode_submit`], but returns each fault separately.
pub(in crate::api) fn read_submit(body: &Value) -> Result<TaskSubmission, RequestFaults> {
    let submission = read_shape(body)?;
    let at = FieldPath::body(ProblemCode::ValidationError);
    let mut faults = RequestFaults::default();
    for TermError { field, reason } in submission.contract.terms().check_lasting() {
        let field = if is_order(body) { format!("contract.{field}") } else { field.to_owned() };
        faults.add(at.member(&field).wrong(&reason));
    }
    if faults.is_empty() { Ok(submission) } else { Err(faults) }
}

/// Rewrites the field of a problem that was found after decoding as a path in the submission.
#[must_use]
pub fn located(body: &Value, mut problem: Problem) -> Problem {
    let Some(field) = problem.field.take() else { return problem };
    let top = field.split('.').next().unwrap_or_default();
    if !is_order(body) || !TaskContractBody::known().has(top) {
        return problem.at(field);
    }
    if let Some(reason) = problem.detail.strip_prefix(&format!("`{field}` ")) {
        problem.detail = format!("`contract.{field}` {reason}");
    }
    problem.at(format!("contract.{field}"))
}

fn read_shape(body: &Value) -> Result<TaskSubmission, RequestFaults> {
    let code = ProblemCode::ValidationError;
    if is_order(body) {
        return request::read_all::<TaskOrder>(body, code).map(Into::into);
    }
    let contract = request::read_all::<TaskContractBody>(body, code)?;
    Ok(TaskSubmission {
        contract: contract.into(),
        executors: Vec::new(),
        verifiers: Vec::new(),
        profile: None,
    })
}

/// Whether the body is a contract with its executors.
fn is_order(body: &Value) -> bool {
    body.get("contract").is_some()
}

impl From<TaskOrder> for TaskSubmission {
    fn from(order: TaskOrder) -> Self {
        Self {
            contract: order.contract.into(),
            executors: order.executors.map(|names| names.0).unwrap_or_default(),
            verifiers: order.verifiers.map(|names| names.0).unwrap_or_default(),
            profile: order.profile.map(|profile| profile.0),
        }
    }
}

fn executor(value: &Value) -> Result<String, FieldFault> {
    one_name(text_of(value)?, is_name)
}

fn executors(value: &Value) -> Result<Vec<String>, FieldFault> {
    names(value, is_name)
}

fn voter(value: &Value) -> Result<String, FieldFault> {
    one_name(text_of(value)?, is_voter)
}

fn voters(value: &Value) -> Result<Vec<String>, FieldFault> {
    names(value, is_voter)
}

fn is_voter(text: &str) -> bool {
    is_name(text) || is_judge(text)
}

fn one_name(text: &str, is_known: fn(&str) -> bool) -> Result<String, FieldFault> {
    if text.trim().is_empty() {
        return Err("must not be blank".into());
    }
    if is_known(text) {
        return Ok(text.to_owned());
    }
    Err(format!("has `{}`, which is not a valid executor name", short(text)).into())
}

fn names(value: &Value, is_known: fn(&str) -> bool) -> Result<Vec<String>, FieldFault> {
    let names = texts_of(value)?;
    if MOST_NAMES < names.len() {
        return Err(format!("must have at most {MOST_NAMES} names").into());
    }
    let mut seen = BTreeSet::new();
    for it in &names {
        if !is_known(it) {
            let reason = format!("has `{}`, which is not a valid executor name", short(it));
            return Err(reason.into());
        }
        if !seen.insert(*it) {
            return Err(format!("has `{it}` twice").into());
        }
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// Whether the text is `judge:provider/model`.
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

/// Reads the reason for cancelling a task.
pub fn decode_cancel(body: &Value) -> Result<Option<String>, Problem> {
    let cancel: CancelTaskRequest = request::read(body, ProblemCode::ValidationError)?;
    Ok(cancel.reason.map(|reason| reason.0))
}
