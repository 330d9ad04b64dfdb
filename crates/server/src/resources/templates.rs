//! `/v1/templates`: what is published is there for everybody.

mod address;
mod owned;

use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use jurat_core::workflow::template::TemplateFilter;
use jurat_engine::{Engine, SafetyReport, ScreenResult, ScreenVerdict, TemplateFileView};
use jurat_wire::{
    api::{
        kit::{page::PageBody, words},
        templates::{self, SafetyCheckBody},
    },
    problem::Problem,
};

use self::address::TemplatePath;
pub(super) use self::owned::{
    archive, delete, delete_version, deprecate, fork, publish, transfer, unarchive, unpublish,
};
pub(crate) use self::owned::{forked, offered_template, published};
use crate::request::page::{ListQuery, QueryFilters, wrong};
use crate::request::{
    auth::VisitorCaller,
    decode::Json,
    encode::{self, HandlerResult},
};

pub(super) async fn list(
    State(engine): State<Engine>,
    Extension(visitor): Extension<VisitorCaller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&["filter", "search", "include_archived"])?;
    let filters = &query.filters;
    let is_mine = match filters.get("filter") {
        None | Some("all") => false,
        Some("mine") => true,
        Some(_) => return Err(wrong("filter", "must be all or mine").into()),
    };
    let filter = TemplateFilter {
        is_mine,
        with_archived: flag(filters, "include_archived")?,
        search: filters.get("search").filter(|text| !text.trim().is_empty()).map(str::to_owned),
        before: query.position()?,
        limit: query.with_one_more(),
        ..TemplateFilter::default()
    };
    let mut found = engine.template_list(visitor.caller(), filter).await?;
    let next = query.cut_opaque(&mut found, |line| line.template.id.clone());
    Ok(encode::ok(&PageBody::new(found.iter().map(templates::listed), next.as_deref())))
}

fn flag(filters: &QueryFilters, name: &str) -> Result<bool, Problem> {
    match filters.get(name) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(wrong(name, "must be true or false")),
    }
}

pub(super) async fn search(
    State(engine): State<Engine>,
    Extension(visitor): Extension<VisitorCaller>,
    Json(body): Json,
) -> HandlerResult {
    let order = templates::decode_search(&body)?;
    let caller = visitor.caller();
    let found = engine.template_search(caller, &order.query, order.is_mine, order.limit).await?;
    Ok(encode::ok(&templates::searched(&order.query, order.limit, &found)))
}

pub(super) async fn show(
    State(engine): State<Engine>,
    Extension(visitor): Extension<VisitorCaller>,
    headers: HeaderMap,
    named: TemplatePath,
) -> HandlerResult {
    let wanted = named.wanted(&["version"])?;
    let view = engine.template_get(visitor.caller(), &wanted).await?;
    if let Some(moved) = view.moved {
        return Ok(redirect(&named.moved_to(&moved.name)));
    }
    if wants_markdown(&headers) {
        let text = templates::markdown(&view.found, view.is_owner);
        return Ok(raw("text/markdown; charset=utf-8", text.into_bytes()));
    }
    Ok(encode::ok(&templates::shown(&view.found, view.is_owner)))
}

/// A file of a version: in an envelope, or as it is with `format=raw`.
pub(super) async fn file(
    State(engine): State<Engine>,
    Extension(visitor): Extension<VisitorCaller>,
    named: TemplatePath,
) -> HandlerResult {
    let wanted = named.wanted(&["version", "path", "format", "sha256"])?;
    let filters = &named.filters;
    let path = filters.get("path").ok_or_else(|| wrong("path", "is required"))?;
    let is_raw = match filters.get("format") {
        None | Some("json") => false,
        Some("raw") => true,
        Some(_) => return Err(wrong("format", "must be `raw` or left out").into()),
    };
    let view = engine.template_file(visitor.caller(), &wanted, path).await?;
    if let Some(moved) = &view.moved {
        return Ok(redirect(&named.moved_to(&moved.name)));
    }
    if filters.get("sha256").is_some_and(|wanted| *wanted != *view.file.sha256) {
        let detail = "the file's content does not match `sha256`";
        return Err(Problem::new(jurat_core::code::ProblemCode::NotFound, detail).into());
    }
    let TemplateFileView { file, content, .. } = &view;
    if is_raw {
        return Ok(raw("application/octet-stream", content.clone()));
    }
    Ok(encode::ok(&templates::envelope(file, content)))
}

pub(super) async fn check_safety(
    State(engine): State<Engine>,
    Extension(visitor): Extension<VisitorCaller>,
    named: TemplatePath,
) -> HandlerResult {
    let wanted = named.wanted(&["version"])?;
    let checked = engine.template_check_safety(visitor.payer(), &wanted).await?;
    Ok(encode::ok(&checked_body(&checked)))
}

/// What a screen found, as replies have it.
pub(crate) fn checked_body(checked: &SafetyReport) -> SafetyCheckBody<'_> {
    SafetyCheckBody {
        resource_type: checked.what,
        resource_id: &checked.id,
        resource_version: checked.version,
        status: words::SafetyStatus(checked.status),
        block: screen_run(&checked.block),
        advisory: screen_run(&checked.advisory),
        truncated: !checked.cut.is_empty(),
        truncated_fields: &checked.cut,
    }
}

fn screen_run(run: &ScreenResult) -> templates::ScreenRunBody<'_> {
    let passed = match run.verdict {
        ScreenVerdict::Passed => Some(true),
        ScreenVerdict::Failed => Some(false),
        ScreenVerdict::Error => None,
    };
    let of = (run.verifier_id.as_str(), run.verifier_version);
    templates::screen_run_body(of, &run.run_id, passed, run.reasoning.as_deref())
}

/// Whether markdown is asked for and JSON is not.
fn wants_markdown(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|text| text.contains("text/markdown") && !text.contains("json"))
}

fn raw(content_type: &'static str, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Leads to where it is now.
fn redirect(location: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}
