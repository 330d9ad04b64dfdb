//! Counts requests. Labels are templates and classes, so that no caller can make a new series.

use axum::{
    http::{Method, StatusCode},
    response::Response,
};
use jurat_core::code::ProblemCode;
use jurat_engine::{Engine, RequestInFlight};

/// Starts to count a request; if its caller leaves, it is counted as gone.
pub(crate) fn begin<'a>(
    engine: &'a Engine,
    method: &'static str,
    route: &str,
) -> RequestInFlight<'a> {
    engine.metrics().requests().begin(method, route)
}

pub(crate) fn end(engine: &Engine, counted: RequestInFlight<'_>, response: &Response) {
    counted.end(class(response.status()));
    let code = response.extensions().get::<ProblemCode>();
    // A wrong host name says nothing about the key.
    if let (Some(reason), false) =
        (key_refusal(response.status()), code == Some(&ProblemCode::HostRefused))
    {
        engine.metrics().requests().key_refused(reason);
    }
    if let Some(code) = code {
        shed(engine, *code);
    }
}

/// Counts a request that was refused because of overload or shutdown.
pub(crate) fn shed(engine: &Engine, code: ProblemCode) {
    if matches!(code, ProblemCode::Overloaded | ProblemCode::ShuttingDown) {
        engine.metrics().requests().shed(code);
    }
}

/// A method can be any text; unknown ones share one name.
pub(crate) fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 9] =
        ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "CONNECT", "TRACE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}

fn key_refusal(status: StatusCode) -> Option<&'static str> {
    match status {
        StatusCode::UNAUTHORIZED => Some("unauthenticated"),
        StatusCode::FORBIDDEN => Some("forbidden"),
        StatusCode::TOO_MANY_REQUESTS => Some("rate_limited"),
        _ => None,
    }
}
