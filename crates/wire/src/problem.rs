//! The one error body of every HTTP surface: `application/problem+json`.

use std::borrow::Cow;

use jurat_core::code::ProblemCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::{
    api::{
        consensus_reply::{ConsensusBlock, ReplicaBody},
        kit::{time::Time, words::ErrorCode},
    },
    x402::required::PaymentRequirementsV1,
};

/// An error of the API, before it is encoded as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub code: ProblemCode,
    pub detail: String,
    /// Path of the faulty field, such as `consensus.replicas`.
    pub field: Option<String>,
    /// Hint that replaces the default hint of the code.
    pub hint: Option<String>,
    /// Additional members that only some codes have.
    pub extras: Map<String, Value>,
}

impl Problem {
    /// A problem without a field, a hint of its own or additional members.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), field: None, hint: None, extras: Map::new() }
    }

    /// Names the faulty field.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Replaces the default hint of the code.
    #[must_use]
    pub fn hinted(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a member that only some codes have.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.extras.insert(name.to_owned(), value);
        self
    }

    /// The JSON body. `error` and `message` repeat the code and the detail for clients that read
    /// those members.
    pub fn body(&self) -> Value {
        let code = Cow::Borrowed(self.code.as_str());
        let detail = without_brackets(&self.detail);
        let hint = self.hint.as_deref().unwrap_or_else(|| self.code.hint());
        let field = self.field.as_deref().map(Cow::Borrowed);
        let fault = |field| FieldError { field, reason: detail.clone() };
        let mut body = json!(ProblemBody {
            r#type: Cow::Owned(format!("urn:jurat:error:{}", self.code)),
            title: code.clone(),
            status: self.code.http_status(),
            detail: detail.clone(),
            code: code.clone(),
            error: code,
            message: detail.clone(),
            hint: without_brackets(hint),
            errors: field.clone().map(|field| vec![fault(field)]),
            field,
            ..ProblemBody::default()
        });
        // Members that only some codes have.
        if let Some(members) = body.as_object_mut() {
            members.extend(self.extras.clone());
        }
        body
    }
}

/// An error, as `application/problem+json`.
#[derive(Debug, Clone, Default, Deserialize, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody<'a> {
    /// `urn:jurat:error:` and the code.
    pub r#type: Cow<'a, str>,
    /// The code.
    #[schema(value_type = ErrorCode)]
    pub title: Cow<'a, str>,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    pub status: u16,
    /// The error in words.
    pub detail: Cow<'a, str>,
    // Text rather than an enum, so that a client can show a code of a later version.
    #[schema(value_type = ErrorCode)]
    pub code: Cow<'a, str>,
    /// The code.
    #[schema(value_type = ErrorCode)]
    pub error: Cow<'a, str>,
    /// Alias of `detail`.
    pub message: Cow<'a, str>,
    /// What to try next.
    pub hint: Cow<'a, str>,
    /// Path of the faulty field, such as `consensus.replicas`, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub field: Option<Cow<'a, str>>,
    /// With `field`: the same error as a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<FieldError>)]
    pub errors: Option<Vec<FieldError<'a>>>,
    /// With `sessions_unavailable`: the problem of each session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<SessionProblem>)]
    pub sessions: Option<Vec<SessionProblem<'a>>>,
    /// With `schema_refused`: the exceeded limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub reason: Option<Cow<'a, str>>,
    /// With `consensus_disagreement`, as in a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ConsensusBlock)]
    pub consensus: Option<ConsensusBlock<'a>>,
    /// With `consensus_disagreement`, as in a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<ReplicaBody>)]
    pub replicas: Option<Vec<ReplicaBody<'a>>>,
    /// Id of the round, if one was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub round_id: Option<Cow<'a, str>>,
    /// With `consensus_disagreement`: the digest of the recorded decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub receipt_id: Option<Cow<'a, str>>,
    /// With `conflict` on a deploy or save: the current token, required for the next version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub current_version_token: Option<Cow<'a, str>>,
    /// With `anonymous_daily_cap`: when the next day starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Time)]
    pub resets_at: Option<Time>,
    /// With `safety_verification_failed`: the judge's reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub reasoning: Option<Cow<'a, str>>,
    /// With `safety_verification_failed`: the judge's verifier run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub verifier_run_id: Option<Cow<'a, str>>,
    /// With `payment_required`: the version of the payment protocol that `accepts` is written in.
    #[serde(rename = "x402Version", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u8)]
    pub x402_version: Option<u8>,
    /// With `payment_required`: the payments that are accepted. The header `PAYMENT-REQUIRED` has
    /// the same in version 2 of the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<PaymentRequirementsV1>)]
    pub accepts: Option<Vec<PaymentRequirementsV1<'a>>>,
}

impl ProblemBody<'static> {
    /// Reads a problem; members that another version left out get their defaults.
    pub fn read(document: &Value) -> Option<Self> {
        let given = document.as_object()?;
        let is_problem = given.contains_key("code") || given.contains_key("message");
        let Value::Object(mut whole) = json!(Self::default()) else { return None };
        whole.extend(given.clone());
        Self::deserialize(Value::Object(whole)).ok().filter(|_| is_problem)
    }
}

impl ProblemBody<'_> {
    /// The code, or `None` if this version does not know it.
    pub fn known_code(&self) -> Option<ProblemCode> {
        self.code.parse().ok()
    }
}

/// Replaces square brackets with parentheses: an existing client reads square brackets as markup,
/// and fails on those that come from a caller or a program.
pub fn without_brackets(text: &str) -> Cow<'_, str> {
    if text.contains(['[', ']']) {
        Cow::Owned(text.replace('[', "(").replace(']', ")"))
    } else {
        Cow::Borrowed(text)
    }
}

/// What is wrong with a field.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct FieldError<'a> {
    pub field: Cow<'a, str>,
    pub reason: Cow<'a, str>,
}

/// Why a session cannot answer now.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct SessionProblem<'a> {
    pub session_id: Cow<'a, str>,
    pub problem: Cow<'a, str>,
}
