//! Failures of commands, and their exit codes.

use jurat_core::code::ProblemCode;
use serde_json::{Value, json};

use crate::{
    client::{ClientError, Refusal},
    hint,
};

pub(crate) const ERROR: u8 = 1;
pub(crate) const USAGE: u8 = 2;
const NEWER: &str = "Print the reply as it came with `--json`, or update this program.";

/// A usage error: the user must correct something first.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CliFailure(String);

impl CliFailure {
    pub(crate) fn usage(text: impl Into<String>) -> anyhow::Error {
        Self(text.into()).into()
    }
}

/// The refusal of the server, if it is the cause of the failure.
pub(crate) fn refusal(error: &anyhow::Error) -> Option<&Refusal> {
    error.downcast_ref::<ClientError>()?.refusal()
}

/// The command has printed a reply that it cannot read, and had nothing else to do.
#[derive(Debug, thiserror::Error)]
#[error("the reply is printed as it came")]
pub(crate) struct PrintedUnread;

/// The body of a reply that this version cannot read, if that is the cause of the failure.
pub(crate) fn unread_body(error: &anyhow::Error) -> Option<&[u8]> {
    error.downcast_ref::<ClientError>()?.unread_body().map(AsRef::as_ref)
}

pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    match refusal(error) {
        Some(refusal) => refusal.code().map_or(ERROR, ProblemCode::exit_code),
        None if error.is::<CliFailure>() => USAGE,
        None => ERROR,
    }
}

/// The lines below the message: the problem of each session, the field, and the next step.
pub(crate) fn advice(error: &anyhow::Error) -> Vec<String> {
    if unread_body(error).is_some() {
        return vec![format!("hint: {NEWER}")];
    }
    refusal(error).map(advice_on).unwrap_or_default()
}

fn advice_on(refusal: &Refusal) -> Vec<String> {
    let problem = refusal.problem.as_ref();
    let sessions = problem.and_then(|it| it.sessions.as_deref()).unwrap_or_default();
    let mut lines: Vec<String> = sessions
        .iter()
        .map(|session| format!("session {}: {}", session.session_id, session.problem))
        .collect();
    if let Some(field) = problem.and_then(|it| it.field.as_deref()) {
        lines.push(hint::field(field));
    }
    if let Some(seconds) = refusal.retry_after_s {
        lines.push(format!("try again in: {seconds} s"));
    }
    lines.extend(problem.and_then(hint::of).map(|hint| format!("hint: {hint}")));
    lines
}

/// The error and its causes, without causes that a library repeats in its own text.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for text in error.chain().map(ToString::to_string) {
        if parts.last().is_none_or(|last| !last.ends_with(&text)) {
            parts.push(text);
        }
    }
    parts.join(": ")
}

/// The error as JSON: the problem of the API, or the same members for an error of this process.
pub(crate) fn body(error: &anyhow::Error) -> Value {
    if let Some(refusal) = refusal(error) {
        return refusal.document();
    }
    let kind = if error.is::<CliFailure>() { "usage_error" } else { "command_failed" };
    json!({ "error": kind, "message": sentence(error) })
}

#[cfg(test)]
mod tests {
    use jurat_wire::problem::{Problem, ProblemBody};

    use super::*;

    fn refused(body: &Value, retry_after_s: Option<u64>) -> anyhow::Error {
        let bytes = body.to_string().into_bytes().into();
        let problem = ProblemBody::read(body);
        ClientError::Refused(Box::new(Refusal { bytes, problem, retry_after_s })).into()
    }

    #[test]
    fn a_temporary_refusal_says_when_to_retry() {
        let problem = Problem::new(ProblemCode::RateLimited, "too much").hinted("Wait.");
        let error = refused(&problem.body(), Some(7));
        assert_eq!(advice(&error), ["try again in: 7 s", "hint: Wait."]);
        assert_eq!(body(&error)["retry_after_s"], 7);
    }

    #[test]
    fn a_problem_says_what_to_try_next() {
        let problem = Problem::new(ProblemCode::RequestInvalid, "`claim` is required").at("claim");
        let error = refused(&problem.body(), None);
        assert_eq!(error.to_string(), "`claim` is required");
        assert_eq!(exit_code(&error), 2);
        let expected = [
            "field: claim, set by `--claim`",
            "hint: Correct the flag or the file as the message says, and run the command again.",
        ];
        assert_eq!(advice(&error), expected);
        assert_eq!(body(&error.context("the file")), problem.body());
    }

    #[test]
    fn a_foreign_error_body_is_an_error() {
        let error = refused(&Value::Null, None);
        assert_eq!(exit_code(&error), 1);
        assert_eq!(error.to_string(), "the server refused the request");
        assert!(advice(&error).is_empty());
    }
}
