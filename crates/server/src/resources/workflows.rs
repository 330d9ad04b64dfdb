//! `/v1/workflows`, and its alias `/v1/skills`.

mod examples;
mod files;
mod grants;

use std::borrow::Cow;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
};
use jurat_core::{
    account::caller::{Caller, Scope},
    code::ProblemCode,
    workflow::{
        Workflow, WorkflowRef,
        operation::{ForkLineage, WorkflowFilter, WorkflowSaveResult},
    },
};
use jurat_engine::{Engine, WorkflowHit, WorkflowSearch};
use jurat_wire::{
    api::{
        kit::page::PageBody,
        workflows::{
            self, ArchivedWorkflow, DeletedWorkflow, DeletedWorkflowVersion, LineageBody,
            ListedWorkflow, SaveWorkflowRequest, SavedWorkflowBody, SearchWorkflowsRequest,
            UpstreamView, WorkflowBody, WorkflowSearchBody, WorkflowSearchOrder,
            WorkflowVersionView,
        },
    },
    problem::Problem,
};
use serde_json::{Value, json};

use crate::{
    mcp::render,
    operation::{
        Operation, TextAuthor, Tool,
        parameters::{self, PathParameter},
    },
    request::{
        decode::{Json, LargeJson, PathPair, PathText},
        encode::{self, HandlerResult},
        idempotency::{self, Idempotency},
        page::{ListQuery, QueryFilters, wrong},
    },
    resources::WORKFLOWS,
};

/// The operations of this resource.
pub(super) fn operations() -> Vec<Operation> {
    vec![
        save_operation(),
        list_operation(),
        search_operation(),
        show_operation(),
        erase_operation(),
        show_version_operation(),
        erase_version_operation(),
        files::read_operation(),
        files::patch_operation(),
        archive_operation(),
        unarchive_operation(),
        grants::grant_operation(),
        grants::list_operation(),
        grants::revoke_operation(),
        grants::leave_operation(),
        grants::transfer_operation(),
        lineage_operation(),
    ]
}

pub(super) const WORKFLOW: PathParameter = PathParameter::new(
    "ref",
    "The id, slug or name of a workflow; append `@` and a version to pin one.",
    "incident-postmortem",
);

const MARKDOWN: &str = "text/markdown";

fn save_operation() -> Operation {
    let text = "Creates a workflow, or adds a version to one. A version never changes. The name determines the slug of a new workflow. Leave `expected_version_token` null for the first save, and send the current token for every later one; otherwise the reply is 409 with the current token in `current_version_token`. `files` and `verifiers` are complete lists: leave them out to keep them, or send an empty list to clear them. If name, description, outcome or tags are left out, they are taken from the front matter of the body, then from the previous version. Users with the role `edit` can save versions, but only the owner can change `verifiers`. The body may have 8 MiB.";
    let about = "Stores a version of a workflow: a runbook in Markdown, with files and the verifiers that it names. A new name creates a workflow; the next version needs the current `version_token` as `expected_version_token`.";
    Operation::post("/v1/workflows", "workflow_save", save).aliased("/v1/workflows", "/v1/skills", "_of_skill").tag(WORKFLOWS).summary("Save a version of a workflow").text(text)
        .scope(Scope::WorkflowsWrite)
        .takes::<SaveWorkflowRequest>([("plain", examples::save_request())])
        .answers::<SavedWorkflowBody<'_>>(
            201,
            "The saved version.",
            examples::ids(json!({
                "slug": "incident-postmortem", "name": "Incident postmortem", "version": 1,
                "version_token": examples::TOKEN, "verifiers": [], "image_generators": [],
                "files": [examples::file()],
                "authoring_notes": [
                    "Nothing is checked: bind a verifier for each judgment the body asks for, or add a block of checks.",
                    "The file `short.md` is attached, but the body does not mention it.",
                ],
                "next_step": "Deploy a verifier for the result that matters and bind it, or add a block of checks.",
            })),
        )
        .idempotent()
        .refuses([
            ProblemCode::Conflict,
            ProblemCode::NotFound,
            ProblemCode::NotSupported,
        ])
        .tool(Tool::adds("save_skill", "Save a workflow", about).also("save_workflow").summary(render::saved))
}

async fn save(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    LargeJson(body): LargeJson,
) -> HandlerResult {
    let draft = workflows::decode_save(&body)?;
    let keyed = idempotency.write_for("workflow_save", &body, StatusCode::CREATED, saved);
    let done = engine.workflow_save(&caller, draft, keyed).await?;
    Ok(idempotency::reply(done, |it| encode::created(&saved(it))))
}

/// A saved version, as replies show it.
pub(crate) fn saved(it: &WorkflowSaveResult) -> Value {
    json!(workflows::saved(&it.workflow, &it.body, (&it.bindings, &it.files)))
}

fn list_operation() -> Operation {
    let text = "The workflows that the caller owns or that are shared with it, newest first. Archived ones are listed only for their owner, with `include_archived`.";
    let about =
        "Lists the workflows that the account owns or that are shared with it, one page at a time.";
    Operation::get("/v1/workflows", "workflow_list", list)
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOWS)
        .summary("List workflows")
        .text(text)
        .scope(Scope::WorkflowsRead)
        .with(parameters::of_list())
        .with(parameters::of_workflows())
        .answers::<PageBody<'_, ListedWorkflow<'_>>>(
            200,
            "A page of workflows.",
            json!({ "items": [examples::summary()], "next_cursor": null }),
        )
        .refuses([ProblemCode::ValidationError])
        .tool(
            Tool::reads("list_skills", "List workflows", about)
                .also("list_workflows")
                .query(&["filter", "tag", "search", "include_archived", "limit", "cursor"])
                .ignores_unknown()
                .summary(render::counted_pages)
                .author(TextAuthor::Others),
        )
}

async fn list(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    query: ListQuery,
) -> HandlerResult {
    query.only(&["filter", "tag", "search", "include_archived"])?;
    let filters = &query.filters;
    let whose = workflows::whose(filters.get("filter"));
    let filter = WorkflowFilter {
        whose: whose.map_err(|error| wrong(&error.field, &error.problem))?,
        with_archived: flag(filters, "include_archived")?,
        tag: filters.get("tag").map(str::to_owned),
        search: filters.get("search").map(str::to_owned),
        before: query.text_position()?,
        limit: query.with_one_more(),
    };
    let mut found = engine.workflow_list(&caller, &filter).await?;
    let next = query.cut(&mut found, |reached| [reached.workflow.id.clone()]);
    Ok(encode::ok(&PageBody::new(found.iter().map(workflows::listed), next.as_deref())))
}

fn flag(filters: &QueryFilters, name: &str) -> Result<bool, Problem> {
    match filters.get(name) {
        None | Some("false" | "0") => Ok(false),
        Some("true" | "1") => Ok(true),
        Some(_) => Err(wrong(name, "must be true or false")),
    }
}

fn search_operation() -> Operation {
    let text = "Finds workflows by words in their names, tags, descriptions and outcomes, best match first. The search uses no model, as `search_mode` shows.";
    let about = "Finds workflows by words in their names, tags, descriptions, outcomes and bodies.";
    Operation::post("/v1/workflows/search", "workflow_search", search).aliased("/v1/workflows", "/v1/skills", "_of_skill").tag(WORKFLOWS).summary("Search workflows").text(text)
        .scope(Scope::WorkflowsRead)
        .takes::<SearchWorkflowsRequest>([(
            "plain",
            json!({ "query": "incident", "filter": "all", "limit": 5 }),
        )])
        .answers::<WorkflowSearchBody<'_>>(
            200,
            "The result.",
            json!({
                "items": [examples::ids(json!({
                    "rank": 1, "match_reason": "name: incident; description: incident; outcome: incident",
                    "slug": "incident-postmortem", "name": "Incident postmortem",
                    "description": "Drafts a postmortem from the log of an incident.",
                    "outcome": "A postmortem within an hour of the end of an incident.",
                    "tags": ["sre"], "owner": null, "effective_role": "owner",
                }))],
                "query": "incident", "limit": 5, "search_mode": "lexical",
            }),
        )
        .refuses([ProblemCode::ValidationError])
        .tool(Tool::reads("search_skills", "Search workflows", about).also("search_workflows").summary(render::counted_pages).author(TextAuthor::Others))
}

async fn search(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    Json(body): Json,
) -> HandlerResult {
    let order = workflows::decode_search(&body)?;
    let hits = engine.workflow_search(&caller, &wanted_hits(&order)).await?;
    Ok(encode::ok(&hit_list(&order, &hits)))
}

pub(crate) fn wanted_hits(order: &WorkflowSearchOrder) -> WorkflowSearch {
    WorkflowSearch {
        query: order.query.clone(),
        whose: order.filter,
        tag: order.tag.clone(),
        limit: usize::try_from(order.limit).unwrap_or(1),
    }
}

pub(crate) fn hit_list<'a>(
    order: &'a WorkflowSearchOrder,
    hits: &'a [WorkflowHit],
) -> WorkflowSearchBody<'a> {
    let items = hits.iter().enumerate();
    let items = items.map(|(place, hit)| workflows::found(place, &hit.reached, &hit.reason));
    WorkflowSearchBody {
        items: items.collect(),
        query: Cow::Borrowed(&order.query),
        limit: order.limit,
        search_mode: Cow::Borrowed("lexical"),
    }
}

fn show_operation() -> Operation {
    let text = "One full version: the requested one, or the current one. With `Accept: text/markdown`, only the body. Workflows that the caller neither owns nor was granted are not found, and neither are versions before the first shared one.";
    let about = "Returns a full version of a workflow: its body, the verifiers that it names, and its files without their contents.";
    Operation::get("/v1/workflows/{ref}", "workflow_get", show)
        .also("/v1/workflows/{ref}/{slug}")
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOWS)
        .summary("Show a workflow")
        .text(text)
        .in_path([WORKFLOW])
        .scope(Scope::WorkflowsRead)
        .with([parameters::version("The version to show; defaults to the current one.")])
        .answers::<WorkflowBody<'_>>(200, "The version.", examples::whole())
        .or_as("text/markdown", "The body.")
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::reads("get_skill", "Read a workflow", about)
                .also("get_workflow")
                .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
                .query(&["version"])
                .ignores_unknown()
                .summary(render::workflow)
                .author(TextAuthor::Others),
        )
}

async fn show(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
    query: QueryFilters,
    headers: HeaderMap,
) -> HandlerResult {
    query.only(&["version"])?;
    let version = super::verifiers::version(&query)?;
    let wanted = workflows::pinned(workflows::reference(&text)?, version)?;
    shown(&engine, &caller, &wanted, headers.get(header::ACCEPT)).await
}

fn show_version_operation() -> Operation {
    Operation::get("/v1/workflows/{ref}/versions/{version}", "workflow_version_get", show_version)
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOWS)
        .summary("Show a version of a workflow")
        .text("Same as showing a workflow with `version`.")
        .in_path([WORKFLOW, parameters::VERSION])
        .scope(Scope::WorkflowsRead)
        .answers::<WorkflowBody<'_>>(200, "The version.", examples::whole())
        .or_as("text/markdown", "The body.")
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
}

async fn show_version(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathPair(text, number): PathPair,
    headers: HeaderMap,
) -> HandlerResult {
    let wanted = workflows::pinned(workflows::reference(&text)?, Some(whole(&number)?))?;
    shown(&engine, &caller, &wanted, headers.get(header::ACCEPT)).await
}

/// The version in an address, which must be a positive whole number.
fn whole(text: &str) -> Result<u32, Problem> {
    let number = text.parse().ok().filter(|number| 0 < *number);
    number.ok_or_else(|| wrong("version", "must be a whole number, 1 or more"))
}

async fn shown(
    engine: &Engine,
    caller: &Caller,
    wanted: &WorkflowRef,
    accept: Option<&HeaderValue>,
) -> HandlerResult {
    let view = engine.workflow_get(caller, wanted).await?;
    let accept = accept.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let takes = |mime: &str| accept.split(',').any(|part| part.trim().starts_with(mime));
    if takes(MARKDOWN) && !takes("application/json") {
        return Ok(encode::content("text/markdown; charset=utf-8", view.version.body.into()));
    }
    Ok(encode::ok(&workflows::shown(WorkflowVersionView {
        reached: &view.reached,
        version: &view.version,
    })))
}

fn archive_operation() -> Operation {
    let text = "Archives a workflow: others lose access to it and its verifiers. Its grants stay, and apply again when it is unarchived. Only the owner can do this.";
    let about =
        "Archives a workflow: others lose access to it and its verifiers until it is unarchived.";
    Operation::post("/v1/workflows/{ref}/archive", "workflow_archive", archive)
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOWS)
        .summary("Archive a workflow")
        .text(text)
        .in_path([WORKFLOW])
        .scope(Scope::WorkflowsWrite)
        .answers::<ArchivedWorkflow<'_>>(
            200,
            "It is archived.",
            examples::named(json!({ "archived": true })),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::changes("archive_skill", "Archive a workflow", about)
                .also("archive_workflow")
                .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
                .ignores_unknown(),
        )
}

async fn archive(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(text): PathText,
) -> HandlerResult {
    let asked = workflows::reference(&text)?;
    let reply = |workflow: &Workflow| json!(workflows::archived(workflow));
    let keyed = idempotency.write_for("workflow_archive", &Value::Null, StatusCode::OK, reply);
    let done = engine.workflow_archive(&caller, &asked, keyed).await?;
    Ok(idempotency::reply(done, |workflow| encode::ok(&reply(workflow))))
}

fn unarchive_operation() -> Operation {
    Operation::post("/v1/workflows/{ref}/unarchive", "workflow_unarchive", unarchive)
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOWS)
        .summary("Unarchive a workflow")
        .text("Restores an archived workflow with its grants.")
        .in_path([WORKFLOW])
        .scope(Scope::WorkflowsWrite)
        .answers::<ArchivedWorkflow<'_>>(
            200,
            "It is unarchived.",
            examples::named(json!({ "archived": false })),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::changes(
                "unarchive_skill",
                "Unarchive a workflow",
                "Restores an archived workflow with its grants.",
            )
            .also("unarchive_workflow")
            .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
            .ignores_unknown(),
        )
}

async fn unarchive(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(text): PathText,
) -> HandlerResult {
    let asked = workflows::reference(&text)?;
    let reply = |workflow: &Workflow| json!(workflows::unarchived(workflow));
    let keyed = idempotency.write_for("workflow_unarchive", &Value::Null, StatusCode::OK, reply);
    let done = engine.workflow_unarchive(&caller, &asked, keyed).await?;
    Ok(idempotency::reply(done, |workflow| encode::ok(&reply(workflow))))
}

fn erase_operation() -> Operation {
    let text = "Permanently deletes a workflow with all its versions, files and grants. Its verifiers stay. Only the owner can do this, and it cannot be undone.";
    let about = "Permanently deletes a workflow with all its versions, files and grants. This cannot be undone; prefer archiving.";
    Operation::delete("/v1/workflows/{ref}", "workflow_delete", erase)
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOWS)
        .summary("Delete a workflow")
        .text(text)
        .in_path([WORKFLOW])
        .scope(Scope::WorkflowsWrite)
        .answers::<DeletedWorkflow<'_>>(
            200,
            "It is deleted.",
            examples::named(json!({ "deleted": true })),
        )
        .idempotent()
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::ends("delete_skill", "Delete a workflow", about)
                .confirmed()
                .also("delete_workflow")
                .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
                .ignores_unknown(),
        )
}

async fn erase(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathText(text): PathText,
) -> HandlerResult {
    let asked = workflows::reference(&text)?;
    let reply = |workflow: &Workflow| json!(workflows::deleted(workflow));
    let keyed = idempotency.write_for("workflow_delete", &Value::Null, StatusCode::OK, reply);
    let done = engine.workflow_delete(&caller, &asked, keyed).await?;
    Ok(idempotency::reply(done, |workflow| encode::ok(&reply(workflow))))
}

fn erase_version_operation() -> Operation {
    let text = "Permanently deletes one version with its files. The current version cannot be deleted on its own.";
    Operation::delete(
        "/v1/workflows/{ref}/versions/{version}",
        "workflow_version_delete",
        erase_version,
    )
    .aliased("/v1/workflows", "/v1/skills", "_of_skill")
    .tag(WORKFLOWS)
    .summary("Delete a workflow version")
    .text(text)
    .in_path([WORKFLOW, parameters::VERSION])
    .scope(Scope::WorkflowsWrite)
    .answers::<DeletedWorkflowVersion<'_>>(
        200,
        "It is deleted.",
        examples::ids(json!({ "version": 1, "deleted": true })),
    )
    .idempotent()
    .refuses([ProblemCode::Conflict])
    .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
    .tool(
        Tool::ends(
            "delete_skill_version",
            "Delete a workflow version",
            "Permanently deletes a version other than the current one.",
        )
        .confirmed()
        .also("delete_workflow_version")
        .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
        .path_version("The version.")
        .ignores_unknown(),
    )
}

async fn erase_version(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    idempotency: Idempotency,
    PathPair(text, number): PathPair,
) -> HandlerResult {
    let version = whole(&number)?;
    let asked = workflows::pinned(workflows::reference(&text)?, Some(version))?;
    let reply = move |workflow: &Workflow| json!(workflows::version_deleted(workflow, version));
    let keyed =
        idempotency.write_for("workflow_version_delete", &Value::Null, StatusCode::OK, reply);
    let done = engine.workflow_version_delete(&caller, &asked, keyed).await?;
    Ok(idempotency::reply(done, |workflow| encode::ok(&reply(workflow))))
}

fn lineage_operation() -> Operation {
    let text = "The template that a workflow was forked from, and its current state.";
    let about = "Returns the template that a workflow was forked from, and its current state.";
    Operation::get("/v1/workflows/{ref}/lineage", "workflow_lineage", lineage)
        .aliased("/v1/workflows", "/v1/skills", "_of_skill")
        .tag(WORKFLOWS)
        .summary("Show the origin of a workflow")
        .text(text)
        .in_path([WORKFLOW])
        .scope(Scope::WorkflowsRead)
        .answers::<LineageBody<'_>>(
            200,
            "The origin.",
            examples::ids(json!({
                "parent_template_id": null, "parent_template_version": null,
                "upstream_latest_version": null, "is_upstream_unpublished": null,
                "parent_source_status": null, "parent_permanently_deleted": null,
                "parent_template_archived_at": null, "parent_template_archive_reason": null,
                "parent_version_deprecated_at": null,
                "parent_version_deprecation_message": null,
            })),
        )
        .refuses([ProblemCode::NotFound, ProblemCode::ValidationError])
        .tool(
            Tool::reads("lookup_fork_lineage", "Show the origin of a workflow", about)
                .path_either(WORKFLOW_NAMES, "The id, slug or name of a workflow.")
                .ignores_unknown()
                .author(TextAuthor::Others),
        )
}

async fn lineage(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathText(text): PathText,
) -> HandlerResult {
    let found = engine.workflow_lineage(&caller, &workflows::reference(&text)?).await?;
    Ok(encode::ok(&lineage_of(&found)))
}

pub(crate) fn lineage_of(found: &ForkLineage) -> LineageBody<'_> {
    let upstream = found.upstream.as_ref().map(|it| UpstreamView {
        latest_version: it.latest_version,
        is_unpublished: it.unpublished_at.is_some(),
        is_version_deleted: !it.has_version,
        archived_at: it.archived_at,
        archive_reason: it.archive_reason.as_deref(),
        deprecated_at: it.deprecated_at,
        deprecation_message: it.deprecation_message.as_deref(),
    });
    workflows::lineage(&found.workflow, upstream)
}

/// The argument names under which tools take a workflow.
pub(super) const WORKFLOW_NAMES: [&str; 2] = ["skill_id", "workflow_id"];
