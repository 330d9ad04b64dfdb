//! The way to a router: over HTTP, or in the same process.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::{Request, Response};

/// Carries requests to a router and brings its replies back.
pub trait Transport: Sync {
    type Body: ReplyBody<Error = Self::Error> + Send;
    type Error: Error + Send + Sync + 'static;

    /// The address of a path: with the server over HTTP, the path alone in the same process.
    fn address(&self, path: &str) -> String;

    /// Sends a request. The head of the reply, and each part of its body, must come within a time.
    fn send(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> impl Future<Output = Result<Response<Self::Body>, Self::Error>> + Send;
}

/// The body of a reply, which may still be arriving.
pub trait ReplyBody {
    type Error;

    /// The next part; none at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, Self::Error>> + Send;
}
