//! `Idempotency-Key`: what makes a repeated request the same one.

use axum::{
    extract::FromRequestParts,
    http::{HeaderValue, Method, StatusCode, request::Parts},
    response::{IntoResponse as _, Response},
};
use jurat_core::{canonical, code::Code};
use jurat_engine::{Done, Keyed, OnceKey, SavedAnswer, Saving};
use jurat_wire::problem::Problem;
use serde_json::Value;

use crate::encode;

pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";
const REPLAYED: &str = "idempotent-replayed";
const LONGEST: usize = 255;

/// The key of a request, and what it is sent to.
#[derive(Debug)]
pub(crate) struct Repeatable {
    key: Option<String>,
    method: Method,
    path: String,
}

impl<S: Send + Sync> FromRequestParts<S> for Repeatable {
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
    Problem::new(Code::ValidationError, detail).at("Idempotency-Key")
}

impl Repeatable {
    /// The key with what was asked; nothing when the caller sent none.
    pub(crate) fn once(self, operation: &'static str, body: &Value) -> Option<OnceKey> {
        let key = self.key?;
        let mut asked = format!("{} {}\n", self.method, self.path).into_bytes();
        asked.extend(canonical::canonical(body));
        Some(OnceKey { key, operation, request_digest: canonical::digest(&asked) })
    }

    /// A write whose answer is kept for those who ask again.
    pub(crate) fn keyed<T>(
        self,
        operation: &'static str,
        body: &Value,
        status: StatusCode,
        answer: impl Fn(&T) -> Value + Send + Sync + 'static,
    ) -> Option<Keyed<T>> {
        let once = self.once(operation, body)?;
        let saving = Saving::new(status.as_u16(), move |result| answer(result).to_string());
        Some(Keyed { once, saving })
    }
}

/// The reply to a write: written now, or as it was written before.
pub(crate) fn reply<T>(done: Done<T>, write: impl FnOnce(&T) -> Response) -> Response {
    match done {
        Done::Now(result) => write(&result),
        Done::Before(SavedAnswer { status, text }) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
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
