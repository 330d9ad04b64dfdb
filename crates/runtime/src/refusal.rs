//! An error reply: `{error, message, field?}` with a status.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use jurat_wire::executor::ShapeError;
use jurat_wire::strict_json::{StrictError, StrictErrorKind};

use crate::executor::ExecutorError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestRefusal {
    pub(crate) status: StatusCode,
    /// A stable word for programs.
    pub(crate) error: &'static str,
    /// A sentence for people.
    pub(crate) message: String,
    pub(crate) field: Option<String>,
}

impl RequestRefusal {
    pub(crate) fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        Self { status, error, message: message.into(), field: None }
    }

    pub(crate) fn about(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    pub(crate) fn overloaded() -> Self {
        ExecutorError::Overloaded.into()
    }
}

impl IntoResponse for RequestRefusal {
    fn into_response(self) -> Response {
        let mut body = json!({"error": self.error, "message": self.message});
        if let Some(field) = self.field {
            body["field"] = json!(field);
        }
        let mut response = (self.status, Json(body)).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<StrictError> for RequestRefusal {
    fn from(error: StrictError) -> Self {
        let (status, word) = match error.kind {
            StrictErrorKind::TooManyValues(_) => {
                (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large")
            }
            StrictErrorKind::NotUtf8
            | StrictErrorKind::ByteOrderMark
            | StrictErrorKind::Syntax(_)
            | StrictErrorKind::DuplicateKey(_)
            | StrictErrorKind::TooDeep
            | StrictErrorKind::IntegerOutOfRange => (StatusCode::BAD_REQUEST, "invalid_json"),
        };
        Self::new(status, word, error.to_string())
    }
}

impl From<ShapeError> for RequestRefusal {
    fn from(error: ShapeError) -> Self {
        let message = error.to_string();
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "request_invalid", message).about(error.field)
    }
}

impl From<ExecutorError> for RequestRefusal {
    fn from(error: ExecutorError) -> Self {
        let message = error.to_string();
        match error {
            ExecutorError::NotSupported(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "not_supported", message)
            }
            ExecutorError::Refused { field, .. } => {
                let message = format!("{field}: {message}");
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "request_invalid", message).about(field)
            }
            ExecutorError::Overloaded => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message)
            }
            ExecutorError::Upstream(_) => {
                Self::new(StatusCode::BAD_GATEWAY, "upstream_failed", message)
            }
            ExecutorError::Timeout => Self::new(StatusCode::GATEWAY_TIMEOUT, "timeout", message),
            ExecutorError::Failed(_) => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "executor_failed", message)
            }
        }
    }
}
