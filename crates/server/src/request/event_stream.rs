//! Writes replies that are event streams.

use std::time::Duration;

use axum::{
    BoxError,
    http::{HeaderName, HeaderValue},
    response::{
        IntoResponse as _, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures::Stream;

/// The longest that a stream is silent. Some clients give up after 5 seconds without a byte.
pub(crate) const LONGEST_SILENCE: Duration = Duration::from_secs(3);

/// Tells a proxy to pass each event on as it comes.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A reply of events, with comments between those that are far apart.
pub(crate) fn reply<E: Into<BoxError>>(
    events: impl Stream<Item = Result<Event, E>> + Send + 'static,
) -> Response {
    #[expect(clippy::disallowed_methods, reason = "every stream is written here")]
    let stream = Sse::new(events);
    let mut response =
        stream.keep_alive(KeepAlive::new().interval(LONGEST_SILENCE)).into_response();
    response.headers_mut().insert(BUFFERING, HeaderValue::from_static("no"));
    response
}
