//! Replies: the bytes as received, and the value read from them.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use jurat_core::{code::ProblemCode, time::Timestamp};
use jurat_wire::problem::ProblemBody;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use crate::client::ClientError;

/// Member of a refusal's document with the value of the header `Retry-After`.
const RETRY_AFTER: &str = "retry_after_s";

/// A reply: its bytes as received, and the value read from them.
#[derive(Debug, Clone)]
pub struct Reply<R> {
    /// The body; empty if the reply has none.
    pub bytes: Bytes,
    pub value: R,
    /// The time in the header `Date`; `None` without one, and for the last event of a stream.
    pub date: Option<Timestamp>,
}

impl<R: DeserializeOwned> Reply<R> {
    /// Reads a successful reply. An empty body reads as null.
    pub(crate) fn read(
        status: StatusCode,
        bytes: Bytes,
        date: Option<Timestamp>,
    ) -> Result<Self, ClientError> {
        let text: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        match serde_json::from_slice(text) {
            Ok(value) => Ok(Self { bytes, value, date }),
            Err(_) if !is_json(text) => Err(ClientError::Foreign { status }),
            Err(source) => Err(ClientError::Unreadable { bytes, source }),
        }
    }

    /// The body as JSON; null if it is not JSON.
    pub fn document(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// A reply that the client assembles from other replies.
    pub fn of_document(document: &Value) -> Result<Self, ClientError> {
        Self::read(StatusCode::OK, Bytes::from(document.to_string()), None)
    }
}

/// A request that the server refused.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The body as received.
    pub bytes: Bytes,
    /// The problem, if the body describes one.
    pub problem: Option<ProblemBody<'static>>,
    /// Number of seconds after which the request may be sent again.
    pub retry_after_s: Option<u64>,
}

impl Refusal {
    pub(crate) fn read(
        status: StatusCode,
        bytes: Bytes,
        headers: &HeaderMap,
    ) -> Result<Self, ClientError> {
        let document = serde_json::from_slice(&bytes);
        let document: Value = document.map_err(|_| ClientError::Foreign { status })?;
        let problem = ProblemBody::read(&document);
        Ok(Self { bytes, problem, retry_after_s: retry_after(headers) })
    }

    /// The problem code, if this version knows it.
    pub fn code(&self) -> Option<ProblemCode> {
        self.problem.as_ref()?.known_code()
    }

    /// The body as JSON, with the number of seconds until the next try if the server gave it.
    pub fn document(&self) -> Value {
        let mut document: Value = serde_json::from_slice(&self.bytes).unwrap_or_default();
        if let (Some(seconds), Some(members)) = (self.retry_after_s, document.as_object_mut()) {
            members.insert(RETRY_AFTER.to_owned(), json!(seconds));
        }
        document
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.problem.as_ref().map(|problem| problem.message.as_ref());
        let message = message.filter(|message| !message.is_empty());
        out.write_str(message.unwrap_or("the server refused the request"))
    }
}

pub(crate) fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get(header::DATE)?.to_str().ok()?;
    let since = httpdate::parse_http_date(text).ok()?;
    let since = since.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(Timestamp::from_millis)
}

fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use jurat_wire::{api::status::RemovalBody, problem::Problem};

    use super::*;

    fn refusal(body: impl Into<Bytes>) -> Refusal {
        let headers = HeaderMap::from_iter([(header::RETRY_AFTER, "7".parse().unwrap())]);
        Refusal::read(StatusCode::CONFLICT, body.into(), &headers).unwrap()
    }

    #[test]
    fn a_reply_keeps_its_bytes_and_ignores_members_of_later_versions() {
        let bytes = Bytes::from_static(b"{ \"removed\": \"a\",  \"new\": [1] }");
        let reply: Reply<RemovalBody<'_>> =
            Reply::read(StatusCode::OK, bytes.clone(), None).unwrap();
        assert_eq!((reply.value.removed.as_ref(), reply.bytes), ("a", bytes));
        let empty: Reply<()> = Reply::read(StatusCode::NO_CONTENT, Bytes::new(), None).unwrap();
        assert!(empty.bytes.is_empty());
    }

    #[test]
    fn a_page_of_a_proxy_differs_from_a_reply_of_another_version() {
        let read = |text: &'static str| {
            Reply::<RemovalBody<'_>>::read(
                StatusCode::OK,
                Bytes::from_static(text.as_bytes()),
                None,
            )
        };
        assert!(matches!(read("<html>"), Err(ClientError::Foreign { .. })));
        assert!(matches!(read("{}"), Err(ClientError::Unreadable { .. })));
    }

    #[test]
    fn a_refusal_reads_as_a_problem_with_the_time_of_the_next_try() {
        let problem = Problem::new(ProblemCode::Conflict, "it exists");
        let refused = refusal(problem.body().to_string());
        assert_eq!(refused.to_string(), "it exists");
        assert_eq!(refused.code(), Some(ProblemCode::Conflict));
        assert_eq!(refused.document()[RETRY_AFTER], 7);
        let mut later = problem.body();
        later["code"] = json!("code_of_a_later_version");
        let later = refusal(later.to_string());
        assert_eq!((later.code(), later.to_string()), (None, "it exists".to_owned()));
        assert_eq!(refusal("null").to_string(), "the server refused the request");
        let short = refusal(r#"{"code": "conflict", "message": "it exists"}"#);
        assert_eq!((short.code(), short.to_string()), (refused.code(), "it exists".to_owned()));
    }
}
