//! `/v1/workflows`, and `/v1/skills`, which is the same under another name.

mod files;
mod grants;

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
};
use jurat_core::{
    account::caller::Caller,
    workflow::{
        Workflow, WorkflowRef,
        operation::{ForkLineage, WorkflowSaveResult},
    },
};
use jurat_engine::{Engine, WorkflowFilter, WorkflowHit, WorkflowSearch};
use jurat_wire::{
    api::{
        kit::page::PageBody,
        workflows::{
            self, LineageBody, UpstreamView, WorkflowSearchBody, WorkflowSearchOrder,
            WorkflowVersionView,
        },
    },
    problem::Problem,
};
use serde_json::{Value, json};

pub(crate) use self::{
    files::{envelopes, single},
    grants::offered,
};
pub(super) use self::{
    files::{patch, read as read_files},
    grants::{grant, leave, list as grants, revoke, transfer},
};
use crate::request::page::{ListQuery, QueryFilters, wrong};
use crate::request::{
    decode::{Json, LargeJson, PathPair, PathText},
    encode::{self, HandlerResult},
    idempotency::{self, Idempotency},
};

const MARKDOWN: &str = "text/markdown";

pub(super) async fn save(
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

/// A version that was saved, as a reply says it.
pub(crate) fn saved(it: &WorkflowSaveResult) -> Value {
    json!(workflows::saved(&it.workflow, &it.body, (&it.bindings, &it.files)))
}

pub(super) async fn list(
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
        before: query.position()?,
        limit: query.with_one_more(),
    };
    let mut found = engine.workflow_list(&caller, filter).await?;
    let next = query.cut_opaque(&mut found, |reached| reached.workflow.id.clone());
    Ok(encode::ok(&PageBody::new(found.iter().map(workflows::listed), next.as_deref())))
}

fn flag(filters: &QueryFilters, name: &str) -> Result<bool, Problem> {
    match filters.get(name) {
        None | Some("false" | "0") => Ok(false),
        Some("true" | "1") => Ok(true),
        Some(_) => Err(wrong(name, "must be true or false")),
    }
}

pub(super) async fn search(
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
        query: &order.query,
        limit: order.limit,
        search_mode: "lexical",
    }
}

pub(super) async fn show(
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

pub(super) async fn show_version(
    State(engine): State<Engine>,
    Extension(caller): Extension<Caller>,
    PathPair(text, number): PathPair,
    headers: HeaderMap,
) -> HandlerResult {
    let wanted = workflows::pinned(workflows::reference(&text)?, Some(whole(&number)?))?;
    shown(&engine, &caller, &wanted, headers.get(header::ACCEPT)).await
}

/// The version of an address; what is no number names none.
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

pub(super) async fn archive(
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

pub(super) async fn unarchive(
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

pub(super) async fn erase(
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

pub(super) async fn erase_version(
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

pub(super) async fn lineage(
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
