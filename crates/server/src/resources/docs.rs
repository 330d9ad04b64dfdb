//! `/`, `/openapi.json`, and `/docs`: a page to read and try the API, without any other host.

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
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_swagger_ui::{Config, SwaggerFile};

use crate::{
    openapi::openapi,
    operation::{Operation, parameters::PathParameter},
    request::{
        decode::PathText,
        encode::{self, HandlerResult},
        negotiate::preferred,
    },
    resources::OPERATIONS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![front_operation(), document_operation(), page_operation(), part_operation()]
}

const PAGE_FILE: PathParameter = PathParameter::new("file", "A file of the API page.", "start.js");

const HTML: &str = "text/html; charset=utf-8";

/// Limits scripts, styles and requests to this server. The last two directives let the viewer set
/// styles on the elements that it creates, and show its embedded images.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; script-src 'self'; connect-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";

fn front_operation() -> Operation {
    let text = "Entry points of the server: a page for browsers, JSON for programs.";
    Operation::get("/", "front", front)
        .for_anyone()
        .tag(OPERATIONS)
        .summary("List the entry points")
        .text(text)
        .answers::<ApiIndex>(200, "The URLs.", json!(ApiIndex::default()))
        .or_as("text/html", "A page with the same URLs.")
}

/// The entry points of the server: a page for people, JSON for programs.
async fn front(headers: HeaderMap) -> Response {
    let mut response = match preferred(&headers, &["application/json", "text/html"]) {
        0 => encode::ok(&ApiIndex::default()),
        _ => file(HTML, Bytes::from_static(include_bytes!("docs/front.html"))),
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    response
}

fn document_operation() -> Operation {
    Operation::get("/openapi.json", "openapi", document).for_anyone().tag(OPERATIONS).summary("Read this document").text("This document: every operation of the server in OpenAPI 3.1.").answers::<Document>(
        200,
        "The document.",
        json!({ "openapi": "3.1.0", "info": { "title": "Jurat", "version": env!("CARGO_PKG_VERSION") }, "servers": [{ "url": "/" }], "paths": {}, "components": {}, "tags": [] }),
    )
}

async fn document() -> Response {
    encode::ok_text(openapi().to_owned())
}

fn page_operation() -> Operation {
    let text = "A page to read and try the operations of this document. It asks for a key only to try them, and loads nothing from other hosts.";
    Operation::get("/docs", "docs", page)
        .for_anyone()
        .tag(OPERATIONS)
        .summary("Read and try the API")
        .text(text)
        .answers_as(200, "The page.", &["text/html"])
}

async fn page() -> Response {
    file(HTML, Bytes::from_static(include_bytes!("docs/index.html")))
}

fn part_operation() -> Operation {
    Operation::get("/docs/{file}", "docs_file", part)
        .for_anyone()
        .tag(OPERATIONS)
        .summary("Load a file of the API page")
        .text("A file that the page `/docs` needs.")
        .in_path([PAGE_FILE])
        .answers_as(200, "The file.", &["text/css", "text/html", "text/javascript", "image/png"])
        .refuses([ProblemCode::NotFound])
}

/// The files that the page needs: the viewer, its style, and the script that starts it.
async fn part(PathText(name): PathText) -> HandlerResult {
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
        // The viewer is stored only in compressed form, which every browser accepts.
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

/// A document in OpenAPI 3.1.
#[derive(Debug, ToSchema)]
#[schema(as = OpenApiDocument)]
#[expect(dead_code, reason = "it only describes the document")]
struct Document {
    openapi: String,
    #[schema(value_type = Object)]
    info: Value,
    #[schema(value_type = Vec<Object>)]
    servers: Value,
    #[schema(value_type = Object)]
    paths: Value,
    #[schema(value_type = Object)]
    components: Value,
    #[schema(value_type = Vec<Object>)]
    tags: Value,
}
