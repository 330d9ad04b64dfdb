//! Errors of the protocol, in the form of each binding, with the code of the registry in both.

use std::borrow::Cow;

use jurat_core::code::ProblemCode;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::problem::Problem;

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
/// The domain of reasons that the protocol defines, and of those that Jurat adds.
const PROTOCOL_DOMAIN: &str = "a2a-protocol.org";
const OWN_DOMAIN: &str = "jurat";

/// The errors that the protocol names, and one kind for all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum A2aErrorKind {
    TaskNotFound,
    TaskNotCancelable,
    PushNotificationNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    VersionNotSupported,
    /// The body is not JSON.
    Parse,
    /// The JSON is not a request.
    InvalidRequest,
    MethodNotFound,
    /// The code of the problem decides.
    OfProblem,
}

/// An error of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct A2aError {
    pub kind: A2aErrorKind,
    pub problem: Problem,
}

impl From<Problem> for A2aError {
    fn from(problem: Problem) -> Self {
        let kind = if problem.code == ProblemCode::InvalidJson {
            A2aErrorKind::Parse
        } else if problem.code == ProblemCode::UnsupportedMediaType {
            A2aErrorKind::ContentTypeNotSupported
        } else {
            A2aErrorKind::OfProblem
        };
        Self { kind, problem }
    }
}

impl A2aError {
    pub fn new(kind: A2aErrorKind, code: ProblemCode, detail: impl Into<String>) -> Self {
        Self { kind, problem: Problem::new(code, detail) }
    }

    /// A parameter or a member of a message is wrong.
    pub fn wrong(field: &str, reason: &str) -> Self {
        let detail = format!("`{field}` {reason}");
        Problem::new(ProblemCode::ValidationError, detail).at(field).into()
    }

    /// An unknown task, or a task of another account.
    pub fn task_not_found(id: &str) -> Self {
        let id: String = id.chars().take(80).collect();
        let detail = format!("there is no task `{id}`");
        Self::new(A2aErrorKind::TaskNotFound, ProblemCode::NotFound, detail)
    }

    /// Names the faulty field.
    #[must_use]
    pub fn at(mut self, field: &str) -> Self {
        self.problem.field = Some(field.to_owned());
        self
    }

    /// The error object of the JSON-RPC binding.
    pub fn rpc(&self) -> RpcErrorBody {
        RpcErrorBody {
            code: self.rpc_code(),
            message: self.message().into_owned(),
            data: self.details(),
        }
    }

    /// The status of the HTTP+JSON binding.
    pub fn http_status(&self) -> u16 {
        match self.kind {
            A2aErrorKind::TaskNotFound | A2aErrorKind::MethodNotFound => 404,
            A2aErrorKind::OfProblem => http_status(self.problem.code),
            A2aErrorKind::TaskNotCancelable
            | A2aErrorKind::PushNotificationNotSupported
            | A2aErrorKind::UnsupportedOperation
            | A2aErrorKind::ContentTypeNotSupported
            | A2aErrorKind::VersionNotSupported
            | A2aErrorKind::Parse
            | A2aErrorKind::InvalidRequest => 400,
        }
    }

    /// The body of the HTTP+JSON binding.
    pub fn http(&self) -> HttpErrorBody {
        let code = self.http_status();
        HttpErrorBody {
            error: HttpErrorStatus {
                code,
                status: Cow::Borrowed(self.status_name(code)),
                message: self.message().into_owned(),
                details: self.details(),
            },
        }
    }

    fn message(&self) -> Cow<'_, str> {
        let body = self.problem.body();
        body["detail"].as_str().map_or(Cow::Borrowed(""), |text| Cow::Owned(text.to_owned()))
    }

    const fn rpc_code(&self) -> i32 {
        match self.kind {
            A2aErrorKind::TaskNotFound => -32_001,
            A2aErrorKind::TaskNotCancelable => -32_002,
            A2aErrorKind::PushNotificationNotSupported => -32_003,
            A2aErrorKind::UnsupportedOperation => -32_004,
            A2aErrorKind::ContentTypeNotSupported => -32_005,
            A2aErrorKind::VersionNotSupported => -32_009,
            A2aErrorKind::Parse => -32_700,
            A2aErrorKind::InvalidRequest => -32_600,
            A2aErrorKind::MethodNotFound => -32_601,
            // Its status says conflict, but a parameter is wrong.
            A2aErrorKind::OfProblem
                if matches!(self.problem.code, ProblemCode::IdempotencyMismatch) =>
            {
                -32_602
            }
            A2aErrorKind::OfProblem => match self.problem.code.http_status() {
                400 | 404 | 413 | 422 => -32_602,
                500 => -32_603,
                // The server can answer, but not now or not for this caller.
                _ => -32_000,
            },
        }
    }

    /// The reason in capitals: a name of the protocol, or a code of the registry.
    fn reason(&self) -> (Cow<'static, str>, &'static str) {
        let named = |name| (Cow::Borrowed(name), PROTOCOL_DOMAIN);
        match self.kind {
            A2aErrorKind::TaskNotFound => named("TASK_NOT_FOUND"),
            A2aErrorKind::TaskNotCancelable => named("TASK_NOT_CANCELABLE"),
            A2aErrorKind::PushNotificationNotSupported => named("PUSH_NOTIFICATION_NOT_SUPPORTED"),
            A2aErrorKind::UnsupportedOperation => named("UNSUPPORTED_OPERATION"),
            A2aErrorKind::ContentTypeNotSupported => named("CONTENT_TYPE_NOT_SUPPORTED"),
            A2aErrorKind::VersionNotSupported => named("VERSION_NOT_SUPPORTED"),
            A2aErrorKind::Parse => named("JSON_PARSE"),
            A2aErrorKind::InvalidRequest => named("INVALID_REQUEST"),
            A2aErrorKind::MethodNotFound => named("METHOD_NOT_FOUND"),
            A2aErrorKind::OfProblem => match self.rpc_code() {
                -32_602 => named("INVALID_PARAMS"),
                -32_603 => named("INTERNAL_ERROR"),
                _ => (Cow::Owned(self.problem.code.as_str().to_uppercase()), OWN_DOMAIN),
            },
        }
    }

    /// What happened for programs: the reason with the code of the registry, and the faulty field.
    fn details(&self) -> Vec<Value> {
        let body = self.problem.body();
        let mut metadata = Map::new();
        for name in ["code", "field", "hint", "round_id", "receipt_id"] {
            if let Some(text) = body[name].as_str() {
                metadata.insert(name.to_owned(), json!(text));
            }
        }
        let (reason, domain) = self.reason();
        let info = json!({ "@type": ERROR_INFO, "reason": reason, "domain": domain, "metadata": metadata });
        let mut details = vec![info];
        if let Some(field) = &self.problem.field {
            let fault = json!({ "field": field, "description": body["detail"] });
            details.push(json!({ "@type": BAD_REQUEST, "fieldViolations": [fault] }));
        }
        details
    }

    /// The name of the status, as gRPC calls it.
    fn status_name(&self, http_status: u16) -> &'static str {
        let is_precondition = matches!(
            self.kind,
            A2aErrorKind::TaskNotCancelable
                | A2aErrorKind::PushNotificationNotSupported
                | A2aErrorKind::UnsupportedOperation
                | A2aErrorKind::VersionNotSupported
        );
        if is_precondition {
            return "FAILED_PRECONDITION";
        }
        match http_status {
            400 | 413 | 415 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            402 | 429 => "RESOURCE_EXHAUSTED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            405 => "UNIMPLEMENTED",
            408 => "DEADLINE_EXCEEDED",
            409 if self.problem.code == ProblemCode::IdempotencyMismatch => "ALREADY_EXISTS",
            409 => "ABORTED",
            503 => "UNAVAILABLE",
            _ => "INTERNAL",
        }
    }
}

/// The status of a problem in the HTTP+JSON binding, which knows 400 for everything that is wrong
/// with a request.
pub const fn http_status(code: ProblemCode) -> u16 {
    match code.http_status() {
        415 | 422 => 400,
        status => status,
    }
}

/// The error of a JSON-RPC response.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = A2aRpcError)]
pub struct RpcErrorBody {
    /// The code of the protocol, such as -32001 for an unknown task.
    pub code: i32,
    /// The error in words.
    pub message: String,
    /// `ErrorInfo`, whose `metadata.code` is the stable error code, and `BadRequest` with the faulty
    /// field, if there is one.
    #[schema(value_type = Vec<Object>)]
    pub data: Vec<Value>,
}

/// An error of the HTTP+JSON binding, in the form of `google.rpc.Status`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = A2aHttpError)]
pub struct HttpErrorBody {
    pub error: HttpErrorStatus,
}

/// The status, the message and the details of an error.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = A2aHttpErrorStatus)]
pub struct HttpErrorStatus {
    /// The HTTP status.
    pub code: u16,
    /// The name of the status, such as `NOT_FOUND`.
    pub status: Cow<'static, str>,
    /// The error in words.
    pub message: String,
    /// `ErrorInfo`, whose `metadata.code` is the stable error code, and `BadRequest` with the faulty
    /// field, if there is one.
    #[schema(value_type = Vec<Object>)]
    pub details: Vec<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_reason_its_code_and_its_field_in_both_bindings() {
        let error = A2aError::task_not_found("rnd_x");
        let rpc = json!(error.rpc());
        assert_eq!(rpc["code"], -32_001);
        assert_eq!(rpc["data"][0]["reason"], "TASK_NOT_FOUND");
        assert_eq!(rpc["data"][0]["domain"], "a2a-protocol.org");
        assert_eq!(rpc["data"][0]["metadata"]["code"], "not_found");
        let http = json!(error.http());
        assert_eq!(http["error"]["code"], 404);
        assert_eq!(http["error"]["status"], "NOT_FOUND");

        let error = A2aError::from(
            Problem::new(ProblemCode::RequestInvalid, "`claim` is required").at("claim"),
        );
        assert_eq!((error.rpc().code, error.http_status()), (-32_602, 400));
        let details = error.details();
        assert_eq!(details[0]["reason"], "INVALID_PARAMS");
        assert_eq!(details[0]["metadata"]["code"], "request_invalid");
        assert_eq!(details[1]["fieldViolations"][0]["field"], "claim");
    }

    #[test]
    fn a_refusal_for_now_is_no_fault_of_the_parameters() {
        for (code, expected, status) in [
            (ProblemCode::BudgetExhausted, -32_000, 402),
            (ProblemCode::Forbidden, -32_000, 403),
            (ProblemCode::RateLimited, -32_000, 429),
            (ProblemCode::SessionsUnavailable, -32_000, 503),
            (ProblemCode::Internal, -32_603, 500),
            (ProblemCode::IdempotencyMismatch, -32_602, 409),
            (ProblemCode::InvalidJson, -32_700, 400),
            (ProblemCode::UnsupportedMediaType, -32_005, 400),
        ] {
            let error = A2aError::from(Problem::new(code, "x"));
            assert_eq!((error.rpc().code, error.http_status()), (expected, status), "{code}");
            let domain = if expected == -32_000 { "jurat" } else { "a2a-protocol.org" };
            assert_eq!(error.details()[0]["domain"], domain, "{code}");
        }
    }
}
