//! Why a command ends without its result, and with which exit code.

use jurat_core::code::ProblemCode;
use serde_json::{Value, json};

use crate::hint;

pub(crate) const ERROR: u8 = 1;
pub(crate) const USAGE: u8 = 2;
/// The member of a problem that holds what the header `Retry-After` says.
pub(crate) const RETRY_AFTER: &str = "retry_after_s";

#[derive(Debug, thiserror::Error)]
pub(crate) enum CliFailure {
    /// Something on the command line must be corrected first.
    #[error("{0}")]
    Usage(String),
    /// The body of a problem.
    #[error("{}", text_of(.0, "message").unwrap_or("the server refused the request"))]
    Refused(Value),
}

impl CliFailure {
    pub(crate) fn usage(text: impl Into<String>) -> anyhow::Error {
        Self::Usage(text.into()).into()
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => USAGE,
            Self::Refused(body) => code(body).map_or(ERROR, ProblemCode::exit_code),
        }
    }

    /// What to print below the message: what is wrong with each session, the field, the next step.
    pub(crate) fn advice(&self) -> Vec<String> {
        let Self::Refused(body) = self else { return Vec::new() };
        let mut lines: Vec<String> = body["sessions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| format!("session {}: {}", word(&it["session_id"]), word(&it["problem"])))
            .collect();
        if let Some(field) = text_of(body, "field") {
            lines.push(hint::field(field));
        }
        if let Some(seconds) = body[RETRY_AFTER].as_u64() {
            lines.push(format!("try again in: {seconds} s"));
        }
        if let Some(hint) = hint::of(code(body), body) {
            lines.push(format!("hint: {hint}"));
        }
        lines
    }
}

/// The error and its causes. Some libraries repeat the cause in their own text.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for text in error.chain().map(ToString::to_string) {
        if parts.last().is_none_or(|last| !last.ends_with(&text)) {
            parts.push(text);
        }
    }
    parts.join(": ")
}

/// The error for a program: the problem of the API, or the same members for one of this process.
pub(crate) fn body(error: &anyhow::Error) -> Value {
    let kind = match error.downcast_ref::<CliFailure>() {
        Some(CliFailure::Refused(body)) => return body.clone(),
        Some(CliFailure::Usage(_)) => "usage_error",
        None => "command_failed",
    };
    json!({ "error": kind, "message": sentence(error) })
}

pub(crate) fn code(body: &Value) -> Option<ProblemCode> {
    text_of(body, "code")?.parse().ok()
}

fn text_of<'a>(body: &'a Value, name: &str) -> Option<&'a str> {
    body.get(name)?.as_str()
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use jurat_wire::problem::Problem;

    use super::*;

    #[test]
    fn a_temporary_refusal_says_when_to_retry() {
        let body = json!({ "message": "too much", "hint": "Wait.", RETRY_AFTER: 7 });
        assert_eq!(CliFailure::Refused(body).advice(), ["try again in: 7 s", "hint: Wait."]);
    }

    #[test]
    fn a_problem_says_what_to_try_next() {
        let problem = Problem::new(ProblemCode::RequestInvalid, "`claim` is required").at("claim");
        let failure = CliFailure::Refused(problem.body());
        assert_eq!(failure.to_string(), "`claim` is required");
        assert_eq!(failure.exit_code(), 2);
        let expected = [
            "field: claim, set by `--claim`",
            "hint: Correct the flag or the file as the message says, and run the command again.",
        ];
        assert_eq!(failure.advice(), expected);
    }

    #[test]
    fn a_foreign_error_body_is_an_error() {
        let failure = CliFailure::Refused(Value::Null);
        assert_eq!(failure.exit_code(), 1);
        assert_eq!(failure.to_string(), "the server refused the request");
    }
}
