//! The one error body of every HTTP surface: `application/problem+json`.

use std::borrow::Cow;

use jurat_core::code::ProblemCode;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::api::{
    consensus_reply::{ConsensusBlock, ReplicaBody},
    kit::{time::Time, words::ErrorCode},
};

#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub code: ProblemCode,
    pub detail: String,
    /// The field that is wrong, as a path such as `consensus.replicas`.
    pub field: Option<String>,
    /// What to try next, where more can be said than the code says.
    pub hint: Option<String>,
    /// Members that stand beside the usual ones.
    pub extras: Map<String, Value>,
}

impl Problem {
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), field: None, hint: None, extras: Map::new() }
    }

    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Says what to try next in words of its own.
    #[must_use]
    pub fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.extras.insert(name.to_owned(), value);
        self
    }

    /// The body. Some clients read `error`, `message` and `hint`; they say the same.
    pub fn body(&self) -> Value {
        let code = ErrorCode(self.code);
        let detail = &without_brackets(&self.detail);
        let hint = self.hint.as_deref().unwrap_or_else(|| self.code.hint());
        let extra = |name| self.extras.get(name);
        let errors = self.field.as_deref().map(|field| [FieldError { field, reason: detail }]);
        let mut body = json!(ProblemBody {
            r#type: format!("urn:jurat:error:{}", self.code),
            title: code,
            status: self.code.http_status(),
            detail,
            code,
            error: code,
            message: detail,
            hint: &without_brackets(hint),
            field: self.field.as_deref(),
            errors,
            sessions: extra("sessions"),
            reason: extra("reason"),
            consensus: extra("consensus"),
            replicas: extra("replicas"),
            round_id: extra("round_id"),
            receipt_id: extra("receipt_id"),
            current_version_token: extra("current_version_token"),
            resets_at: extra("resets_at"),
            reasoning: extra("reasoning"),
            verifier_run_id: extra("verifier_run_id"),
        });
        if let Some(members) = body.as_object_mut() {
            members.extend(self.extras.clone());
        }
        body
    }
}

/// An error, as `application/problem+json`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody<'a> {
    /// `urn:jurat:error:` and the code.
    r#type: String,
    /// The code.
    title: ErrorCode,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// The error in words.
    detail: &'a str,
    code: ErrorCode,
    /// The code.
    error: ErrorCode,
    /// Alias of `detail`.
    message: &'a str,
    /// What to try next.
    hint: &'a str,
    /// Path of the faulty field, such as `consensus.replicas`, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    field: Option<&'a str>,
    /// With `field`: the same error as a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<FieldError>)]
    errors: Option<[FieldError<'a>; 1]>,
    /// With `sessions_unavailable`: the problem of each session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<SessionProblem>)]
    sessions: Option<&'a Value>,
    /// With `schema_refused`: the exceeded limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    reason: Option<&'a Value>,
    /// With `consensus_disagreement`, as in a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ConsensusBlock)]
    consensus: Option<&'a Value>,
    /// With `consensus_disagreement`, as in a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<ReplicaBody>)]
    replicas: Option<&'a Value>,
    /// Id of the round, if one was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    round_id: Option<&'a Value>,
    /// With `consensus_disagreement`: the digest of the recorded decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    receipt_id: Option<&'a Value>,
    /// With `conflict` on a deploy or save: the current token, required for the next version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    current_version_token: Option<&'a Value>,
    /// With `anonymous_daily_cap`: when the next day starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Time)]
    resets_at: Option<&'a Value>,
    /// With `safety_verification_failed`: the judge's reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    reasoning: Option<&'a Value>,
    /// With `safety_verification_failed`: the judge's verifier run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    verifier_run_id: Option<&'a Value>,
}

/// Text that no terminal takes for markup. A client in the field reads square brackets as such, and
/// stumbles over what a caller or a program wrote between them.
pub fn without_brackets(text: &str) -> Cow<'_, str> {
    if text.contains(['[', ']']) {
        Cow::Owned(text.replace('[', "(").replace(']', ")"))
    } else {
        Cow::Borrowed(text)
    }
}

/// What is wrong with a field.
#[derive(Debug, Serialize, ToSchema)]
pub struct FieldError<'a> {
    field: &'a str,
    reason: &'a str,
}

/// Why a session cannot answer now.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionProblem<'a> {
    pub session_id: &'a str,
    pub problem: &'a str,
}
