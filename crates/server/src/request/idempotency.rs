//! The header `Idempotency-Key`, which makes a repeated request safe.

use axum::{
    extract::FromRequestParts,
    http::{HeaderValue, Method, StatusCode, request::Parts},
    response::{IntoResponse as _, Response},
};
use jurat_core::{canonical, code::ProblemCode, idempotency::SavedAnswer};
use jurat_engine::{AnswerEncoder, IdempotencyKey, IdempotentOutcome, IdempotentWrite};
use jurat_wire::problem::Problem;
use serde_json::Value;

use super::encode;

pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";
const REPLAYED: &str = "idempotent-replayed";
const LONGEST: usize = 255;

/// The key of a request, and its target.
#[derive(Debug)]
pub(crate) struct Idempotency {
    key: Option<String>,
    method: Method,
    path: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Idempotency {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Response> {
        let mut given = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let key = match (given.next(), given.next()) {
            (None, _) => None,
            (Some(value), None) => Some(checked(value).map_err(|it| encode::problem(&it))?),
            (Some(_), Some(_)) => return Err(encode::problem(&wrong("is repeated"))),
        };
        let path = parts.uri.path().to_owned();
        Ok(Self { key, method: parts.method.clone(), path })
    }
}

fn checked(value: &HeaderValue) -> Result<String, Problem> {
    let is_printable = value.as_bytes().iter().all(|byte| matches!(byte, 0x20..=0x7e));
    let text = value.to_str().unwrap_or_default().trim();
    if is_printable && !text.is_empty() && text.len() <= LONGEST {
        Ok(text.to_owned())
    } else {
        Err(wrong("must have 1 to 255 printable ASCII characters"))
    }
}

fn wrong(reason: &str) -> Problem {
    let detail = format!("the header `Idempotency-Key` {reason}");
    Problem::new(ProblemCode::ValidationError, detail).at("Idempotency-Key")
}

impl Idempotency {
    /// The key with the request; `None` if the caller sent none.
    pub(crate) fn key_for(self, operation: &'static str, body: &Value) -> Option<IdempotencyKey> {
        let key = self.key?;
        let mut asked = format!("{} {}\n", self.method, self.path).into_bytes();
        asked.extend(canonical::canonical(body));
        Some(IdempotencyKey { key, operation, request_digest: canonical::digest(&asked) })
    }

    /// A write whose reply is stored for repeated requests, tagged with its status.
    pub(crate) fn write_for<T>(
        self,
        operation: &'static str,
        body: &Value,
        status: StatusCode,
        answer: impl Fn(&T) -> Value + Send + Sync + 'static,
    ) -> Option<IdempotentWrite<T>> {
        let once = self.key_for(operation, body)?;
        let encoder = AnswerEncoder::new(move |result| SavedAnswer {
            tag: status.as_u16(),
            text: answer(result).to_string(),
        });
        Some(IdempotentWrite { key: once, encoder })
    }
}

/// The reply to a write: encoded now, or as it was stored.
pub(crate) fn reply<T>(done: IdempotentOutcome<T>, write: impl FnOnce(&T) -> Response) -> Response {
    match done {
        IdempotentOutcome::Now(result) => write(&result),
        IdempotentOutcome::Before(SavedAnswer { tag, text }) => {
            let status = StatusCode::from_u16(tag).unwrap_or(StatusCode::OK);
            let is_empty = status == StatusCode::NO_CONTENT;
            mark_replayed(if is_empty {
                status.into_response()
            } else {
                encode::text(status, text)
            })
        }
    }
}

/// Tells the caller that nothing was done this time.
pub(crate) fn mark_replayed(mut response: Response) -> Response {
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    response
}
