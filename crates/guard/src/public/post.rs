//! Posts documents to addresses that callers name.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};

use super::{PublicClient, UrlRefusal, chain};
use crate::client::CallError;

/// How much of a reply is read.
pub const POST_EXCERPT_BYTES: usize = 1_024;

/// The answer to a posted document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostReply {
    pub status: StatusCode,
    /// The beginning of the body.
    pub excerpt: Bytes,
}

/// Why there is no answer. As for images, the caller does not learn whether an address is private,
/// unknown or silent.
#[derive(Debug, thiserror::Error)]
pub enum PostError {
    #[error("the address {0}")]
    Refused(UrlRefusal),
    #[error("no answer in time")]
    Timeout,
    #[error("the address cannot be reached")]
    Unreachable {
        /// Only for the operator's log.
        detail: String,
    },
}

impl PublicClient {
    /// Checks an address to which documents are posted. A name that always means this machine is
    /// refused at once; other names are resolved and checked with each request.
    pub fn check_post(&self, text: &str) -> Result<(), UrlRefusal> {
        let url = self.check(text)?;
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        let is_local = host == "localhost" || host.ends_with(".localhost");
        if is_local && !self.permitted.has_ranges() {
            return Err(UrlRefusal::NotPublic);
        }
        Ok(())
    }

    /// Posts a JSON document; the headers may name a more precise type. Redirects are not followed: their status is the answer. Only the
    /// beginning of the reply is read.
    pub async fn post_json(
        &self,
        text: &str,
        headers: HeaderMap,
        body: Bytes,
        timeout: Duration,
    ) -> Result<PostReply, PostError> {
        self.check_post(text).map_err(PostError::Refused)?;
        let url = self.check(text).map_err(PostError::Refused)?;
        let unreachable = |detail: String| PostError::Unreachable { detail };
        let mut request = Request::post(url.as_str())
            .body(body)
            .map_err(|error| unreachable(error.to_string()))?;
        *request.headers_mut() = headers;
        request
            .headers_mut()
            .entry(header::CONTENT_TYPE)
            .or_insert(HeaderValue::from_static("application/json"));
        let sent = self.client.send_for_status(request, timeout, POST_EXCERPT_BYTES).await;
        match sent {
            Ok((status, excerpt)) => Ok(PostReply { status, excerpt }),
            Err(CallError::Timeout) => Err(PostError::Timeout),
            Err(error) => Err(unreachable(chain(&error))),
        }
    }
}
