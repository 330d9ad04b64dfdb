//! `/`, `/openapi.json`, and `/docs`: a page to read and try the API, whole and without another host.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderValue,
        header::{CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY},
    },
    response::Response,
};
use bytes::Bytes;
use jurat_core::code::ProblemCode;
use jurat_wire::{api::status::ApiIndex, problem::Problem};
use utoipa_swagger_ui::{Config, SwaggerFile};

use crate::{
    openapi::openapi,
    request::{
        decode::PathText,
        encode::{self, HandlerResult},
        negotiate::preferred,
    },
};

const HTML: &str = "text/html; charset=utf-8";
/// Scripts, styles and calls come from and go to this server only. The viewer sets styles on the
/// elements it makes and holds its small pictures within itself, which the last two allow.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";

/// What people find who type the address of the server, and what programs find.
pub(super) async fn front(headers: HeaderMap) -> Response {
    let mut response = match preferred(&headers, &["application/json", "text/html"]) {
        0 => encode::ok(&ApiIndex::default()),
        _ => file(HTML, Bytes::from_static(include_bytes!("docs/front.html"))),
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

pub(super) async fn document() -> Response {
    encode::ok_text(openapi().to_owned())
}

pub(super) async fn page() -> Response {
    file(HTML, Bytes::from_static(include_bytes!("docs/index.html")))
}

/// What the page needs: the viewer, its style, and the line that starts it.
pub(super) async fn part(PathText(name): PathText) -> HandlerResult {
    let kind = match name.as_str() {
        "start.js" => {
            return Ok(file(
                "text/javascript",
                Bytes::from_static(include_bytes!("docs/start.js")),
            ));
        }
        "swagger-ui-bundle.js" => "text/javascript; charset=utf-8",
        "swagger-ui.css" => "text/css; charset=utf-8",
        _ => return Err(unknown(&name).into()),
    };
    let found = viewer(&name).ok_or_else(|| unknown(&name))?;
    let mut response = file(kind, Bytes::from(found.bytes.into_owned()));
    if found.gzpipped {
        // The viewer is kept compressed only; every browser takes it so.
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

fn unknown(name: &str) -> Problem {
    let name: String = name.chars().take(80).collect();
    Problem::new(ProblemCode::NotFound, format!("there is no file `{name}`"))
}

fn viewer(name: &str) -> Option<SwaggerFile<'static>> {
    utoipa_swagger_ui::serve(name, Arc::new(Config::default())).ok().flatten()
}

fn file(kind: &'static str, bytes: Bytes) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
