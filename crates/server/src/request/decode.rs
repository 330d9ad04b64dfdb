//! Reads bodies and paths strictly.

use std::{error::Error, sync::Arc};

use axum::{
    body::{Body, HttpBody as _, to_bytes},
    extract::{FromRequest, FromRequestParts, Path, RawPathParams, Request},
    http::{Extensions, HeaderMap, header, request::Parts},
    response::Response,
};
use bytes::Bytes;
use jurat_core::{code::ProblemCode, footprint::footprint};
use jurat_engine::RequestMemory;
use jurat_wire::{
    problem::Problem,
    strict_json::{self, StrictErrorKind},
};
use serde_json::Value;

use super::encode;
use crate::transport::pace::TooSlow;

/// The maximum size of a body.
pub(crate) const BODY_LIMIT: usize = 1024 * 1024;

/// A JSON body that every parser reads the same way.
#[derive(Debug)]
pub(crate) struct Json(pub(crate) Value);

impl<S: Send + Sync> FromRequest<S> for Json {
    type Rejection = Response;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Response> {
        let read = whole(request, BODY_LIMIT).await;
        read.map(Self).map_err(|problem| encode::problem(&problem))
    }
}

/// A body that was read with the message that it came in: the arguments of a tool.
#[derive(Debug, Clone)]
pub(crate) struct ReadBody(pub(crate) Value);

/// The maximum size of a body with files.
pub(crate) const LARGE_BODY_LIMIT: usize = 8 * 1024 * 1024;

/// Like [`Json`], for a body that may hold files.
#[derive(Debug)]
pub(crate) struct LargeJson(pub(crate) Value);

impl<S: Send + Sync> FromRequest<S> for LargeJson {
    type Rejection = Response;

    async fn from_request(request: Request, _state: &S) -> Result<Self, Response> {
        let read = whole(request, LARGE_BODY_LIMIT).await;
        read.map(Self).map_err(|problem| encode::problem(&problem))
    }
}

/// Like [`Json`], for an optional body; an absent one is an empty object.
#[derive(Debug)]
pub(crate) struct MaybeJson(pub(crate) Value);

impl<S: Send + Sync> FromRequest<S> for MaybeJson {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let is_read = request.extensions().get::<ReadBody>().is_some();
        if !is_read && request.body().is_end_stream() {
            return Ok(Self(Value::Object(serde_json::Map::new())));
        }
        Json::from_request(request, state).await.map(|Json(body)| Self(body))
    }
}

/// The one parameter of a path. No name contains a NUL or invalid UTF-8, so such a path names
/// nothing.
#[derive(Debug)]
pub(crate) struct PathText(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let nothing = || {
            let detail = "the path contains characters that are not allowed in a name";
            encode::problem(&Problem::new(ProblemCode::NotFound, detail))
        };
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|_| nothing())?;
        // The slash in `@owner/name` is escaped, or splits the name into two segments.
        let segments: Vec<&str> = params.iter().map(|(_, text)| text).collect();
        let text = segments.join("/");
        if text.contains('\0') { Err(nothing()) } else { Ok(Self(text)) }
    }
}

/// The two parameters of a path.
#[derive(Debug)]
pub(crate) struct PathPair(pub(crate) String, pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathPair {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        match Path::<(String, String)>::from_request_parts(parts, state).await {
            Ok(Path((one, other))) if !one.contains('\0') && !other.contains('\0') => {
                Ok(Self(one, other))
            }
            _ => {
                let detail = "the path contains characters that are not allowed in a name";
                Err(encode::problem(&Problem::new(ProblemCode::NotFound, detail)))
            }
        }
    }
}

fn too_large(limit: usize) -> Problem {
    Problem::new(ProblemCode::PayloadTooLarge, format!("the body is larger than {limit} bytes"))
}

async fn whole(mut request: Request, limit: usize) -> Result<Value, Problem> {
    if let Some(ReadBody(body)) = request.extensions_mut().remove() {
        return Ok(body);
    }
    check_headers(request.headers())?;
    let (parts, body) = request.into_parts();
    let (_, value) = read_up_to(body, &parts.extensions, limit).await?;
    Ok(value)
}

/// A complete body within its limits, as bytes and as a value.
pub(crate) async fn read(body: Body, extensions: &Extensions) -> Result<(Bytes, Value), Problem> {
    read_up_to(body, extensions, BODY_LIMIT).await
}

/// Counts the memory of the request: its bytes while they arrive, then the parsed value.
async fn read_up_to(
    body: Body,
    extensions: &Extensions,
    limit: usize,
) -> Result<(Bytes, Value), Problem> {
    // A body that is declared too large is not waited for or asked for.
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    // Every route that takes a body counts its memory; a body that cannot be counted is refused.
    let Some(memory) = extensions.get::<Arc<RequestMemory>>() else {
        return Err(Problem::new(ProblemCode::Internal, "could not count the request"));
    };
    let hold = |bytes| memory.hold(bytes).map_err(|error| encode::engine_problem(&error));
    let announced = body.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    hold(announced.unwrap_or(limit))?;
    let bytes = to_bytes(body, limit).await.map_err(|error| {
        if is_caused_by::<http_body_util::LengthLimitError>(&error) {
            too_large(limit)
        } else if is_caused_by::<TooSlow>(&error) {
            Problem::new(ProblemCode::RequestTimeout, TooSlow.to_string())
        } else {
            Problem::new(ProblemCode::InvalidJson, "the body did not arrive whole")
        }
    })?;
    let value = strict_json::parse_within(&bytes, memory.most_values()).map_err(|error| {
        let is_too_much = matches!(error.kind, StrictErrorKind::TooManyValues(_));
        let code =
            if is_too_much { ProblemCode::PayloadTooLarge } else { ProblemCode::InvalidJson };
        let problem = Problem::new(code, error.to_string());
        if error.path.is_empty() { problem } else { problem.at(error.path) }
    })?;
    hold(bytes.len() + footprint(&value))?;
    Ok((bytes, value))
}

pub(crate) fn check_headers(headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |detail: &str| Err(Problem::new(ProblemCode::UnsupportedMediaType, detail));
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    if encodings.any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return refuse("the body is compressed; send it uncompressed");
    }
    if 1 < headers.get_all(header::CONTENT_TYPE).iter().count() {
        return refuse("the header `Content-Type` is repeated");
    }
    match headers.get(header::CONTENT_TYPE).map(axum::http::HeaderValue::to_str) {
        None => Ok(()),
        Some(Ok(text)) if is_json(text) => Ok(()),
        Some(_) => refuse("the body must be JSON"),
    }
}

fn is_caused_by<E: Error + 'static>(error: &axum::Error) -> bool {
    let mut cause = Error::source(error);
    while let Some(error) = cause {
        if error.is::<E>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn is_json(content_type: &str) -> bool {
    let mime = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    mime == "application/json" || (mime.starts_with("application/") && mime.ends_with("+json"))
}
