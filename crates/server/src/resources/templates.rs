//! `/v1/templates`: workflows that are published for everybody.

mod address;
pub(super) mod examples;
mod owned;

use std::borrow::Cow;

use axum::{
    Extension,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use jurat_core::{account::caller::Scope, code::ProblemCode, workflow::template::TemplateFilter};
use jurat_engine::{Engine, SafetyReport, ScreenResult, ScreenVerdict, TemplateFileView};
use jurat_wire::{
    api::{
        kit::{page::PageBody, words},
        templates::{
            self, SafetyCheckBody, SearchTemplatesRequest, TemplateBody, TemplateFileEnvelope,
            TemplateSearchBody, TemplateSummary,
        },
    },
    problem::Problem,
};
use serde_json::{Value, json};

use self::address::TemplatePath;
use crate::{
    mcp::render,
    operation::{
        Operation, TextAuthor, Tool,
        parameters::{self, PathParameter},
    },
    request::{
        auth::VisitorCaller,
        decode::Json,
        encode::{self, HandlerResult},
        page::{ListQuery, QueryFilters, wrong},
    },
    resources::TEMPLATES,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        owned::publish_operation(),
        list_operation(),
        search_operation(),
        owned::fork_operation(),
        show_operation(),
        owned::delete_operation(),
        file_operation(),
        owned::archive_operation(),
        owned::unarchive_operation(),
        owned::transfer_operation(),
        check_safety_operation(),
        owned::unpublish_operation(),
        owned::delete_version_operation(),
        owned::deprecate_operation(),
    ]
}

pub(super) const TEMPLATE: PathParameter = PathParameter::new(
    "ref",
    "The id of a template, or `@handle/slug` with an unescaped slash; append `@vN` to pin a version when reading.",
    "@ann/report",
);

fn list_operation() -> Operation {
    let text = "Published templates, newest first; with a key, `filter=mine` also lists the caller's unpublished and archived ones.";
    Operation::get("/v1/templates", "template_list", list)
        .for_visitors()
        .tag(TEMPLATES)
        .summary("List templates")
        .text(text)
        .with(parameters::of_list())
        .with(parameters::of_templates())
        .answers::<PageBody<'_, TemplateSummary<'_>>>(
            200,
            "A page of templates.",
            json!({ "items": [examples::summary()], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads(
                "list_templates",
                "List templates",
                "Lists templates, newest first, a page at a time.",
            )
            .query(&["limit", "cursor", "filter", "search"])
            .scopes(&[Scope::WorkflowsRead])
            .ignores_unknown()
            .summary(render::templates_listed)
            .author(TextAuthor::Published),
        )
}

async fn list(
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
        before: query.text_position()?,
        limit: query.with_one_more(),
        ..TemplateFilter::default()
    };
    let mut found = engine.template_list(visitor.caller(), filter).await?;
    let next = query.cut(&mut found, |line| [line.template.id.clone()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(templates::listed), next.as_deref())))
}

fn flag(filters: &QueryFilters, name: &str) -> Result<bool, Problem> {
    match filters.get(name) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(wrong(name, "must be true or false")),
    }
}

fn search_operation() -> Operation {
    Operation::post("/v1/templates/search", "template_search", search)
        .for_visitors()
        .tag(TEMPLATES)
        .summary("Search templates")
        .text("Templates that match the words of a query, best first.")
        .takes::<SearchTemplatesRequest>([("plain", json!({ "query": "weekly sales report" }))])
        .answers::<TemplateSearchBody<'_>>(200, "The result.", examples::searched())
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads(
                "search_templates",
                "Search templates",
                "Finds templates that match the words of a query, best first.",
            )
            .scopes(&[Scope::WorkflowsRead])
            .summary(render::templates_listed)
            .author(TextAuthor::Published),
        )
}

async fn search(
    State(engine): State<Engine>,
    Extension(visitor): Extension<VisitorCaller>,
    Json(body): Json,
) -> HandlerResult {
    let order = templates::decode_search(&body)?;
    let caller = visitor.caller();
    let found = engine.template_search(caller, &order.query, order.is_mine, order.limit).await?;
    Ok(encode::ok(&templates::searched(&order.query, order.limit, &found)))
}

fn show_operation() -> Operation {
    let text = "One full version: the pinned one, or the newest. JSON unless `Accept` asks for `text/markdown`. For anyone but the owner the body begins with a warning. An old name, from before a change of handle or owner, redirects to the current one.";
    let about = "Returns a full version of a template, with its verifiers as published.";
    let which = "The id of a template, or `@handle/slug`; append `@vN` to pin a version.";
    Operation::get("/v1/templates/{ref}", "template_get", show)
        .also("/v1/templates/{ref}/{slug}")
        .for_visitors()
        .tag(TEMPLATES)
        .summary("Show a template")
        .text(text)
        .in_path([TEMPLATE])
        .with([parameters::version("The version to show; defaults to the newest.")])
        .answers::<TemplateBody<'_>>(200, "The version.", examples::template())
        .or_as("text/markdown", "The body.")
        .answers_nothing(302, "The template has a new name.")
        .and_header("Location", "URL under the new name.")
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::reads("get_template", "Read a template", about)
                .path_like("identifier", which, TEMPLATE_PATTERN)
                .query(&["version"])
                .scopes(&[Scope::WorkflowsRead])
                .ignores_unknown()
                .summary(render::template)
                .author(TextAuthor::Published),
        )
}

async fn show(
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

fn file_operation() -> Operation {
    let text = "A file of a version: as JSON with its content, or raw with `format=raw`.";
    let which = "The id of a template, or `@handle/slug`; append `@vN` to pin a version.";
    Operation::get("/v1/templates/{ref}/files", "template_file", file)
        .also("/v1/templates/{ref}/{slug}/files")
        .for_visitors()
        .tag(TEMPLATES)
        .summary("Read a template file")
        .text(text)
        .in_path([TEMPLATE])
        .with([parameters::version("The version; defaults to the newest.")])
        .with(parameters::of_file())
        .answers::<TemplateFileEnvelope<'_>>(200, "The file.", examples::file())
        .or_as("application/octet-stream", "The bytes.")
        .answers_nothing(302, "The template has a new name.")
        .and_header("Location", "URL under the new name.")
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::reads(
                "get_template_file",
                "Read a template file",
                "Returns a file of a template.",
            )
            .path_like("identifier", which, TEMPLATE_PATTERN)
            .needs("path")
            .query(&["version"])
            .scopes(&[Scope::WorkflowsRead])
            .reply(short_enough)
            .ignores_unknown()
            .summary(render::template)
            .author(TextAuthor::Published),
        )
}

/// A file of a version: in an envelope, or as raw bytes with `format=raw`.
async fn file(
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

fn check_safety_operation() -> Operation {
    let text = "Screens a version again with the judges that screen templates before publishing, as two runs that the caller pays for; without a key, from the credit of the network address.";
    let about = "Screens a template with the judges that screen templates before publishing, as two paid runs.";
    let which = "The id of a template, or `@handle/slug`; append `@vN` to pin a version.";
    Operation::post("/v1/templates/{ref}/safety-check", "template_check_safety", check_safety)
        .also("/v1/templates/{ref}/{slug}/safety-check")
        .for_visitors()
        .tag(TEMPLATES)
        .summary("Check the safety of a template")
        .text(text)
        .in_path([TEMPLATE])
        .with([parameters::version("The version to check; defaults to the newest.")])
        .answers::<SafetyCheckBody<'_>>(200, "The result.", examples::checked("template"))
        .refuses([
            ProblemCode::NotFound,
            ProblemCode::ValidationError,
            ProblemCode::AnonymousDailyCap,
        ])
        .refuses(SCREENED)
        .tool(
            Tool::asks("check_template_safety", "Check the safety of a template", about)
                .path_like("identifier", which, TEMPLATE_PATTERN)
                .query(&["version"])
                .scopes(&[Scope::WorkflowsRead, Scope::VerifiersRun])
                .ignores_unknown()
                .summary(render::checked)
                .author(TextAuthor::Published),
        )
}

async fn check_safety(
    State(engine): State<Engine>,
    Extension(visitor): Extension<VisitorCaller>,
    named: TemplatePath,
) -> HandlerResult {
    let wanted = named.wanted(&["version"])?;
    let checked = engine.template_check_safety(visitor.payer(), &wanted).await?;
    Ok(encode::ok(&checked_body(&checked)))
}

/// The result of a screen, as replies show it.
pub(crate) fn checked_body(checked: &SafetyReport) -> SafetyCheckBody<'_> {
    SafetyCheckBody {
        resource_type: Cow::Borrowed(checked.what),
        resource_id: Cow::Borrowed(&checked.id),
        resource_version: checked.version,
        status: words::SafetyStatus(checked.status),
        block: screen_run(&checked.block),
        advisory: screen_run(&checked.advisory),
        truncated: !checked.cut.is_empty(),
        truncated_fields: Cow::Borrowed(&checked.cut),
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

/// Whether the client asks for Markdown and not for JSON.
fn wants_markdown(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|text| text.contains("text/markdown") && !text.contains("json"))
}

fn raw(content_type: &'static str, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// A redirect to the template's new address.
fn redirect(location: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// Problem codes of every run of the screen.
pub(super) const SCREENED: [ProblemCode; 6] = [
    ProblemCode::BudgetExhausted,
    ProblemCode::AccountSuspended,
    ProblemCode::SessionPoolTooSmall,
    ProblemCode::SessionsUnavailable,
    ProblemCode::ShuttingDown,
    ProblemCode::RateLimited,
];

/// The names of a template that tools accept.
const TEMPLATE_PATTERN: &str = "^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|@[A-Za-z0-9][A-Za-z0-9-]{1,38}[A-Za-z0-9]/[a-z0-9-]{1,128})(@v?[1-9][0-9]{0,8})?$";

/// Refuses a file that is too long for the result of a tool.
fn short_enough(_: &Value, file: Value) -> Result<Value, Problem> {
    if file["size_bytes"].as_u64().is_some_and(|size| templates::MOST_OVER_MCP < size) {
        let detail = "the file is too long for a tool; read it over HTTP with `format=raw`";
        return Err(Problem::new(ProblemCode::PayloadTooLarge, detail));
    }
    Ok(file)
}
