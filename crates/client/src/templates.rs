//! `/v1/templates`, and the instructions for designing a workflow.

use jurat_wire::api::{
    packs::PackBody,
    templates::{
        ArchivedTemplate, DeletedTemplate, DeletedVersion, DeprecatedVersion, ForkedTemplate,
        OfferedTemplate, PublishedTemplateBody, SafetyCheckBody, TemplateBody,
        TemplateFileEnvelope, TemplateSearchBody, TemplateSummary, UnarchivedTemplate,
        UnpublishedVersion,
    },
};
use serde_json::json;

use crate::call::{Call, Page, path};

const ROUTE: &str = "/v1/templates";

/// The path of a template. The slash in its name is not percent-encoded.
fn address(template: &str, rest: &str) -> String {
    let parts: Vec<&str> = template.splitn(2, '/').collect();
    format!("{}{rest}", path(ROUTE, &parts))
}

pub fn list(
    filter: Option<&str>,
    search: Option<&str>,
    include_archived: Option<bool>,
) -> Call<Page<TemplateSummary<'static>>> {
    Call::get(ROUTE)
        .query("filter", filter)
        .query("search", search)
        .query("include_archived", include_archived)
}

pub fn search(
    query: &str,
    filter: Option<&str>,
    limit: Option<u32>,
) -> Call<TemplateSearchBody<'static>> {
    let body = json!({ "query": query, "filter": filter, "limit": limit });
    Call::post("/v1/templates/search", &body)
}

/// One version, by default the newest one.
pub fn show(template: &str, version: Option<u32>) -> Call<TemplateBody<'static>> {
    Call::get(address(template, "")).query("version", version)
}

pub fn file(
    template: &str,
    path: &str,
    version: Option<u32>,
) -> Call<TemplateFileEnvelope<'static>> {
    Call::get(address(template, "/files")).query("path", Some(path)).query("version", version)
}

pub fn publish(
    workflow: &str,
    release_notes: Option<&str>,
) -> Call<PublishedTemplateBody<'static>> {
    Call::post(ROUTE, &json!({ "workflow_id": workflow, "release_notes": release_notes }))
}

pub fn fork(
    template: &str,
    version: Option<u32>,
    name: Option<&str>,
) -> Call<ForkedTemplate<'static>> {
    let body = json!({ "identifier": template, "version": version, "name": name });
    Call::post("/v1/templates/fork", &body)
}

pub fn delete(template: &str) -> Call<DeletedTemplate<'static>> {
    Call::delete(address(template, ""))
}

pub fn unpublish(template: &str, version: u32) -> Call<UnpublishedVersion<'static>> {
    Call::delete(address(template, &format!("/versions/{version}")))
}

pub fn delete_version(template: &str, version: u32) -> Call<DeletedVersion<'static>> {
    Call::delete(address(template, &format!("/versions/{version}/permanent")))
}

pub fn deprecate_version(
    template: &str,
    version: u32,
    message: Option<&str>,
) -> Call<DeprecatedVersion<'static>> {
    let address = address(template, &format!("/versions/{version}/deprecate"));
    Call::post(address, &json!({ "message": message }))
}

pub fn archive(template: &str, reason: Option<&str>) -> Call<ArchivedTemplate<'static>> {
    Call::post(address(template, "/archive"), &json!({ "archive_reason": reason }))
}

pub fn unarchive(template: &str) -> Call<UnarchivedTemplate<'static>> {
    Call::post(address(template, "/unarchive"), &json!({}))
}

pub fn check_safety(template: &str, version: Option<u32>) -> Call<SafetyCheckBody<'static>> {
    Call::post(address(template, "/safety-check"), &json!({})).query("version", version)
}

pub fn transfer_ownership(template: &str, new_owner: &str) -> Call<OfferedTemplate<'static>> {
    let body = json!({ "new_owner_user_id_or_email": new_owner });
    Call::post(address(template, "/transfer-ownership"), &body)
}

/// Instructions for an agent that designs a workflow.
pub fn design() -> Call<PackBody<'static>> {
    Call::get("/v1/design/workflow-prompt")
}
