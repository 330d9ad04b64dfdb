//! Refuses heads of requests that a proxy might read differently than we do.

use axum::http::{HeaderMap, Request, Version, header};
use jurat_core::code::ProblemCode;
use jurat_wire::problem::Problem;

/// The fault of a request's head, if there is one.
pub(crate) fn fault<B>(request: &Request<B>) -> Option<Problem> {
    let headers = request.headers();
    let hosts = headers.get_all(header::HOST).iter().count();
    if 1 < hosts || (hosts == 0 && request.version() == Version::HTTP_11) {
        return Some(wrong("Host", "must appear exactly once"));
    }
    if headers.contains_key(header::TRANSFER_ENCODING) {
        if !is_chunked_alone(headers) {
            return Some(wrong("Transfer-Encoding", "must be `chunked` and nothing else"));
        }
        if headers.contains_key(header::CONTENT_LENGTH) {
            return Some(wrong("Content-Length", "must not be combined with `Transfer-Encoding`"));
        }
    }
    None
}

fn is_chunked_alone(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::TRANSFER_ENCODING).iter();
    let first = values.next().and_then(|value| value.to_str().ok());
    first.is_some_and(|text| text.trim().eq_ignore_ascii_case("chunked")) && values.next().is_none()
}

fn wrong(header: &str, reason: &str) -> Problem {
    Problem::new(ProblemCode::ValidationError, format!("the header `{header}` {reason}")).at(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&str, &str)], field: Option<&str>) {
        let mut request = Request::builder().version(Version::HTTP_11);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let fault = fault(&request.body(()).unwrap());
        let found = fault.map(|problem| problem.body()["field"].as_str().unwrap().to_owned());
        assert_eq!(found.as_deref(), field, "{headers:?}");
    }

    #[test]
    fn an_ambiguous_head_is_named() {
        let host = ("host", "h");
        check(&[host], None);
        check(&[], Some("Host"));
        check(&[host, host], Some("Host"));
        check(&[host, ("transfer-encoding", "Chunked")], None);
        for value in ["gzip, chunked", "identity, chunked", "chunked, chunked", "gzip", ""] {
            check(&[host, ("transfer-encoding", value)], Some("Transfer-Encoding"));
        }
        let chunked = ("transfer-encoding", "chunked");
        check(&[host, chunked, chunked], Some("Transfer-Encoding"));
        check(&[host, chunked, ("content-length", "5")], Some("Content-Length"));
        check(&[host, ("content-length", "5")], None);
    }
}
