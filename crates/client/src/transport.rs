//! Transports to a router: over HTTP, or within the same process.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::{Request, Response};

/// Carries requests to a router and returns its replies.
pub trait Transport: Sync {
    type Body: ReplyBody<Error = Self::Error> + Send;
    type Error: Error + Send + Sync + 'static;

    /// The address of a path: the full URL over HTTP, or the path alone in the same process.
    fn address(&self, path: &str) -> String;

    /// Sends a request. Over HTTP, the whole reply must arrive within `within`.
    fn send(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> impl Future<Output = Result<Response<Self::Body>, Self::Error>> + Send;
}

/// The body of a reply, which may still be arriving.
pub trait ReplyBody {
    type Error;

    /// The next part; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, Self::Error>> + Send;
}
